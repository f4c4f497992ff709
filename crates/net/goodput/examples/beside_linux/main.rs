//! Goodput and fairness of the engine beside the kernel's CUBIC, over the same modelled path in
//! real time: Markdown tables on stdout. Needs root, ip(8) and /dev/net/tun.
//!
//! `beside_linux [SECONDS] [SEEDS] [CELL]`: seconds of a run, runs of each arm, and a part of the
//! name of the cells to run. Both arms of a pair run at the same time over paths of their own with
//! the same seed, so that the host's other load meets both.

mod clock;
mod engine;
mod kernel;
mod namespace;
mod road;
mod sys;

use std::time::Duration;

use anyhow::anyhow;
use saiga_goodput::cells::{self, Cell, RTTS_US, Trouble};
use saiga_goodput::figures::{jain, median};

use road::{Outcome, Trial};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let seeds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let part = arguments.next().unwrap_or_default();
    println!("| path | Saiga, Mbit/s | Linux, Mbit/s | ratio | least to most |");
    println!("|---|---|---|---|---|");
    for cell in cells::all().filter(|cell| cell.name().contains(&part)) {
        print_cell(cell, seconds, seeds)?;
    }
    println!("\n| round trip | Jain's index, 8 of Saiga | 8 of Linux | share of 8 of Saiga against 8 of Linux |");
    println!("|---|---|---|---|");
    for rtt_us in RTTS_US {
        print_fairness(rtt_us, 3 * seconds, seeds)?;
    }
    Ok(())
}

fn print_cell(cell: Cell, seconds: u64, seeds: u64) -> anyhow::Result<()> {
    let (mut ours, mut linux, mut ratios) = (vec![], vec![], vec![]);
    for seed in 0..seeds {
        let trial = |ours: usize| Trial {
            cell,
            ours,
            linux: 1 - ours,
            skip: Duration::ZERO,
            length: Duration::from_secs(seconds),
            seed,
        };
        let [one, other] = both(trial(1), trial(0))?;
        eprintln!("{} seed {seed}: {one:?}, {other:?}", cell.name());
        ours.extend(&one.ours);
        linux.extend(&other.linux);
        ratios.push(one.ours[0] / other.linux[0]);
    }
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    println!(
        "| {} | {:.2} | {:.2} | {:.2} | {least:.2} to {most:.2} |",
        cell.name(),
        median(&ours) / 1e6,
        median(&linux) / 1e6,
        median(&ratios)
    );
    Ok(())
}

/// Runs both trials at the same time.
fn both(one: Trial, other: Trial) -> anyhow::Result<[Outcome; 2]> {
    let one = std::thread::spawn(move || one.run());
    let other = std::thread::spawn(move || other.run());
    let joined = [one, other].map(|thread| {
        let result = thread.join();
        result.unwrap_or_else(|_| Err(anyhow!("a run has failed")))
    });
    let [one, other] = joined;
    Ok([one?, other?])
}

/// Only the last two thirds of the time count.
fn print_fairness(rtt_us: u64, seconds: u64, seeds: u64) -> anyhow::Result<()> {
    let cell = Cell {
        trouble: Trouble::None,
        rtt_us,
    };
    let (mut of_ours, mut of_linux, mut shares) = (vec![], vec![], vec![]);
    for seed in 0..seeds {
        let trial = |ours, linux| Trial {
            cell,
            ours,
            linux,
            skip: Duration::from_secs(seconds) / 3,
            length: Duration::from_secs(seconds),
            seed,
        };
        let [one, other] = both(trial(8, 0), trial(0, 8))?;
        let mixed = trial(8, 8).run()?;
        eprintln!("{} ms seed {seed}: {one:?}, {other:?}, {mixed:?}", rtt_us as f64 / 1e3);
        of_ours.push(jain(&one.ours));
        of_linux.push(jain(&other.linux));
        let (ours, linux): (f64, f64) = (mixed.ours.iter().sum(), mixed.linux.iter().sum());
        shares.push(ours / (ours + linux));
    }
    println!(
        "| {} ms | {:.3} | {:.3} | {:.3} |",
        rtt_us as f64 / 1e3,
        median(&of_ours),
        median(&of_linux),
        median(&shares)
    );
    Ok(())
}
