//! Assigns terminals to home districts and to load hosts.
//!
//! Each terminal has a distinct pair of warehouse and district (TPC-C §2.8.1.1), drawn at random as
//! BenchmarkSQL draws them. All load hosts compute the same assignment from the same seed, without
//! a message.

use fastrand::Rng;

use crate::spec::DISTRICTS;
use crate::spec::inputs::DistrictKey;

/// The part of the terminals that one load host runs: worker `index` of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the worker, from 1.
    pub index: u32,
    /// Number of workers, which is the number of load hosts.
    pub of: u32,
}

impl Share {
    /// Largest number of workers.
    pub const MAX: u32 = 10_000;
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// The worker, from 1, that runs a terminal. Terminals are assigned round robin.
    #[must_use]
    pub fn worker_of(terminal: u32, of: u32) -> u32 {
        terminal % of.max(1) + 1
    }

    #[must_use]
    pub fn has(self, terminal: u32) -> bool {
        Self::worker_of(terminal, self.of) == self.index
    }
}

/// The home districts of all terminals of a run, at most ten for each warehouse. The result is the
/// same on every host with the same seed.
#[must_use]
pub fn assign_districts(seed: u64, warehouses: u32, terminals: u32) -> Vec<DistrictKey> {
    let mut rng = Rng::with_seed(seed ^ 0x7465_726d_696e_616c);
    let all = u64::from(warehouses) * u64::from(DISTRICTS);
    // The first steps of a Fisher-Yates shuffle (Durstenfeld). Only the elements that it moved are
    // stored.
    let mut moved = std::collections::HashMap::new();
    let mut drawn = Vec::with_capacity(terminals as usize);
    for at in 0..u64::from(terminals).min(all) {
        let other = rng.u64(at..all);
        let number = moved.get(&other).copied().unwrap_or(other);
        let displaced = moved.get(&at).copied().unwrap_or(at);
        moved.insert(other, displaced);
        drawn.push(district_at(number));
    }
    drawn
}

fn district_at(number: u64) -> DistrictKey {
    let districts = u64::from(DISTRICTS);
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    DistrictKey {
        w_id: small(number / districts + 1),
        d_id: small(number % districts + 1),
    }
}

/// Derives the seed of one random number generator with SplitMix64. The seeds of neighbouring
/// values of `user` are uncorrelated.
#[must_use]
pub fn seed_of(seed: u64, user: u64) -> u64 {
    let mut mixed = seed.wrapping_add((user + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_terminals_share_a_district() {
        for (warehouses, terminals) in [(1, 10), (3, 30), (7, 12), (4050, 330), (1, 1)] {
            let all = assign_districts(9, warehouses, terminals);
            let distinct: BTreeSet<DistrictKey> = all.iter().copied().collect();
            assert_eq!(
                (all.len(), distinct.len()),
                (terminals as usize, terminals as usize)
            );
            let fits = |district: &DistrictKey| {
                (1..=warehouses).contains(&district.w_id) && (1..=10).contains(&district.d_id)
            };
            assert!(all.iter().all(fits));
        }
        assert_eq!(assign_districts(9, 40, 20), assign_districts(9, 40, 20));
        assert_ne!(assign_districts(9, 40, 20), assign_districts(8, 40, 20));
    }

    #[test]
    fn each_terminal_belongs_to_one_share() {
        let owners = |terminal| {
            (1..=3)
                .filter(|index| {
                    Share {
                        index: *index,
                        of: 3,
                    }
                    .has(terminal)
                })
                .count()
        };
        assert!((0..50).all(|terminal| owners(terminal) == 1));
        assert!((0..50).all(|terminal| Share::WHOLE.has(terminal)));
        let first: Vec<u32> = (0..8)
            .filter(|t| Share { index: 2, of: 3 }.has(*t))
            .collect();
        assert_eq!(first, [1, 4, 7]);
    }
}
