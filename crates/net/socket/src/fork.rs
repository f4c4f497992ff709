//! Handlers that run before and after a fork. The child has a copy of its parent's records, and
//! corrects what differs in another process.

use crate::policy::contention;
use crate::{chaos, close, links, lock, poll, rt, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use saiga_channel::own;

/// The words that every fork changes. They share a cache line, and thus a page: the kernel copies
/// each page that a child writes for the first time.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Changed {
    /// Number of forks by this process, added to the number that it inherited from its parent.
    forks: AtomicU32,
    /// Incremented only in the child of a fork; the parent stays in its epoch.
    pub(crate) epoch: AtomicU32,
    /// PID of the process that the private records describe. The PID of a vfork child differs.
    pub(crate) pid: AtomicU32,
    /// Whether the mapped status page is the parent's.
    pub(crate) parents_page: AtomicBool,
}

pub(crate) static CHANGED: Changed = Changed {
    forks: AtomicU32::new(0),
    epoch: AtomicU32::new(1),
    pid: AtomicU32::new(0),
    parents_page: AtomicBool::new(false),
};

/// Number of forks so far. A connection that was bound at another number may be shared.
pub(crate) fn forks() -> u32 {
    CHANGED.forks.load(Ordering::Relaxed)
}

/// Runs in the parent before a fork: counts the fork, for both processes.
pub fn prepare() {
    CHANGED.forks.fetch_add(1, Ordering::SeqCst);
    own::retire();
}

/// Runs in the parent after a fork.
pub fn parent() {
    own::retire();
}

/// Runs in the child after a fork: corrects its records.
pub fn child() {
    own::retire();
    lock::forked();
    thread::forked();
    contention::forked();
    poll::forked();
    rt::forked();
    close::forked();
    links::forked();
    chaos::forked(forks());
}
