//! Counts upgrades and downgrades of connections over many runs.
//!
//! One run at random moments may have none; a whole suite without any would prove nothing.

use std::{ops::AddAssign, sync::Mutex};

/// Moves of some connections, as counted on their processes' status pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    /// From TCP to a channel.
    pub upgrades: u64,
    /// From a channel to TCP.
    pub downgrades: u64,
}

impl Moves {
    /// Parses `moves UPGRADES DOWNGRADES`, which the programs print.
    pub fn parse(line: &str) -> Option<Self> {
        let (there, back) = line.strip_prefix("moves ")?.split_once(' ')?;
        Some(Self {
            upgrades: there.parse().ok()?,
            downgrades: back.parse().ok()?,
        })
    }
}

impl AddAssign for Moves {
    fn add_assign(&mut self, other: Self) {
        self.upgrades += other.upgrades;
        self.downgrades += other.downgrades;
    }
}

/// The moves of a suite whose tests run in any order, and the number of tests that have ended.
#[derive(Debug, Default)]
pub struct MoveCounter(Mutex<(usize, Moves)>);

impl MoveCounter {
    /// A counter before the first test's end.
    pub const fn new() -> Self {
        Self(Mutex::new((
            0,
            Moves {
                upgrades: 0,
                downgrades: 0,
            },
        )))
    }

    /// Adds one test's moves. Returns the sum for the last of `all` tests.
    ///
    /// # Panics
    /// If another test panicked in this function.
    pub fn end(&self, seen: Moves, all: usize) -> Option<Moves> {
        let mut sum = self.0.lock().expect("nothing panics here");
        sum.0 += 1;
        sum.1 += seen;
        (sum.0 == all).then_some(sum.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_test_gets_the_sum() {
        let counter = MoveCounter::new();
        let line = |text| Moves::parse(text).unwrap_or_default();
        assert_eq!(counter.end(line("moves 3 1"), 3), None);
        assert_eq!(counter.end(line("kernel server 8192"), 3), None);
        let sum = Moves {
            upgrades: 13,
            downgrades: 3,
        };
        assert_eq!(counter.end(line("moves 10 2"), 3), Some(sum));
    }
}
