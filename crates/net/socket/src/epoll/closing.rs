//! The end of an epoll set: when its last descriptor is closed, or, as in the kernel, when the last
//! thread that waits in the set has returned.
//!
//! Such threads go on waiting in the set that they called on. Its number may refer to another file
//! by now, so they use a copy of the descriptor.

use super::{EpollSet, SET_POOL};
use crate::{asleep, lock, rt, table};
use core::sync::atomic::Ordering;
use saiga_channel::sys::{self, Fd};

/// Handles the coming close of a descriptor of the set. With the last descriptor, the set ends.
pub(crate) fn close(set: &'static EpollSet, fd: Fd) {
    closed(set, Some(fd));
}

/// Handles a descriptor of the set that was closed without a hook.
pub(crate) fn close_stale(set: &'static EpollSet) {
    closed(set, None);
}

fn closed(set: &'static EpollSet, fd: Option<Fd>) {
    if set.refs.fetch_sub(1, Ordering::SeqCst) != 1 {
        return;
    }
    // This thread may have jumped out of a wait in the set. Release that wait before the set
    // closes: afterwards leaving the wait would end the set.
    asleep::release_abandoned(&set);
    // A thread that leaves reads this flag afterwards.
    set.closing.store(true, Ordering::SeqCst);
    let Some(guard) = set.lock.lock() else {
        return; // In a signal handler above the lock's holder: at worst a record is leaked.
    };
    if set.is_over() {
        drop(guard);
        set.end();
    } else if let Some(fd) = fd
        && let Ok(copy) = sys::fcntl(fd, libc::F_DUPFD_CLOEXEC, rt::floor())
    {
        // At the descriptor limit there is no copy: then a wait ends with EBADF.
        rt::keep(&set.own_copy, copy);
    }
}

/// Ends a closed set if the calling thread was the last inside; it has left without the lock.
pub(crate) fn left(set: &'static EpollSet) {
    if !set.closing.load(Ordering::SeqCst) {
        return;
    }
    let over = set.lock.lock().is_some_and(|_guard| set.is_over());
    if over {
        set.end();
    }
}

impl EpollSet {
    /// Whether the application has this set at `epfd`. The caller counts as inside: from then on
    /// the record stays this set's until the caller leaves.
    pub(crate) fn is_at(&self, epfd: Fd) -> bool {
        self.refs.load(Ordering::SeqCst) > 0
            && matches!(table::get(epfd), table::Entry::Epoll(set) if core::ptr::eq(set, self))
    }

    /// The library's own descriptor of a set that the application has closed.
    pub(crate) fn own_copy(&self) -> Option<Fd> {
        Some(self.own_copy.load(Ordering::SeqCst)).filter(|fd| *fd >= 0)
    }

    /// A descriptor of this process that refers to the set.
    pub(super) fn any_number(&self) -> Option<Fd> {
        let number = self.number.load(Ordering::Relaxed);
        self.own_copy()
            .or_else(|| self.is_at(number).then_some(number))
    }

    /// Whether the set is closed and no thread is in it: true once. The caller holds the lock, and
    /// calls `end` without it.
    pub(crate) fn is_over(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
            && self.waiters.is_empty(lock::epoch())
            && self.sleepers.are_none(lock::epoch())
            && self.closing.swap(false, Ordering::SeqCst)
    }

    /// Closes our descriptors of the set and gives its entry back to the pool.
    pub(crate) fn end(&'static self) {
        self.retire();
        self.sleepers.clear();
        for own in [&self.bell_fd, &self.own_copy] {
            rt::unhide_and_close(own.swap(-1, Ordering::SeqCst));
        }
        SET_POOL.put(self);
    }
}
