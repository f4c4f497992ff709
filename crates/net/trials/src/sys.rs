//! System calls that the standard library does not offer.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    os::fd::AsFd,
    time::Duration,
};

pub use rustix::process::Signal;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{self, Pid, Resource, WaitId, WaitIdOptions},
};
use saiga_process::pidfd::Process;
use socket2::{Domain, Socket, Type};

use crate::scale::patient;

fn pid(pid: u32) -> Pid {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.expect("the pid of a process")
}

/// Sends `signal` to one process that the caller started and has not reaped.
///
/// # Errors
/// As `kill(2)`: ESRCH if the process has ended.
pub fn signal(process: u32, signal: Signal) -> io::Result<()> {
    Ok(process::kill_process(pid(process), signal)?)
}

/// Makes the kernel send `signal` to the calling process when the thread that started it ends.
///
/// # Errors
/// The errors of `prctl(2)`.
pub(crate) fn signal_at_parents_end(signal: Signal) -> io::Result<()> {
    Ok(process::set_parent_process_death_signal(Some(signal))?)
}

/// Kills the remaining processes of the process group of `leader`; there may be none.
pub fn kill_group(leader: u32) {
    // ESRCH, the usual case, needs no answer.
    let _ = process::kill_process_group(pid(leader), Signal::KILL);
}

/// Waits until the child `process` is stopped (SIGSTOP took effect), without reaping it.
///
/// # Errors
/// As `waitid(2)`: ECHILD if it is not a child.
pub fn wait_stopped(process: u32) -> io::Result<()> {
    let flags = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    process::waitid(WaitId::Pid(pid(process)), flags)?;
    Ok(())
}

/// Waits until `process` has ended (a zombie counts), a child or not; false after `limit`.
///
/// # Errors
/// The errors of `pidfd_open(2)`; a process that has ended is not an error.
pub fn await_end(process: u32, limit: Duration) -> io::Result<bool> {
    Process::open(process)?.map_or(Ok(true), |process| process.ends_within(patient(limit)))
}

/// Whether `fd` becomes readable (data, end or error) before `limit`.
///
/// # Errors
/// The errors of `poll(2)`.
pub fn readable(fd: impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).ok();
    Ok(poll(&mut [PollFd::new(&fd, PollFlags::IN)], limit.as_ref())? > 0)
}

/// Sleeps for a millisecond between two checks, so that other processes can run.
pub fn pause_1ms() {
    let _ = poll(
        &mut [],
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 1_000_000,
        }),
    );
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    process::geteuid().is_root()
}

/// The hard limit of descriptors of this process, which its children inherit.
pub fn descriptor_hard_limit() -> u64 {
    process::getrlimit(Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX)
}

/// A TCP connection from `source` (any port) to `target` at `port`.
///
/// # Errors
/// The errors of `bind(2)` and `connect(2)`.
pub fn connect_from(source: [u8; 4], target: [u8; 4], port: u16) -> io::Result<TcpStream> {
    connect_by(tcp_socket()?, source, target, port)
}

/// A connection both of whose ends buffer few unread bytes: a small window, and segments so small
/// that the other end's buffer stays small.
///
/// # Errors
/// The errors of `setsockopt(2)`, `bind(2)` and `connect(2)`.
pub fn connect_narrowly(source: [u8; 4], target: [u8; 4], port: u16) -> io::Result<TcpStream> {
    let socket = tcp_socket()?;
    socket.set_recv_buffer_size(2048)?;
    socket.set_tcp_mss(536)?;
    connect_by(socket, source, target, port)
}

fn tcp_socket() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::STREAM, None)
}

fn connect_by(
    socket: Socket,
    source: [u8; 4],
    target: [u8; 4],
    port: u16,
) -> io::Result<TcpStream> {
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect(&SocketAddr::from((target, port)).into())?;
    Ok(socket.into())
}
