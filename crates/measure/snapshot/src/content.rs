//! Reads and writes files in pieces of [`PIECE`] bytes, and cuts files into chunks for threads.

use std::ops::Range;

use crate::disk::Fault;
use crate::handle::Handle;
use crate::hash::{Hash, PIECE, piece_range, pieces_of};
use crate::span::{self, Span};

/// Pieces per chunk: enough for sequential reads, and few enough that several threads share a large
/// file.
const CHUNK_PIECES: u64 = 64;

/// Consecutive pieces of one file, the unit of work of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Index of the file in the caller's list.
    pub(crate) file: usize,
    pub(crate) pieces: Range<u64>,
}

/// The chunks of a list of files with these sizes.
pub(crate) fn chunks(sizes: impl IntoIterator<Item = u64>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (file, size) in sizes.into_iter().enumerate() {
        let count = pieces_of(size);
        let mut first = 0;
        while first < count {
            let end = count.min(first + CHUNK_PIECES);
            let pieces = first..end;
            chunks.push(Chunk { file, pieces });
            first = end;
        }
    }
    chunks
}

/// A buffer of the size of one piece.
pub(crate) fn buffer() -> Vec<u8> {
    vec![0; usize::try_from(PIECE).unwrap_or(usize::MAX)]
}

/// The content of a piece.
pub(crate) enum Piece<'b> {
    /// A hole of this length: zeros that need not be read.
    Hole(usize),
    Bytes(&'b [u8]),
    /// The file ends within the piece.
    Short,
}

impl Piece<'_> {
    /// The hash of the piece; `None` if the file is too short.
    pub(crate) fn hash(&self) -> Option<Hash> {
        match self {
            Self::Hole(len) => Some(Hash::of_zeros(*len)),
            Self::Bytes(bytes) => Some(Hash::of(bytes)),
            Self::Short => None,
        }
    }
}

/// The span of piece `index` in a file of `size` bytes.
pub(crate) fn window(index: u64, size: u64) -> Span {
    let (start, len) = piece_range(index, size);
    Span {
        start,
        end: start + len as u64,
    }
}

/// Reads piece `index` of `file`, which has `size` bytes; bytes outside of `data` are holes.
pub(crate) fn read<'b>(
    file: &Handle<'_>,
    data: &[Span],
    index: u64,
    size: u64,
    buffer: &'b mut [u8],
) -> Result<Piece<'b>, Fault> {
    let (offset, len) = piece_range(index, size);
    if span::within(data, window(index, size)).next().is_none() {
        return Ok(Piece::Hole(len));
    }
    let Some(bytes) = buffer.get_mut(..len) else {
        return Ok(Piece::Short);
    };
    if file.read_at(bytes, offset)? < len {
        return Ok(Piece::Short);
    }
    Ok(Piece::Bytes(bytes))
}

/// Writes the parts of a piece that lie in `data`; [`match_holes`] makes the holes.
pub(crate) fn write(
    file: &Handle<'_>,
    data: &[Span],
    index: u64,
    size: u64,
    bytes: &[u8],
) -> Result<(), Fault> {
    let window = window(index, size);
    for span in span::within(data, window) {
        let inner = |at: u64| usize::try_from(at - window.start).unwrap_or(usize::MAX);
        if let Some(bytes) = bytes.get(inner(span.start)..inner(span.end)) {
            file.write_at(bytes, span.start)?;
        }
    }
    Ok(())
}

/// Makes a hole in `file` wherever a file with this `data` has one.
pub(crate) fn match_holes(file: &Handle<'_>, data: &[Span], size: u64) -> Result<(), Fault> {
    let present = file.data(size)?;
    for hole in span::holes(data, size) {
        for surplus in span::within(&present, hole) {
            file.punch(surplus)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_piece_once() {
        let sizes = [0, 1, PIECE * 64, PIECE * 64 + 1];
        let chunk = |file, pieces| Chunk { file, pieces };
        let expected = [
            chunk(1, 0..1),
            chunk(2, 0..64),
            chunk(3, 0..64),
            chunk(3, 64..65),
        ];
        assert_eq!(chunks(sizes), expected);
    }
}
