//! The order of runs: cells, pairs, and the order of arms within a pair.
//!
//! A round visits every cell once, in random order. In a visit every arm runs once, and these
//! adjacent runs form a pair (of however many arms). The order of arms follows a Williams design,
//! in which every arm is equally often in each position and equally often after each other arm; its
//! rows are shuffled for each cell. One printed seed determines the whole order.

use std::time::Duration;

use crate::workload::Load;
use saiga_process::cores::{Cores, Hog, Placement};

/// Conditions under which all arms run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell<L> {
    /// Unique id: `set-c50-p16-two-cores`.
    pub id: String,
    /// The parameters of the workload.
    pub load: L,
    pub placement: Placement,
    pub hog: Hog,
    /// The CPUs of server and client; an empty list means all.
    pub cpus: [Vec<usize>; 2],
    pub hogged: Vec<usize>,
}

/// Cells, number of pairs, seed and size of an experiment.
#[derive(Debug, Clone)]
pub struct Plan<L> {
    pub cells: Vec<Cell<L>>,
    /// Number of runs of each arm in each cell, without repeats.
    pub pairs: u32,
    /// Determines the order of cells and arms and the inputs of loads.
    pub seed: u64,
    /// The size of a run.
    pub size: RunSize,
    /// Limit on the CPU time of other processes, in cores; a run above it is rejected.
    pub max_foreign_cores: f64,
}

/// The size of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSize {
    /// The number of operations that takes about this long, by a calibration for each arm and kind
    /// of load.
    Lasting(Duration),
    Operations(u64),
    /// The load generator runs for this time.
    Timed(Duration),
}

/// A visit of a cell: every arm runs once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Index into [`Plan::cells`].
    pub cell: usize,
    /// Number of the pair from 0.
    pub pair: u32,
    /// Indices of the arms in order of execution.
    pub order: Vec<usize>,
}

impl<L> Cell<L> {
    /// Shell commands that start the hogs.
    pub fn hog_steps(&self) -> impl Iterator<Item = String> + '_ {
        let hog = |cpu: &usize| format!("taskset -c {cpu} sh -c 'while :; do :; done'");
        self.hogged.iter().map(hog)
    }
}

impl<L> Plan<L> {
    /// Seed of the inputs of a pair: the element with the pair's number in a random sequence from
    /// the plan's seed, so that neighbouring plan seeds share no inputs. The seed is between 1 and
    /// `i32::MAX`, because some load generators reject 0 and sysbench rejects greater numbers.
    #[must_use]
    pub fn seed_of(&self, pair: u32) -> u64 {
        const MOST: u32 = i32::MAX.unsigned_abs();
        let mut rng = fastrand::Rng::with_seed(self.seed);
        for _ in 0..pair {
            rng.u32(1..=MOST);
        }
        u64::from(rng.u32(1..=MOST))
    }

    /// All visits in order of execution, for `arms` arms.
    #[must_use]
    pub fn visits(&self, arms: usize) -> Vec<Visit> {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let designs: Vec<Vec<Vec<usize>>> = self
            .cells
            .iter()
            .map(|_| {
                let mut rows = williams(arms);
                rng.shuffle(&mut rows);
                rows
            })
            .collect();
        let mut visits = Vec::new();
        for pair in 0..self.pairs {
            let mut cells: Vec<usize> = (0..self.cells.len()).collect();
            rng.shuffle(&mut cells);
            visits.extend(cells.into_iter().map(|cell| {
                let rows = &designs[cell];
                let row = usize::try_from(pair).unwrap_or(0) % rows.len().max(1);
                Visit {
                    cell,
                    pair,
                    order: rows.get(row).cloned().unwrap_or_default(),
                }
            }));
        }
        visits
    }
}

