//! A keeper process between the test process and a daemon: kills the daemon when the test ends.
//!
//! The children of a process that ends become children of the nearest subreaper above it (`man 2
//! PR_SET_CHILD_SUBREAPER`). So the started command becomes three processes. The *front* is our
//! child and ends as the program does. The *keeper* is a subreaper: all processes that the program
//! leaves behind become its children sooner or later. When the test process ends, which a pidfd
//! shows, the keeper kills and reaps its children; it ends when it has none. The *program* is
//! executed.
//!
//! All of this runs between fork and exec in a copy of a process with threads: only system calls,
//! no heap, no locks.
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

/// Exit code of the front if the keeper was killed before the program ended.
const NO_WORD: u8 = 99;

/// Gives a keeper to the program that `command` starts: all processes that it leaves behind are
/// killed when this process ends. For the caller it behaves as before, except that a signal that
/// kills it becomes the exit code 128 + signal, as in a shell.
pub fn keep(command: &mut Command) {
    let us = process::id();
    // SAFETY: `split` makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(move || split(us)) };
}

/// Returns only in the program, or in the process that failed: the caller reports that to `us`.
fn split(us: u32) -> io::Result<()> {
    let watched = pidfd_open(pid_of(us)?, PidfdFlags::empty())?;
    super::still_child_of(us)?;
    let (told, tell) = io::pipe()?;
    if fork()?.is_some() {
        front(told);
    }
    drop(told);
    // Neither the terminal's signals nor those to our process group are meant for the keeper.
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

/// Waits for the program's exit code, and exits with it.
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
    // Close everything else: other processes wait for the end of inherited pipes.
    if dup2_stdin(&watched).is_err() || dup2_stdout(&tell).is_err() {
        exit(NO_WORD);
    }
    close_from(2);
    ignore_sigpipe();
    let others = wake_by_sigchld();
    loop {
        // The order matters: SIGCHLD of an end after the check interrupts the wait.
        reap(program);
        if has_ended(&others) {
            end_all();
        }
    }
}

/// Reaps every child that has ended; exits with the last one.
fn reap(program: Pid) {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => {
                // The front may have been killed; there is no other reader.
                let _ = write(stdout(), &[code_of(status)]);
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => exit(0), // ECHILD: nothing is left.
        }
    }
}

/// The exit code as a shell reports it.
fn code_of(status: WaitStatus) -> u8 {
    let code = status
        .exit_status()
        .or_else(|| Some(128 + status.terminating_signal()?));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(NO_WORD)
}

/// Kills children until there are none: a dead child's children become ours before it is reaped.
fn end_all() -> ! {
    loop {
        kill_children();
        if wait(WaitOptions::empty()).is_err() {
            exit(0);
        }
    }
}

/// Kills the children that are in the list now; the next call finds more.
fn kill_children() {
    let mut list = [0; 4096];
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let length = openat(CWD, c"/proc/thread-self/children", flags, Mode::empty())
        .and_then(|file| read(&file, &mut list));
    // Every number is followed by a space; a number without one is cut off.
    for word in list[..length.unwrap_or(0)].split_inclusive(|byte| *byte == b' ') {
        let number = word.strip_suffix(b" ").map(str::from_utf8);
        let number = number.and_then(|text| text.ok()?.parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw) {
            // It may be dead, but not gone: this process has not reaped it.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The child's PID in the parent, `None` in the child.
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

/// Makes writes to a front that was killed fail instead of killing the keeper.
fn ignore_sigpipe() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Makes SIGCHLD, and no other signal, interrupt waits with the returned mask.
fn wake_by_sigchld() -> libc::sigset_t {
    extern "C" fn wake(_: libc::c_int) {}
    // SAFETY: all-zero is a valid empty set: it holds integers only.
    let mut blocked: libc::sigset_t = unsafe { std::mem::zeroed() };
    let none = blocked;
    // SAFETY: `blocked` is a valid set.
    unsafe { libc::sigaddset(&raw mut blocked, libc::SIGCHLD) };
    // SAFETY: a valid set, and no old set is requested.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const blocked, ptr::null_mut()) };
    let wake: extern "C" fn(libc::c_int) = wake;
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGCHLD, wake as libc::sighandler_t) };
    none
}

/// Waits for the end of the process whose pidfd is the standard input; false if a signal came
/// first.
fn has_ended(mask: &libc::sigset_t) -> bool {
    let mut entry = libc::pollfd {
        fd: libc::STDIN_FILENO,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, no limit, a valid set.
    unsafe { libc::ppoll(&raw mut entry, 1, ptr::null(), mask) > 0 }
}

/// Exits without the exit handlers of the first process.
fn exit(code: u8) -> ! {
    // SAFETY: no preconditions.
    unsafe { libc::_exit(code.into()) }
}
