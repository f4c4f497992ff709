//! The outcome of one simulation as text and as JSON.

use saiga_document::number;
use saiga_ftl::counters::VALID_STEPS;
use saiga_ftl::replay::Class;
use saiga_ftl::steady::{Interval, Outcome};
use saiga_ftl::{Config, Counting, Device, GcFrontier, Isolation, Quota, Role};
use saiga_whatif::document::policy_name;
use saiga_whatif::format::round_percent;
use serde_json::{Value, json};

use saiga_document::table::Table;

/// Moved pages, attributed to the class whose pages died in the same unit.
pub(super) struct Charge<'a> {
    /// Class of the dead pages.
    pub(super) died: &'a str,
    /// Class of the moved pages.
    pub(super) moved: &'a str,
    /// Share of all moved pages.
    pub(super) share: f64,
    pub(super) pages: f64,
}

/// Which class caused moves of which class, in descending order.
pub(super) fn charges<'a>(outcome: &Outcome, classes: &'a [Class]) -> Vec<Charge<'a>> {
    let all = outcome.measured.moved_pages() as f64;
    let mut charges = Vec::new();
    for (died, row) in classes.iter().zip(&outcome.measured.charged) {
        for (moved, &pages) in classes.iter().zip(row) {
            if pages > 0.5 {
                charges.push(Charge {
                    died: &died.name,
                    moved: &moved.name,
                    share: pages / all,
                    pages,
                });
            }
        }
    }
    charges.sort_by(|a, b| b.pages.total_cmp(&a.pages));
    charges
}

/// With fewer units, results depend on the number of units.
const FEW_UNITS: u32 = 512;

/// A note if the device has too few reclaim units.
pub(in crate::streams) fn few_units(device: &Device) -> Option<String> {
    let (units, pages) = (device.units(), device.config().unit_pages);
    (units < FEW_UNITS).then(|| {
        format!(
            "the simulated device has {units} reclaim units of {pages} pages; real drives have \
             more than {FEW_UNITS}. With fewer, the results depend on their number: use more \
             data, or smaller --ru-pages"
        )
    })
}

/// The device in two lines.
pub(super) fn device_lines(config: &Config, device: &Device) -> String {
    let counting = match config.counting {
        Counting::ClosedUnits => "excluding open and reserved units",
        Counting::WholeDevice => "including open and reserved units",
    };
    let gc = match config.gc {
        GcFrontier::Own => "moved pages have open units of their own",
        GcFrontier::WithHost => "moved pages share the open units of the host",
    };
    let quota = match config.quota {
        Quota::None => "",
        Quota::Even => " of the handle with the most spare space",
        Quota::Data => " of the handle with the most spare space relative to its data",
    };
    format!(
        "device: {} logical pages, over-provisioning {}, {counting}\n{} reclaim units of {} \
         pages, {} victims{quota}; {gc}\n",
        config.logical_pages,
        round_percent(config.over_provisioning),
        device.units(),
        config.unit_pages,
        policy_name(config.policy),
    )
}

/// Pages written and moved, by class.
pub(super) fn class_table(outcome: &Outcome, classes: &[Class]) -> String {
    let mut table = Table::new(["class", "stream", "pages written", "pages moved", "WAF"]);
    let counters = &outcome.measured;
    for (number, class) in classes.iter().enumerate() {
        let (host, moved) = (counters.host[number], counters.moved[number]);
        table.row([
            class.name.clone(),
            class.stream.to_string(),
            host.to_string(),
            moved.to_string(),
            waf(host, moved).map_or("-".to_owned(), |waf| format!("{waf:.3}")),
        ]);
    }
    table.to_string()
}

/// Units by their frontier, and their mean fill.
pub(super) fn frontier_table(outcome: &Outcome, unit_pages: u32) -> String {
    let mut table = Table::new([
        "units filled by",
        "units",
        "valid",
        "victims",
        "pages moved",
    ]);
    for (held, from) in outcome.occupancy.iter().zip(&outcome.measured.moved_from) {
        let all = f64::from(held.units) * f64::from(unit_pages);
        let valid = held.valid_pages as f64 / all;
        table.row([
            role_name(held.role),
            held.units.to_string(),
            if held.units > 0 {
                number::percent(valid)
            } else {
                "-".to_owned()
            },
            from.victims.to_string(),
            from.moved.iter().sum::<u64>().to_string(),
        ]);
    }
    table.to_string()
}

