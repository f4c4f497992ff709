//! A small RESP client for preparing and stopping servers.
//!
//! Spec: the Redis serialization protocol, version 2. Deliberately absent: pub/sub, and use during
//! throughput measurements.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use saiga_hosts::SERVER;

use crate::arm::Endpoint;

/// Timeout of reads and writes.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length of a bulk string in an answer.
const MAX_BULK: usize = 1 << 20;
/// Maximum number of words in an answer.
const MAX_WORDS: usize = 10_000;

/// A connection to a server.
pub(crate) struct Control {
    stream: BufReader<Box<dyn Duplex>>,
}

pub(crate) trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

impl Control {
    /// Connects to a port of 127.0.0.1; `limit` is the timeout of reads and writes.
    pub(crate) fn to_port(port: u16, limit: Duration) -> io::Result<Self> {
        Self::to("127.0.0.1", port, limit)
    }

    fn to(address: &str, port: u16, limit: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect((address, port))?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(Box::new(stream)),
        })
    }

    /// Connects to a server; fails as long as the server does not listen.
    pub(crate) fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        let number = |port: &str| port.parse().map_err(|_| io::ErrorKind::InvalidInput);
        let stream: Box<dyn Duplex> = match endpoint {
            Endpoint::Tcp(port) => return Self::to_port(number(port)?, ANSWER_LIMIT),
            Endpoint::Remote(port) => return Self::to(SERVER, number(port)?, ANSWER_LIMIT),
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

    /// Sends a command and reads its answer; an error answer is an error.
    pub(crate) fn ask(&mut self, command: &[&[u8]]) -> io::Result<String> {
        self.send(command)?;
        self.answer()
    }

    /// Sends a command and reads an answer of several words as a flat list.
    pub(crate) fn list(&mut self, command: &[&[u8]]) -> io::Result<Vec<String>> {
        self.send(command)?;
        let mut words = Vec::new();
        read_words(&mut self.stream, &mut words)?;
        Ok(words)
    }

    /// Sends a command without reading its answer.
    pub(crate) fn send(&mut self, command: &[&[u8]]) -> io::Result<()> {
        self.stream.get_mut().write_all(&encode(command))
    }

    /// Reads the next answer.
    pub(crate) fn answer(&mut self) -> io::Result<String> {
        read_answer(&mut self.stream)
    }
}

/// Encodes a command as an array of bulk strings.
pub(crate) fn encode(command: &[&[u8]]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", command.len()).into_bytes();
    for word in command {
        text.extend(format!("${}\r\n", word.len()).into_bytes());
        text.extend_from_slice(word);
        text.extend(b"\r\n");
    }
    text
}

/// Appends the words of an answer. Nested arrays are flattened; null answers add no word.
fn read_words(stream: &mut impl BufRead, words: &mut Vec<String>) -> io::Result<()> {
    let mut open = 1;
    while open > 0 {
        open -= 1;
        let array = stream.fill_buf()?.first() == Some(&b'*');
        if !array {
            words.push(read_answer(stream)?);
            continue;
        }
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let length: i64 = line[1..].trim_end().parse().unwrap_or(-1);
        open += usize::try_from(length).unwrap_or(0);
        if words.len() + open > MAX_WORDS {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
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
            format!("unexpected answer {line:?}"),
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
        let words = |text: &str| {
            let mut words = Vec::new();
            read_words(&mut text.as_bytes(), &mut words).map(|()| words)
        };
        let nested = "*2\r\n*2\r\n$4\r\nname\r\n$5\r\nsaiga\r\n:7\r\n";
        assert_eq!(words(nested).unwrap(), ["name", "saiga", "7"]);
        assert_eq!(words("*-1\r\n").unwrap(), [""; 0]);
        assert!(words("*99999\r\n").is_err() && words("*2\r\n:1\r\n").is_err());
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
