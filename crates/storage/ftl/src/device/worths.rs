//! Closed units by what cleaning them is worth, the greatest found without looking at each.
//!
//! The worth of a unit grows with its age, and jumps when it loses a page. Blocks of units have an
//! upper bound: a straight line over time that was exact when the block was last looked at, and
//! is lifted by every jump. A search looks only into blocks whose bound reaches the best so far.

use super::Unit;

/// Stands for units that are not here.
const NEVER: u64 = u64::MAX;

/// The units, and when each was closed.
#[derive(Debug)]
pub(super) struct Worths {
    /// In host writes, by unit.
    closed_at: Vec<u64>,
    /// One for each `1 << shift` units.
    bounds: Vec<Bound>,
    shift: u32,
    full: u32,
}

/// No unit of the block is worth more than `worth + slope * (now - at)`.
#[derive(Debug, Clone, Copy)]
struct Bound {
    worth: f64,
    slope: f64,
    at: u64,
}

impl Bound {
    /// Rounded up, so that it never falls below what it bounds.
    fn now(&self, now: u64) -> f64 {
        (self.worth + self.slope * (now - self.at) as f64) * (1.0 + 4.0 * f64::EPSILON)
    }
}

impl Worths {
    /// No units of `full` pages.
    pub(super) fn new(units: u32, full: u32) -> Self {
        // As many blocks as units in one.
        let shift = units.max(1).ilog2() / 2;
        let none = Bound {
            worth: 0.0,
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

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.closed_at.capacity() * size_of::<u64>() + self.bounds.capacity() * size_of::<Bound>()
    }

    /// A unit with `valid` pages is closed.
    pub(super) fn insert(&mut self, unit: u32, valid: u32, now: u64) {
        self.closed_at[unit as usize] = now;
        self.lost_page(unit, valid, now);
    }

    /// A unit leaves.
    pub(super) fn remove(&mut self, unit: u32) {
        self.closed_at[unit as usize] = NEVER;
    }

    /// A unit has `valid` pages left, one at least.
    #[inline]
    pub(super) fn lost_page(&mut self, unit: u32, valid: u32, now: u64) {
        let slope = slope(valid, self.full);
        let worth = slope * age(self.closed_at[unit as usize], now);
        let bound = &mut self.bounds[(unit >> self.shift) as usize];
        let most = bound.now(now);
        if slope > bound.slope || worth > most {
            *bound = Bound {
                worth: worth.max(most),
                slope: slope.max(bound.slope),
                at: now,
            };
        }
    }

    /// Something of what is kept of a unit, to have it in the caches.
    #[inline]
    pub(super) fn peek(&self, unit: usize) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
        self.closed_at.get(unit).map_or(0, |at| *at as u32)
    }

    /// Takes the unit that is worth most, of several the one with the lowest number.
    pub(super) fn take_worthiest(&mut self, units: &[Unit], now: u64) -> Option<u32> {
        let bounds = self.bounds.iter().map(|bound| bound.now(now)).enumerate();
        // Most often it is here; then the others need not be looked at.
        let (likely, _) = bounds.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut best = self.look(likely, units, now);
        for block in (0..self.bounds.len()).filter(|block| *block != likely) {
            let bound = self.bounds[block].now(now);
            if best.is_some_and(|(worth, _)| bound < worth) {
                continue;
            }
            if let Some(found) = self.look(block, units, now) {
                let is_better =
                    |(worth, unit)| found.0 > worth || found.0 == worth && found.1 < unit;
                if best.is_none_or(is_better) {
                    best = Some(found);
                }
            }
        }
        let (_, unit) = best?;
        self.remove(unit);
        Some(unit)
    }

    /// The worthiest unit of a block, whose bound is then exact.
    fn look(&mut self, block: usize, units: &[Unit], now: u64) -> Option<(f64, u32)> {
        let first = block << self.shift;
        let end = units.len().min(first + (1 << self.shift));
        let (mut best, mut most, mut steepest) = (None, 0.0, 0.0_f64);
        let members = units[first..end].iter().zip(&self.closed_at[first..end]);
        for (number, (unit, &closed_at)) in members.enumerate() {
            if closed_at == NEVER {
                continue;
            }
            let slope = slope(unit.valid, self.full);
            let worth = slope * age(closed_at, now);
            steepest = steepest.max(slope);
            if best.is_none() || worth > most {
                (best, most) = (Some(first + number), worth);
            }
        }
        self.bounds[block] = Bound {
            worth: most,
            slope: steepest,
            at: now,
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "units are numbered with 32 bits"
        )]
        best.map(|unit| (most, unit as u32))
    }

    /// The units, in order of their numbers.
    pub(super) fn members(&self) -> Vec<u32> {
        let units = (0..).zip(&self.closed_at);
        let here = units.filter(|(_, closed_at)| **closed_at != NEVER);
        here.map(|(unit, _)| unit).collect()
    }
}

/// (1 - u) / 2u.
#[inline]
fn slope(valid: u32, full: u32) -> f64 {
    f64::from(full - valid) / f64::from(2 * valid)
}

/// Host writes since a unit was closed; one at least, or a young empty unit were worthless.
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

    /// Thousands of searches between which everything may happen, each against a look at all.
    #[test]
    fn the_worthiest_is_found_as_by_looking_at_all() {
        let mut rng = fastrand::Rng::with_seed(7);
        let erased = Unit {
            valid: FULL,
            owner: 0,
            state: State::Free,
            account: 0,
        };
        let mut units = vec![erased; UNITS as usize];
        let mut worths = Worths::new(UNITS, FULL);
        let mut now = 0;
        for _ in 0..200_000 {
            now += rng.u64(..20);
            let unit = rng.u32(..UNITS);
            let valid = &mut units[unit as usize].valid;
            if worths.closed_at[unit as usize] == NEVER {
                *valid = rng.u32(1..=FULL);
                worths.insert(unit, *valid, now);
            } else if *valid > 1 {
                *valid -= 1;
                worths.lost_page(unit, *valid, now);
            }
            if rng.u32(..20) == 0 {
                let mut best = None;
                for unit in worths.members() {
                    let slope = slope(units[unit as usize].valid, FULL);
                    let worth = slope * age(worths.closed_at[unit as usize], now);
                    if best.is_none_or(|(most, _)| worth > most) {
                        best = Some((worth, unit));
                    }
                }
                let expected = best.map(|(_, unit)| unit);
                assert_eq!(worths.take_worthiest(&units, now), expected);
            }
        }
    }
}
