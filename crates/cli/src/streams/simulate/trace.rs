//! A recorded trace under one stream and under every rule set, initially and persistently isolated.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use saiga_experiment::interrupt::Interrupt;
use saiga_ftl::replay::{self, Case, Footprint, Options, Placement, Rules};
use saiga_ftl::trace::{self as format, Trace};
use saiga_ftl::{Config, Counting, Device};
use serde_json::{Value, json};

use super::assignment::Assignment;
use super::{Args, outcome, percent};
use crate::table::Table;
use crate::{exit, units};

/// Lines of who was whose victim, for each case.
const CHARGES: usize = 6;

/// A case with its names.
struct Named {
    rules: String,
    placement: Placement,
    case: Case,
}

/// Answers text and JSON.
pub(super) fn simulate(path: &Path, args: &Args) -> anyhow::Result<(String, Value)> {
    let shown = path.display();
    let mut assignments = Vec::new();
    for path in &args.rules {
        assignments.push(Assignment::load(path)?);
    }
    let trace = read(path)?;
    for assignment in &assignments {
        for pattern in assignment.idle(&trace.files) {
            exit::say(&format!(
                "note: {}: {pattern:?} matches no file of the trace",
                assignment.name
            ));
        }
    }
    let footprint = Footprint::of(&trace, args.page_bytes).with_context(|| format!("{shown}"))?;
    let options = options(args);
    let config = replay::device(&footprint, &options)?;
    let device = Device::new(config.clone())?;
    let cases = cases(&footprint, &assignments, &options)?;
    let mut text = head(path, &trace, &footprint, args.page_bytes);
    text.push_str(&outcome::device_lines(&config, &device));
    text.push_str(&steadiness(&footprint, &options, &cases));
    text.push_str(&comparison(&cases));
    for named in &cases {
        text.push_str(&victims(named));
    }
    text.push_str(&notes(&footprint, &cases, &options));
    let json = json!({
        "trace": trace_json(path, &trace, &footprint, args.page_bytes),
        "device": device_json(&config, &device, &options),
        "cases": cases.iter().map(|named| case_json(named, cases.first())).collect::<Vec<_>>(),
    });
    Ok((text, json))
}

fn read(path: &Path) -> anyhow::Result<Trace> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    format::read(BufReader::new(file)).with_context(|| format!("{shown}"))
}

fn options(args: &Args) -> Options {
    let defaults = Options::default();
    let device = &args.device;
    Options {
        utilisation: device.utilisation.unwrap_or(defaults.utilisation),
        over_provisioning: device.op,
        unit_pages: device.ru_pages,
        counting: device.counting(Counting::WholeDevice),
        policy: device.policy,
        quota: device.quota(),
        gc: device.gc(),
        handles: args.handles,
        trim: !args.no_trim,
        length: device.length(),
        seed: device.seed,
    }
}

