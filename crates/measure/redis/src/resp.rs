//! The few RESP commands with which we prepare and stop our own servers.
//!
//! Spec: the Redis serialization protocol, version 2. Deliberately absent: arrays in
//! answers, pub/sub, anything on the path of a measurement.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::arm::Endpoint;

/// A server that does not answer our few commands within this time is stuck.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Longest bulk answer that we accept.
const MAX_BULK: usize = 1 << 20;

/// A connection of ours to a server of ours.
pub(crate) struct Control {
    stream: BufReader<Box<dyn Duplex>>,
}

pub(crate) trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

impl Control {
    /// Connects; refused until the server listens.
    pub(crate) fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        let stream: Box<dyn Duplex> = match endpoint {
            Endpoint::Tcp(port) => {
                let port = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
                let stream = TcpStream::connect(("127.0.0.1", port))?;
                stream.set_read_timeout(Some(ANSWER_LIMIT))?;
                stream.set_write_timeout(Some(ANSWER_LIMIT))?;
                Box::new(stream)
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ANSWER_LIMIT))?;
                stream.set_write_timeout(Some(ANSWER_LIMIT))?;
                Box::new(stream)
            }
        };
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends one command and reads its answer; an error answer is an error.
    pub(crate) fn ask(&mut self, command: &[&[u8]]) -> io::Result<String> {
        self.send(command)?;
        self.answer()
    }

    /// Sends one command.
    pub(crate) fn send(&mut self, command: &[&[u8]]) -> io::Result<()> {
        self.stream.get_mut().write_all(&encode(command))
    }

    /// Reads one answer.
    pub(crate) fn answer(&mut self) -> io::Result<String> {
        read_answer(&mut self.stream)
    }
}

/// One command as an array of bulk strings.
pub(crate) fn encode(command: &[&[u8]]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", command.len()).into_bytes();
    for word in command {
        text.extend(format!("${}\r\n", word.len()).into_bytes());
        text.extend_from_slice(word);
        text.extend(b"\r\n");
    }
    text
}

fn read_answer(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = line.trim_end();
    let strange = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("strange answer {line:?}"),
        )
    };
    match line.split_at_checked(1) {
        Some(("+" | ":", rest)) => Ok(rest.to_owned()),
        Some(("-", rest)) => Err(io::Error::other(rest.to_owned())),
        Some(("$", length)) => {
            let length: usize = length.parse().map_err(|_| strange())?;
            if length > MAX_BULK {
                return Err(strange());
            }
            let mut bulk = vec![0; length + 2];
            stream.read_exact(&mut bulk)?;
            bulk.truncate(length);
            Ok(String::from_utf8_lossy(&bulk).into_owned())
        }
        _ => Err(strange()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        assert_eq!(
            encode(&[b"SET", b"k", b""]),
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"
        );
    }

    #[test]
    fn answers_of_each_kind_are_read() {
        let read = |text: &str| read_answer(&mut text.as_bytes());
        assert_eq!(read("+PONG\r\n").unwrap(), "PONG");
        assert_eq!(read(":12\r\n").unwrap(), "12");
        assert_eq!(read("$4\r\na\r\nb\r\n").unwrap(), "a\r\nb");
        assert_eq!(read("-ERR no\r\n").unwrap_err().to_string(), "ERR no");
        for bad in [
            "",
            "HTTP/1.1 400\r\n",
            "$-1\r\n",
            "$99999999999\r\n",
            "$5\r\nab\r\n",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
