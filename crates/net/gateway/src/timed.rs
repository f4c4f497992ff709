//! A client that has a limited time: a slow one does not hold a thread of the gateway.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A stream whose calls can be limited in time.
pub(crate) trait Limited: Read + Write {
    /// Sets the longest time of each later call, which is not zero.
    fn limit(&self, time: Duration) -> io::Result<()>;
}

impl Limited for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Limited for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// A stream all of whose calls together end at an instant.
#[derive(Debug)]
pub(crate) struct Timed<'a, S> {
    stream: &'a mut S,
    end: Instant,
}

impl<'a, S: Limited> Timed<'a, S> {
    /// A stream that can be used for `time`.
    pub(crate) fn new(stream: &'a mut S, time: Duration) -> Self {
        Self {
            stream,
            end: Instant::now() + time,
        }
    }

    /// Limits the next call to the time that is left.
    fn limit(&self) -> io::Result<()> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.limit(left)
    }

    /// Reads until `is_whole` of all that was read, which is at most `most` bytes. Fewer bytes come
    /// back if the client has ended.
    ///
    /// # Errors
    /// TimedOut or WouldBlock after the time, InvalidData for too many bytes, and those of read(2).
    pub(crate) fn read_until(
        &mut self,
        most: usize,
        is_whole: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut part = [0; 4096];
        while !is_whole(&all) {
            let count = match self.read(&mut part) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            all.extend_from_slice(part.get(..count).unwrap_or_default());
            if all.len() > most {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(all)
    }
}

impl<S: Limited> Read for Timed<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.read(into)
    }
}

impl<S: Limited> Write for Timed<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_sends_nothing_or_too_much_is_given_up() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        let line = |all: &[u8]| all.ends_with(b"\n");
        let mut timed = Timed::new(&mut server, Duration::from_millis(5));
        assert!(timed.read_until(10, line).is_err());
        client.write_all(b"0123456789a").unwrap();
        let mut timed = Timed::new(&mut server, Duration::from_secs(60));
        let error = timed.read_until(10, line).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        client.write_all(b"ask\n").unwrap();
        let mut timed = Timed::new(&mut server, Duration::from_secs(60));
        assert_eq!(timed.read_until(10, line).unwrap(), b"ask\n");
    }
}
