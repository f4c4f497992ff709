//! What fork changes: the child keeps the records and is another process.

use crate::{chaos, company, lock, poll, rt, table, thread, upgrade};
use core::sync::atomic::{AtomicU32, Ordering};

/// Forks on this process's line of descent, our own included.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Forks so far: a connection that was bound before the latest may be shared.
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Runs in the parent before a fork.
pub fn prepare() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// Runs in the child after a fork.
pub fn child() {
    lock::forked();
    thread::forked();
    company::forked();
    poll::forked();
    rt::forked();
    for socket in (0..=table::highest()).filter_map(|n| table::socket(i32::try_from(n).ok()?)) {
        if !socket.is_bound() {
            upgrade::forked(socket);
        }
    }
    chaos::forked(forks());
}
