//! Goodput of the engine in simulated time over each path of the comparison, and the fairness of
//! eight flows: two Markdown tables on stdout.
//!
//! `simulated [SECONDS] [SEEDS] [CELL]`: simulated seconds of a run, runs, and a part of the name
//! of the cells to run.

use saiga_goodput::cells::{self, Cell, RTTS_US, Trouble};
use saiga_goodput::figures::{jain, median};
use saiga_goodput::theory;
use saiga_goodput::world::World;
use saiga_tcp::Config;

const SECOND: u64 = 1_000_000;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let seeds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let part = arguments.next().unwrap_or_default();
    println!("| path | Mbit/s | least to most | of the rate | model, Mbit/s | of the model |");
    println!("|---|---|---|---|---|---|");
    for cell in cells::all().filter(|cell| cell.name().contains(&part)) {
        print_cell(&cell, seconds, seeds);
    }
    println!("\n| round trip | Jain's index of 8 flows | least |");
    println!("|---|---|---|");
    for rtt_us in RTTS_US {
        print_fairness(rtt_us, seconds, seeds);
    }
    Ok(())
}

fn print_cell(cell: &Cell, seconds: u64, seeds: u64) {
    let mut rates = vec![];
    for seed in 0..seeds {
        let mut world = World::new(cell.forward(), cell.back(), &Config::default(), &[0], seed);
        world.run(seconds * SECOND);
        let bytes: u64 = world.read().iter().sum();
        rates.push(bytes as f64 * 8.0 / seconds as f64);
        eprintln!(
            "{} seed {seed}: {:?}, {:?}",
            cell.name(),
            world.totals(),
            world.counters(0)
        );
    }
    let (rate, model) = (median(&rates), theory::goodput(cell));
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    println!(
        "| {} | {:.2} | {:.2} to {:.2} | {:.3} | {:.2} | {:.2} |",
        cell.name(),
        rate / 1e6,
        least / 1e6,
        most / 1e6,
        rate / cells::RATE as f64,
        model / 1e6,
        rate / model
    );
}

/// Flows begin within a second of each other; the last two thirds of the time count.
fn print_fairness(rtt_us: u64, seconds: u64, seeds: u64) {
    let cell = Cell {
        trouble: Trouble::None,
        rtt_us,
    };
    let indexes: Vec<f64> = (0..seeds)
        .map(|seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let begins: Vec<u64> = (0..8).map(|_| random.u64(0..SECOND)).collect();
            let config = Config::default();
            let mut world = World::new(
                cell.forward(),
                cell.back_with_jitter(),
                &config,
                &begins,
                seed,
            );
            world.run(seconds * SECOND / 3);
            let before = world.read();
            world.run(seconds * SECOND);
            let rates: Vec<f64> = world
                .read()
                .iter()
                .zip(before)
                .map(|(after, before)| (after - before) as f64)
                .collect();
            eprintln!(
                "{} ms: {rates:?}, {:?}, recoveries {}",
                rtt_us as f64 / 1e3,
                world.totals(),
                (0..8)
                    .map(|flow| world.counters(flow).sack_recovery)
                    .sum::<u64>()
            );
            jain(&rates)
        })
        .collect();
    let least = indexes.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "| {} ms | {:.3} | {least:.3} |",
        rtt_us as f64 / 1e3,
        median(&indexes)
    );
}
