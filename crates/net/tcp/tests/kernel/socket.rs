//! The socket of a script: its settings, its calls and its state.

use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use libc::{IPPROTO_TCP, SOL_SOCKET, c_int};

use crate::device::{LOCAL, PEER};
use crate::numbers::{LOCAL_PORT, PEER_PORT};
use crate::sys;

/// What `config` sets on the socket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) buffer: Option<c_int>,
    pub(crate) is_newreno: bool,
    pub(crate) is_nodelay: bool,
    pub(crate) user_timeout_ms: Option<u32>,
    /// Idle time and interval in seconds, and number of probes.
    pub(crate) keepalive: Option<[c_int; 3]>,
}

#[derive(Default)]
pub(crate) struct Socket {
    listener: Option<OwnedFd>,
    fd: Option<OwnedFd>,
    was_opened: bool,
    is_shut: bool,
    written: u32,
    read: u32,
    readable_before: u32,
    acked_before: u32,
    /// Reason of the end, once the kernel has told it.
    reason: Option<&'static str>,
}

impl Socket {
    /// An active open.
    pub(crate) fn connect(&mut self, settings: &Settings) -> io::Result<()> {
        let fd = open(settings)?;
        sys::connect(&fd, SocketAddrV4::new(PEER, PEER_PORT))?;
        self.fd = Some(fd);
        self.was_opened = true;
        Ok(())
    }

    /// A passive open.
    pub(crate) fn listen(&mut self, settings: &Settings) -> io::Result<()> {
        if self.listener.is_none() {
            let fd = open(settings)?;
            sys::listen(&fd)?;
            self.listener = Some(fd);
        }
        Ok(())
    }

    /// Settings that may change during the connection.
    pub(crate) fn set(&mut self, settings: &Settings) -> io::Result<()> {
        match &self.fd {
            Some(fd) => apply(fd, settings),
            None => Ok(()),
        }
    }

