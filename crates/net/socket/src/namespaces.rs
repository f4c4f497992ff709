//! Leaving a namespace in which the library has names or knows its peers.
//!
//! Bells, offers and sock_diag belong to the network namespace in which they were made, uids to the
//! user namespace and PIDs to the PID namespace. A thread that enters another namespace would wait
//! on a bell that no peer can ring, and search for peers among other hosts' sockets. So every
//! connection is downgraded before, and nothing is upgraded afterwards.

use crate::api::{known, lookup};
use crate::rt;
use core::sync::atomic::Ordering;
use saiga_channel::sys::Fd;
use saiga_status::Reason;

/// The namespaces that matter; those of mounts, names and the like do not.
const KINDS: i32 = libc::CLONE_NEWNET | libc::CLONE_NEWUSER | libc::CLONE_NEWPID;

/// Whether `unshare(2)` or `clone(2)` with these flags leaves one of the namespaces that matter.
#[must_use]
pub fn leaves(flags: i32) -> bool {
    flags & KINDS != 0
}

/// Runs `switch`, a call such as setns(2) or clone(2), and returns its result. Downgrades every
/// connection before. The call returns 0 in the new namespace.
pub fn leave(switch: impl FnOnce() -> i32) -> i32 {
    if !rt::in_own_process() {
        return switch(); // A vfork child: the records belong to its parent, which stays.
    }
    let before = rt::NAMESPACE_LEFT.swap(true, Ordering::SeqCst);
    for fd in known(0, Fd::MAX) {
        if let Some(handle) = lookup(fd) {
            handle.stay_on_tcp(fd, Reason::Namespace);
        }
    }
    let result = switch();
    if result != 0 {
        rt::NAMESPACE_LEFT.store(before, Ordering::SeqCst);
    }
    result
}
