//! Uniform, hot and cold, and sequential writes, compared with theory.

use std::fmt::Write as _;

use anyhow::bail;
use saiga_document::number;
use saiga_ftl::replay::{Class, silent};
use saiga_ftl::steady;
use saiga_ftl::theory::{self, Share};
use saiga_ftl::workload::{Part, Random, Rings, Workload};
use saiga_ftl::{Config, Counting, Device, GcFrontier, Isolation, Policy, Quota};
use saiga_whatif::format::round_percent;
use serde_json::{Value, json};

use super::{Args, HotCold, outcome};
use saiga_process::available_memory;

/// A published closed-form or numeric result.
struct Theory {
    what: &'static str,
    waf: f64,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Uniform,
    HotCold(HotCold),
    Sequential,
}

/// Returns text and JSON.
pub(super) fn simulate(args: &Args) -> anyhow::Result<(String, Value)> {
    let kind = match args.hot_cold {
        Some(shares) => Kind::HotCold(shares),
        None if args.sequential => Kind::Sequential,
        None => Kind::Uniform,
    };
    let used = used_pages(args)?;
    let parts = parts(kind, used, args.streams)?;
    let config = config(args, parts.len())?;
    let mut device = Device::new(config.clone())?;
    let mut workload: Box<dyn Workload> = match kind {
        Kind::Sequential => {
            let lengths: Vec<u32> = parts.iter().map(|part| part.pages).collect();
            Box::new(Rings::new(&lengths))
        }
        Kind::Uniform | Kind::HotCold(_) => Box::new(Random::new(&parts, args.device.common.seed)),
    };
    let length = args.device.length();
    let Some(found) = steady::run(&mut device, workload.as_mut(), length, &mut silent) else {
        bail!("interrupted");
    };
    let classes = classes(kind, &parts, &config);
    let theories = theories(kind, used, &device);
    let mut text = outcome::device_lines(&config, &device);
    if let Some(few) = outcome::few_units(&device) {
        let _ = writeln!(text, "note: {few}");
    }
    let _ = writeln!(
        text,
        "{}; {} in use\nmeasured: {} host pages, after {} of warm-up\n",
        describe(kind, config.streams.len()),
        round_percent(f64::from(used) / f64::from(args.pages)),
        found.measured.host_pages(),
        found.warm_up_pages,
    );
    let _ = writeln!(
        text,
        "write amplification {:.4} ± {:.4}",
        found.waf(),
        found.spread()
    );
    for Theory { what, waf } in &theories {
        let _ = writeln!(text, "theory              {waf:.4} {what}");
    }
    if let Some(share) = outcome::mean_valid(&found, config.unit_pages) {
        let share = number::percent(share);
        let _ = writeln!(text, "victims had         {share} valid pages on average");
    }
    let _ = write!(
        text,
        "\n{}\n{}",
        outcome::class_table(&found, &classes),
        outcome::frontier_table(&found, config.unit_pages)
    );
    let json = json!({
        "workload": workload_json(kind, used),
        "device": outcome::device_json(&config, &device),
        "theory": theories.iter().map(|it| json!({"what": it.what, "waf": it.waf})).collect::<Vec<_>>(),
        "result": outcome::as_json(&found, &classes),
    });
    Ok((text, json))
}

fn used_pages(args: &Args) -> anyhow::Result<u32> {
    let share = args.device.one_utilisation()?.unwrap_or(1.0);
    if !(share > 0.0 && share <= 1.0) {
        bail!("--utilisation {share}: give a share above 0 and at most 1, such as 0.9 for 90 %");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of `u32`"
    )]
    let used = (f64::from(args.pages) * share).round() as u32;
    Ok(used.max(1).min(args.pages))
}

/// The page ranges and their write rates; each part is a class.
fn parts(kind: Kind, used: u32, streams: u8) -> anyhow::Result<Vec<Part>> {
    if let Kind::HotCold(HotCold { pages, writes }) = kind {
        if streams > 2 {
            bail!("--streams {streams}: hot and cold data need 1 or 2 streams");
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of `u32`"
        )]
        let hot = (f64::from(used) * pages).round() as u32;
        if hot == 0 || hot == used {
            bail!("--hot-cold: of {used} pages, {hot} would be hot; use more --pages");
        }
        let part = |pages, writes, class| Part {
            pages,
            writes,
            class,
        };
        return Ok(vec![
            part(hot, writes, 0),
            part(used - hot, 1.0 - writes, 1),
        ]);
    }
    let count = u32::from(streams);
    if used < count {
        bail!("--streams {streams}: only {used} pages hold data; use more --pages");
    }
    let part = |class: u8| {
        // The first parts take the remainder.
        let pages = used / count + u32::from(u32::from(class) < used % count);
        Part {
            pages,
            writes: f64::from(pages),
            class,
        }
    };
    Ok((0..streams).map(part).collect())
}

