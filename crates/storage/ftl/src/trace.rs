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

/// The first line; its number is the version.
pub const FIRST_LINE: &str = "# saiga block trace 1";
/// The second line.
pub const COLUMNS: &str = "t_ns,lba,len,op,file";
/// Addresses and lengths are multiples of this many bytes.
pub const SECTOR_BYTES: u64 = 512;
/// How a remark begins that names a directory that was recorded; an absolute path follows.
const DIRECTORY: &str = "# directory ";
/// How the remark begins that says how long was recorded, and what stands before the events that were lost.
const RECORDED: [&str; 2] = ["# recorded ", ", lost "];
/// How the remark begins that says which share of the pages was recorded, and what stands before
/// the granule.
const SAMPLED: [&str; 3] = ["# sampled 1/", ", granules of ", " bytes"];

/// All rows of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The names of files, by the number that rows have; absolute paths where directories are known.
    pub files: Vec<String>,
    /// The directories of the databases that were recorded.
    pub directories: Vec<String>,
    /// In order of time.
    pub rows: Rows,
    /// The recording as a whole; `None` where the trace does not tell.
    pub recorded: Option<Recorded>,
    /// Which part of the pages it has; `None` for all.
    pub sampled: Option<Sampling>,
}

/// What rows do not tell of a recording: it begins before the first of them, goes on after the last, and may have lost some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recorded {
    /// How long it was, in nanoseconds; rows count theirs from its beginning.
    pub duration_ns: u64,
    /// Events that were lost: the trace has so many holes.
    pub lost: u64,
}

impl Trace {
    /// When it begins and when it ends: the recording, where it is told, else the first row and the last. `None` without
    /// either.
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

    /// Events that were lost; none where that is not told.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.recorded.map_or(0, |recorded| recorded.lost)
    }

    /// The bytes of the recorded database that some bytes of the trace stand for.
    #[must_use]
    pub fn stand_for(&self, bytes: u64) -> u64 {
        let weight = self.sampled.map_or(1, Sampling::one_in);
        bytes.saturating_mul(weight.into())
    }

    /// A file's place below the longest directory that holds it; the whole name where none does.
    #[must_use]
    pub fn place<'a>(&self, name: &'a str) -> &'a str {
        let places = self.directories.iter();
        let places = places.filter_map(|directory| below(directory, name));
        places.min_by_key(|place| place.len()).unwrap_or(name)
    }

    /// The number of the longest directory that holds a file.
    #[must_use]
    pub fn directory_of(&self, name: &str) -> Option<usize> {
        let places = self.directories.iter().enumerate();
        let places =
            places.filter_map(|(number, directory)| Some((number, below(directory, name)?.len())));
        let (number, _) = places.min_by_key(|(_, length)| *length)?;
        Some(number)
    }
}

/// The place of a file below a directory that holds it.
fn below<'a>(directory: &str, name: &'a str) -> Option<&'a str> {
    let rest = name.strip_prefix(directory.trim_end_matches('/'))?;
    rest.strip_prefix('/').filter(|rest| !rest.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_below_the_longest_directory() {
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
