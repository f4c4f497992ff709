//! A scripted PostgreSQL server for tests.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use saiga_tpcc::props::Url;

/// A server that runs one script per connection.
pub(crate) struct Scripted {
    port: u16,
    player: JoinHandle<()>,
}

impl Scripted {
    /// Runs the scripts `parts` in turn, one for each connection.
    pub(crate) fn play(parts: Vec<Box<dyn FnOnce(Peer) + Send>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let player = thread::spawn(move || {
            for part in parts {
                let (stream, _) = listener.accept().unwrap();
                // Small messages are sent at once.
                stream.set_nodelay(true).unwrap();
                part(Peer(stream));
            }
        });
        Self { port, player }
    }

    pub(crate) fn url(&self, system: &str) -> Url {
        Url::parse(&format!("jdbc:{system}://127.0.0.1:{}/tpcc", self.port)).unwrap()
    }

    /// Waits until all scripts have ended.
    pub(crate) fn end(self) {
        self.player.join().unwrap();
    }
}

/// The server's end of a connection.
pub(crate) struct Peer(TcpStream);

impl Peer {
    /// Reads a start-up packet: protocol version and parameters.
    pub(crate) fn start_up(&mut self) -> ([u8; 4], Vec<u8>) {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.0.read_exact(&mut rest).unwrap();
        let parameters = rest.split_off(4);
        (rest.try_into().unwrap(), parameters)
    }

    /// Reads a message; `None` if the client has closed the connection.
    pub(crate) fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    pub(crate) fn send(&mut self, tag: u8, body: &[u8]) {
        self.send_raw(&message(tag, body)).unwrap();
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Accepts the log-in and answers the first query, which asks for version and isolation level.
    pub(crate) fn welcome(&mut self, version: &str) {
        self.send(b'R', &[0; 4]);
        self.send(b'S', b"server_encoding\0UTF8\0");
        self.send(b'K', &[1; 8]);
        self.send(b'Z', b"I");
        assert_eq!(self.message().unwrap().0, b'Q');
        self.send(b'N', b"SNOTICE\0C00000\0Ma notice\0\0");
        self.send(b'T', b"\0\0");
        self.send(b'D', &row(&[version, "read committed"]));
        self.send(b'C', b"SELECT 1\0");
        self.send(b'Z', b"I");
    }
}

pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag], &length[..], body].concat()
}

/// Encodes the body of a `DataRow`.
pub(crate) fn row(fields: &[&str]) -> Vec<u8> {
    let mut body = u16::try_from(fields.len()).unwrap().to_be_bytes().to_vec();
    for field in fields {
        body.extend(u32::try_from(field.len()).unwrap().to_be_bytes());
        body.extend(field.bytes());
    }
    body
}
