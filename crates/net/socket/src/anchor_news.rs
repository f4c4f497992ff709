//! Whether a connection's kernel socket, its anchor, may have something to tell: FIN, a reset,
//! an answer of TCP.
//!
//! Reading it costs no system call, and while there is no news nobody asks the kernel. News may
//! come to one thread while another finds that the anchor has none: what the other has not seen
//! must stay, so it takes back only the news that it had read before it asked.

use core::sync::atomic::{AtomicU32, Ordering};

/// Zero: none. Else a number that changes with all that is heard.
#[derive(Debug, Default)]
pub(crate) struct AnchorNews(AtomicU32);

/// News that were there before the anchor was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heard(u32);

impl AnchorNews {
    /// The kernel has said something about the anchor, or its state was seen to matter.
    pub(crate) fn note(&self) {
        let next = |n: u32| Some(n.wrapping_add(1).max(1));
        // It has no way to fail: the closure always gives a value.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
    }

    /// What has been heard and not been settled, if anything.
    pub(crate) fn heard(&self) -> Option<Heard> {
        let n = self.0.load(Ordering::Relaxed);
        (n != 0).then_some(Heard(n))
    }

    /// The anchor was asked after `heard` and had nothing to tell.
    pub(crate) fn settle(&self, heard: Heard) {
        // When it fails, there is more to hear.
        let _ = self
            .0
            .compare_exchange(heard.0, 0, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// The connection has no anchor any more.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_after_the_question_stays() {
        let news = AnchorNews::default();
        assert_eq!(news.heard(), None);
        news.note();
        let before = news.heard().expect("it was noted");
        news.note();
        news.settle(before);
        let since = news.heard().expect("it came after the question");
        news.settle(since);
        assert_eq!(news.heard(), None);
    }

    #[test]
    fn the_count_never_comes_back_to_none() {
        let news = AnchorNews(AtomicU32::new(u32::MAX));
        news.note();
        assert_eq!(news.heard(), Some(Heard(1)));
    }
}
