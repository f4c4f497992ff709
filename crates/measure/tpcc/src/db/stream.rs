//! A connection to a server: TCP or a Unix socket, in plain text or with TLS.
//!
//! `localhost` means TCP, as in JDBC. A Unix socket bypasses the network path that is measured, so
//! it is used only if the URL names one. Calls go through libc, so a process under `saiga run` is
//! accelerated. Deliberately absent: the request for TLS, which differs between protocols.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustls::ClientConnection;
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};

use super::options::Options;
use super::tls::{Tls, TlsError, shake_hands};
use crate::props::{Engine, Url};

/// Time limit of a log-in. It covers the whole log-in, because a frozen server still accepts
/// connections, a port of another service may never answer, and an overloaded server may send
/// single bytes.
pub(super) const LOGIN_LIMIT: Duration = Duration::from_secs(30);
/// Keepalive probes detect a dead host within 30 seconds while the session waits for an answer.
const PROBE_AFTER: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES: u32 = 4;
/// TCP's user timeout detects a dead host while data is sent.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// A connection.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Timed,
    is_local: bool,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Connects to the Unix socket in the options, otherwise to the first address of the host that
    /// accepts a connection.
    pub(super) fn open(url: &Url, options: &Options) -> io::Result<Self> {
        let limit = options.tcp_limit();
        let socket = match &options.socket {
            Some(path) => to_path(path, url, limit.unwrap_or(LOGIN_LIMIT))?,
            None => to_host(url, limit)?,
        };
        Ok(Self {
            socket: Timed::new(socket),
            is_local: options.socket.is_some(),
            tls: None,
        })
    }

    /// Whether a password may be sent as it is, because the connection is encrypted or local. With
    /// TLS, the receiver may still be the wrong server if its certificate is not verified.
    pub(super) fn is_private(&self) -> bool {
        self.is_local || self.tls.is_some()
    }

    /// Sets one deadline for all following calls, until [`limit_waiting`](Self::limit_waiting).
    pub(super) fn end_within(&mut self, limit: Duration) {
        self.socket.deadline = Some(Instant::now() + limit);
    }

    /// Limits the waiting time of each following system call and removes the deadline. The limit
    /// does not apply to a whole answer, so a server that keeps sending single bytes is waited for.
    pub(super) fn limit_waiting(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.deadline = None;
        self.socket.limit_waiting(limit)
    }

    /// Starts TLS, to which the server at `host` has agreed.
    pub(super) fn secure(&mut self, tls: &Tls, host: &str) -> Result<(), TlsError> {
        self.tls = Some(shake_hands(tls, host, &mut self.socket)?);
        Ok(())
    }

    /// Whether data or the end of the connection has arrived. Does not wait.
    pub(super) fn has_news(&mut self) -> io::Result<bool> {
        loop {
            if let Some(tls) = &mut self.tls {
                let state = tls.process_new_packets().map_err(io::Error::other)?;
                if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                    return Ok(true);
                }
            }
            let mut byte = [MaybeUninit::uninit()];
            let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
            let come = match self.socket.socket.recv_with_flags(&mut byte, flags) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                come => come?,
            };
            match &mut self.tls {
                // The received bytes may be part of a record, or a record without data.
                Some(tls) if come > 0 => tls.read_tls(&mut self.socket)?,
                _ => return Ok(true),
            };
        }
    }

    /// Makes the socket non-blocking.
    pub(super) fn never_wait(&self) -> io::Result<()> {
        self.socket.socket.set_nonblocking(true)
    }

    /// Ends the connection in both directions.
    pub(super) fn close(&self) {
        // The socket may be closed already.
        let _ = self.socket.socket.shutdown(Shutdown::Both);
    }
}

/// A socket with an optional deadline for all its operations.
#[derive(Debug)]
struct Timed {
    socket: Socket,
    deadline: Option<Instant>,
}

impl Timed {
    fn new(socket: Socket) -> Self {
        Self {
            socket,
            deadline: None,
        }
    }

