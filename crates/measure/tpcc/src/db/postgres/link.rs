//! The TCP connection to a server: bytes out, whole messages in.
//!
//! Messages are read where they lie in one buffer, which grows with what has come and never to
//! what a header announces. Whatever ends a connection ends it for good: afterwards every call
//! says so. Calls go through libc, so a process under `saiga run` is accelerated.
//! Deliberately absent: what messages mean (`frame`, `talk`).

use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use postgres_protocol::message::backend::Header;
use socket2::{SockRef, TcpKeepalive};

use super::frame::Frame;
use crate::db::SqlError;
use crate::db::options::Options;

/// What a buffer holds from the start: most answers.
const BUFFER_BYTES: usize = 8 << 10;
/// No message of ours or the server's is longer; the rows of TPC-C have less than 1 KiB.
const MESSAGE_LIMIT_BYTES: usize = 64 << 20;
/// Within this a server must have let us in. One that is frozen accepts connections, and says nothing.
const LOGIN_LIMIT_MS: u64 = 30_000;
/// A host that is gone is noticed within half a minute: while we wait for an answer by probes,
const PROBE_AFTER: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES: u32 = 4;
/// and while we send by its silence.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// Why a connection is at its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// What the system said.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server has closed it, without words.
    #[error("the server closed the connection")]
    Closed,
    /// No answer within the time-out of the URL.
    #[error("no answer within {limit_ms} ms")]
    Silent {
        /// The time-out.
        limit_ms: u64,
    },
    /// What came is not what the protocol has there.
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(String),
    /// It was given up before.
    #[error("the connection was given up before")]
    Before,
}

impl Broken {
    pub(super) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol(what.into())
    }
}

impl From<Broken> for SqlError {
    fn from(broken: Broken) -> Self {
        Self::Lost {
            said: broken.to_string(),
        }
    }
}

impl From<Broken> for io::Error {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Io(error) => error,
            Broken::Closed => Self::new(io::ErrorKind::UnexpectedEof, broken.to_string()),
            Broken::Silent { .. } => Self::new(io::ErrorKind::TimedOut, broken.to_string()),
            Broken::Protocol(_) | Broken::Before => {
                Self::new(io::ErrorKind::InvalidData, broken.to_string())
            }
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    /// What has come and is not taken lies in `taken..filled`.
    buffer: Vec<u8>,
    taken: usize,
    filled: usize,
    limit_ms: Option<u64>,
    is_broken: bool,
}

