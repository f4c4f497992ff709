//! The reaper: every process that the trials start ends with the test process, also if that is
//! killed.
//!
//! The kernel signals a child when the thread that started it ends (`PR_SET_PDEATHSIG`, `man 2
//! prctl`). So one thread, which never ends, starts every process that may outlive its caller. A
//! daemon leaves its parent, so it gets a keeper ([`keep`]).
//!
//! Deliberately absent: children of children. Servers end their own children, as they do when an
//! operator kills the server; the programs of the trials set the signal themselves.
#![expect(unsafe_code, reason = "pre_exec has no safe wrapper")]

use std::{
    io,
    os::unix::process::{CommandExt as _, parent_id},
    process::{self, Child, Command},
    sync::{LazyLock, mpsc},
    thread,
};

use crate::sys::{self, Signal};

mod keeper;

pub use keeper::keep;

/// A command to start, and the sender for the resulting child.
type Request = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts `command`; `end` is sent to the child when this process ends in any way.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn(mut command: Command, end: Signal) -> io::Result<Child> {
    static STARTER: LazyLock<mpsc::Sender<Request>> = LazyLock::new(starter);
    end_with_parent(&mut command, end);
    let (tell, told) = mpsc::channel();
    STARTER
        .send((command, tell))
        .expect("the thread never ends");
    told.recv().expect("the thread answers each request")
}

fn starter() -> mpsc::Sender<Request> {
    let (order, orders) = mpsc::channel::<Request>();
    thread::spawn(move || {
        for (mut command, tell) in orders {
            // The requesting thread waits for the answer.
            let _ = tell.send(command.spawn());
        }
    });
    order
}

/// Makes the kernel send `end` to the child that `command` starts when the thread that starts it
/// ends. For children for which that thread waits.
pub fn end_with_parent(command: &mut Command, end: Signal) {
    let parent = process::id();
    let armed = move || {
        sys::signal_at_parents_end(end)?;
        still_child_of(parent)
    };
    // SAFETY: the closure makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(armed) };
}

/// Fails if `parent` has ended already: then no signal will come.
fn still_child_of(parent: u32) -> io::Result<()> {
    if parent_id() == parent {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}