    fn limit_waiting(&self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(limit)?;
        self.socket.set_write_timeout(limit)
    }

    /// Limits the next system call to the time that is left.
    fn limit_next(&self) -> io::Result<()> {
        let Some(deadline) = self.deadline else {
            return Ok(());
        };
        match deadline.saturating_duration_since(Instant::now()) {
            // A timeout of zero would mean no limit.
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => self.limit_waiting(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit_next()?;
        self.socket.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit_next()?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a call timed out. A timeout of the socket is reported as `WouldBlock`.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut)
}

impl Read for Stream {
    /// Returns 0 at the end of the connection, also if the server ends TLS without `close_notify`.
    /// Messages of both protocols contain their length, so a truncated message is detected.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.read(buffer);
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            tls.read_tls(&mut self.socket)?;
            tls.process_new_packets().map_err(io::Error::other)?;
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        let taken = tls.writer().write(bytes)?;
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn to_host(url: &Url, limit: Option<Duration>) -> io::Result<Socket> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        let connected = match limit {
            Some(limit) => TcpStream::connect_timeout(&address, limit),
            None => TcpStream::connect(address),
        };
        match connected {
            Ok(stream) => return prepared(stream.into()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn prepared(socket: Socket) -> io::Result<Socket> {
    let keepalive = TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_INTERVAL)
        .with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(SILENCE_LIMIT))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// Connects to a Unix socket. The time limit of writes also applies to connect(2), which waits if
/// the server accepts no connections.
fn to_path(path: &Path, url: &Url, limit: Duration) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(limit))?;
    let connected = match url.engine {
        // As in libpq, the path may be the directory; the file name follows from the port.
        Engine::Postgres | Engine::OpenGauss if path.is_dir() => {
            let file = path.join(format!(".s.PGSQL.{}", url.port));
            socket.connect(&SockAddr::unix(file)?)
        }
        Engine::Postgres | Engine::OpenGauss | Engine::MySql | Engine::Sqlite => {
            socket.connect(&SockAddr::unix(path)?)
        }
    };
    match connected {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let words = "the server accepts no connection in time";
            Err(io::Error::new(io::ErrorKind::TimedOut, words))
        }
        connected => connected.map(|()| socket),
    }
}

#[cfg(test)]
impl Stream {
    /// Time limit of a read.
    pub(super) fn limit(&self) -> io::Result<Option<Duration>> {
        self.socket.socket.read_timeout()
    }

    /// The deadline of all operations.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.socket.deadline
    }

    /// Wraps one end of a connection that a test made. `is_local` means a Unix socket.
    pub(super) fn of(socket: Socket, is_local: bool) -> Self {
        Self {
            socket: Timed::new(socket),
            is_local,
            tls: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn open(url: &str, port: u16) -> io::Result<Stream> {
        let url = Url::parse(&url.replace("PORT", &port.to_string())).unwrap();
        Stream::open(&url, &Options::of(&url).unwrap())
    }

    #[test]
    fn a_host_that_is_gone_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = open("jdbc:mysql://127.0.0.1:PORT/t", port).unwrap();
        let socket = &stream.socket.socket;
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

    #[test]
    fn postgres_finds_its_socket_in_a_directory_by_the_port() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().to_str().unwrap();
        let _listener = UnixListener::bind(folder.path().join(".s.PGSQL.5433")).unwrap();
        let url = format!("jdbc:postgresql://h:PORT/t?localSocket={dir}");
        assert!(open(&url, 5433).unwrap().is_private());
        let missing = open(&url, 5434).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let file = format!("{url}/.s.PGSQL.5433");
        assert!(open(&file, 1).is_ok());
    }

    /// A frozen server accepts no connections, and its queue is full.
    #[test]
    fn a_unix_socket_that_accepts_nothing_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let silent = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        silent.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        silent.listen(0).unwrap();
        let path = path.to_str().unwrap();
        let url = format!("jdbc:mysql://h/t?localSocket={path}&connectTimeout=50");
        let _waits = open(&url, 1).unwrap();
        let error = open(&url, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
