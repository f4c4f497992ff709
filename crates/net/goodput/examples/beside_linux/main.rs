//! Goodput and fairness of the engine beside the kernel's CUBIC, over the same modelled path in
//! real time: a Markdown table on stdout, each run on stderr. Needs root, ip(8) and /dev/net/tun.
//!
//! `beside_linux TABLE [SECONDS] [RUNS] [PATH]`: seconds of a run, runs of each arm, and a part of
//! the names of the paths. TABLE is `goodput` or `fairness`. Both arms of a pair run at the same
//! time over paths of their own with the same seed, so that other load of the host meets both.

mod counts;
mod engine;
mod kernel;
mod namespace;
mod road;
mod sys;

use std::time::Duration;

use anyhow::{anyhow, bail};
use saiga_goodput::cells::{self, Cell, RTTS_US, Trouble};
use saiga_goodput::figures::{jain, median, span};

use road::{Outcome, Trial};

/// Flows of each kind in the runs of fairness.
const FLOWS: usize = 8;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let table = arguments.next().unwrap_or_default();
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let runs = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let part = arguments.next().unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    println!(
        "{runs} pairs of runs of {seconds} s, {} Mbit/s, Linux {}\n",
        cells::RATE / 1_000_000,
        kernel.trim()
    );
    match table.as_str() {
        "goodput" => goodput(seconds, runs, &part),
        "fairness" => fairness(seconds, runs, &part),
        other => bail!("`{other}` is not a table: goodput or fairness"),
    }
}

fn goodput(seconds: u64, runs: u64, part: &str) -> anyhow::Result<()> {
    println!("| path | Saiga, Mbit/s | Linux, Mbit/s | ratio | least to most |");
    println!("|---|---|---|---|---|");
    for cell in cells::all().filter(|cell| cell.name().contains(part)) {
        let (mut ours, mut linux, mut ratios) = (vec![], vec![], vec![]);
        for seed in 0..runs {
            let trial = |ours: usize| Trial {
                cell,
                ours,
                linux: 1 - ours,
                skip: Duration::ZERO,
                length: Duration::from_secs(seconds),
                seed,
            };
            let [one, other] = both(trial(1), trial(0))?;
            show(&cell, seed, [&one, &other]);
            ours.extend(&one.ours);
            linux.extend(&other.linux);
            ratios.push(one.sum() / other.sum());
        }
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {} |",
            cell.name(),
            median(&ours) / 1e6,
            median(&linux) / 1e6,
            median(&ratios),
            span(&ratios)
        );
    }
    Ok(())
}

/// Flows begin within a second. Only the last two thirds of the time count.
fn fairness(seconds: u64, runs: u64, part: &str) -> anyhow::Result<()> {
    println!(
        "| round trip | Jain's index of 8 of Saiga | of 8 of Linux | share of 8 of Saiga beside 8 \
         of Linux | least to most |"
    );
    println!("|---|---|---|---|---|");
    for rtt_us in RTTS_US {
        let cell = Cell {
            trouble: Trouble::None,
            rtt_us,
        };
        if !cell.name().contains(part) {
            continue;
        }
        let (mut of_ours, mut of_linux, mut shares) = (vec![], vec![], vec![]);
        for seed in 0..runs {
            let trial = |ours, linux| Trial {
                cell,
                ours,
                linux,
                skip: Duration::from_secs(seconds) / 3,
                length: Duration::from_secs(seconds),
                seed,
            };
            let [one, other] = both(trial(FLOWS, 0), trial(0, FLOWS))?;
            // The order of the seeds does not matter: another one for the second mixed run.
            let more = Trial {
                seed: seed + runs,
                ..trial(FLOWS, FLOWS)
            };
            let [mixed, again] = both(trial(FLOWS, FLOWS), more)?;
            show(&cell, seed, [&one, &other]);
            show(&cell, seed, [&mixed, &again]);
            of_ours.push(jain(&one.ours));
            of_linux.push(jain(&other.linux));
            shares.extend([mixed.share(), again.share()]);
        }
        println!(
            "| {} ms | {:.3} | {:.3} | {:.3} | {} |",
            rtt_us as f64 / 1e3,
            median(&of_ours),
            median(&of_linux),
            median(&shares),
            span(&shares)
        );
    }
    Ok(())
}

/// The raw result of a pair.
fn show(cell: &Cell, seed: u64, pair: [&Outcome; 2]) {
    for outcome in pair {
        eprintln!("{}, seed {seed}: {outcome}", cell.name());
    }
}

/// Runs both trials at the same time.
fn both(one: Trial, other: Trial) -> anyhow::Result<[Outcome; 2]> {
    let threads = [one, other].map(|trial| std::thread::spawn(move || trial.run()));
    let [one, other] = threads.map(|thread| {
        let result = thread.join();
        result.unwrap_or_else(|_| Err(anyhow!("a run has failed")))
    });
    Ok([one?, other?])
}
