//! Fork handlers: the child keeps its parent's records and is another process.

use crate::policy::contention;
use crate::{chaos, close, links, lock, poll, rt, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The words that every fork changes. They share a cache line because each page that a child
/// writes first costs a copy.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Changed {
    /// Forks on this process's line of descent, its own included.
    forks: AtomicU32,
    /// As `forks`, but a fork's parent stays in its epoch.
    pub(crate) epoch: AtomicU32,
    /// The process that the private records describe; differs in a vfork child.
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

/// Number of forks so far: a connection bound before the latest fork may be shared.
pub(crate) fn forks() -> u32 {
    CHANGED.forks.load(Ordering::Relaxed)
}

/// Prepares the parent for a fork; runs before it.
pub fn prepare() {
    CHANGED.forks.fetch_add(1, Ordering::SeqCst);
}

/// Corrects the records of the child; runs after a fork.
pub fn child() {
    lock::forked();
    thread::forked();
    contention::forked();
    poll::forked();
    rt::forked();
    close::forked();
    links::forked();
    chaos::forked(forks());
}
