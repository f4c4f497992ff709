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
mod write;

pub use kind::kind_of;
pub use read::{Fault, ReadError, read};
pub(crate) use rows::Label;
pub use rows::Rows;
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

    /// A file's place below the longest directory that holds it; the whole name where none does.
    #[must_use]
    pub fn place<'a>(&self, name: &'a str) -> &'a str {
        let below = |directory: &String| {
            let rest = name.strip_prefix(directory.trim_end_matches('/'))?;
            rest.strip_prefix('/').filter(|rest| !rest.is_empty())
        };
        let places = self.directories.iter().filter_map(below);
        places.min_by_key(|place| place.len()).unwrap_or(name)
    }
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
        for (name, place) in [
            ("/db/t.ibd", "t.ibd"),
            ("/db/logs/bin.1", "bin.1"),
            ("/dbx/t", "dbx/t"),
            ("t.ibd", "t.ibd"),
        ] {
            assert_eq!(trace.place(name), place);
        }
        assert_eq!(Trace::default().place("/db/t"), "/db/t");
    }
}
