//! Leaving a namespace in which the library has names or knows its peers.
//!
//! Bells, offers and sock_diag belong to the network namespace in which they were made, uids to
//! the user namespace and pids to the PID namespace. A thread that goes into another one would
//! wait on a bell that no peer can ring, and look for peers among strangers: so everything goes
//! back to TCP before, and nothing is upgraded after.

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

/// Runs `go`, which takes the caller into another namespace, or makes a child there: 0 is what one
/// who is there gets to see.
pub fn leave(go: impl FnOnce() -> i32) -> i32 {
    if !rt::in_own_process() {
        return go(); // A vfork child: the records are its parent's, who stays.
    }
    let before = rt::ABROAD.swap(true, Ordering::SeqCst);
    for fd in known(0, Fd::MAX) {
        if let Some(handle) = lookup(fd) {
            handle.stay_on_tcp(fd, Reason::Namespace);
        }
    }
    let result = go();
    if result != 0 {
        rt::ABROAD.store(before, Ordering::SeqCst);
    }
    result
}
