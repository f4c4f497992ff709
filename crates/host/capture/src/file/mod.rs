//! Capture files: pcap and pcapng, from any reader, in one buffer of fixed size.

mod input;
mod legacy;
mod ng;

use std::io::{self, Read};

use crate::{Analyser, Mark, Options, Traffic};
use input::Input;

/// First bytes of gzip, zstd, xz and bzip2 files.
const COMPRESSED: [(&[u8], &str); 4] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"BZh", "bzip2"),
];
/// First bytes of a pcapng file, in either byte order.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A capture gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The reader failed.
    #[error("cannot read the capture: {0}")]
    Io(#[from] io::Error),
    /// There is not a single byte.
    #[error("the capture is empty: no file header")]
    Empty,
    /// The file begins as a compressed one.
    #[error("the capture is compressed with {format}: decompress it first ({format} -d)")]
    Compressed { format: &'static str },
    /// The file begins as neither pcap nor pcapng.
    #[error("not a capture: the file begins as neither pcap nor pcapng")]
    NotACapture,
    /// No packet has a link type that is supported.
    #[error(
        "link type {number} is not supported: capture on an Ethernet, loopback or \"any\" interface"
    )]
    LinkType { number: u16 },
}

/// Why a file's end is not the end of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    End,
    /// The file ends inside a record.
    CutShort,
    /// A record contradicts the format.
    Damaged,
}

/// Analyses a capture file.
///
/// A file that was cut short or is damaged gives the results up to that place, and a [`Mark`].
///
/// # Errors
/// Fails if the reader does, if the file is not a capture, or if no packet has a supported link
/// type.
pub fn read(reader: impl Read, options: &Options) -> Result<Traffic, ReadError> {
    let mut input = Input::new(reader);
    let mut analyser = Analyser::new(options);
    input.fill(SECTION_HEADER.len())?;
    let head = input.bytes();
    if head.is_empty() {
        return Err(ReadError::Empty);
    }
    if let Some((_, format)) = COMPRESSED.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(ReadError::Compressed { format });
    }
    let stop = if head.starts_with(&SECTION_HEADER) {
        ng::read(&mut input, &mut analyser)?
    } else {
        legacy::read(&mut input, &mut analyser)?
    };
    let packets = analyser.packets();
    match stop {
        Stop::End => {}
        Stop::CutShort => analyser.mark(Mark::CutShort { packets }),
        Stop::Damaged => analyser.mark(Mark::Damaged { packets }),
    }
    Ok(analyser.finish())
}
