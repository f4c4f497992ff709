//! Which terminal sits where: distinct pairs of warehouse and district (TPC-C §2.8.1.1), drawn at
//! random as BenchmarkSQL draws them, and the share of one load host.

use fastrand::Rng;

use crate::spec::DISTRICTS;
use crate::spec::inputs::Place;

/// A part of the terminals: worker `index` of `of`, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which part, from 1.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

impl Share {
    /// No run has more parts.
    pub const MOST: u32 = 10_000;
    /// All terminals.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// The part of `of` that has a terminal, from 1: terminals go round the workers like cards.
    #[must_use]
    pub fn holder(terminal: u32, of: u32) -> u32 {
        terminal % of.max(1) + 1
    }

    /// Whether a terminal belongs to it.
    #[must_use]
    pub fn has(self, terminal: u32) -> bool {
        Self::holder(terminal, self.of) == self.index
    }
}

/// The places of all terminals of a run, the same on every host with the same seed. At most ten for
/// each warehouse.
#[must_use]
pub fn places(seed: u64, warehouses: u32, terminals: u32) -> Vec<Place> {
    let mut rng = Rng::with_seed(seed ^ 0x7465_726d_696e_616c);
    let all = u64::from(warehouses) * u64::from(DISTRICTS);
    // The first steps of a shuffle (Durstenfeld) of all places, which are never all in memory.
    let mut moved = std::collections::HashMap::new();
    let mut drawn = Vec::with_capacity(terminals as usize);
    for at in 0..u64::from(terminals).min(all) {
        let other = rng.u64(at..all);
        let place = moved.get(&other).copied().unwrap_or(other);
        let displaced = moved.get(&at).copied().unwrap_or(at);
        moved.insert(other, displaced);
        drawn.push(nth(place));
    }
    drawn
}

fn nth(place: u64) -> Place {
    let districts = u64::from(DISTRICTS);
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Place {
        w_id: small(place / districts + 1),
        d_id: small(place % districts + 1),
    }
}

/// A seed for one user of random numbers, far from those of its neighbours (SplitMix64).
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
    fn no_two_terminals_share_a_place() {
        for (warehouses, terminals) in [(1, 10), (3, 30), (7, 12), (4050, 330), (1, 1)] {
            let all = places(9, warehouses, terminals);
            let distinct: BTreeSet<Place> = all.iter().copied().collect();
            assert_eq!(
                (all.len(), distinct.len()),
                (terminals as usize, terminals as usize)
            );
            let fits = |place: &Place| {
                (1..=warehouses).contains(&place.w_id) && (1..=10).contains(&place.d_id)
            };
            assert!(all.iter().all(fits));
        }
        assert_eq!(places(9, 40, 20), places(9, 40, 20));
        assert_ne!(places(9, 40, 20), places(8, 40, 20));
    }

    #[test]
    fn shares_are_a_partition() {
        let holders = |terminal| {
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
        assert!((0..50).all(|terminal| holders(terminal) == 1));
        assert!((0..50).all(|terminal| Share::WHOLE.has(terminal)));
        let first: Vec<u32> = (0..8)
            .filter(|t| Share { index: 2, of: 3 }.has(*t))
            .collect();
        assert_eq!(first, [1, 4, 7]);
    }
}