/// The rows of a Williams design: as many as arms for an even number of arms, else twice as many.
///
/// Source: E. J. Williams, 1949. The first row is 0, 1, n-1, 2, n-2, ...; each further row adds one
/// to the previous row; for odd numbers the mirrored rows follow.
fn williams(arms: usize) -> Vec<Vec<usize>> {
    let first = (0..arms).map(|i| {
        if i % 2 == 1 {
            i.div_ceil(2)
        } else {
            (arms - i / 2) % arms
        }
    });
    let first: Vec<usize> = first.collect();
    let shifted = |by: usize| {
        first
            .iter()
            .map(|arm| (arm + by) % arms)
            .collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<usize>> = (0..arms).map(shifted).collect();
    if arms % 2 == 1 && arms > 1 {
        let mirrored: Vec<Vec<usize>> = rows
            .iter()
            .map(|row| row.iter().rev().copied().collect())
            .collect();
        rows.extend(mirrored);
    }
    rows
}

/// A cell for each load in each placement that `cores` and `fits` allow, beside `hog`. Returns no
/// cells if the hog needs a core that does not exist. The id of a cell is `slug-placement[-hog]`.
#[must_use]
pub fn everywhere<L: Load>(
    loads: &[L],
    hog: Hog,
    cores: &Cores,
    fits: impl Fn(&L, Placement) -> bool,
) -> Vec<Cell<L>> {
    let Some(hogged) = cores.hogged(hog) else {
        return Vec::new();
    };
    let suffix = match hog {
        Hog::None => String::new(),
        Hog::First | Hog::Second | Hog::Both => format!("-hog-{}", hog.name()),
    };
    let mut cells = Vec::new();
    for load in loads {
        for placement in Placement::ALL {
            let Some(cpus) = cores.of(placement).filter(|_| fits(load, placement)) else {
                continue;
            };
            cells.push(Cell {
                id: format!("{}-{}{suffix}", load.slug(), placement.slug()),
                load: load.clone(),
                placement,
                hog,
                cpus,
                hogged: hogged.clone(),
            });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn plan(cells: usize, pairs: u32, seed: u64) -> Plan<()> {
        let cell = |i: usize| Cell {
            id: i.to_string(),
            load: (),
            placement: Placement::Unpinned,
            hog: Hog::None,
            cpus: [vec![], vec![]],
            hogged: vec![],
        };
        Plan {
            cells: (0..cells).map(cell).collect(),
            pairs,
            seed,
            size: RunSize::Operations(1),
            max_foreign_cores: 0.1,
        }
    }

    #[derive(Clone)]
    struct Only;

    impl Load for Only {
        fn slug(&self) -> String {
            "only".into()
        }
        fn params(&self) -> BTreeMap<String, Value> {
            BTreeMap::new()
        }
        fn length_factor(&self) -> f64 {
            1.0
        }
    }

    fn ids(cpus: &[usize], hog: Hog) -> Vec<String> {
        let cores = Cores::among(cpus.to_vec()).unwrap();
        let cells = everywhere(&[Only], hog, &cores, |_, _| true);
        cells.into_iter().map(|cell| cell.id).collect()
    }

    #[test]
    fn neighbouring_seeds_give_no_pair_the_same_inputs() {
        let seeds = (1..=10).flat_map(|seed| {
            let plan = plan(1, 20, seed);
            (0..20).map(move |pair| plan.seed_of(pair))
        });
        let all: std::collections::BTreeSet<u64> = seeds.collect();
        assert_eq!(all.len(), 10 * 20);
        assert!(all.iter().all(|seed| (1..1 << 31).contains(seed)));
    }

    #[test]
    fn two_cores_have_every_placement() {
        let placements = ["only-one-core", "only-two-cores", "only-unpinned"];
        assert_eq!(ids(&[0, 1], Hog::None), placements);
        assert_eq!(
            ids(&[0, 1], Hog::Both),
            placements.map(|id| format!("{id}-hog-both"))
        );
    }

    #[test]
    fn one_core_leaves_out_what_needs_two() {
        assert_eq!(ids(&[0], Hog::None), ["only-one-core", "only-unpinned"]);
        let beside = ["only-one-core-hog-0", "only-unpinned-hog-0"];
        assert_eq!(ids(&[0], Hog::First), beside);
        assert_eq!(ids(&[0], Hog::Second), [""; 0]);
        assert_eq!(ids(&[0], Hog::Both), [""; 0]);
    }

    #[test]
    fn two_arms_swap_and_three_take_all_six_orders() {
        assert_eq!(williams(1), [[0]]);
        assert_eq!(williams(2), [[0, 1], [1, 0]]);
        let mut three = williams(3);
        three.sort();
        assert_eq!(
            three,
            [
                [0, 1, 2],
                [0, 2, 1],
                [1, 0, 2],
                [1, 2, 0],
                [2, 0, 1],
                [2, 1, 0]
            ]
        );
    }

    /// For four arms: each arm once in each position, each ordered pair of neighbours once.
    #[test]
    fn four_arms_are_balanced_for_position_and_predecessor() {
        let rows = williams(4);
        assert_eq!(rows.len(), 4);
        let mut neighbours: Vec<(usize, usize)> = rows
            .iter()
            .flat_map(|row| row.windows(2).map(|w| (w[0], w[1])))
            .collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        assert_eq!(neighbours.len(), 12);
        for place in 0..4 {
            let mut arms: Vec<usize> = rows.iter().map(|row| row[place]).collect();
            arms.sort_unstable();
            assert_eq!(arms, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn six_pairs_use_every_order_of_three_arms_in_every_cell() {
        let visits = plan(4, 6, 9).visits(3);
        assert_eq!(visits.len(), 24);
        for cell in 0..4 {
            let mut orders: Vec<_> = visits
                .iter()
                .filter(|v| v.cell == cell)
                .map(|v| v.order.clone())
                .collect();
            orders.sort();
            orders.dedup();
            assert_eq!(orders.len(), 6, "cell {cell}");
        }
    }

    #[test]
    fn the_order_is_reproducible_and_rounds_do_not_overlap() {
        let visits = plan(5, 3, 42).visits(2);
        assert_eq!(visits, plan(5, 3, 42).visits(2));
        assert_ne!(visits, plan(5, 3, 43).visits(2));
        let pairs: Vec<u32> = visits.iter().map(|v| v.pair).collect();
        assert_eq!(pairs, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn each_pair_has_its_own_reproducible_inputs() {
        let plan_of = |seed| plan(1, 50, seed);
        let seeds: Vec<u64> = (0..50).map(|pair| plan_of(42).seed_of(pair)).collect();
        let again: Vec<u64> = (0..50).map(|pair| plan_of(42).seed_of(pair)).collect();
        assert_eq!(seeds, again);
        let different: std::collections::BTreeSet<u64> = seeds.iter().copied().collect();
        assert_eq!(different.len(), 50);
        assert_ne!(plan_of(43).seed_of(0), seeds[0]);
    }
}
