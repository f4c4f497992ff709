//! The series file: CSV with one row per second.
//!
//! The first line has the names of the columns, `time_s` first; each name ends in its unit. A cell
//! is empty if the value is unknown. When a device appears during the run, a new header line
//! follows, with the same names and then the new ones. The line `# mark 12.345 measured` starts a
//! phase. Each row is written immediately with one write(2); a last line without a line reader is
//! incomplete.

mod downsample;
mod read;
mod write;

use serde::{Deserialize, Serialize};

pub use downsample::{Bucket, Downsampled};
pub use read::{ReadError, Series};
pub(crate) use write::Writer;

/// Name of the first column.
const TIME: &str = "time_s";
/// Prefix of the line of a mark.
const MARK: &str = "# mark ";

/// The start of a phase of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds since the start.
    pub time_s: f64,
    /// Name of the phase: `warm-up`, `measured`, `gap`.
    pub name: String,
}

#[cfg(test)]
mod tests;