impl Link {
    /// Connects to the first address of `host` that answers.
    pub(super) fn open(host: &str, port: u16, options: &Options) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (host, port).to_socket_addrs()? {
            let opened = match options.tcp_limit() {
                Some(limit) => TcpStream::connect_timeout(&address, limit),
                None => TcpStream::connect(address),
            };
            match opened {
                Ok(stream) => return Self::over(stream, options),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn over(stream: TcpStream, options: &Options) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let alive = TcpKeepalive::new()
            .with_time(PROBE_AFTER)
            .with_interval(PROBE_INTERVAL)
            .with_retries(PROBES);
        let socket = SockRef::from(&stream);
        socket.set_tcp_keepalive(&alive)?;
        socket.set_tcp_user_timeout(Some(SILENCE_LIMIT))?;
        let mut link = Self {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            taken: 0,
            filled: 0,
            limit_ms: None,
            is_broken: false,
        };
        // A log-in is a part of connecting.
        let limit_ms = options.connect_timeout_ms.or(options.socket_timeout_ms);
        link.limit_waiting(limit_ms.or(Some(LOGIN_LIMIT_MS)))?;
        Ok(link)
    }

    /// From now on no answer takes longer.
    pub(super) fn limit_waiting(&mut self, limit_ms: Option<u64>) -> io::Result<()> {
        let limit = limit_ms.map(Duration::from_millis);
        self.stream.set_read_timeout(limit)?;
        self.stream.set_write_timeout(limit)?;
        self.limit_ms = limit_ms;
        Ok(())
    }

    /// Sends all of `bytes`.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        if self.is_broken {
            return Err(Broken::Before);
        }
        let sent = self.stream.write_all(bytes);
        sent.map_err(|error| self.ended_by(error))
    }

    /// Waits for the next message.
    pub(super) fn receive(&mut self) -> Result<Frame<'_>, Broken> {
        loop {
            if let Some(end) = self.end_of_message()? {
                let message = &self.buffer[self.taken..end];
                self.taken = end;
                return Ok(Frame::of(message));
            }
            if self.is_broken {
                return Err(Broken::Before);
            }
            self.fill()?;
        }
    }

    /// The next message that came before the connection ended; `None` behind the last.
    pub(super) fn leftover(&mut self) -> Option<Frame<'_>> {
        self.stream.set_nonblocking(true).ok()?;
        loop {
            if let Some(end) = self.end_of_message().ok()? {
                let message = &self.buffer[self.taken..end];
                self.taken = end;
                return Some(Frame::of(message));
            }
            self.fill().ok()?;
        }
    }

    /// Whether anything has come, the end of the connection included. Does not wait.
    pub(super) fn has_news(&mut self) -> Result<bool, Broken> {
        if self.taken < self.filled {
            return Ok(true);
        }
        let mut byte = [MaybeUninit::uninit()];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let peeked = SockRef::from(&self.stream).recv_with_flags(&mut byte, flags);
        match peeked {
            Ok(_) => Ok(true),
            Err(error) if is_unready(&error) => Ok(false),
            Err(error) => Err(self.ended_by(error)),
        }
    }

    /// Whether it is at its end.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Closes the connection: nothing sensible can be said on it any more.
    pub(super) fn give_up(&mut self) {
        self.is_broken = true;
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Where the first message ends; `None` while some of it is missing.
    fn end_of_message(&mut self) -> Result<Option<usize>, Broken> {
        let come = &self.buffer[self.taken..self.filled];
        let length = match Header::parse(come) {
            Ok(None) => return Ok(None),
            Ok(Some(header)) => usize::try_from(header.len()).unwrap_or(usize::MAX),
            Err(error) => return Err(self.astray(error.to_string())),
        };
        if length > MESSAGE_LIMIT_BYTES {
            return Err(self.astray(format!("a message of {length} bytes")));
        }
        // The length counts itself, and the tag before it does not count.
        let end = self.taken + 1 + length;
        Ok((end <= self.filled).then_some(end))
    }

    /// Waits for more bytes.
    fn fill(&mut self) -> Result<(), Broken> {
        if self.taken > 0 {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        loop {
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => {
                    self.give_up();
                    return Err(Broken::Closed);
                }
                Ok(count) => {
                    self.filled += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.ended_by(error)),
            }
        }
    }

    fn astray(&mut self, what: String) -> Broken {
        self.give_up();
        Broken::Protocol(what)
    }

    fn ended_by(&mut self, error: io::Error) -> Broken {
        self.is_broken = true;
        match self.limit_ms {
            Some(limit_ms) if is_unready(&error) => Broken::Silent { limit_ms },
            _ => Broken::Io(error),
        }
    }
}

/// What a socket says that has nothing yet, or whose time is out.
fn is_unready(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::props::Url;

    /// A frozen server, or a host that has vanished, must not hold a terminal for ever.
    #[test]
    fn silence_is_limited_before_the_log_in_and_afterwards() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = |params: &str| {
            let url = Url::parse(&format!("jdbc:postgresql://h/t{params}")).unwrap();
            Link::open("127.0.0.1", port, &Options::of(&url).unwrap()).unwrap()
        };
        let limit = |params| link(params).stream.read_timeout().unwrap();
        assert_eq!(limit(""), Some(Duration::from_secs(30)));
        assert_eq!(limit("?connectTimeout=2"), Some(Duration::from_secs(2)));
        let link = link("");
        let socket = SockRef::from(&link.stream);
        assert_eq!(
            socket.tcp_user_timeout().unwrap(),
            Some(Duration::from_secs(30))
        );
        let probes = (
            socket.tcp_keepalive_time().unwrap(),
            socket.tcp_keepalive_interval().unwrap(),
            socket.tcp_keepalive_retries().unwrap(),
        );
        let (after, interval) = (Duration::from_secs(10), Duration::from_secs(5));
        assert_eq!(probes, (after, interval, 4));
    }
}
