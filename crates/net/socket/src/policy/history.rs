//! Success history: whether waiting without sleeping was recently worthwhile, for each thread.
//!
//! A database's threads differ: one serves a client that sends its next request at once, the next
//! serves a client that pauses for a second. Each thread learns from its own waits, and repeats a
//! failing kind of attempt now and then, because loads change.

use super::decision::Attempt;

/// Below this share of successes (of 255) an attempt costs more than it saves.
const WORTHWHILE: u8 = 64;
/// A kind of attempt below that share is still made once in this many waits.
const RETRY_EVERY: u8 = 16;

/// The history of one kind of attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    /// Share of recent successes, of 255.
    share: u8,
    /// Attempts left out since the last one.
    skipped: u8,
}

impl History {
    const NEW: History = History {
        share: 128,
        skipped: 0,
    };

    /// Whether the next attempt should be made. Counts one that should not.
    pub(super) fn is_worthwhile(&mut self) -> bool {
        if self.share >= WORTHWHILE || cfg!(feature = "without-history") {
            return true;
        }
        self.skipped = (self.skipped + 1) % RETRY_EVERY;
        self.skipped == 0
    }

    /// Records the outcome of an attempt.
    pub(super) fn note(&mut self, success: bool) {
        self.share = if success {
            self.share + (255 - self.share) / 8
        } else {
            self.share - self.share / 8
        };
    }
}

/// The histories of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Histories {
    yields: History,
    spins: History,
}

impl Histories {
    pub(crate) const NEW: Histories = Histories {
        yields: History::NEW,
        spins: History::NEW,
    };

    pub(super) fn of(&mut self, attempt: Attempt) -> &mut History {
        match attempt {
            Attempt::Yields => &mut self.yields,
            Attempt::Spins => &mut self.spins,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_kind_of_attempt_is_retried_now_and_then() {
        let mut history = History::NEW;
        assert!(history.is_worthwhile());
        for _ in 0..64 {
            history.note(false);
        }
        let tries = (0..u32::from(RETRY_EVERY) * 10).filter(|_| history.is_worthwhile());
        assert_eq!(tries.count(), 10);
        for _ in 0..64 {
            history.note(true);
        }
        assert!((0..100).all(|_| history.is_worthwhile()));
    }

    #[test]
    fn one_success_in_two_is_worth_it_and_one_in_eight_is_not() {
        for (period, worth) in [(2, true), (8, false)] {
            let mut history = History::NEW;
            for i in 0..400 {
                history.note(i % period == 0);
            }
            // After the longest run of failures of the pattern.
            assert_eq!(history.share >= WORTHWHILE, worth, "one in {period}");
        }
    }
}
