//! Success history: whether waiting without sleeping was recently worthwhile, for each thread.
//!
//! A database's threads differ: one serves a client that sends its next request at once, the next
//! serves a client that pauses for a second. Each thread learns from its own waits, and repeats a
//! failing kind of attempt now and then, because loads change.

use crate::rt;
use core::cell::Cell;
use core::sync::atomic::Ordering;

/// Below this share of successes (of 255) an attempt costs more than it saves.
const WORTHWHILE: u8 = 64;
/// A kind of attempt below that share is still made once in this many waits.
const RETRY_EVERY: u8 = 16;
/// Waits that a thread counts before it adds them to the process's counters, which all threads
/// share.
const BATCH: u32 = 64;

/// The kinds of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptKind {
    /// A yield, followed by a check for events.
    Yield,
    Spin,
}

/// The history of one kind of attempt.
struct History {
    /// Share of recent successes, of 255.
    share: Cell<u8>,
    /// Attempts left out since the last one.
    skipped: Cell<u8>,
}

impl History {
    const fn new() -> History {
        History {
            share: Cell::new(128),
            skipped: Cell::new(0),
        }
    }

    fn is_worthwhile(&self) -> bool {
        if self.share.get() >= WORTHWHILE || cfg!(feature = "without-luck") {
            return true;
        }
        let skipped = (self.skipped.get() + 1) % RETRY_EVERY;
        self.skipped.set(skipped);
        skipped == 0
    }

    fn note(&self, success: bool) {
        let share = self.share.get();
        self.share.set(if success {
            share + (255 - share) / 8
        } else {
            share - share / 8
        });
    }
}

thread_local! {
    static YIELDS: History = const { History::new() };
    static SPINS: History = const { History::new() };
    static UNCOUNTED: Cell<u32> = const { Cell::new(0) };
}

/// Makes the attempt if this thread's history suggests that it is worthwhile.
pub(crate) fn try_if_worthwhile(kind: AttemptKind, attempt: impl FnOnce() -> bool) -> Option<bool> {
    let history = match kind {
        AttemptKind::Yield => &YIELDS,
        AttemptKind::Spin => &SPINS,
    };
    history.with(History::is_worthwhile).then(|| {
        let success = attempt();
        history.with(|h| h.note(success));
        success
    })
}

/// Counts a wait that ended without a sleep (`found`), or one that must sleep now.
pub(crate) fn count(found: bool) {
    let n = UNCOUNTED.get() + u32::from(found);
    if found && n < BATCH {
        return UNCOUNTED.set(n);
    }
    UNCOUNTED.set(0);
    let header = rt::header();
    header.spins.fetch_add(u64::from(n), Ordering::Relaxed);
    let slept = u64::from(!found);
    header.sleeps.fetch_add(slept, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_kind_of_attempt_is_retried_now_and_then() {
        let history = History::new();
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
            let history = History::new();
            for i in 0..400 {
                history.note(i % period == 0);
            }
            // After the longest run of failures of the pattern.
            assert_eq!(history.share.get() >= WORTHWHILE, worth, "one in {period}");
        }
    }
}
