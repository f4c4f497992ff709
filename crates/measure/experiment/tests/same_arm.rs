//! At least 95 % of campaigns that compare an arm with itself show no difference.
//!
//! The campaigns are resampled from the runs of a real campaign of kernel TCP against kernel TCP
//! (`data/aa-redis.csv`). Blocks of adjacent visits are kept together, so drift and bursts of noise
//! remain; the arms are assigned again in the balanced order of a plan. The headline is computed by
//! the same code as for real campaigns.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use saiga_experiment::analysis::{Shortfall, Until, conclude_by};
use saiga_experiment::engine::Outcome;
use saiga_experiment::result::{Arm, Cell, CellParams, Run, Verdict};
use saiga_experiment::stats::Method;

const RECORDED: &str = include_str!("data/aa-redis.csv");
/// Number of adjacent visits in a block.
const BLOCK: usize = 4;
/// The default of the command line.
const PAIRS: u32 = 6;
const MOST_PAIRS: u32 = 40;

type Visits = Vec<[f64; 2]>;

/// Number of campaigns; at 2,500, the standard error of a share of 0.96 is 0.004.
fn campaigns() -> u32 {
    let is_soak = std::env::var("SAIGA_SOAK").is_ok_and(|value| value == "1");
    if is_soak { 10_000 } else { 2_500 }
}

/// Throughputs of the two runs of each visit, by cell.
fn recorded() -> BTreeMap<&'static str, Visits> {
    let lines = RECORDED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1);
    let mut visits: BTreeMap<&str, Visits> = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [cell, first, second] = fields[..] else {
            panic!("{line}")
        };
        let both = [first, second].map(|value| value.parse().unwrap());
        visits.entry(cell).or_default().push(both);
    }
    visits
}

fn arms() -> Vec<Arm> {
    let arm = |name: &str| Arm {
        name: name.into(),
        server: "redis-server".into(),
        client: "redis-benchmark".into(),
        env: BTreeMap::new(),
        description: None,
        varies: None,
        configuration: BTreeMap::new(),
    };
    vec![arm("kernel"), arm("kernel (again)")]
}

/// `set-c50-one-core` has the load `set-c50`, so it shares a best placement with
/// `set-c50-unpinned`.
fn cells(visits: &BTreeMap<&str, Visits>) -> Vec<Cell> {
    let cell = |id: &&str| {
        let parts: Vec<&str> = id.splitn(3, '-').collect();
        Cell {
            id: (*id).to_owned(),
            params: CellParams {
                placement: parts[2].replace('-', " "),
                hog: "none".into(),
                workload: BTreeMap::from([("load".into(), parts[..2].join("-").into())]),
            },
        }
    };
    visits.keys().map(cell).collect()
}

/// An endless sequence of visits of a cell, in blocks of adjacent visits.
struct Draw<'a> {
    visits: &'a Visits,
    at: usize,
    left: usize,
    /// Whether the first arm runs first in the next visit; alternates.
    swapped: bool,
}

impl<'a> Draw<'a> {
    fn new(visits: &'a Visits, rng: &mut fastrand::Rng) -> Self {
        Self {
            visits,
            at: 0,
            left: 0,
            swapped: rng.bool(),
        }
    }

    fn pair(&mut self, rng: &mut fastrand::Rng) -> [f64; 2] {
        if self.left == 0 {
            (self.at, self.left) = (rng.usize(0..self.visits.len()), BLOCK);
        }
        let [first, second] = self.visits[self.at % self.visits.len()];
        (self.at, self.left) = (self.at + 1, self.left - 1);
        self.swapped = !self.swapped;
        if self.swapped {
            [second, first]
        } else {
            [first, second]
        }
    }
}

/// Adds a pair of every cell.
fn round(
    draws: &mut BTreeMap<&str, Draw<'_>>,
    pair: u32,
    rng: &mut fastrand::Rng,
    runs: &mut Vec<Run>,
) {
    for (cell, draw) in draws {
        for (arm, throughput) in ["kernel", "kernel (again)"].into_iter().zip(draw.pair(rng)) {
            runs.push(Run {
                cell: (*cell).to_owned(),
                arm: arm.to_owned(),
                pair,
                position: 0,
                started: String::new(),
                seconds: 0.27,
                metrics: BTreeMap::from([("throughput_ops_s".to_owned(), throughput)]),
                foreign_cpu_s: 0.0,
                rejected: None,
                detail: None,
            });
        }
    }
}

/// Results over all campaigns.
struct Shares {
    /// Share of campaigns whose headline shows no difference.
    no_difference: f64,
    /// Share of campaigns without a corrected verdict in a single comparison.
    none_corrected: f64,
    /// Mean number of pairs.
    pairs: f64,
}

fn shares(method: Method, until: &Until, seed: u64) -> Shares {
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let visits = recorded();
    let (arms, cells) = (arms(), cells(&visits));
    let (mut none, mut none_corrected, mut pairs) = (0, 0, 0);
    let campaigns = campaigns();
    for _ in 0..campaigns {
        let mut draws = BTreeMap::new();
        for (cell, visits) in &visits {
            draws.insert(*cell, Draw::new(visits, &mut rng));
        }
        let mut outcome = Outcome::default();
        let most = match method {
            Method::Fixed => PAIRS,
            Method::Sequential => MOST_PAIRS,
        };
        for pair in 0..most {
            round(&mut draws, pair, &mut rng, &mut outcome.runs);
            pairs += 1;
            let looked = method == Method::Sequential;
            if looked && until.open(&[], &arms, &cells, &outcome).is_empty() {
                break;
            }
        }
        let concluded = conclude_by(
            method,
            &[],
            &arms,
            &cells,
            &outcome.runs,
            &Shortfall::default(),
        );
        assert!(concluded.headline[0].contains("between the arm and its repetition"));
        none += u32::from(concluded.verdict == Verdict::NoDifferenceShown);
        let mut comparisons = concluded.comparisons.iter();
        none_corrected += u32::from(comparisons.all(|one| one.holds_corrected == Some(false)));
    }
    let of = |count: u32| f64::from(count) / f64::from(campaigns);
    let shares = Shares {
        no_difference: of(none),
        none_corrected: of(none_corrected),
        pairs: of(pairs),
    };
    println!(
        "{method:?}: no difference shown in {} of {campaigns} campaigns, none in a single cell in \
         {}; {} pairs on average",
        shares.no_difference, shares.none_corrected, shares.pairs
    );
    shares
}

fn within(half_width: f64) -> Until {
    Until {
        half_width,
        cells: vec![],
    }
}

#[test]
fn a_fixed_number_of_pairs_misleads_in_at_most_one_of_twenty() {
    let shares = shares(Method::Fixed, &within(1.0), 7);
    assert!(shares.no_difference >= 0.95 && shares.none_corrected >= 0.95);
}

/// Campaigns that stop as soon as every cell is within 5 %, checked after each round.
#[test]
fn stopping_at_narrow_intervals_misleads_no_more_often() {
    let shares = shares(Method::Sequential, &within(0.05), 8);
    assert!(shares.no_difference >= 0.95 && shares.none_corrected >= 0.95);
    let stopped_early = (8.0..0.9 * f64::from(MOST_PAIRS)).contains(&shares.pairs);
    assert!(stopped_early, "the looks decide: {} pairs", shares.pairs);
}
