//! O_NONBLOCK of a connection, needed by every receive and send that would wait, and whether a
//! program that does not wait in these calls waits where a hook sees it.
//!
//! The flag belongs to the open file description, so another process that has the connection by
//! fork can change it. Its hook counts the change in memory of the fork group, and a new count
//! makes this process ask the kernel again. A change that passes no hook is found where it matters:
//! before a wait sleeps, and by every sixteenth call that would return EAGAIN.

use crate::{fork, fork_group};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use saiga_channel::sys::{self, Fd};

/// Cached flag and observed waits of a connection.
#[derive(Debug)]
pub(crate) struct NonBlock {
    /// 1 + O_NONBLOCK; 0 while the kernel must be asked.
    known: AtomicU8,
    /// The fork group's count of changes when the flag was read.
    learnt_at: AtomicU32,
    /// Fork epoch in which the connection was opened. If it is older than the current one, another
    /// process may have the same file description.
    opened: AtomicU32,
    /// Whether a hook has seen a wait: poll, select, or epoll_wait on a set with the connection.
    waited: AtomicBool,
    /// State of the module `receives`: the waits that receives have shown.
    receives: AtomicU8,
}

/// Values of `NonBlock::receives`. A receive may wait unless O_NONBLOCK or MSG_DONTWAIT is set.
mod receives {
    /// No receive with MSG_DONTWAIT has found nothing, and none could have waited.
    pub(super) const NONE: u8 = 0;
    /// A receive could have waited.
    pub(super) const MAY_WAIT: u8 = 1;
    /// Then a receive with MSG_DONTWAIT has found nothing: the program now waits in another call.
    pub(super) const HURRIED: u8 = 2;
    /// As `HURRIED`, and no receive before could have waited.
    pub(super) const ONLY_HURRIED: u8 = 3;
    /// After `HURRIED` or `ONLY_HURRIED`, a receive could have waited: the program does both.
    pub(super) const BOTH: u8 = 4;
}

impl NonBlock {
    /// Resets the state for a connection that is opened.
    pub(crate) fn forget(&self) {
        let Self {
            known,
            learnt_at,
            opened,
            waited,
            receives,
        } = self;
        known.store(0, Ordering::Relaxed);
        learnt_at.store(fork_group::flag_changes(), Ordering::Relaxed);
        opened.store(fork::forks(), Ordering::Relaxed);
        waited.store(false, Ordering::Relaxed);
        receives.store(receives::NONE, Ordering::Relaxed);
    }

    /// Notes a receive that is about to begin.
    pub(crate) fn note_receive(&self, fd: Fd, flags: i32) {
        let before = self.receives.load(Ordering::Relaxed);
        let after = match before {
            _ if self.is_waited_for() || flags & libc::MSG_DONTWAIT != 0 => return,
            receives::NONE => receives::MAY_WAIT,
            receives::HURRIED | receives::ONLY_HURRIED => receives::BOTH,
            _ => return,
        };
        if !self.is_set(fd) {
            self.receives.store(after, Ordering::Relaxed);
        }
    }

    /// Notes that a receive with these flags has found nothing.
    pub(crate) fn note_nothing(&self, flags: i32) {
        let after = match self.receives.load(Ordering::Relaxed) {
            _ if flags & libc::MSG_DONTWAIT == 0 => return,
            receives::NONE => receives::ONLY_HURRIED,
            receives::MAY_WAIT => receives::HURRIED,
            _ => return,
        };
        self.receives.store(after, Ordering::Relaxed);
    }

    /// Whether the program waits in other calls than those that receive and send.
    pub(crate) fn waits_elsewhere(&self, fd: Fd) -> bool {
        let receives = self.receives.load(Ordering::Relaxed);
        matches!(receives, receives::HURRIED | receives::ONLY_HURRIED) || self.is_set(fd)
    }

    /// Whether neither a receive that may wait nor another wait was ever seen.
    pub(crate) fn has_never_waited(&self) -> bool {
        let receives = self.receives.load(Ordering::Relaxed);
        matches!(receives, receives::NONE | receives::ONLY_HURRIED) && !self.is_waited_for()
    }

    /// Sets the flag as given to the call that opened the connection.
    pub(crate) fn learn(&self, yes: bool) {
        self.known.store(1 + u8::from(yes), Ordering::Relaxed);
    }

