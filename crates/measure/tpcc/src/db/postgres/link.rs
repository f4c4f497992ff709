//! The connection to a server: bytes out, whole messages in.
//!
//! Messages are read where they lie in one buffer, which grows with what has come and never to
//! what a header announces. Whatever ends a connection ends it for good: afterwards every call
//! says so.
//! Deliberately absent: what messages mean (`frame`, `talk`).

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

/// What a buffer holds from the start: most answers.
const BUFFER_BYTES: usize = 8 << 10;
/// No message of ours or the server's is longer; the rows of TPC-C have less than 1 KiB.
const MESSAGE_LIMIT_BYTES: usize = 64 << 20;
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
    stream: Stream,
    /// What has come and is not taken lies in `taken..filled`.
    buffer: Vec<u8>,
    taken: usize,
    filled: usize,
    limit_ms: Option<u64>,
    is_broken: bool,
}

impl Link {
    /// Connects.
    pub(super) fn open(url: &Url, options: &Options) -> io::Result<Self> {
        let mut link = Self {
            stream: Stream::open(url, options)?,
            buffer: vec![0; BUFFER_BYTES],
            taken: 0,
            filled: 0,
            limit_ms: None,
            is_broken: false,
        };
        // A log-in is a part of connecting.
        let limit = login_limit(options);
        link.stream.end_within(limit);
        link.limit_ms = u64::try_from(limit.as_millis()).ok();
        Ok(link)
    }

    /// Goes on by TLS, if the server at `host` agrees (PostgreSQL's "SSL Session Encryption").
    pub(super) fn secure(&mut self, tls: &Tls, host: &str) -> Result<(), TlsError> {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        self.stream.write_all(&request)?;
        // No more than the answer: what comes behind it is not to be taken for the server's words.
        let mut answer = [0];
        self.stream.read_exact(&mut answer)?;
        match answer {
            [b'S'] => self.stream.secure(tls, host),
            [b'N'] => Err(TlsError::NotOffered),
            _ => {
                let words = "what answers does not keep to PostgreSQL's protocol";
                Err(io::Error::new(io::ErrorKind::InvalidData, words).into())
            }
        }
    }

    /// From now on no answer takes longer.
    pub(super) fn limit_waiting(&mut self, limit_ms: Option<u64>) -> io::Result<()> {
        let limit = limit_ms.map(Duration::from_millis);
        self.stream.limit_waiting(limit)?;
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

    /// Whether anything has come, the end of the connection included. Does not wait.
    pub(super) fn has_news(&mut self) -> Result<bool, Broken> {
        if self.taken < self.filled {
            return Ok(true);
        }
        let news = self.stream.has_news();
        news.map_err(|error| self.ended_by(error))
    }

    /// Whether it is at its end.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Closes the connection: nothing sensible can be said on it any more.
    pub(super) fn give_up(&mut self) {
        self.is_broken = true;
        self.stream.close();
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
            Some(limit_ms) if is_timeout(&error) => Broken::Silent { limit_ms },
            _ => Broken::Io(error),
        }
    }
}

/// How much time there is for a log-in.
pub(super) fn login_limit(options: &Options) -> Duration {
    let limit_ms = options.connect_timeout_ms.or(options.socket_timeout_ms);
    limit_ms.map_or(LOGIN_LIMIT, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    /// A frozen server, or a host that has vanished, must not hold a terminal for ever, nor one that
    /// sends a byte now and then a log-in.
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
