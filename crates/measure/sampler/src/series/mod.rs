//! The series file: one row per second, readable by people, spreadsheets and us.
//!
//! CSV. The first line names the columns, `time_s` first, units last. A cell is empty when
//! the value is not known. When a device appears during the run, a longer line of names
//! follows: the same names, then the new ones. `# mark 12.345 measured` is a mark. Rows are
//! written when they are made, each with one write; a last row without a line's end is torn.

mod downsample;
mod read;
mod write;

use serde::{Deserialize, Serialize};

pub use downsample::{Bucket, Downsampled};
pub use read::{ReadError, Series};
pub(crate) use write::Writer;

/// The first column.
const TIME: &str = "time_s";
/// What the line of a mark begins with.
const MARK: &str = "# mark ";

/// A moment with a name: from here on, the run is in that phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds since the start.
    pub time_s: f64,
    /// `warm-up`, `measured`, `gap`.
    pub name: String,
}

#[cfg(test)]
mod tests;
