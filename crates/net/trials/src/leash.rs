//! Whatever the trials start ends with the test process, also when that is killed.
//!
//! The kernel signals a child when the thread that started it ends (`PR_SET_PDEATHSIG`, `man 2
//! prctl`): one thread, which never ends, starts everything that may live on. What becomes a
//! daemon leaves its parent, so it has a keeper ([`keep`]).
//!
//! Deliberately absent: children of children. Servers end their own, as they do when an
//! operator kills them; programs of the trials arm themselves.
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

/// A command to start, and who waits for the child.
type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts `command`, to which `end` is sent when this process ends, however it ends.
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn(mut command: Command, end: Signal) -> io::Result<Child> {
    static STARTER: LazyLock<mpsc::Sender<Order>> = LazyLock::new(starter);
    arm(&mut command, end);
    let (tell, told) = mpsc::channel();
    STARTER.send((command, tell)).expect("it takes orders");
    told.recv().expect("it answers each")
}

fn starter() -> mpsc::Sender<Order> {
    let (order, orders) = mpsc::channel::<Order>();
    thread::spawn(move || {
        for (mut command, tell) in orders {
            // Who ordered it waits for the answer.
            let _ = tell.send(command.spawn());
        }
    });
    order
}

/// Has `end` sent to what `command` starts when the thread that starts it ends: for children
/// for which that thread waits.
pub fn arm(command: &mut Command, end: Signal) {
    let parent = process::id();
    let armed = move || {
        sys::signal_at_parents_end(end)?;
        still_child_of(parent)
    };
    // SAFETY: the closure makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(armed) };
}

/// Fails where `parent` has ended already: nothing would be told of it.
fn still_child_of(parent: u32) -> io::Result<()> {
    if parent_id() == parent {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}
