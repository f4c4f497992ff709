//! The connection to a server: sends bytes, receives whole messages.
//!
//! Messages are parsed in place in one buffer. The buffer grows with the received bytes, not with
//! the length that a header announces. A broken connection stays broken: every later call fails.
//! Deliberately absent: the meaning of messages (`frame`, `talk`).

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::backend::Header;
use postgres_protocol::message::frontend;

use super::frame::Frame;
use crate::db::SqlError;
use crate::db::options::Options;
use crate::db::stream::{LOGIN_LIMIT, Stream, is_timeout};
use crate::db::tls::{Tls, TlsError};
use crate::props::Url;

/// Initial size of the buffer; most answers fit.
const BUFFER_BYTES: usize = 8 << 10;
/// Maximum length of a received message. The rows of TPC-C have less than 1 KiB.
const MESSAGE_LIMIT_BYTES: usize = 64 << 20;
/// The reason why a connection is unusable.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server closed the connection without a message.
    #[error("the server closed the connection")]
    Closed,
    /// No answer arrived within the timeout of the URL.
    #[error("no answer within {limit_ms} ms")]
    Silent {
        /// The timeout in milliseconds.
        limit_ms: u64,
    },
    /// The server sent a message that violates the protocol.
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(String),
    /// The connection was closed after an earlier error.
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

/// A connection with a receive buffer.
#[derive(Debug)]
pub(super) struct Link {
    stream: Stream,
    /// Received bytes that are not parsed yet are in `taken..filled`.
    buffer: Vec<u8>,
    taken: usize,
    filled: usize,
    limit_ms: Option<u64>,
    is_broken: bool,
}

impl Link {
    /// Connects, and sets the deadline of the log-in.
    pub(super) fn open(url: &Url, options: &Options) -> io::Result<Self> {
        let mut link = Self {
            stream: Stream::open(url, options)?,
            buffer: vec![0; BUFFER_BYTES],
            taken: 0,
            filled: 0,
            limit_ms: None,
            is_broken: false,
        };
        // The log-in counts as part of connecting.
        let limit = login_limit(options);
        link.stream.end_within(limit);
        link.limit_ms = u64::try_from(limit.as_millis()).ok();
        Ok(link)
    }

    /// Starts TLS if the server at `host` agrees (PostgreSQL's "SSL Session Encryption").
    pub(super) fn secure(&mut self, tls: &Tls, host: &str) -> Result<(), TlsError> {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        self.stream.write_all(&request)?;
        // Read only the answer. Bytes after it may come from an attacker.
        let mut answer = [0];
        self.stream.read_exact(&mut answer)?;
        match answer {
            [b'S'] => self.stream.secure(tls, host),
            [b'N'] => Err(TlsError::NotOffered),
            _ => {
                let words = "the program there does not follow PostgreSQL's protocol";
                Err(io::Error::new(io::ErrorKind::InvalidData, words).into())
            }
        }
    }

    /// Limits the waiting time of each following read and write.
    pub(super) fn limit_waiting(&mut self, limit_ms: Option<u64>) -> io::Result<()> {
        let limit = limit_ms.map(Duration::from_millis);
        self.stream.limit_waiting(limit)?;
        self.limit_ms = limit_ms;
        Ok(())
    }

    /// Sends all bytes.
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

    /// The next message that arrived before the connection broke; `None` if there are no more.
    pub(super) fn leftover(&mut self) -> Option<Frame<'_>> {
        self.stream.never_wait().ok()?;
        loop {
            if let Some(end) = self.end_of_message().ok()? {
                let message = &self.buffer[self.taken..end];
                self.taken = end;
                return Some(Frame::of(message));
            }
            self.fill().ok()?;
        }
    }

    /// Whether data or the end of the connection has arrived. Does not wait.
    pub(super) fn has_news(&mut self) -> Result<bool, Broken> {
        if self.taken < self.filled {
            return Ok(true);
        }
        let news = self.stream.has_news();
        news.map_err(|error| self.ended_by(error))
    }

    /// Whether the connection is unusable.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Closes the connection because its state is no longer known.
    pub(super) fn give_up(&mut self) {
        self.is_broken = true;
        self.stream.close();
    }

    /// The end of the first message in the buffer; `None` if the message is incomplete.
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
        // The length includes its own four bytes but not the tag.
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
            Some(limit_ms) if is_timeout(&error) => Broken::Silent { limit_ms },
            _ => Broken::Io(error),
        }
    }
}

/// Time limit of a log-in.
pub(super) fn login_limit(options: &Options) -> Duration {
    let limit_ms = options.connect_timeout_ms.or(options.socket_timeout_ms);
    limit_ms.map_or(LOGIN_LIMIT, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    /// A frozen server or a vanished host must not block a terminal for ever. A server that sends
    /// single bytes must not prolong a log-in.
    #[test]
    fn silence_is_limited_before_the_log_in_and_afterwards() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = |params: &str| {
            let url = format!("jdbc:postgresql://127.0.0.1:{port}/t{params}");
            let url = Url::parse(&url).unwrap();
            Link::open(&url, &Options::of(&url).unwrap()).unwrap()
        };
        for (params, seconds) in [("", 30), ("?connectTimeout=2", 2), ("?socketTimeout=5", 5)] {
            let before = Instant::now();
            let mut link = link(params);
            let deadline = link.stream.deadline().unwrap();
            let limit = Duration::from_secs(seconds);
            assert!(
                (before + limit..=Instant::now() + limit).contains(&deadline),
                "{params}"
            );
            link.limit_waiting(Some(7000)).unwrap();
            let limit = link.stream.limit().unwrap();
            assert_eq!(
                (link.stream.deadline(), limit),
                (None, Some(Duration::from_secs(7)))
            );
        }
    }
}
