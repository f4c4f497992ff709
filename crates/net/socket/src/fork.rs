//! What fork changes: the child keeps the records and is another process.

use crate::{chaos, close, company, links, lock, poll, rt, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What every fork changes. It stands together because each page of memory that a child is first
/// to write costs it a copy.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Changed {
    /// Forks on this process's line of descent, our own included.
    forks: AtomicU32,
    /// The same, but a fork's parent stays in its epoch.
    pub(crate) epoch: AtomicU32,
    /// The process that the private records describe; differs in a vfork child.
    pub(crate) pid: AtomicU32,
    /// The status page that is mapped is our parent's.
    pub(crate) parents_page: AtomicBool,
}

pub(crate) static CHANGED: Changed = Changed {
    forks: AtomicU32::new(0),
    epoch: AtomicU32::new(1),
    pid: AtomicU32::new(0),
    parents_page: AtomicBool::new(false),
};

/// Forks so far: a connection that was bound before the latest may be shared.
pub(crate) fn forks() -> u32 {
    CHANGED.forks.load(Ordering::Relaxed)
}

/// Runs in the parent before a fork.
pub fn prepare() {
    CHANGED.forks.fetch_add(1, Ordering::SeqCst);
}

/// Runs in the child after a fork.
pub fn child() {
    lock::forked();
    thread::forked();
    company::forked();
    poll::forked();
    rt::forked();
    close::forked();
    links::forked();
    chaos::forked(forks());
}
