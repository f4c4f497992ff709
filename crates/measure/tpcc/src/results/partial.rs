//! A merged record in which workers are missing.
//!
//! The figures are those of the workers that are present; nothing is extrapolated. The server may
//! have served the missing workers as well. The figures are therefore neither the result of the run
//! nor of a smaller run, and the merged record is never valid.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::record::Conditions;
use super::validity::{Check, Verdict};
use crate::driver::Share;
use crate::driver::assignment::assign_districts;

/// The missing workers of a merged record, and the part of the run that is present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// Numbers of the missing workers, in ascending order.
    pub missing: Vec<u32>,
    /// Number of workers of the run.
    pub workers: u32,
    /// Number of terminals of the workers that are present.
    pub terminals: u32,
    /// Number of terminals of the run.
    pub of_terminals: u32,
    /// Number of home warehouses of the present terminals; if homes are not fixed, number of
    /// warehouses of the run.
    pub warehouses: u32,
    /// Number of home warehouses of all terminals; if homes are not fixed, number of warehouses of
    /// the run.
    pub of_warehouses: u32,
}

impl Partial {
    /// Describes a merged record without the workers in `missing`, which are in ascending order.
    #[must_use]
    pub fn of(conditions: &Conditions, missing: Vec<u32>) -> Self {
        let workers = conditions.share.1;
        let is_there = |terminal| {
            let worker = Share::worker_of(terminal, workers);
            missing.binary_search(&worker).is_err()
        };
        let districts =
            assign_districts(conditions.seed, conditions.warehouses, conditions.terminals);
        let (mut homes, mut homes_there) = (BTreeSet::new(), BTreeSet::new());
        let mut terminals = 0;
        for (terminal, district) in (0..).zip(&districts) {
            homes.insert(district.w_id);
            if is_there(terminal) {
                terminals += 1;
                homes_there.insert(district.w_id);
            }
        }
        let (warehouses, of_warehouses) = if conditions.fixed_warehouse {
            (count(homes_there.len()), count(homes.len()))
        } else {
            (conditions.warehouses, conditions.warehouses)
        };
        Self {
            missing,
            workers,
            terminals,
            of_terminals: count(districts.len()),
            warehouses,
            of_warehouses,
        }
    }

    /// Names the missing workers: `worker 2 of 3 is missing`.
    #[must_use]
    pub fn missing_workers(&self) -> String {
        let (noun, verb) = match self.missing.len() {
            1 => ("worker", "is"),
            _ => ("workers", "are"),
        };
        let numbers = numbers(&self.missing);
        format!("{noun} {numbers} of {} {verb} missing", self.workers)
    }

    /// Names the missing workers, and the part of the run that the figures represent.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "{}; the figures are those of {} of {} terminals and {} of {} warehouses",
            self.missing_workers(),
            self.terminals,
            self.of_terminals,
            self.warehouses,
            self.of_warehouses
        )
    }

    /// A failed check: all New-Orders of a run must be counted (§5.4.2).
    pub(super) fn check(&self) -> Check {
        Check {
            name: "all workers are in the sum".to_owned(),
            clause: "§5.4.2".to_owned(),
            found: format!(
                "{} of {} workers, {} of {} terminals",
                self.workers.saturating_sub(count(self.missing.len())),
                self.workers,
                self.terminals,
                self.of_terminals
            ),
            allowed: "all".to_owned(),
            verdict: Verdict::Fails,
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Formats ascending numbers with ranges: `2, 5 to 7`.
pub(super) fn numbers(all: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in all {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let word = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    ranges.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_become_ranges() {
        assert_eq!(numbers(&[2]), "2");
        assert_eq!(numbers(&[1, 2]), "1, 2");
        assert_eq!(numbers(&[2, 5, 6, 7, 9]), "2, 5 to 7, 9");
        assert_eq!(numbers(&[u32::MAX - 1, u32::MAX]), "4294967294, 4294967295");
    }
}
