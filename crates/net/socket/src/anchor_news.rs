//! Whether the anchor (the kernel socket of a connection) may have an event to report: FIN, a
//! reset, or bytes sent by TCP.
//!
//! Reading this word costs no system call, and the kernel is not asked while the word is zero. One
//! thread may note an event while another thread finds that the anchor has none. A thread
//! therefore clears the word only if it still has the value that the thread read before it asked
//! the kernel.

use core::sync::atomic::{AtomicU32, Ordering};

/// Zero: no event. Otherwise a number that changes with every noted event.
#[derive(Debug, Default)]
pub(crate) struct AnchorNews(AtomicU32);

/// Value of the word before the anchor was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heard(u32);

impl AnchorNews {
    /// Records an event of the anchor.
    pub(crate) fn note(&self) {
        let next = |n: u32| Some(n.wrapping_add(1).max(1));
        // This cannot fail: the closure always returns a value.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
    }

    /// The noted events that were not cleared yet, if any.
    pub(crate) fn heard(&self) -> Option<Heard> {
        let n = self.0.load(Ordering::Relaxed);
        (n != 0).then_some(Heard(n))
    }

    /// Clears the events read as `heard`, after the anchor was asked and had nothing to report.
    pub(crate) fn settle(&self, heard: Heard) {
        // A failure means that another event was noted since.
        let _ = self
            .0
            .compare_exchange(heard.0, 0, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Clears all events: the connection has no anchor any more.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_noted_after_the_question_stays() {
        let news = AnchorNews::default();
        assert_eq!(news.heard(), None);
        news.note();
        let before = news.heard().expect("an event was noted");
        news.note();
        news.settle(before);
        let since = news
            .heard()
            .expect("the second event was noted after the question");
        news.settle(since);
        assert_eq!(news.heard(), None);
    }

    #[test]
    fn the_count_skips_zero_when_it_wraps() {
        let news = AnchorNews(AtomicU32::new(u32::MAX));
        news.note();
        assert_eq!(news.heard(), Some(Heard(1)));
    }
}
