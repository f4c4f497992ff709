//! Messages with a header that tells their length, of which only the first bytes matter.

use super::{Chunk, Trouble};

const LONGEST_HEADER: usize = 5;
/// Bytes of each body that are kept: the numbers in front of a status, or the first word of SQL.
const KEPT: usize = 43;

/// Cuts one direction into messages.
#[derive(Debug)]
pub(super) struct Frames {
    header_length: usize,
    buffer: [u8; LONGEST_HEADER + KEPT],
    have: usize,
    /// Length of the body, when the header is complete.
    length: Option<u64>,
    /// Bytes of the body that are still to come.
    left: u64,
    /// A byte of the body was missing: those behind it are not kept.
    is_cut: bool,
}

/// A complete message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) header: &'a [u8],
    /// The first bytes of the body.
    pub(super) body: &'a [u8],
    /// Length of the body.
    pub(super) length: u64,
}

impl Frames {
    pub(super) fn new(header_length: usize) -> Self {
        debug_assert!(header_length <= LONGEST_HEADER);
        Self {
            header_length,
            buffer: [0; LONGEST_HEADER + KEPT],
            have: 0,
            length: None,
            left: 0,
            is_cut: false,
        }
    }

    /// Whether the next byte is the first one of a message.
    pub(super) fn is_between(&self) -> bool {
        self.have == 0
    }

    /// Takes bytes until a message is complete, and gives it to `on_frame`. `length_of` computes
    /// the length of the body from the header. Returns `None` when more bytes are needed.
    ///
    /// # Errors
    /// Fails if bytes of a header are missing, or it is not a header.
    pub(super) fn next<T>(
        &mut self,
        chunk: &mut Chunk<'_>,
        length_of: impl Fn(&[u8]) -> Option<u64>,
        on_frame: impl FnOnce(Frame<'_>) -> T,
    ) -> Result<Option<T>, Trouble> {
        let length = match self.length {
            Some(length) => length,
            None => {
                let missing = (self.header_length - self.have) as u64;
                let Chunk::Bytes(bytes) = chunk.take(missing) else {
                    return Err(Trouble::Lost);
                };
                self.keep(bytes);
                if self.have < self.header_length {
                    return Ok(None);
                }
                let length = length_of(&self.buffer[..self.have]).ok_or(Trouble::Lost)?;
                self.left = length;
                *self.length.insert(length)
            }
        };
        let part = chunk.take(self.left);
        self.left -= part.len();
        match part {
            Chunk::Bytes(bytes) if !self.is_cut => {
                let room = self.header_length + KEPT - self.have;
                self.keep(&bytes[..bytes.len().min(room)]);
            }
            Chunk::Bytes(_) => {}
            Chunk::Missing(count) => self.is_cut |= count > 0,
        }
        if self.left > 0 {
            return Ok(None);
        }
        let (header, body) = self.buffer[..self.have].split_at(self.header_length);
        let result = on_frame(Frame {
            header,
            body,
            length,
        });
        *self = Self {
            have: 0,
            length: None,
            is_cut: false,
            ..*self
        };
        Ok(Some(result))
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.buffer[self.have..self.have + bytes.len()].copy_from_slice(bytes);
        self.have += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(frames: &mut Frames, mut chunk: Chunk<'_>) -> Result<Vec<(u64, usize)>, Trouble> {
        let mut found = Vec::new();
        while !chunk.is_empty() {
            let length_of = |header: &[u8]| Some(u64::from(header[0]));
            let frame = |frame: Frame<'_>| (frame.length, frame.body.len());
            found.extend(frames.next(&mut chunk, length_of, frame)?);
        }
        Ok(found)
    }

    #[test]
    fn messages_may_end_anywhere() {
        let bytes = [2, 7, 7, 0, 3, 8, 8, 8];
        for cut in 0..=bytes.len() {
            let mut frames = Frames::new(1);
            let (front, back) = bytes.split_at(cut);
            let mut found = lengths(&mut frames, Chunk::Bytes(front)).unwrap();
            found.extend(lengths(&mut frames, Chunk::Bytes(back)).unwrap());
            assert_eq!(found, [(2, 2), (0, 0), (3, 3)], "cut at {cut}");
            assert!(frames.is_between());
        }
    }

    #[test]
    fn missing_bytes_of_a_body_do_no_harm() {
        let mut frames = Frames::new(1);
        assert_eq!(lengths(&mut frames, Chunk::Bytes(&[9, 1])).unwrap(), []);
        assert_eq!(lengths(&mut frames, Chunk::Missing(6)).unwrap(), []);
        let rest = Chunk::Bytes(&[1, 1, 1, 5]);
        assert_eq!(lengths(&mut frames, rest).unwrap(), [(9, 1), (1, 1)]);
        assert_eq!(lengths(&mut frames, Chunk::Missing(1)), Err(Trouble::Lost));
    }
}