    /// Another size of the receive buffer.
    pub(crate) fn resize(&mut self, bytes: c_int) -> io::Result<()> {
        sys::set(self.fd()?, SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
    }

    /// The descriptor of the connection, which is accepted first if it has to be.
    fn fd(&mut self) -> io::Result<&OwnedFd> {
        if self.fd.is_none()
            && !self.was_opened
            && let Some(listener) = &self.listener
        {
            self.fd = Some(sys::accept(listener)?);
            self.was_opened = true;
        }
        self.fd
            .as_ref()
            .ok_or_else(|| io::Error::other("there is no connection"))
    }

    /// Writes zeros, all of them, with the flags of send(2).
    pub(crate) fn write(&mut self, length: u32, flags: libc::c_int) -> io::Result<()> {
        let zeros = vec![0; usize::try_from(length).unwrap()];
        let taken = match sys::send(self.fd()?, &zeros, flags) {
            Ok(taken) => taken,
            // The connection has ended, or this side of it: nothing is sent, as on the engine.
            Err(error) if is_end(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        if taken != zeros.len() {
            return Err(io::Error::other(format!("{taken} bytes were taken")));
        }
        self.written += length;
        Ok(())
    }

    /// Reads bytes, all of them. A call stops at the end of urgent data.
    pub(crate) fn read(&mut self, length: u32) -> io::Result<()> {
        let mut buffer = vec![0; usize::try_from(length).unwrap()];
        let mut fill = 0;
        while fill < buffer.len() {
            let read = sys::receive(self.fd()?, &mut buffer[fill..])?;
            if read == 0 {
                return Err(io::Error::other(format!("{fill} bytes were read")));
            }
            fill += read;
        }
        self.read += length;
        Ok(())
    }

    /// Closes the direction to the peer.
    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        self.is_shut = true;
        match sys::shutdown(self.fd()?) {
            Err(error) if is_end(&error) => Ok(()),
            other => other,
        }
    }

    /// Closes the descriptor; with a reset if `is_abort`.
    pub(crate) fn close(&mut self, is_abort: bool) -> io::Result<()> {
        let fd = self.fd()?;
        if is_abort {
            let linger = libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            sys::set(fd, SOL_SOCKET, libc::SO_LINGER, linger)?;
        }
        self.fd = None;
        Ok(())
    }

    /// Bytes that became readable since the last call.
    pub(crate) fn readable(&mut self) -> io::Result<u32> {
        let total = sys::ask(self.fd()?, libc::FIONREAD)? + self.read;
        let readable = total.saturating_sub(self.readable_before);
        self.readable_before = total;
        Ok(readable)
    }

    /// Bytes that were acknowledged since the last call.
    pub(crate) fn acked(&mut self) -> io::Result<u32> {
        let mut waiting = sys::ask(self.fd()?, libc::TIOCOUTQ)?;
        if self.is_shut && waiting > 0 {
            waiting -= 1; // The FIN.
        }
        let total = self.written.saturating_sub(waiting);
        let acked = total.saturating_sub(self.acked_before);
        self.acked_before = total;
        Ok(acked)
    }

    /// Whether the stream of the peer ends behind the bytes that can be read.
    pub(crate) fn is_finished(&mut self) -> io::Result<bool> {
        let waiting = sys::ask(self.fd()?, libc::FIONREAD)?;
        let mut buffer = vec![0; usize::try_from(waiting).unwrap() + 1];
        let mut fill = 0;
        while fill < buffer.len() {
            match sys::receive(self.fd()?, &mut buffer[fill..]) {
                Ok(0) => return Ok(true),
                Ok(read) => {
                    fill += read;
                    self.read += u32::try_from(read).unwrap();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// The state as a script names it. `has_reason` asks why the connection ended.
    pub(crate) fn state(&mut self, has_reason: bool) -> io::Result<String> {
        let name = state_of_connection()?;
        if name != CLOSED || !has_reason {
            return Ok(name.to_owned());
        }
        if self.reason.is_none() {
            let error = match &self.fd {
                Some(fd) => sys::take_error(fd)?,
                None => 0,
            };
            self.reason = Some(match error {
                0 => "",
                libc::ECONNREFUSED => "Refused",
                libc::ETIMEDOUT => "TimedOut",
                libc::EHOSTUNREACH => "Unreachable",
                libc::ECONNRESET | libc::EPIPE => "Reset",
                _ => "Unknown",
            });
        }
        Ok(format!("{name} {}", self.reason.unwrap_or_default()))
    }
}

/// Whether a call failed because the connection, or the direction to the peer, has ended.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN | libc::ETIMEDOUT)
    )
}

fn open(settings: &Settings) -> io::Result<OwnedFd> {
    let fd = sys::socket()?;
    let on: c_int = 1;
    sys::set(&fd, SOL_SOCKET, libc::SO_REUSEADDR, on)?;
    // Urgent data is in the stream, as on the engine (RFC 6093).
    sys::set(&fd, SOL_SOCKET, libc::SO_OOBINLINE, on)?;
    // By the socket: a namespace may only have the host's algorithm as its default.
    let algorithm = if settings.is_newreno {
        *b"reno\0"
    } else {
        *b"cubic"
    };
    sys::set(&fd, IPPROTO_TCP, libc::TCP_CONGESTION, algorithm)?;
    let send_buffer: c_int = 1 << 20;
    sys::set(&fd, SOL_SOCKET, libc::SO_SNDBUFFORCE, send_buffer)?;
    if let Some(buffer) = settings.buffer {
        sys::set(&fd, SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer)?;
    }
    apply(&fd, settings)?;
    sys::bind(&fd, SocketAddrV4::new(LOCAL, LOCAL_PORT))?;
    Ok(fd)
}

fn apply(fd: &OwnedFd, settings: &Settings) -> io::Result<()> {
    let nodelay = c_int::from(settings.is_nodelay);
    sys::set(fd, IPPROTO_TCP, libc::TCP_NODELAY, nodelay)?;
    if let Some(ms) = settings.user_timeout_ms {
        sys::set(fd, IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms)?;
    }
    let is_alive = c_int::from(settings.keepalive.is_some());
    if let Some([idle, interval, count]) = settings.keepalive {
        sys::set(fd, IPPROTO_TCP, libc::TCP_KEEPIDLE, idle)?;
        sys::set(fd, IPPROTO_TCP, libc::TCP_KEEPINTVL, interval)?;
        sys::set(fd, IPPROTO_TCP, libc::TCP_KEEPCNT, count)?;
    }
    sys::set(fd, SOL_SOCKET, libc::SO_KEEPALIVE, is_alive)
}

/// No connection is in the list of [`state_of_connection`].
pub(crate) const CLOSED: &str = "CLOSED";

/// The state of the only connection in the namespace of the calling thread, from proc(5). Sockets
/// that no process holds are in that list too.
pub(crate) fn state_of_connection() -> io::Result<&'static str> {
    let table = fs::read_to_string("/proc/thread-self/net/tcp")?;
    let peer = format!(":{PEER_PORT:04X}");
    let ours = table.lines().skip(1).find_map(|line| {
        // Number, local and remote address, state.
        let mut fields = line.split_whitespace().skip(2);
        let is_ours = fields.next()?.ends_with(&peer);
        fields.next().filter(|_| is_ours)
    });
    let Some(state) = ours else {
        return Ok(CLOSED);
    };
    Ok(match state {
        "01" => "ESTABLISHED",
        "02" => "SYN-SENT",
        "03" | "0C" => "SYN-RECEIVED",
        "04" => "FIN-WAIT-1",
        "05" => "FIN-WAIT-2",
        "06" => "TIME-WAIT",
        "07" => CLOSED,
        "08" => "CLOSE-WAIT",
        "09" => "LAST-ACK",
        "0B" => "CLOSING",
        _ => "UNKNOWN",
    })
}