fn config(args: &Args, classes: usize) -> anyhow::Result<Config> {
    let device = &args.device;
    let base = Config {
        counting: device.counting(Counting::ClosedUnits),
        policy: device.one_policy()?,
        quota: device.quota(),
        gc: device.gc(),
        seed: device.common.seed,
        memory_bytes: available_memory::available_bytes(),
        ..Config::plain(
            args.pages,
            device.one_op()?,
            device.one_unit_size()?.unwrap_or(256),
        )
    };
    if args.streams == 1 {
        // One stream is trivially apart from itself.
        return Ok(Config {
            classes: vec![0; classes],
            ..base
        });
    }
    Ok(base.with_streams(classes, args.isolation.isolation()))
}

fn classes(kind: Kind, parts: &[Part], config: &Config) -> Vec<Class> {
    let name = |class: usize| match (kind, class) {
        (Kind::HotCold(_), 0) => "hot".to_owned(),
        (Kind::HotCold(_), _) => "cold".to_owned(),
        (Kind::Uniform | Kind::Sequential, _) if parts.len() == 1 => "all".to_owned(),
        (Kind::Uniform | Kind::Sequential, _) => format!("part {class}"),
    };
    let streams = config.classes.iter().enumerate();
    let class = |(number, &stream): (usize, &usize)| Class {
        name: name(number),
        stream,
        directory: None,
        written_pages: parts[number].pages.into(),
    };
    streams.map(class).collect()
}

/// Theoretical results for this device and workload.
fn theories(kind: Kind, used: u32, device: &Device) -> Vec<Theory> {
    let config = device.config();
    // Pages without data are spare space.
    let spare = device.closed_pages() as f64 / f64::from(used) - 1.0;
    let one_log = config.handles.len() == 1 && config.gc == GcFrontier::WithHost;
    let hot_cold = match kind {
        Kind::Sequential => {
            let what = "pages in cyclic order";
            return if config.streams.len() == 1 {
                vec![Theory { what, waf: 1.0 }]
            } else {
                Vec::new()
            };
        }
        Kind::Uniform => {
            let what = match config.policy {
                Policy::Fifo => "FIFO victims under uniform writes",
                Policy::Greedy => "FIFO victims; greedy approaches this from below as units grow",
                Policy::Choice(_) | Policy::CostBenefit => "FIFO victims, for comparison",
            };
            let waf = theory::uniform(spare);
            return vec![Theory { what, waf }];
        }
        Kind::HotCold(shares) => shares,
    };
    let HotCold { pages, writes } = hot_cold;
    let hot = Share { pages, writes };
    let cold = Share {
        pages: 1.0 - pages,
        writes: 1.0 - writes,
    };
    let mut theories = Vec::new();
    if config.policy == Policy::Fifo && one_log {
        theories.push(Theory {
            what: "FIFO victims, one log",
            waf: theory::fifo(spare, &[hot, cold]),
        });
    }
    let are_apart = config
        .handles
        .iter()
        .all(|kind| *kind == Isolation::Persistently);
    if config.policy == Policy::Greedy && config.quota == Quota::None && are_apart {
        theories.push(Theory {
            what: "uniform writes: greedy fills persistently isolated streams equally",
            waf: theory::uniform(spare),
        });
    }
    theories.push(Theory {
        what: "two streams with the best split of the spare space, which greedy alone does not find",
        waf: theory::two_streams_at_best(spare, hot),
    });
    theories
}

fn describe(kind: Kind, streams: usize) -> String {
    let what = match kind {
        Kind::Uniform => "uniform random writes".to_owned(),
        Kind::HotCold(HotCold { pages, writes }) => {
            format!(
                "random writes, {} of the pages get {}",
                round_percent(pages),
                round_percent(writes)
            )
        }
        Kind::Sequential => "sequential writes".to_owned(),
    };
    let ending = if streams == 1 { "" } else { "s" };
    format!("{what} to {streams} stream{ending}")
}

fn workload_json(kind: Kind, used: u32) -> Value {
    match kind {
        Kind::Uniform => json!({"kind": "uniform", "used_pages": used}),
        Kind::Sequential => json!({"kind": "sequential", "used_pages": used}),
        Kind::HotCold(HotCold { pages, writes }) => json!({
            "kind": "hot-cold", "used_pages": used, "hot_pages": pages, "hot_writes": writes,
        }),
    }
}
