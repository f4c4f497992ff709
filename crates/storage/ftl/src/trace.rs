//! Traces of block writes with file names: the exchange format, its reader and its writer.
//!
//! The format is text with one row per request, after two fixed lines:
//!
//! ```text
//! # saiga block trace 1
//! t_ns,lba,len,op,file
//! ```
//!
//! docs/ftl.md has the complete format.

mod kind;
mod name;
mod read;
mod rows;
mod sampling;
mod write;

pub use kind::kind_of;
pub use read::{Fault, ReadError, read};
pub(crate) use rows::Label;
pub use rows::Rows;
pub use sampling::Sampling;
pub(crate) use sampling::mix;
pub use write::{WriteError, Writer};

/// The first line, with the version number.
pub const FIRST_LINE: &str = "# saiga block trace 1";
/// The second line, with the names of the columns.
pub const COLUMNS: &str = "t_ns,lba,len,op,file";
/// Addresses and lengths are multiples of this many bytes.
pub const SECTOR_BYTES: u64 = 512;
/// The start of a remark that names a recorded directory; an absolute path follows.
const DIRECTORY: &str = "# directory ";
/// The parts of the remark with the length of the recording and the number of lost events.
const RECORDED: [&str; 2] = ["# recorded ", ", lost "];
/// The parts of the remark with the sampled share of the pages and the granule.
const SAMPLED: [&str; 3] = ["# sampled 1/", ", granules of ", " bytes"];

/// A trace in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The names of files, by the number in rows; absolute paths if directories are recorded.
    pub files: Vec<String>,
    /// The recorded directories.
    pub directories: Vec<String>,
    /// Rows in order of time.
    pub rows: Rows,
    /// The length and losses of the recording; `None` if the trace does not have them.
    pub recorded: Option<Recorded>,
    /// The sampling of pages; `None` for all pages.
    pub sampled: Option<Sampling>,
}

/// Properties of a recording beyond its rows: it begins before the first, ends after the last, and
/// may have lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Length of the recording. Times of rows are relative to its start.
    pub duration_ns: u64,
    /// Number of lost events, which are missing in the trace.
    pub lost: u64,
}

impl Trace {
    /// Returns start and end: of the recording if known, otherwise the times of the first and the
    /// last row. `None` without either.
    #[must_use]
    pub fn span_ns(&self) -> Option<[u64; 2]> {
        let of_rows = || Some([self.rows.iter().next()?.t_ns, self.last_row()?.t_ns]);
        self.recorded
            .map(|recorded| [0, recorded.duration_ns])
            .or_else(of_rows)
    }

    fn last_row(&self) -> Option<Row> {
        self.rows.iter().next_back()
    }

    /// Returns the number of lost events; 0 if unknown.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.recorded.map_or(0, |recorded| recorded.lost)
    }

    /// Extrapolates bytes of a sample to the whole database.
    #[must_use]
    pub fn stand_for(&self, bytes: u64) -> u64 {
        let weight = self.sampled.map_or(1, Sampling::one_in);
        bytes.saturating_mul(weight.into())
    }

    /// Returns the place of a file: its path in the deepest recorded directory that contains it;
    /// the whole name if there is none.
    #[must_use]
    pub fn place<'a>(&self, name: &'a str) -> &'a str {
        let places = self.directories.iter();
        let places = places.filter_map(|directory| below(directory, name));
        places.min_by_key(|place| place.len()).unwrap_or(name)
    }

    /// Returns the index of the deepest directory that contains a file.
    #[must_use]
    pub fn directory_of(&self, name: &str) -> Option<usize> {
        let places = self.directories.iter().enumerate();
        let places =
            places.filter_map(|(number, directory)| Some((number, below(directory, name)?.len())));
        let (number, _) = places.min_by_key(|(_, length)| *length)?;
        Some(number)
    }
}

/// Returns the path of a file in a directory; `None` if the directory does not contain it.
fn below<'a>(directory: &str, name: &'a str) -> Option<&'a str> {
    let rest = name.strip_prefix(directory.trim_end_matches('/'))?;
    rest.strip_prefix('/').filter(|rest| !rest.is_empty())
}

/// A row of a trace: one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Time since any fixed instant.
    pub t_ns: u64,
    /// Address of the first byte on the device.
    pub lba: u64,
    /// Length in bytes.
    pub len: u64,
    pub op: Op,
    /// The number of the file; `None` for metadata of the file system and unknown owners.
    pub file: Option<u32>,
}

/// The operation of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `P`: the bytes held data of the file at the start of the recording. Not a write.
    Present,
    /// `W`: a write.
    Write,
    /// `D`: a discard.
    Discard,
}

impl Op {
    /// Returns its letter in the trace.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Present => 'P',
            Self::Write => 'W',
            Self::Discard => 'D',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_the_deepest_directory() {
        let directories = ["/db", "/db/logs/", "/"].map(str::to_owned).into();
        let trace = Trace {
            directories,
            ..Trace::default()
        };
        for (name, place, directory) in [
            ("/db/t.ibd", "t.ibd", Some(0)),
            ("/db/logs/bin.1", "bin.1", Some(1)),
            ("/dbx/t", "dbx/t", Some(2)),
            ("t.ibd", "t.ibd", None),
        ] {
            assert_eq!(
                (trace.place(name), trace.directory_of(name)),
                (place, directory)
            );
        }
        assert_eq!(Trace::default().place("/db/t"), "/db/t");
    }
}
