//! Block writes with file identity: the exchange format, its reader and its writer.
//!
//! Text, one row per request, beginning with two lines that never change:
//!
//! ```text
//! # saiga block trace 1
//! t_ns,lba,len,op,file
//! ```
//!
//! docs/ftl.md has the format in full.

mod name;
mod read;
mod write;

pub use read::{Fault, ReadError, read};
pub use write::{WriteError, Writer};

/// The first line; its number is the version.
pub const FIRST_LINE: &str = "# saiga block trace 1";
/// The second line.
pub const COLUMNS: &str = "t_ns,lba,len,op,file";
/// Addresses and lengths are multiples of this many bytes.
pub const SECTOR_BYTES: u64 = 512;

/// All rows of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The names of files, by the number that rows have.
    pub files: Vec<String>,
    /// In order of time.
    pub rows: Vec<Row>,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// When, in nanoseconds since any fixed instant.
    pub t_ns: u64,
    /// The first byte on the device.
    pub lba: u64,
    /// How many bytes.
    pub len: u64,
    /// What was done to them.
    pub op: Op,
    /// The file that they belong to; `None` for the file system's own and what nobody knows.
    pub file: Option<u32>,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `P`: the bytes held data of the file when the recording began. Nothing was written.
    Present,
    /// `W`: a write.
    Write,
    /// `D`: a discard.
    Discard,
}

impl Op {
    /// Its letter.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Present => 'P',
            Self::Write => 'W',
            Self::Discard => 'D',
        }
    }
}
