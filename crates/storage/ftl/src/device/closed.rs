//! The closed units, kept as the policy wants them.

use super::Unit;
use super::ages::Ages;
use super::pool::Pool;
use super::ranking::Ranking;
use crate::config::Policy;

/// Closed units with at least one valid page.
#[derive(Debug)]
pub(super) enum Closed {
    Greedy(Ranking),
    Fifo(Ages),
    Choice { pool: Pool, samples: u32 },
    CostBenefit(Pool),
}

impl Closed {
    /// No unit is closed.
    pub(super) fn new(policy: Policy, units: u32, unit_pages: u32) -> Self {
        match policy {
            Policy::Greedy => Self::Greedy(Ranking::new(units, unit_pages)),
            Policy::Fifo => Self::Fifo(Ages::new(units)),
            Policy::Choice(samples) => Self::Choice {
                pool: Pool::new(units),
                samples: samples.get(),
            },
            Policy::CostBenefit => Self::CostBenefit(Pool::new(units)),
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Greedy(ranking) => ranking.heap_bytes(),
            Self::Fifo(ages) => ages.heap_bytes(),
            Self::Choice { pool, samples: _ } | Self::CostBenefit(pool) => pool.heap_bytes(),
        }
    }

    /// A unit with `valid` pages is closed at `now` host writes.
    pub(super) fn insert(&mut self, unit: u32, valid: u32, now: u64) {
        match self {
            Self::Greedy(ranking) => ranking.insert(unit, valid),
            Self::Fifo(ages) => ages.insert(unit),
            Self::Choice { pool, samples: _ } | Self::CostBenefit(pool) => pool.insert(unit, now),
        }
    }

    /// A unit has `valid` pages left, one less than before; with none left it leaves.
    #[inline]
    pub(super) fn lost_page(&mut self, unit: u32, valid: u32) {
        match self {
            Self::Greedy(ranking) => {
                ranking.lost_page(unit, valid);
                if valid == 0 {
                    // Nothing is emptier, and no other empty unit is here.
                    ranking.take_emptiest(0);
                }
            }
            Self::Fifo(ages) if valid == 0 => ages.remove(unit),
            Self::Choice { pool, samples: _ } | Self::CostBenefit(pool) if valid == 0 => {
                pool.remove(unit);
            }
            Self::Fifo(_) | Self::Choice { .. } | Self::CostBenefit(_) => {}
        }
    }

    /// Something of what is kept of a unit, to have it in the caches.
    #[inline]
    pub(super) fn peek(&self, unit: usize) -> u32 {
        match self {
            Self::Greedy(ranking) => ranking.peek(unit),
            Self::Fifo(_) | Self::Choice { .. } | Self::CostBenefit(_) => 0,
        }
    }

    /// Takes the victim; `None` when no unit is closed.
    pub(super) fn take_victim(
        &mut self,
        units: &[Unit],
        unit_pages: u32,
        now: u64,
        rng: &mut fastrand::Rng,
    ) -> Option<u32> {
        let (pool, unit) = match self {
            Self::Greedy(ranking) => {
                let least = units[ranking.first()? as usize].valid;
                return ranking.take_emptiest(least);
            }
            Self::Fifo(ages) => return ages.take_oldest(),
            Self::Choice { pool, samples } => {
                let unit = pool.draw(*samples, units, unit_pages, rng)?;
                (pool, unit)
            }
            Self::CostBenefit(pool) => {
                let unit = pool.worthiest(units, unit_pages, now)?;
                (pool, unit)
            }
        };
        pool.remove(unit);
        Some(unit)
    }

    /// All units that are here.
    pub(super) fn members(&self) -> Vec<u32> {
        match self {
            Self::Greedy(ranking) => ranking.members(),
            Self::Fifo(ages) => ages.members(),
            Self::Choice { pool, samples: _ } | Self::CostBenefit(pool) => pool.members().to_vec(),
        }
    }
}
