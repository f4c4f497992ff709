//! The errors of a line of a trace.

use super::{COLUMNS, FIRST_LINE, MAX_BYTES, MAX_LINE_BYTES, SECTOR_BYTES, Sampling};

/// An error of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file is not a trace, or has another version.
    #[error("{found:?} is not {FIRST_LINE:?}, with which a trace of this version begins")]
    NotATrace { found: String },
    #[error("the second line of a trace is {COLUMNS:?}")]
    Columns,
    /// The last line has no line feed.
    #[error("the file ends within a line; the recording was interrupted, or the disk was full")]
    CutOff,
    #[error("longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("not UTF-8; write other bytes of names as %XX")]
    NotUtf8,
    #[error("{found} fields; a row has five: {COLUMNS}")]
    Fields { found: usize },
    #[error("{field} {text:?} is not a whole number below 2^64")]
    Number { field: &'static str, text: String },
    #[error("{field} {value} is not a multiple of {SECTOR_BYTES} bytes")]
    Unaligned { field: &'static str, value: u64 },
    #[error("len 0: a request has at least one sector")]
    Nothing,
    /// The request ends beyond the last address.
    #[error("lba {lba} + len {len} is beyond 2^64")]
    Beyond { lba: u64, len: u64 },
    #[error("len {len} is more than {MAX_BYTES} bytes (1 PiB), the limit for a request")]
    Huge { len: u64 },
    #[error("op {text:?}: use W (write), D (discard) or P (present at the beginning)")]
    Op { text: String },
    #[error("t_ns {now} is before {before} of the row before; sort the rows by time")]
    Backwards { before: u64, now: u64 },
    #[error("t_ns {now} is after the end of the recording, which lasted {recorded} ns")]
    AfterTheEnd { now: u64, recorded: u64 },
    #[error("the length of the recording is given twice; joined traces must have one length")]
    RecordedTwice,
    #[error("the sampled share is given twice; traces of several samples cannot be joined")]
    SampledTwice,
    #[error(
        "sampled 1/{one_in} in granules of {granule_bytes} bytes: use 1/1 to 1/{most}, and a power \
         of two from {SECTOR_BYTES}",
        most = Sampling::MOST
    )]
    Sampling { one_in: u64, granule_bytes: u64 },
    #[error("file {number} has no name; its first row must say {number}=NAME")]
    Unnamed { number: u64 },
    /// New files must be numbered consecutively.
    #[error("file {number}=... gets a name, but the next new file is number {next}")]
    Numbering { number: u64, next: usize },
    /// A name is empty, or a `%` in it is not followed by two hexadecimal digits.
    #[error("file name {text:?}: not empty, and % only as %XX")]
    Name { text: String },
}