    /// Whether the descriptor is nonblocking, as far as the hooks have seen.
    pub(crate) fn is_set(&self, fd: Fd) -> bool {
        // The flag is read behind the count at which it was learnt.
        let current = self.learnt_at.load(Ordering::Acquire) == fork_group::flag_changes();
        match self.known.load(Ordering::Relaxed) {
            1 if current => false,
            2 if current => true,
            _ => self.ask(fd),
        }
    }

    /// Asks the kernel whether the descriptor is nonblocking.
    pub(crate) fn ask(&self, fd: Fd) -> bool {
        // Read the count before the question: a later change then leads to another question.
        let at = fork_group::flag_changes();
        let flags = sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0);
        let yes = flags & libc::O_NONBLOCK != 0;
        self.learn(yes);
        self.learnt_at.store(at, Ordering::Release); // With the flag.
        yes
    }

    /// Whether the `n`th call that would have to wait returns EAGAIN instead.
    pub(crate) fn refuses(&self, fd: Fd, n: u32) -> bool {
        if n.is_multiple_of(16) {
            self.ask(fd)
        } else {
            self.is_set(fd)
        }
    }

    /// Notes a call that may have changed the flag.
    pub(crate) fn note_change(&self) {
        self.known.store(0, Ordering::Relaxed);
        if self.opened.load(Ordering::Relaxed) != fork::forks() {
            fork_group::note_flag_change();
        }
    }

    /// Notes a wait that a hook has seen.
    pub(crate) fn note_wait(&self) {
        if !self.waited.load(Ordering::Relaxed) {
            self.waited.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a hook has seen a wait.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waited.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn new() -> NonBlock {
        let flag = NonBlock {
            known: AtomicU8::new(0),
            learnt_at: AtomicU32::new(0),
            opened: AtomicU32::new(0),
            waited: AtomicBool::new(false),
            receives: AtomicU8::new(receives::NONE),
        };
        flag.forget();
        flag
    }

    #[test]
    fn the_kernel_is_asked_after_a_possible_change_and_by_every_sixteenth_call() {
        fork_group::begin();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let stream = TcpStream::connect(address).expect("it listens");
        let set_unseen = |yes| stream.set_nonblocking(yes).expect("a socket option");
        let fd = stream.as_raw_fd();
        let flag = new();
        fork::prepare(); // From here another process may have the connection.
        set_unseen(true);
        assert!(flag.is_set(fd), "asked the first time");
        set_unseen(false);
        assert!(flag.is_set(fd), "known, so the kernel is not asked");
        assert!((1..16).all(|n| flag.refuses(fd, n)));
        assert!(!flag.refuses(fd, 16), "the sixteenth asks");
        assert!(!flag.is_set(fd), "and its answer is kept");
        set_unseen(true);
        let other = new();
        other.note_change();
        assert!(!flag.is_set(fd), "a new connection is not shared");
        fork::prepare();
        other.note_change();
        assert!(
            flag.is_set(fd),
            "a process that has both may have changed it"
        );
    }

    #[test]
    fn receives_that_do_not_wait_show_no_wait_until_one_that_may() {
        fork_group::begin();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let stream = TcpStream::connect(address).expect("it listens");
        let (fd, flag) = (stream.as_raw_fd(), new());
        let receive = |flags| {
            flag.note_receive(fd, flags);
            flag.note_nothing(flags);
            flag.waits_elsewhere(fd)
        };
        assert!(flag.has_never_waited());
        assert!(!receive(0), "the program waits in a receive");
        assert!(!flag.has_never_waited());
        assert!(receive(libc::MSG_DONTWAIT | libc::MSG_PEEK));
        assert!(receive(libc::MSG_DONTWAIT));
        assert!(!receive(0));
        assert!(!receive(libc::MSG_DONTWAIT), "the program does both");

        let other = new();
        stream.set_nonblocking(true).expect("a socket option");
        other.note_nothing(libc::MSG_DONTWAIT);
        other.note_receive(fd, 0);
        stream.set_nonblocking(false).expect("a socket option");
        other.note_change();
        assert!(
            other.waits_elsewhere(fd) && other.has_never_waited(),
            "no receive could have waited"
        );
        other.note_wait();
        assert!(!other.has_never_waited());
    }
}
