//! Readiness probes for servers: TCP port, Redis, MySQL, PostgreSQL.
//!
//! In: address and port. Out: success, or the reason why the server is not ready. Sources: the
//! MySQL protocol's initial handshake packet; PostgreSQL's StartupMessage and ErrorResponse
//! (protocol 3.0). Deliberately absent: complete log-ins, which need passwords; a probe of kind
//! `command` can log in.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use saiga_redis::remote::Remote;

/// Timeout of connecting, and of each read and write.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// Protocol version in the first payload byte of MySQL's handshake packet.
const MYSQL_PROTOCOL: u8 = 10;
/// Version 3.0 of PostgreSQL's protocol: the major version in the upper 16 bits.
const POSTGRES_PROTOCOL: u32 = 196_608;
/// SQLSTATE `cannot_connect_now`: the server starts, recovers or shuts down.
const NOT_NOW: &str = "C57P03";
/// Maximum bytes read of an ErrorResponse.
const MAX_REFUSAL: usize = 4096;

/// IP address and port of a server.
type Address<'a> = (&'a str, u16);

/// Succeeds if the port accepts connections.
pub(crate) fn port(at: Address<'_>) -> io::Result<()> {
    connect(at).map(drop)
}

/// Succeeds if redis-server at this port of 127.0.0.1 answers PING.
pub(crate) fn redis(port: u16) -> io::Result<()> {
    Remote::at(port).ping()
}

/// Succeeds if mysqld sends its handshake packet, which it does once log-ins are possible.
pub(crate) fn mysql(at: Address<'_>) -> io::Result<()> {
    let mut head = [0; 5];
    connect(at)?.read_exact(&mut head)?;
    match head[4] {
        MYSQL_PROTOCOL => Ok(()),
        other => Err(io::Error::other(format!(
            "the first byte is {other:#04x}, not that of a MySQL handshake (0x0a)"
        ))),
    }
}

/// Succeeds if PostgreSQL or openGauss begins a log-in or refuses the user. A refusal because the
/// server is starting is an error.
pub(crate) fn postgres(at: Address<'_>) -> io::Result<()> {
    let mut stream = connect(at)?;
    stream.write_all(&startup())?;
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    let mut rest = vec![0; length.saturating_sub(4).min(MAX_REFUSAL)];
    stream.read_exact(&mut rest)?;
    let text = String::from_utf8_lossy(&rest).into_owned();
    match kind {
        b'E' if text.split('\0').any(|field| field == NOT_NOW) => {
            let message = text.split('\0').find_map(|field| field.strip_prefix('M'));
            Err(io::Error::other(
                message
                    .unwrap_or("the server does not accept log-ins yet")
                    .to_owned(),
            ))
        }
        b'E' | b'R' => Ok(()),
        other => Err(io::Error::other(format!(
            "unknown message type {other:#04x}"
        ))),
    }
}

fn startup() -> Vec<u8> {
    let mut body = POSTGRES_PROTOCOL.to_be_bytes().to_vec();
    body.extend(b"user\0postgres\0database\0postgres\0application_name\0saiga\0\0");
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [length.to_be_bytes().to_vec(), body].concat()
}

fn connect(at: Address<'_>) -> io::Result<TcpStream> {
    let (ip, port) = at;
    let address = SocketAddr::new(ip.parse().map_err(io::Error::other)?, port);
    let stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.set_write_timeout(Some(ANSWER_LIMIT))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// The result of `probe` on a server that sends `answer` to its client.
    fn probe_of(
        answer: &'static [u8],
        probe: fn(Address<'_>) -> io::Result<()>,
    ) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer).unwrap();
            // Closing a socket with unread bytes sends RST, which the client would report.
            let mut request = [0; 256];
            let _ = stream.read(&mut request);
        });
        let result = probe(("127.0.0.1", port)).map_err(|error| error.to_string());
        server.join().unwrap();
        result
    }

    #[test]
    fn mysql_is_ready_when_it_sends_its_handshake() {
        assert_eq!(probe_of(b"\x4a\0\0\0\x0a8.0.20\0", mysql), Ok(()));
        let refused = probe_of(b"\x4a\0\0\0\xff\x10\x04Too many connections", mysql);
        assert!(refused.unwrap_err().contains("0xff"));
    }

    #[test]
    fn postgres_is_ready_when_it_begins_a_log_in() {
        assert_eq!(probe_of(b"R\0\0\0\x0c\0\0\0\x05salt", postgres), Ok(()));
        let starting = b"E\0\0\0\x37SFATAL\0C57P03\0Mthe database system is starting up\0\0";
        let message = probe_of(starting, postgres).unwrap_err();
        assert_eq!(message, "the database system is starting up");
        let refused = b"E\0\0\0\x29SFATAL\0C28000\0Mno pg_hba.conf entry\0\0";
        assert_eq!(probe_of(refused, postgres), Ok(()));
    }
}