/// Mean share of valid pages in a victim; `None` without victims.
pub(super) fn mean_valid(outcome: &Outcome, unit_pages: u32) -> Option<f64> {
    let victims: u64 = outcome.measured.victims.iter().sum();
    let pages = victims as f64 * f64::from(unit_pages);
    (victims > 0).then(|| outcome.measured.moved_pages() as f64 / pages)
}

pub(super) fn as_json(outcome: &Outcome, classes: &[Class]) -> Value {
    let counters = &outcome.measured;
    let intervals = (0..).zip(&outcome.intervals);
    let intervals =
        intervals.map(|(number, it)| interval_json(it, number < outcome.warm_up_intervals));
    let list = classes.iter().enumerate().map(|(number, class)| {
        let (host, moved) = (counters.host[number], counters.moved[number]);
        json!({
            "name": class.name,
            "stream": class.stream,
            "host_pages": host,
            "moved_pages": moved,
            "trimmed_pages": counters.trimmed[number],
            "waf": waf(host, moved),
        })
    });
    let frontiers = outcome
        .occupancy
        .iter()
        .zip(&counters.moved_from)
        .map(|(held, from)| {
            json!({
                "frontier": role_name(held.role),
                "units": held.units,
                "valid_pages": held.valid_pages,
                "victims": from.victims,
                "moved_pages_by_class": from.moved,
            })
        });
    let charges = charges(outcome, classes).into_iter().map(|charge| {
        json!({
            "died": charge.died,
            "moved": charge.moved,
            "moved_pages": charge.pages,
            "share": charge.share,
        })
    });
    json!({
        "waf": outcome.waf(),
        "waf_half_range": outcome.spread(),
        "host_pages": counters.host_pages(),
        "moved_pages": counters.moved_pages(),
        "moved_in_vain_pages": counters.moved_in_vain.iter().sum::<u64>(),
        "erased_units": counters.erased,
        "mixing_bits": outcome.mixing_bits(),
        "warm_up_pages": outcome.warm_up_pages,
        "warm_up_repetitions": outcome.repetitions[0],
        "measured_repetitions": outcome.repetitions[1],
        "intervals": intervals.collect::<Vec<_>>(),
        "victims_by_valid_share": {
            "step": 1.0 / VALID_STEPS as f64,
            "units": counters.victims,
        },
        "classes": list.collect::<Vec<_>>(),
        "frontiers": frontiers.collect::<Vec<_>>(),
        "charges": charges.collect::<Vec<_>>(),
    })
}

/// One interval, with the values that change until the device is steady.
fn interval_json(interval: &Interval, is_warm_up: bool) -> Value {
    let units = interval.occupancy.iter().map(|held| held.units);
    json!({
        "host_pages": interval.host_pages,
        "waf": interval.waf,
        "warm_up": is_warm_up,
        "moved_pages_by_class": interval.counted.moved,
        "victims_by_valid_share": interval.counted.victims,
        "units_by_frontier": units.collect::<Vec<_>>(),
        "mixing_bits": interval.mixing_bits,
    })
}

pub(super) fn device_json(config: &Config, device: &Device) -> Value {
    let handles = config.handles.iter().map(|isolation| match isolation {
        Isolation::Initially => "initially isolated",
        Isolation::Persistently => "persistently isolated",
    });
    json!({
        "logical_pages": config.logical_pages,
        "over_provisioning": config.over_provisioning,
        "counting": match config.counting {
            Counting::ClosedUnits => "closed",
            Counting::WholeDevice => "whole",
        },
        "unit_pages": config.unit_pages,
        "units": device.units(),
        "closed_pages": device.closed_pages(),
        "policy": policy_name(config.policy),
        "quota": match config.quota {
            Quota::None => "none",
            Quota::Even => "even",
            Quota::Data => "data",
        },
        "gc": match config.gc {
            GcFrontier::Own => "own",
            GcFrontier::WithHost => "shared",
        },
        "handles": handles.collect::<Vec<_>>(),
        "seed": config.seed,
    })
}

fn waf(host: u64, moved: u64) -> Option<f64> {
    (host > 0).then(|| (host + moved) as f64 / host as f64)
}

fn role_name(role: Role) -> String {
    match role {
        Role::Host(handle) => format!("host, handle {handle}"),
        Role::GcOf(handle) => format!("gc, handle {handle}"),
        Role::SharedGc => "gc, shared".to_owned(),
    }
}
