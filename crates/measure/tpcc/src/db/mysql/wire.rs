//! Packets: three bytes of length, one byte of sequence number, then the payload.
//!
//! Each direction has one buffer, which grows to the largest packet so far, because 800 sessions
//! must fit into about 20 MB. Deliberately absent: compression, packets of 16 MiB or more.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use super::fault::Fault;
use crate::db::stream::Stream;
use crate::db::tls::{Tls, TlsError};

/// Large enough for most answers of a transaction, so that one read returns a whole answer.
const FIRST_BUFFER: usize = 4096;
const HEADER: usize = 4;
/// A payload of this length is continued in the next packet.
const CONTINUED: usize = 0xff_ffff;

/// A connection that sends and receives packets.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    received: Vec<u8>,
    /// Start of the bytes in `received` that are not parsed yet.
    from: usize,
    /// End of these bytes.
    to: usize,
    out: Vec<u8>,
    /// Start of the current packet in `out`; the caller appends to this packet.
    begun: usize,
    /// Sequence number of the next packet in either direction.
    sequence: u8,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            received: vec![0; FIRST_BUFFER],
            from: 0,
            to: 0,
            out: Vec::new(),
            begun: 0,
            sequence: 0,
        }
    }

    /// Limits the waiting time of each following read and write.
    pub(super) fn limit_waiting(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.stream.limit_waiting(limit)
    }

    /// Whether a password may be sent as it is, because the connection is encrypted or local.
    pub(super) fn is_private(&self) -> bool {
        self.stream.is_private()
    }

    /// Starts TLS, which the server at `host` expects after the last packet.
    pub(super) fn secure(&mut self, tls: &Tls, host: &str) -> Result<(), TlsError> {
        if self.from != self.to {
            // An attacker may have inserted these bytes (as in CVE-2021-23222 of libpq).
            let words = "plain text came after the greeting";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words).into());
        }
        self.stream.secure(tls, host)
    }

    /// Starts a command. The caller appends its payload.
    pub(super) fn command(&mut self, code: u8) -> &mut Vec<u8> {
        self.sequence = 0;
        let out = self.reply();
        out.push(code);
        out
    }

    /// Starts another command that is sent in the same write as the previous one.
    pub(super) fn next_command(&mut self, code: u8) -> Result<&mut Vec<u8>, Fault> {
        self.seal()?;
        self.sequence = 0;
        self.begun = self.out.len();
        self.out.extend([0; HEADER]);
        self.out.push(code);
        Ok(&mut self.out)
    }

    /// Prepares to read the answer to the next of several commands.
    pub(super) fn next_answer(&mut self) {
        self.sequence = 1;
    }

    /// Starts a packet that continues a dialogue.
    pub(super) fn reply(&mut self) -> &mut Vec<u8> {
        self.out.clear();
        self.begun = 0;
        self.out.extend([0; HEADER]);
        &mut self.out
    }

    /// Length of the current packet's payload so far.
    pub(super) fn pending(&self) -> usize {
        self.out.len() - self.begun - HEADER
    }

    /// The buffer to which the payload is appended.
    pub(super) fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Sends the packets that were started.
    pub(super) fn send(&mut self) -> Result<(), Fault> {
        self.seal()?;
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&self.out).map_err(Fault::Io)
    }

    /// Writes the header of the current packet.
    fn seal(&mut self) -> Result<(), Fault> {
        let length = self.pending();
        if length >= CONTINUED {
            return Err(Fault::TooLong { length });
        }
        let [low, middle, high, ..] = length.to_le_bytes();
        let head = &mut self.out[self.begun..self.begun + HEADER];
        head.copy_from_slice(&[low, middle, high, self.sequence]);
        Ok(())
    }

    /// Receives the next packet and returns its payload.
    pub(super) fn packet(&mut self) -> Result<&[u8], Fault> {
        self.receive(HEADER)?;
        let [low, middle, high, sequence] = self.header();
        let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
        if length >= CONTINUED {
            return Err(Fault::Answer("a value of 16 MiB or more"));
        }
        self.receive(HEADER + length.min(1))?;
        let start = self.from + HEADER;
        // A server that ends a session on its own sends an error packet with any sequence number.
        let is_error = length > 0 && self.received[start] == 0xff;
        if sequence != self.sequence && !is_error {
            return Err(Fault::Answer("packets that are out of order"));
        }
        self.receive(HEADER + length)?;
        let start = self.from + HEADER;
        self.from = start + length;
        self.sequence = sequence.wrapping_add(1);
        Ok(&self.received[start..self.from])
    }

    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header.copy_from_slice(&self.received[self.from..self.from + HEADER]);
        header
    }

    /// Reads until `wanted` bytes are in the buffer.
    fn receive(&mut self, wanted: usize) -> Result<(), Fault> {
        while self.to - self.from < wanted {
            self.make_room(wanted);
            match self.stream.read(&mut self.received[self.to..]) {
                Ok(0) => return Err(Fault::Closed),
                Ok(count) => self.to += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Io(error)),
            }
        }
        Ok(())
    }

    fn make_room(&mut self, wanted: usize) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        if self.received.len() - self.from < wanted {
            self.received.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.received.len() < wanted {
            self.received.resize(wanted.next_power_of_two(), 0);
        }
    }
}
