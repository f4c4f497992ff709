//! The layout that messages of ICMP and ICMPv6 share.
//!
//! Spec: RFC 792, RFC 4443 §2.1: type, code, checksum, and four bytes whose meaning depends on the
//! type, followed by data.

use crate::checksum::Sum;
use crate::emit::{EmitError, room};

/// Length of the type, the code and the checksum.
pub(crate) const PREFIX_BYTES: usize = 4;
/// Length of a header up to its data.
pub const HEADER_BYTES: usize = 8;
const CHECKSUM_AT: usize = 2;
/// A neighbour solicitation with its option is the message with the longest head.
const MAX_HEAD_BYTES: usize = 32;

/// The contents of an echo request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Identifier of the process that sends requests.
    pub id: u16,
    /// Number of the request.
    pub sequence: u16,
    /// Data of the request, repeated in the reply.
    pub data: &'a [u8],
}

impl<'a> Echo<'a> {
    pub(crate) fn of(word: [u8; 4], data: &'a [u8]) -> Self {
        let [i, d, s, q] = word;
        Self {
            id: u16::from_be_bytes([i, d]),
            sequence: u16::from_be_bytes([s, q]),
            data,
        }
    }

    pub(crate) fn layout(&self, kind: u8) -> Layout<'a> {
        Layout::new(kind, 0, self.data)
            .field(self.id.to_be_bytes())
            .field(self.sequence.to_be_bytes())
    }
}

/// A message of a type that this crate does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other<'a> {
    /// Type of the message.
    pub kind: u8,
    /// Code of the message.
    pub code: u8,
    /// The bytes after the checksum.
    pub body: &'a [u8],
}

/// The bytes of a message, before they are written.
#[derive(Debug)]
pub(crate) struct Layout<'a> {
    /// Type, code, a zero checksum, and fields.
    head: [u8; MAX_HEAD_BYTES],
    head_bytes: usize,
    /// The bytes after the fields.
    data: &'a [u8],
}

impl<'a> Layout<'a> {
    /// A message without fields.
    pub(crate) const fn new(kind: u8, code: u8, data: &'a [u8]) -> Self {
        let mut head = [0; MAX_HEAD_BYTES];
        head[0] = kind;
        head[1] = code;
        Self {
            head,
            head_bytes: PREFIX_BYTES,
            data,
        }
    }

    /// Appends a field.
    pub(crate) fn field<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.head[self.head_bytes..][..N].copy_from_slice(&bytes);
        self.head_bytes += N;
        self
    }

    pub(crate) const fn len_bytes(&self) -> usize {
        self.head_bytes + self.data.len()
    }

    /// Writes the message with a checksum that includes `pseudo_header`; returns its length.
    pub(crate) fn emit(&self, pseudo_header: Sum, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let bytes = room(buffer, self.len_bytes())?;
        let (head, data) = bytes.split_at_mut(self.head_bytes);
        head.copy_from_slice(&self.head[..self.head_bytes]);
        data.copy_from_slice(self.data);
        let checksum = pseudo_header.bytes(bytes).checksum();
        bytes[CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
        Ok(bytes.len())
    }
}