/// One stream first, then every rule set.
fn cases(
    footprint: &Footprint,
    assignments: &[Assignment],
    options: &Options,
) -> anyhow::Result<Vec<Named>> {
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let no_rules = |_: Option<&str>| 0;
    let mut wanted: Vec<(&str, &dyn Rules, Placement)> =
        vec![("none", &no_rules, Placement::OneStream)];
    for assignment in assignments {
        for placement in [
            Placement::InitiallyIsolated,
            Placement::PersistentlyIsolated,
        ] {
            wanted.push((&assignment.name, assignment, placement));
        }
    }
    let count = wanted.len();
    let mut cases = Vec::new();
    for (number, (rules, function, placement)) in (1..).zip(wanted) {
        exit::say(&format!(
            "simulating {number} of {count}: {rules}, {}",
            placement_name(placement)
        ));
        let report = &mut |_| {
            if interrupt.raised() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let case = replay::replay(footprint, function, placement, options, report)?;
        let rules = rules.to_owned();
        cases.push(Named {
            rules,
            placement,
            case,
        });
    }
    Ok(cases)
}

fn head(path: &Path, trace: &Trace, footprint: &Footprint, page_bytes: u64) -> String {
    let totals = footprint.totals();
    let mut text = format!(
        "trace: {}, {} in {} files\n{} writes of {}, {} discards of {}\n",
        path.display(),
        units::time(Duration::from_nanos(totals.duration_ns)),
        trace.files.len(),
        totals.writes,
        units::bytes(totals.written_bytes),
        totals.discards,
        units::bytes(totals.discarded_bytes),
    );
    let _ = writeln!(
        text,
        "{} distinct pages of {}, {} of which held data before; {} written by one repetition",
        footprint.pages(),
        units::bytes(page_bytes),
        totals.present_pages,
        totals.written_pages,
    );
    if totals.partial_writes > 0 {
        let share = totals.partial_writes as f64 / totals.writes as f64;
        let _ = writeln!(
            text,
            "{} of the writes begin or end within a page, which was then written whole",
            outcome::percent_rounded(share)
        );
    }
    text
}

/// How far the steady state was waited for.
fn steadiness(footprint: &Footprint, options: &Options, cases: &[Named]) -> String {
    let Some(named) = cases.first() else {
        return String::new();
    };
    let [warm_up, measured] = named.case.outcome.repetitions;
    let pass = footprint.totals().written_pages;
    format!(
        "{} in use; the trace was repeated {warm_up} times as warm-up ({} device sizes) and {measured} times measured\n\n",
        percent(options.utilisation),
        round_down(warm_up * pass, footprint.pages(), options.utilisation),
    )
}

/// How many device sizes so many pages are.
fn round_down(pages: u64, footprint: u32, utilisation: f64) -> String {
    let size = (f64::from(footprint) / utilisation).ceil();
    format!("{:.1}", (pages as f64 / size * 10.0).floor() / 10.0)
}

fn comparison(cases: &[Named]) -> String {
    let mut table = Table::new([
        "rules",
        "placement",
        "streams",
        "WAF",
        "half range",
        "writes to flash",
    ]);
    let base = cases.first().map(|named| named.case.outcome.waf());
    for Named {
        rules,
        placement,
        case,
    } in cases
    {
        let waf = case.outcome.waf();
        let change = base.map_or(0.0, |base| (waf / base - 1.0) * 100.0);
        table.row([
            rules.clone(),
            placement_name(*placement).to_owned(),
            case.streams.len().to_string(),
            format!("{waf:.3}"),
            format!("{:.3}", case.outcome.spread()),
            if *placement == Placement::OneStream {
                String::new()
            } else {
                format!("{change:+.1} %")
            },
        ]);
    }
    table.to_string()
}

/// Whose pages were moved because of whom.
fn victims(named: &Named) -> String {
    let Named {
        rules,
        placement,
        case,
    } = named;
    let title = format!("\n{rules}, {}: ", placement_name(*placement));
    let moved = case.outcome.measured.moved_pages();
    if moved == 0 {
        return format!("{title}nothing was moved\n");
    }
    let mut table = Table::new([
        "moved",
        "because these died in the same unit",
        "share of moved pages",
    ]);
    for charge in outcome::charges(&case.outcome, &case.classes)
        .into_iter()
        .take(CHARGES)
    {
        table.row([
            charge.moved.to_owned(),
            charge.died.to_owned(),
            outcome::percent_rounded(charge.share),
        ]);
    }
    format!("{title}{moved} pages were moved\n{table}")
}

fn notes(footprint: &Footprint, cases: &[Named], options: &Options) -> String {
    let mut text = String::new();
    let writes = footprint.writes_per_page();
    if writes < replay::FEW_WRITES_PER_PAGE {
        let _ = writeln!(
            text,
            "\nnote: the trace writes its pages {writes:.1} times in the mean. Repeated, that looks like a ring, and \
             write amplification comes out too low; record at least {} times as long",
            (replay::FEW_WRITES_PER_PAGE / writes).ceil()
        );
    }
    for named in cases
        .iter()
        .filter(|named| named.placement == Placement::InitiallyIsolated)
    {
        if !named.case.without_handle.is_empty() {
            let _ = writeln!(
                text,
                "\nnote: {}: streams {:?} shared the first handle, for the device has {}",
                named.rules, named.case.without_handle, options.handles
            );
        }
    }
    text
}

fn placement_name(placement: Placement) -> &'static str {
    match placement {
        Placement::OneStream => "one stream",
        Placement::InitiallyIsolated => "initially isolated",
        Placement::PersistentlyIsolated => "persistently isolated",
    }
}

fn trace_json(path: &Path, trace: &Trace, footprint: &Footprint, page_bytes: u64) -> Value {
    let totals = footprint.totals();
    json!({
        "path": path.display().to_string(),
        "files": trace.files.len(),
        "duration_s": totals.duration_ns as f64 / 1e9,
        "writes": totals.writes,
        "written_bytes": totals.written_bytes,
        "partial_writes": totals.partial_writes,
        "discards": totals.discards,
        "discarded_bytes": totals.discarded_bytes,
        "page_bytes": page_bytes,
        "footprint_pages": footprint.pages(),
        "present_pages": totals.present_pages,
        "written_pages": totals.written_pages,
        "distinct_written_pages": totals.distinct_written_pages,
        "writes_per_page": footprint.writes_per_page(),
    })
}

fn device_json(config: &Config, device: &Device, options: &Options) -> Value {
    let mut value = outcome::device_json(config, device);
    value["utilisation"] = json!(options.utilisation);
    value["handles"] = json!(options.handles);
    value["trim"] = json!(options.trim);
    value
}

fn case_json(named: &Named, base: Option<&Named>) -> Value {
    let case = &named.case;
    let base = base.map(|base| base.case.outcome.waf());
    json!({
        "rules": named.rules,
        "placement": placement_name(named.placement),
        "streams": case.streams,
        "streams_without_handle": case.without_handle,
        "flash_writes_ratio": base.map(|base| case.outcome.waf() / base),
        "result": outcome::as_json(&case.outcome, &case.classes),
    })
}
