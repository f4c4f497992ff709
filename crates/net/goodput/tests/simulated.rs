//! Goodput and fairness in simulated time, against what the path allows and what models expect.
//!
//! Each bound is a figure that the engine has missed once, or that a demand states.

use saiga_goodput::cells::{Cell, Trouble};
use saiga_goodput::figures::{jain, median};
use saiga_goodput::theory;
use saiga_goodput::world::World;
use saiga_path::Chance;
use saiga_tcp::Config;

const SECOND_US: u64 = 1_000_000;
/// Loss of one percent.
const ONE_PERCENT: Trouble = Trouble::Loss(Chance::per_million(10_000));

fn world(cell: &Cell, begins_us: &[u64], seed: u64) -> World {
    let back = if begins_us.len() > 1 {
        cell.back_with_jitter()
    } else {
        cell.back()
    };
    World::new(cell.forward(), back, &Config::default(), begins_us, seed)
}

/// Goodput of one flow in bits per second, the median of three seeds, and all that was sent again
/// without having been dropped.
fn transfer(cell: &Cell, seconds: u64) -> (f64, u64) {
    let mut rates = vec![];
    let mut needless = 0;
    for seed in 0..3 {
        let mut world = world(cell, &[0], seed);
        world.run(seconds * SECOND_US);
        let bytes: u64 = world.read().iter().sum();
        rates.push(bytes as f64 * 8.0 / seconds as f64);
        let totals = world.totals();
        let again = world.counters(0).retrans_segs;
        needless += again.saturating_sub(totals.lost + totals.overflowed);
    }
    (median(&rates), needless)
}

/// The driver calls the time-out handler before it sends the SYN, which does not count as a loss of
/// it.
#[test]
fn the_first_flight_is_ten_segments() {
    let cell = Cell {
        trouble: Trouble::None,
        rtt_us: 100_000,
    };
    let mut world = world(&cell, &[0], 1);
    world.run(150_000);
    // The SYN, and data from 0.1 s on.
    assert_eq!(world.totals().sent, 11);
}

/// Slow start and CUBIC overflow the queue again and again; each drop is repaired once.
#[test]
fn a_queue_that_overflows_costs_what_it_dropped() {
    for rtt_us in [100, 10_000] {
        let cell = Cell {
            trouble: Trouble::None,
            rtt_us,
        };
        let (rate, needless) = transfer(&cell, 10);
        let share = rate / theory::ceiling();
        assert!(share > 0.97, "{}: {share}", cell.name());
        assert_eq!(needless, 0, "{}", cell.name());
    }
}

/// Slow start drops some hundred segments of a window of nearly a thousand; both scoreboards have
/// room for all of them.
#[test]
fn a_large_window_is_repaired_without_further_copies() {
    let cell = Cell {
        trouble: Trouble::None,
        rtt_us: 100_000,
    };
    let (rate, needless) = transfer(&cell, 20);
    let share = rate / theory::ceiling();
    assert!(share > 0.9, "{share}");
    assert_eq!(needless, 0);
}

#[test]
fn one_percent_of_loss_costs_what_the_model_expects() {
    let cell = Cell {
        trouble: ONE_PERCENT,
        rtt_us: 10_000,
    };
    let (rate, _) = transfer(&cell, 30);
    let share = rate / theory::goodput(&cell);
    assert!(share > 0.8, "{share}");
}

/// Three packets overtake: as many as make a loss of a hole.
#[test]
fn reordering_is_not_taken_for_loss() {
    for rtt_us in [10_000, 100_000] {
        let cell = Cell {
            trouble: Trouble::Reordering(3),
            rtt_us,
        };
        let (rate, _) = transfer(&cell, 20);
        let share = rate / theory::ceiling();
        assert!(share > 0.88, "{}: {share}", cell.name());
    }
}

/// Eight flows begin within a second; 20 s from the tenth on are counted.
#[test]
fn eight_flows_share_a_bottleneck() {
    let cell = Cell {
        trouble: Trouble::None,
        rtt_us: 10_000,
    };
    for seed in 0..3 {
        let mut random = fastrand::Rng::with_seed(seed);
        let begins: Vec<u64> = (0..8).map(|_| random.u64(0..SECOND_US)).collect();
        let mut world = world(&cell, &begins, seed);
        world.run(10 * SECOND_US);
        let before = world.read();
        world.run(30 * SECOND_US);
        let after = world.read();
        let pairs = after.iter().zip(&before);
        let rates: Vec<f64> = pairs
            .map(|(after, before)| (after - before) as f64)
            .collect();
        let index = jain(&rates);
        assert!(index > 0.9, "seed {seed}: {index}, {rates:?}");
    }
}
