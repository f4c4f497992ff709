//! Closed units by their cost-benefit score; finds the greatest without computing all scores.
//!
//! The score of a unit grows with its age and jumps when a page dies. Each block of units has an
//! upper bound: a linear function of time that was exact at the last search of the block and is
//! raised by every jump. A search skips blocks whose bound is below the best score so far.

use super::Unit;

/// The close time of units that are not in the set.
const NEVER: u64 = u64::MAX;

/// A set of closed units with their close times.
#[derive(Debug)]
pub(super) struct Scores {
    /// Close time of each unit, in host writes.
    closed_at: Vec<u64>,
    /// One bound for each block of `1 << shift` units.
    bounds: Vec<Bound>,
    shift: u32,
    full: u32,
}

/// No unit of the block has a higher score than `score + slope * (now - at)`.
#[derive(Debug, Clone, Copy)]
struct Bound {
    score: f64,
    slope: f64,
    at: u64,
}

impl Bound {
    /// Returns the bound, rounded up so that it is never below a score.
    fn now(&self, now: u64) -> f64 {
        (self.score + self.slope * (now - self.at) as f64) * (1.0 + 4.0 * f64::EPSILON)
    }
}

impl Scores {
    /// Creates an empty set of units with `full` pages.
    pub(super) fn new(units: u32, full: u32) -> Self {
        // About as many blocks as units in a block.
        let shift = units.max(1).ilog2() / 2;
        let none = Bound {
            score: 0.0,
            slope: 0.0,
            at: 0,
        };
        Self {
            closed_at: vec![NEVER; units as usize],
            bounds: vec![none; (units as usize).div_ceil(1 << shift)],
            shift,
            full,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.closed_at.capacity() * size_of::<u64>() + self.bounds.capacity() * size_of::<Bound>()
    }

    /// Adds a unit with `valid` pages.
    pub(super) fn insert(&mut self, unit: u32, valid: u32, now: u64) {
        self.closed_at[unit as usize] = now;
        self.lost_page(unit, valid, now);
    }

    pub(super) fn remove(&mut self, unit: u32) {
        self.closed_at[unit as usize] = NEVER;
    }

    /// Updates a unit that has at least one of `valid` pages left.
    #[inline]
    pub(super) fn lost_page(&mut self, unit: u32, valid: u32, now: u64) {
        let slope = slope(valid, self.full);
        let score = slope * age(self.closed_at[unit as usize], now);
        let bound = &mut self.bounds[(unit >> self.shift) as usize];
        let most = bound.now(now);
        if slope > bound.slope || score > most {
            *bound = Bound {
                score: score.max(most),
                slope: slope.max(bound.slope),
                at: now,
            };
        }
    }

    /// Returns some bits of a unit's data, to load them into the caches.
    #[inline]
    pub(super) fn peek(&self, unit: usize) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
        self.closed_at.get(unit).map_or(0, |at| *at as u32)
    }

    /// Removes and returns the unit with the greatest score; of several, that with the lowest
    /// number.
    pub(super) fn take_best(&mut self, units: &[Unit], now: u64) -> Option<u32> {
        let bounds = self.bounds.iter().map(|bound| bound.now(now)).enumerate();
        // The best unit is usually in this block; then the others are skipped.
        let (likely, _) = bounds.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut best = self.search(likely, units, now);
        for block in (0..self.bounds.len()).filter(|block| *block != likely) {
            let bound = self.bounds[block].now(now);
            if best.is_some_and(|(score, _)| bound < score) {
                continue;
            }
            if let Some(found) = self.search(block, units, now) {
                let is_better =
                    |(score, unit)| found.0 > score || found.0 == score && found.1 < unit;
                if best.is_none_or(is_better) {
                    best = Some(found);
                }
            }
        }
        let (_, unit) = best?;
        self.remove(unit);
        Some(unit)
    }

    /// Returns the best unit of a block, and makes its bound exact.
    fn search(&mut self, block: usize, units: &[Unit], now: u64) -> Option<(f64, u32)> {
        let first = block << self.shift;
        let end = units.len().min(first + (1 << self.shift));
        let (mut best, mut most, mut steepest) = (None, 0.0, 0.0_f64);
        let members = units[first..end].iter().zip(&self.closed_at[first..end]);
        for (number, (unit, &closed_at)) in members.enumerate() {
            if closed_at == NEVER {
                continue;
            }
            let slope = slope(unit.valid, self.full);
            let score = slope * age(closed_at, now);
            steepest = steepest.max(slope);
            if best.is_none() || score > most {
                (best, most) = (Some(first + number), score);
            }
        }
        self.bounds[block] = Bound {
            score: most,
            slope: steepest,
            at: now,
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "units are numbered with 32 bits"
        )]
        best.map(|unit| (most, unit as u32))
    }

    /// Returns the units in order of their numbers.
    pub(super) fn members(&self) -> Vec<u32> {
        let units = (0..).zip(&self.closed_at);
        let here = units.filter(|(_, closed_at)| **closed_at != NEVER);
        here.map(|(unit, _)| unit).collect()
    }
}

/// Returns (1 - u) / 2u.
#[inline]
fn slope(valid: u32, full: u32) -> f64 {
    f64::from(full - valid) / f64::from(2 * valid)
}

/// Returns the host writes since a unit was closed, at least 1: otherwise a new unit's score would
/// be
/// 0.
#[inline]
fn age(closed_at: u64, now: u64) -> f64 {
    (now - closed_at + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    const FULL: u32 = 64;
    const UNITS: u32 = 500;

    /// Compares thousands of searches, with random changes in between, with a search of all units.
    #[test]
    fn the_best_unit_is_that_of_a_full_search() {
        let mut rng = fastrand::Rng::with_seed(7);
        let erased = Unit {
            valid: FULL,
            owner: 0,
            state: State::Free,
            account: 0,
        };
        let mut units = vec![erased; UNITS as usize];
        let mut scores = Scores::new(UNITS, FULL);
        let mut now = 0;
        for _ in 0..200_000 {
            now += rng.u64(..20);
            let unit = rng.u32(..UNITS);
            let valid = &mut units[unit as usize].valid;
            if scores.closed_at[unit as usize] == NEVER {
                *valid = rng.u32(1..=FULL);
                scores.insert(unit, *valid, now);
            } else if *valid > 1 {
                *valid -= 1;
                scores.lost_page(unit, *valid, now);
            }
            if rng.u32(..20) == 0 {
                let mut best = None;
                for unit in scores.members() {
                    let slope = slope(units[unit as usize].valid, FULL);
                    let score = slope * age(scores.closed_at[unit as usize], now);
                    if best.is_none_or(|(most, _)| score > most) {
                        best = Some((score, unit));
                    }
                }
                let expected = best.map(|(_, unit)| unit);
                assert_eq!(scores.take_best(&units, now), expected);
            }
        }
    }
}
