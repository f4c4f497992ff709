//! Whether the anchor (the kernel socket of a connection) may have an event to report: FIN, a
//! reset, or bytes sent by TCP.
//!
//! Reading this word costs no system call, and the kernel is not asked while no event is noted. One
//! thread may note an event while another thread finds that the anchor has none. A thread
//! therefore clears the word only if it still has the value that the thread read before it asked
//! the kernel.

use core::sync::atomic::{AtomicU32, Ordering};

/// An odd number: there may be an event. Every noted event makes another odd number, so that a
/// thread cannot clear an event that was noted after another thread has cleared an earlier one.
#[derive(Debug, Default)]
pub(crate) struct AnchorEvents(AtomicU32);

/// Value of the word before the anchor was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted(u32);

impl AnchorEvents {
    /// Records an event of the anchor.
    pub(crate) fn note(&self) {
        let next = |n: u32| Some(n.wrapping_add(2) | 1);
        // This cannot fail: the closure always returns a value.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
    }

    /// The noted events that were not cleared yet, if any.
    pub(crate) fn noted(&self) -> Option<Noted> {
        let n = self.0.load(Ordering::Relaxed);
        (n & 1 != 0).then_some(Noted(n))
    }

    /// Clears the events read as `noted`, after the anchor was asked and had nothing to report.
    pub(crate) fn clear(&self, noted: Noted) {
        // A failure means that another event was noted since.
        let _ = self
            .0
            .compare_exchange(noted.0, noted.0 & !1, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Clears all events: the connection has no anchor any more.
    pub(crate) fn clear_all(&self) {
        self.0.fetch_and(!1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_noted_after_the_question_stays() {
        let events = AnchorEvents::default();
        assert_eq!(events.noted(), None);
        events.note();
        let before = events.noted().expect("an event was noted");
        events.note();
        events.clear(before);
        let since = events
            .noted()
            .expect("the second event was noted after the question");
        events.clear(since);
        assert_eq!(events.noted(), None);
        events.note();
        events.clear(since);
        assert!(
            events.noted().is_some(),
            "another thread cleared in between"
        );
    }

    #[test]
    fn an_event_is_noted_when_the_count_wraps() {
        let events = AnchorEvents(AtomicU32::new(u32::MAX));
        events.note();
        assert_eq!(events.noted(), Some(Noted(1)));
    }
}
