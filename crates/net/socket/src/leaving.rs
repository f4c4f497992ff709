//! Handles all connections before the process ends, executes another program, starts a program that
//! inherits them, or can no longer make the library's system calls.

use crate::api::{known, lookup};
use crate::chan::Chan;
use crate::sock::Socket;
use crate::{close, rt, settings, table};
use core::sync::atomic::Ordering;
use saiga_channel::sys::{self, Fd};
use saiga_status::Reason;

/// After the process enabled seccomp: upgrades nothing more and downgrades every connection.
pub fn sandboxed() {
    rt::SANDBOXED.store(true, Ordering::SeqCst);
    rt::header().set_flags(saiga_status::Flags::SANDBOXED);
    for fd in known(0, Fd::MAX) {
        if let Some(h) = lookup(fd) {
            h.stay_on_tcp(fd, Reason::Sandboxed);
        }
    }
}

/// Before the process ends: makes peers send by TCP from here on. Bytes in a ring would look as if
/// they had been there, unread, when the process ended, and the connection would be reset where the
/// kernel shows the end of the stream. Connections that another process may read are left alone.
pub fn end_reading() {
    if !rt::in_own_process() {
        return; // A vfork child: its parent continues to read.
    }
    for socket in known(0, Fd::MAX).filter_map(table::socket) {
        end_reading_of(socket);
    }
}

fn end_reading_of(socket: &'static Socket) {
    let _pin = socket.pin();
    let own = socket.is_bound() && !socket.maybe_shared();
    if let Some(chan) = Chan::of(socket).filter(|_| own) {
        chan.rx_ring().freeze(); // A sleeping peer learns of the end by TCP.
    }
}

/// Before the process ends by `exit(3)`: sends the bytes that peers have recalled. Bytes that are
/// merely unread stay readable in the rings.
pub fn before_exit() {
    end_reading();
    let until_ns = close::wait_limit();
    for fd in known(0, Fd::MAX) {
        let Some(socket) = table::socket(fd) else {
            continue;
        };
        let _pin = socket.pin();
        if let Some(chan) = Chan::of(socket).filter(|_| socket.is_bound()) {
            close::finish_recall(fd, socket, &chan, until_ns);
        }
    }
}

/// Before a program is started that inherits descriptors without FD_CLOEXEC: it may use those
/// connections beside this process, without the library's records.
pub fn before_spawn() {
    for fd in known(0, Fd::MAX) {
        let inherited =
            || sys::fcntl(fd, libc::F_GETFD, 0).is_ok_and(|f| f & libc::FD_CLOEXEC == 0);
        if let Some(handle) = lookup(fd).filter(|h| h.is_bound() && inherited()) {
            handle.stay_on_tcp(fd, Reason::Exec);
        }
    }
}

/// Before exec: downgrades connections that survive it, because the new program has no records of
/// them. In a vfork child, whose descriptors our records do not describe, sockets at 0, 1 and 2
/// are recognised by their kernel cookie.
pub fn before_exec() {
    if !settings::may_enable() {
        return; // Nothing was ever upgraded. ENABLED does not show it: it may be off by now.
    }
    let own = rt::in_own_process();
    for fd in known(0, Fd::MAX) {
        let Some(socket) = table::socket(fd) else {
            continue;
        };
        if own && !socket.is_bound() {
            // A proposal must not be accepted after the exec.
            close::downgrade(fd, socket, Reason::Exec);
            continue;
        }
        let closes =
            |fd| sys::fcntl(fd, libc::F_GETFD, 0).map_or(true, |f| f & libc::FD_CLOEXEC != 0);
        let survives = !closes(fd) || (!own && (0..3).any(|n| !closes(n) && socket.is_behind(n)));
        if survives {
            let _pin = socket.pin();
            let fd = (0..3).find(|n| !own && socket.is_behind(*n)).unwrap_or(fd);
            close::downgrade(fd, socket, Reason::Exec);
        } else if own {
            end_reading_of(socket);
        }
    }
}
