//! Whether a receiver is woken: two words that both ends use, the position of the sender and the
//! flags of the receiver.
//!
//! The receiver clears MASK_INT, executes a fence, and looks for frames once more; then it sleeps.
//! The sender publishes, executes a fence, and reads MASK_INT. Both fences are sequentially
//! consistent, so one of them is first: if it is the receiver's, the sender reads that MASK_INT is
//! clear, and writes the eventfd; if it is the sender's, the receiver sees the frames.

use std::sync::atomic::{AtomicU16, Ordering, fence};

/// The flag of a ring whose receiver needs no interrupt.
const MASK_INT: u16 = 1;

/// A word of a ring.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u16;
    fn store(&self, value: u16, order: Ordering);
    /// A sequentially consistent fence.
    fn fence();
}

impl Word for AtomicU16 {
    fn load(&self, order: Ordering) -> u16 {
        self.load(order)
    }

    fn store(&self, value: u16, order: Ordering) {
        self.store(value, order);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Asks for no interrupts.
pub(super) fn mask(flags: &impl Word) {
    flags.store(MASK_INT, Ordering::Relaxed);
}

/// Asks for interrupts; returns the position up to which frames are there already.
pub(super) fn unmask<W: Word>(flags: &W, position: &W) -> u16 {
    flags.store(0, Ordering::Relaxed);
    W::fence();
    position.load(Ordering::Acquire)
}

/// Publishes the frames before `end`; returns whether the receiver must be woken.
pub(super) fn publish<W: Word>(position: &W, end: u16, flags: &W) -> bool {
    position.store(end, Ordering::Release);
    W::fence();
    flags.load(Ordering::Relaxed) & MASK_INT == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU16 as Modelled;
    use loom::thread;

    impl Word for Modelled {
        fn load(&self, order: Ordering) -> u16 {
            self.load(order)
        }

        fn store(&self, value: u16, order: Ordering) {
            self.store(value, order);
        }

        fn fence() {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    /// In every interleaving, a receiver that sees no frame is woken.
    #[test]
    fn a_receiver_sees_the_frame_or_is_woken() {
        loom::model(|| {
            let words = Arc::new([Modelled::new(MASK_INT), Modelled::new(0)]);
            let shared = Arc::clone(&words);
            let sender = thread::spawn(move || publish(&shared[1], 1, &shared[0]));
            let has_seen = unmask(&words[0], &words[1]) == 1;
            let is_woken = sender.join().unwrap();
            assert!(has_seen || is_woken);
        });
    }
}
