//! Compares uniform random writes with the closed form and with tables of another program.
//!
//! The tables are from a prototype in C that shares no code with this crate (docs/ftl.md).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
use bench::{Bench, assert_near};

use std::num::NonZeroU32;

use saiga_ftl::theory::{self, Share};
use saiga_ftl::workload::{Part, Random};
use saiga_ftl::{GcFrontier, Policy};

/// Over-provisioning, the formula's value, greedy with 32, 64, 256 and 1024 pages, and the best
/// of ten with 256.
const UNIFORM: [(f64, f64, [f64; 4], f64); 7] = [
    (0.07, 7.817, [6.345, 7.012, 7.598, 7.763], 7.828),
    (0.10, 5.677, [4.901, 5.250, 5.561, 5.651], 5.724),
    (0.15, 4.016, [3.609, 3.800, 3.961, 4.005], 4.064),
    (0.20, 3.188, [2.932, 3.052, 3.152, 3.181], 3.235),
    (0.28, 2.481, [2.330, 2.403, 2.462, 2.477], 2.520),
    (0.30, 2.364, [2.228, 2.293, 2.346, 2.361], 2.400),
    (0.50, 1.716, [1.649, 1.681, 1.708, 1.714], 1.741),
];

fn uniform(bench: Bench) -> f64 {
    let pages = bench.config.logical_pages;
    bench.waf(&mut Random::uniform(pages, 7))
}

#[test]
fn fifo_is_the_formula() {
    for (over_provisioning, formula, _, _) in UNIFORM {
        let bench = Bench::new(over_provisioning, 256, 2048).policy(Policy::Fifo);
        assert_near(uniform(bench), formula, 0.005, over_provisioning);
    }
}

#[test]
fn greedy_with_256_pages_is_at_most_three_percent_below_the_formula() {
    for (over_provisioning, formula, _, _) in UNIFORM {
        let found = uniform(Bench::new(over_provisioning, 256, 2048));
        assert!(
            (0.97 * formula..=formula).contains(&found),
            "{over_provisioning}: {found}, the formula has {formula}"
        );
    }
}

#[test]
fn greedy_is_the_table_for_every_unit_size() {
    for (over_provisioning, _, greedy, _) in UNIFORM {
        for (unit_pages, units, expected) in [
            (32, 8192, greedy[0]),
            (64, 8192, greedy[1]),
            (256, 2048, greedy[2]),
            (1024, 1024, greedy[3]),
        ] {
            let found = uniform(Bench::new(over_provisioning, unit_pages, units));
            assert_near(found, expected, 0.01, (over_provisioning, unit_pages));
        }
    }
}

#[test]
fn the_best_of_ten_is_the_table() {
    for (over_provisioning, _, _, expected) in UNIFORM {
        let samples = NonZeroU32::new(10).unwrap();
        let bench = Bench::new(over_provisioning, 256, 2048).policy(Policy::Choice(samples));
        assert_near(uniform(bench), expected, 0.01, over_provisioning);
    }
}

/// Unused logical space is spare space.
#[test]
fn unused_logical_space_counts_as_spare() {
    for (over_provisioning, used) in [(0.07, 0.7), (0.07, 0.9), (0.28, 0.9)] {
        let bench = Bench::new(over_provisioning, 256, 2048).policy(Policy::Fifo);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of U"
        )]
        let pages = (f64::from(bench.config.logical_pages) * used) as u32;
        let formula = theory::uniform((1.0 + over_provisioning) / used - 1.0);
        assert_near(
            bench.waf(&mut Random::uniform(pages, 7)),
            formula,
            0.005,
            used,
        );
    }
}

/// The general formula for parts written at different rates.
#[test]
fn fifo_with_hot_and_cold_pages_is_its_formula() {
    for (over_provisioning, pages, writes) in [(0.07, 0.1, 0.9), (0.15, 0.2, 0.8), (0.28, 0.1, 0.9)]
    {
        let shares = [
            Share { pages, writes },
            Share {
                pages: 1.0 - pages,
                writes: 1.0 - writes,
            },
        ];
        let bench = Bench::new(over_provisioning, 256, 2048).policy(Policy::Fifo);
        let parts = bench.hot_and_cold(pages, writes, [0, 0]);
        let found = bench.waf(&mut Random::new(&parts, 7));
        assert_near(
            found,
            theory::fifo(over_provisioning, &shares),
            0.01,
            over_provisioning,
        );
    }
}

/// Cost-benefit distinguishes hot from cold pages, unlike greedy; with uniform writes it gains
/// nothing.
#[test]
fn cost_benefit_is_better_than_greedy_on_skewed_writes() {
    let waf = |policy| {
        let bench = Bench::new(0.15, 256, 512)
            .policy(policy)
            .gc(GcFrontier::Own);
        let parts: [Part; 2] = bench.hot_and_cold(0.1, 0.9, [0, 0]);
        bench.waf(&mut Random::new(&parts, 7))
    };
    let (greedy, cost_benefit) = (waf(Policy::Greedy), waf(Policy::CostBenefit));
    assert!(
        cost_benefit < 0.9 * greedy,
        "{cost_benefit}, greedy {greedy}"
    );
}
