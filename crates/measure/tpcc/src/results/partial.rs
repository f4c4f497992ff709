//! A sum that lacks workers: which ones, and how much of the run the others are.
//!
//! Nothing is put in the place of a missing part, so the figures are those of the workers that are
//! there. The server may have served the missing workers all the same: a partial sum is neither the
//! result of the run nor that of a smaller one, and none of its checks can make it valid.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::record::Conditions;
use super::validity::{Check, Verdict};
use crate::driver::Share;
use crate::driver::places::places;

/// What a sum of parts lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// Numbers of the workers without a file, in ascending order.
    pub missing: Vec<u32>,
    /// Workers of the whole run.
    pub workers: u32,
    /// Terminals of the workers that are there.
    pub terminals: u32,
    /// Terminals of the whole run.
    pub of_terminals: u32,
    /// Home warehouses of the terminals that are there; all, where terminals have no home.
    pub warehouses: u32,
    /// Home warehouses of all terminals.
    pub of_warehouses: u32,
}

impl Partial {
    /// Of a run under these conditions without the parts of `missing`, which is in ascending order.
    #[must_use]
    pub fn of(conditions: &Conditions, missing: Vec<u32>) -> Self {
        let workers = conditions.share.1;
        let is_there = |terminal| {
            let holder = Share::holder(terminal, workers);
            missing.binary_search(&holder).is_err()
        };
        let places = places(conditions.seed, conditions.warehouses, conditions.terminals);
        let (mut homes, mut homes_there) = (BTreeSet::new(), BTreeSet::new());
        let mut terminals = 0;
        for (terminal, place) in (0..).zip(&places) {
            homes.insert(place.w_id);
            if is_there(terminal) {
                terminals += 1;
                homes_there.insert(place.w_id);
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
            of_terminals: count(places.len()),
            warehouses,
            of_warehouses,
        }
    }

    /// Which workers it lacks: `worker 2 of 3 is missing`.
    #[must_use]
    pub fn lack(&self) -> String {
        let (noun, verb) = match self.missing.len() {
            1 => ("worker", "is"),
            _ => ("workers", "are"),
        };
        let numbers = numbers(&self.missing);
        format!("{noun} {numbers} of {} {verb} missing", self.workers)
    }

    /// What it lacks and what it stands for.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "{}; the figures are those of {} of {} terminals and {} of {} warehouses",
            self.lack(),
            self.terminals,
            self.of_terminals,
            self.warehouses,
            self.of_warehouses
        )
    }

    /// All New-Orders of a run count (§5.4.2): a sum without some of them fails.
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

/// Ascending numbers with their ranges drawn together: `2, 5 to 7`.
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
    fn ranges_are_drawn_together() {
        assert_eq!(numbers(&[2]), "2");
        assert_eq!(numbers(&[1, 2]), "1, 2");
        assert_eq!(numbers(&[2, 5, 6, 7, 9]), "2, 5 to 7, 9");
        assert_eq!(numbers(&[u32::MAX - 1, u32::MAX]), "4294967294, 4294967295");
    }
}
