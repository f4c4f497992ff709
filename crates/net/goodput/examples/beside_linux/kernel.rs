//! The kernel's ends: sockets that write without end, and sockets that read everything.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::counts::{self, Counts};
use crate::sys;

/// Bytes of a kernel buffer; the kernel doubles them. As much as a buffer of the engine.
const BUFFER: libc::c_int = 8 << 20;
const PIECE: &[u8] = &[0; 64 << 10];

/// Where the receiver listens.
pub(crate) const RECEIVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 7, 0, 2), 5001);

/// A socket that will listen.
pub(crate) fn listen() -> anyhow::Result<Socket> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    sys::force_buffer(listener.as_raw_fd(), libc::SO_RCVBUFFORCE, BUFFER)?;
    listener.bind(&SocketAddr::from(RECEIVER).into())?;
    listener.listen(64)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Reads everything from all connections, from `since` to `until`. Returns bytes by peer.
pub(crate) fn receive(
    listener: &Socket,
    since: Instant,
    until: Instant,
) -> anyhow::Result<BTreeMap<SocketAddrV4, u64>> {
    let mut flows: Vec<(SocketAddrV4, Socket, u64)> = vec![];
    let mut skipped = false;
    loop {
        let now = Instant::now();
        if now >= until {
            break;
        }
        if !skipped && now >= since {
            skipped = true;
            flows.iter_mut().for_each(|(_, _, bytes)| *bytes = 0);
        }
        let next = if skipped { until } else { since };
        let fds = flows.iter().map(|(_, socket, _)| socket).chain([listener]);
        wait(fds, PollFlags::IN, next.saturating_duration_since(now))?;
        if let Ok((socket, address)) = listener.accept() {
            let peer = address
                .as_socket_ipv4()
                .context("the peer has no IPv4 address")?;
            flows.push((peer, socket, 0));
        }
        for (_, socket, bytes) in &mut flows {
            while let Ok(count @ 1..) = sys::discard(socket.as_raw_fd(), 1 << 20) {
                *bytes += count as u64;
            }
        }
    }
    let counts = flows.into_iter().map(|(peer, socket, bytes)| {
        // A reset, so that no sender goes on.
        let _ = socket.set_linger(Some(Duration::ZERO));
        (peer, bytes)
    });
    Ok(counts.collect())
}

/// Opens connections at `begins` and writes to all of them until `until`. Returns what the kernel
/// counted.
pub(crate) fn send(begins: &[Instant], until: Instant) -> anyhow::Result<Counts> {
    let mut sockets: Vec<Socket> = vec![];
    loop {
        let now = Instant::now();
        if now >= until {
            break;
        }
        if begins.get(sockets.len()).is_some_and(|at| *at <= now) {
            sockets.push(connect()?);
            continue;
        }
        let next = begins.get(sockets.len()).copied().unwrap_or(until);
        let patience = next.min(until).saturating_duration_since(now);
        wait(sockets.iter(), PollFlags::OUT, patience)?;
        for socket in &sockets {
            while let Ok(1..) = socket.send(PIECE) {}
        }
    }
    let counts = counts::of_namespace();
    for socket in sockets {
        let _ = socket.set_linger(Some(Duration::ZERO));
    }
    Ok(counts)
}

fn connect() -> anyhow::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_congestion(b"cubic").context("cubic")?;
    sys::force_buffer(socket.as_raw_fd(), libc::SO_SNDBUFFORCE, BUFFER)?;
    socket.set_nonblocking(true)?;
    // EINPROGRESS: the socket becomes writable later.
    let _ = socket.connect(&SocketAddr::from(RECEIVER).into());
    Ok(socket)
}

/// Waits for any of the sockets.
pub(crate) fn wait<'a, F: std::os::fd::AsFd + 'a>(
    sockets: impl Iterator<Item = &'a F>,
    flags: PollFlags,
    patience: Duration,
) -> anyhow::Result<()> {
    let mut fds: Vec<PollFd<'_>> = sockets.map(|one| PollFd::new(one, flags)).collect();
    let patience = Timespec::try_from(patience).context("too long a wait")?;
    poll(&mut fds, Some(&patience))?;
    Ok(())
}
