//! Everything that can be wrong with a line of a trace.

use super::{COLUMNS, FIRST_LINE, MAX_BYTES, MAX_LINE_BYTES, SECTOR_BYTES, Sampling};

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is something else, or another version.
    #[error("{found:?} is not {FIRST_LINE:?}, with which a trace that this version reads begins")]
    NotATrace {
        /// The beginning of the first line.
        found: String,
    },
    /// The columns are others.
    #[error("the second line of a trace is {COLUMNS:?}")]
    Columns,
    /// It was cut off.
    #[error("the file ends within a line; the recording was cut off, or the disk was full")]
    CutOff,
    /// It is longer than any row can be.
    #[error("longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// It is binary, or in another encoding.
    #[error("not UTF-8; bytes of names that are not are written as %XX")]
    NotUtf8,
    /// There are too few fields.
    #[error("{found} fields; a row has five: {COLUMNS}")]
    Fields {
        /// How many there are.
        found: usize,
    },
    /// A field is not a number.
    #[error("{field} {text:?} is not a whole number below 2^64")]
    Number {
        /// Its column.
        field: &'static str,
        /// What is there.
        text: String,
    },
    /// An address or a length is not one of sectors.
    #[error("{field} {value} is not a multiple of {SECTOR_BYTES} bytes")]
    Unaligned {
        /// Its column.
        field: &'static str,
        /// What is there.
        value: u64,
    },
    /// Nothing was written.
    #[error("len 0: a request has at least one sector")]
    Nothing,
    /// It ends beyond the last address.
    #[error("lba {lba} + len {len} is beyond 2^64")]
    Beyond {
        /// Where it begins.
        lba: u64,
        /// How long it is.
        len: u64,
    },
    /// It is longer than any drive.
    #[error("len {len} is more than {MAX_BYTES} bytes (1 PiB), which no request has")]
    Huge {
        /// How long it is.
        len: u64,
    },
    /// There is no such operation.
    #[error("op {text:?}: use W (write), D (discard) or P (present at the beginning)")]
    Op {
        /// What is there.
        text: String,
    },
    /// Time goes backwards.
    #[error("t_ns {now} is before {before} of the row before; sort the rows by time")]
    Backwards {
        /// The time of the row before.
        before: u64,
        /// Its own.
        now: u64,
    },
    /// It is after the end.
    #[error("t_ns {now} is after the end of the recording, which lasted {recorded} ns")]
    AfterTheEnd {
        /// The time of the last row.
        now: u64,
        /// How long was recorded.
        recorded: u64,
    },
    /// There are two lengths.
    #[error(
        "how long was recorded is said a second time; traces that were put together have one length"
    )]
    RecordedTwice,
    /// There are two shares.
    #[error(
        "which share was sampled is said a second time; traces of several samples cannot be put together"
    )]
    SampledTwice,
    /// No recording has such a share.
    #[error(
        "sampled 1/{one_in} in granules of {granule_bytes} bytes: 1/1 to 1/{most}, of a power of two from {SECTOR_BYTES}",
        most = Sampling::MOST
    )]
    Sampling {
        /// The denominator.
        one_in: u64,
        /// The granule.
        granule_bytes: u64,
    },
    /// A file has no name yet.
    #[error("file {number} has no name; its first row must say {number}=NAME")]
    Unnamed {
        /// Its number.
        number: u64,
    },
    /// Files are not numbered in turn.
    #[error("file {number}=... gets a name, but the next new file is number {next}")]
    Numbering {
        /// Its number.
        number: u64,
        /// What it should be.
        next: usize,
    },
    /// A name is empty, or a `%` in it has no two hexadecimal digits behind it.
    #[error("file name {text:?}: not empty, and % only as %XX")]
    Name {
        /// What is there.
        text: String,
    },
}
