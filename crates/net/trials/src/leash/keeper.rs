//! A keeper stands between us and a daemon, and kills the daemon when we end.
//!
//! When a process ends, its children become those of the nearest subreaper above it (`man 2
//! PR_SET_CHILD_SUBREAPER`). So what we start splits in three. The *front* is our child and
//! ends as the program does. The *keeper* is a subreaper: everything that the program leaves
//! behind becomes its child sooner or later. When we end, of which a pidfd tells, it kills and
//! reaps until it has none; when it has none before, it ends. The *program* is executed.
//!
//! All of this runs between fork and exec in a copy of a process with threads: system calls
//! only, no heap, no locks.
#![expect(
    unsafe_code,
    reason = "pre_exec, clone, close_range and signal masks have no safe wrapper"
)]

use std::{
    io::{self, PipeReader, PipeWriter},
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    process::{self, Command},
    ptr,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::{Errno, read, write},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, pidfd_open,
        set_child_subreaper, setsid, wait,
    },
    stdio::{dup2_stdin, dup2_stdout, stdin, stdout},
};

/// What the front says when the keeper was killed before the program ended.
const NO_WORD: u8 = 99;

/// Gives a keeper to what `command` starts: all that it leaves behind is killed when this
/// process ends. For its caller it behaves as before, but that a signal that kills it becomes
/// the exit code 128 + signal, as in a shell.
pub fn keep(command: &mut Command) {
    let us = process::id();
    // SAFETY: `split` makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(move || split(us)) };
}

/// Returns in the program only, or in whoever failed: the caller reports that to `us`.
fn split(us: u32) -> io::Result<()> {
    let watched = pidfd_open(pid_of(us)?, PidfdFlags::empty())?;
    super::still_child_of(us)?;
    let (told, tell) = io::pipe()?;
    if fork()?.is_some() {
        front(told);
    }
    drop(told);
    // Neither the terminal's signals nor those to our process group are for the keeper.
    setsid()?;
    set_child_subreaper(Some(Pid::INIT))?; // Any number but zero means yes.
    match fork()? {
        None => Ok(()),
        Some(program) => keeper(program, watched, tell),
    }
}

fn pid_of(number: u32) -> io::Result<Pid> {
    let number = i32::try_from(number).ok().and_then(Pid::from_raw);
    number.ok_or(io::Error::from_raw_os_error(libc::ESRCH))
}

/// Waits for the program's exit code, and takes it.
fn front(told: PipeReader) -> ! {
    let mut code = [NO_WORD];
    if dup2_stdin(&told).is_ok() {
        close_from(1);
        while read(stdin(), &mut code) == Err(Errno::INTR) {}
    }
    exit(code[0]);
}

/// Reaps everything below it until nothing is left, or until `watched` has ended.
fn keeper(program: Pid, watched: OwnedFd, tell: PipeWriter) -> ! {
    // All else must be closed: somebody waits for the end of what we inherited.
    if dup2_stdin(&watched).is_err() || dup2_stdout(&tell).is_err() {
        exit(NO_WORD);
    }
    close_from(2);
    ignore_sigpipe();
    let others = wake_by_sigchld();
    loop {
        // The order matters: SIGCHLD of an end that comes after the look interrupts the wait.
        reap(program);
        if has_ended(&others) {
            end_all();
        }
    }
}

/// Takes note of every child that has ended; ends with the last one.
fn reap(program: Pid) {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => {
                // The front may have been killed; there is nobody else to tell.
                let _ = write(stdout(), &[code_of(status)]);
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => exit(0), // ECHILD: nothing is left.
        }
    }
}

/// As a shell has it.
fn code_of(status: WaitStatus) -> u8 {
    let code = status
        .exit_status()
        .or_else(|| Some(128 + status.terminating_signal()?));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(NO_WORD)
}

/// Kills children until there are none: those of the dead become ours before they are reaped.
fn end_all() -> ! {
    loop {
        kill_children();
        if wait(WaitOptions::empty()).is_err() {
            exit(0);
        }
    }
}

/// Kills the children that one look at the list shows; the next look finds more.
fn kill_children() {
    let mut list = [0; 4096];
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let length = openat(CWD, c"/proc/thread-self/children", flags, Mode::empty())
        .and_then(|file| read(&file, &mut list));
    // Every number is followed by a space; one that is not is cut off.
    for word in list[..length.unwrap_or(0)].split_inclusive(|byte| *byte == b' ') {
        let number = word.strip_suffix(b" ").map(str::from_utf8);
        let number = number.and_then(|text| text.ok()?.parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw) {
            // It may be dead, but not gone: it is ours to reap.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The child's number in the parent, none in the child.
fn fork() -> io::Result<Option<Pid>> {
    let (flags, none) = (libc::c_long::from(libc::SIGCHLD), libc::c_long::from(0));
    // SAFETY: without CLONE_VM the child has a copy of everything, the stack included. Unlike
    // fork(3) the call takes no locks, which threads of the first process may have held.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::try_from(pid).ok().and_then(Pid::from_raw))
}

fn close_from(first: u32) {
    // SAFETY: three integers. Nothing that owns one of these descriptors is used or dropped
    // any more: the callers never return.
    unsafe { libc::close_range(first, u32::MAX, 0) };
}

/// A front that was killed reads no more.
fn ignore_sigpipe() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Lets SIGCHLD interrupt waits with the mask that is returned, and nothing else.
fn wake_by_sigchld() -> libc::sigset_t {
    extern "C" fn wake(_: libc::c_int) {}
    // SAFETY: all-zero is a valid empty set: it holds integers only.
    let mut blocked: libc::sigset_t = unsafe { std::mem::zeroed() };
    let none = blocked;
    // SAFETY: `blocked` is a valid set.
    unsafe { libc::sigaddset(&raw mut blocked, libc::SIGCHLD) };
    // SAFETY: a valid set, and nobody wants the old one.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const blocked, ptr::null_mut()) };
    let wake: extern "C" fn(libc::c_int) = wake;
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGCHLD, wake as libc::sighandler_t) };
    none
}

/// Waits for the end of the process whose pidfd is the standard input; false when something
/// else came first.
fn has_ended(mask: &libc::sigset_t) -> bool {
    let mut entry = libc::pollfd {
        fd: libc::STDIN_FILENO,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, no limit, a valid set.
    unsafe { libc::ppoll(&raw mut entry, 1, ptr::null(), mask) > 0 }
}

/// Without the handlers that the first process has for its end.
fn exit(code: u8) -> ! {
    // SAFETY: no preconditions.
    unsafe { libc::_exit(code.into()) }
}
