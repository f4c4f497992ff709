//! How often connections moved to channels and back, over many runs.
//!
//! One run at random moments may move nothing; a whole suite that moves nothing shows nothing.

use std::{ops::AddAssign, sync::Mutex};

/// Moves of some connections, as their processes' status pages counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    /// From TCP to a channel.
    pub there: u64,
    /// From a channel to TCP.
    pub back: u64,
}

impl Moves {
    /// Reads `moves THERE BACK`, which the programs print.
    pub fn parse(line: &str) -> Option<Self> {
        let (there, back) = line.strip_prefix("moves ")?.split_once(' ')?;
        Some(Self {
            there: there.parse().ok()?,
            back: back.parse().ok()?,
        })
    }
}

impl AddAssign for Moves {
    fn add_assign(&mut self, other: Self) {
        self.there += other.there;
        self.back += other.back;
    }
}

/// The moves of a suite whose tests run in any order, and how many of them have ended.
#[derive(Debug, Default)]
pub struct Tally(Mutex<(usize, Moves)>);

impl Tally {
    /// Nothing has ended yet.
    pub const fn new() -> Self {
        Self(Mutex::new((0, Moves { there: 0, back: 0 })))
    }

    /// Adds what one test saw. The sum, for the last of `all`.
    ///
    /// # Panics
    /// When another test did while it was here.
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
        let tally = Tally::new();
        let line = |text| Moves::parse(text).unwrap_or_default();
        assert_eq!(tally.end(line("moves 3 1"), 3), None);
        assert_eq!(tally.end(line("kernel server 8192"), 3), None);
        let sum = Moves { there: 13, back: 3 };
        assert_eq!(tally.end(line("moves 10 2"), 3), Some(sum));
    }
}
