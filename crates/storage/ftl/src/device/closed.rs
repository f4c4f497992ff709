//! The closed units, in the data structure of the policy.

use super::Unit;
use super::ages::Ages;
use super::pool::Pool;
use super::ranking::Ranking;
use super::scores::Scores;
use crate::config::Policy;

/// Closed units with at least one valid page.
#[derive(Debug)]
pub(super) enum Closed {
    Greedy(Ranking),
    Fifo(Ages),
    Choice { pool: Pool, samples: u32 },
    CostBenefit(Scores),
}

impl Closed {
    /// Creates an empty set.
    pub(super) fn new(policy: Policy, units: u32, unit_pages: u32) -> Self {
        match policy {
            Policy::Greedy => Self::Greedy(Ranking::new(units, unit_pages)),
            Policy::Fifo => Self::Fifo(Ages::new(units)),
            Policy::Choice(samples) => Self::Choice {
                pool: Pool::new(units),
                samples: samples.get(),
            },
            Policy::CostBenefit => Self::CostBenefit(Scores::new(units, unit_pages)),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Greedy(ranking) => ranking.heap_bytes(),
            Self::Fifo(ages) => ages.heap_bytes(),
            Self::Choice { pool, samples: _ } => pool.heap_bytes(),
            Self::CostBenefit(scores) => scores.heap_bytes(),
        }
    }

    /// Adds a unit with `valid` pages, closed at `now` host writes.
    pub(super) fn insert(&mut self, unit: u32, valid: u32, now: u64) {
        match self {
            Self::Greedy(ranking) => ranking.insert(unit, valid),
            Self::Fifo(ages) => ages.insert(unit),
            Self::Choice { pool, samples: _ } => pool.insert(unit),
            Self::CostBenefit(scores) => scores.insert(unit, valid, now),
        }
    }

    /// Updates a unit that has lost a valid page; removes it if none is left.
    #[inline]
    pub(super) fn lost_page(&mut self, unit: u32, units: &[Unit], now: u64) {
        let valid = units[unit as usize].valid;
        match self {
            Self::Greedy(ranking) => {
                ranking.lost_page(unit, valid);
                if valid == 0 {
                    // The unit is first: no other empty unit is in the ranking.
                    ranking.take_emptiest(0);
                }
            }
            Self::CostBenefit(scores) if valid > 0 => scores.lost_page(unit, valid, now),
            Self::CostBenefit(scores) => scores.remove(unit),
            Self::Fifo(ages) if valid == 0 => ages.remove(unit),
            Self::Choice { pool, samples: _ } if valid == 0 => pool.remove(unit),
            Self::Fifo(_) | Self::Choice { .. } => {}
        }
    }

    /// Returns some bits of a unit's data, to load them into the caches.
    #[inline]
    pub(super) fn peek(&self, unit: usize) -> u32 {
        match self {
            Self::Greedy(ranking) => ranking.peek(unit),
            Self::CostBenefit(scores) => scores.peek(unit),
            Self::Fifo(_) | Self::Choice { .. } => 0,
        }
    }

    /// Removes and returns the victim; `None` if no unit is closed.
    pub(super) fn take_victim(
        &mut self,
        units: &[Unit],
        unit_pages: u32,
        now: u64,
        rng: &mut fastrand::Rng,
    ) -> Option<u32> {
        match self {
            Self::Greedy(ranking) => {
                let least = units[ranking.first()? as usize].valid;
                ranking.take_emptiest(least)
            }
            Self::Fifo(ages) => ages.take_oldest(),
            Self::Choice { pool, samples } => {
                let unit = pool.draw(*samples, units, unit_pages, rng)?;
                pool.remove(unit);
                Some(unit)
            }
            Self::CostBenefit(scores) => scores.take_best(units, now),
        }
    }

    /// Returns all closed units.
    pub(super) fn members(&self) -> Vec<u32> {
        match self {
            Self::Greedy(ranking) => ranking.members(),
            Self::Fifo(ages) => ages.members(),
            Self::Choice { pool, samples: _ } => pool.members().to_vec(),
            Self::CostBenefit(scores) => scores.members(),
        }
    }
}
