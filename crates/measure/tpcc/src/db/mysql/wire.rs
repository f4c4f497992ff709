//! Packets on a connection: three bytes of length, one of sequence, then the payload.
//!
//! One buffer for each direction, which is as large as the largest packet so far: 800 sessions
//! must fit into some 20 MB. Deliberately absent: compression, packets of 16 MiB.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use super::fault::Fault;
use crate::db::stream::Stream;
use crate::db::tls::{Tls, TlsError};

/// Most answers of a transaction fit, so most are read by one call.
const FIRST_BUFFER: usize = 4096;
const HEADER: usize = 4;
/// A payload of this length is continued in the next packet.
const CONTINUED: usize = 0xff_ffff;

/// A connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    received: Vec<u8>,
    /// What was received and not yet read: from here,
    from: usize,
    /// to there.
    to: usize,
    out: Vec<u8>,
    /// Where in it the packet begins to which the caller appends.
    begun: usize,
    /// Of the next packet in either direction.
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

    /// From now on neither an answer nor a write takes longer.
    pub(super) fn limit_waiting(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.stream.limit_waiting(limit)
    }

    /// Whether a password may go as it is.
    pub(super) fn is_private(&self) -> bool {
        self.stream.is_private()
    }

    /// Goes on by TLS, which the server at `host` expects after the last packet.
    pub(super) fn secure(&mut self, tls: &Tls, host: &str) -> Result<(), TlsError> {
        if self.from != self.to {
            // A third party may have put it there (as in CVE-2021-23222 of libpq).
            let words = "plain text came after the greeting";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words).into());
        }
        self.stream.secure(tls, host)
    }

    /// Begins a command; its payload is what the caller appends.
    pub(super) fn command(&mut self, code: u8) -> &mut Vec<u8> {
        self.sequence = 0;
        let out = self.reply();
        out.push(code);
        out
    }

    /// Begins a command that goes in the same write as the one before.
    pub(super) fn next_command(&mut self, code: u8) -> Result<&mut Vec<u8>, Fault> {
        self.seal()?;
        self.sequence = 0;
        self.begun = self.out.len();
        self.out.extend([0; HEADER]);
        self.out.push(code);
        Ok(&mut self.out)
    }

    /// What comes next answers the next one of several commands.
    pub(super) fn next_answer(&mut self) {
        self.sequence = 1;
    }

    /// Begins a packet that goes on with a dialogue.
    pub(super) fn reply(&mut self) -> &mut Vec<u8> {
        self.out.clear();
        self.begun = 0;
        self.out.extend([0; HEADER]);
        &mut self.out
    }

    /// How long the payload is so far.
    pub(super) fn pending(&self) -> usize {
        self.out.len() - self.begun - HEADER
    }

    /// The payload so far.
    pub(super) fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Sends what was begun.
    pub(super) fn send(&mut self) -> Result<(), Fault> {
        self.seal()?;
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&self.out).map_err(Fault::Io)
    }

    /// Writes the head of the packet that was begun.
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

    /// The payload of the next packet.
    pub(super) fn packet(&mut self) -> Result<&[u8], Fault> {
        self.receive(HEADER)?;
        let [low, middle, high, sequence] = self.header();
        let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
        if length >= CONTINUED {
            return Err(Fault::Answer("a value of 16 MiB or more"));
        }
        self.receive(HEADER + length.min(1))?;
        let start = self.from + HEADER;
        // A server that ends a session on its own says so in a packet that answers nothing.
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

    /// Reads until `wanted` bytes are there.
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
