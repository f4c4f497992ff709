//! Writes a series file row by row and keeps no row in memory.
//!
//! Deliberately absent: fsync, which would add load to the disk that is being measured.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::number;

use super::{MARK, Mark, TIME};

/// An open series file.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    columns: usize,
    line: String,
    bytes: u64,
}

impl Writer {
    /// Creates a file with the mode 0600, because host metrics may be confidential.
    pub(crate) fn create_private(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(path)
    }

    /// Creates a series file with the mode 0600. Fails if the file exists.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::to(Self::create_private(path)?))
    }

    /// A writer to an open file.
    pub(crate) fn to(file: File) -> Self {
        Self {
            file,
            columns: 0,
            line: String::new(),
            bytes: 0,
        }
    }

    /// Appends a row, preceded by a header line if there are new columns.
    pub(crate) fn row(
        &mut self,
        time_s: f64,
        names: &[String],
        cells: &[Option<f64>],
    ) -> io::Result<()> {
        self.line.clear();
        if self.columns != names.len() || self.columns == 0 {
            self.columns = names.len();
            self.line.push_str(TIME);
            for name in names {
                self.line.push(',');
                self.line.push_str(name);
            }
            self.line.push('\n');
        }
        // Writing into a string cannot fail.
        let _ = write!(self.line, "{time_s:.3}");
        for cell in cells {
            self.line.push(',');
            if let Some(value) = cell {
                number::push(&mut self.line, *value);
            }
        }
        self.line.push('\n');
        self.write()
    }

    /// Size of the file so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the line of a mark; line breaks in its name become spaces.
    pub(crate) fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        let name = mark.name.replace(['\n', '\r'], " ");
        self.line = format!("{MARK}{:.3} {name}\n", mark.time_s);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(self.line.as_bytes())?;
        self.bytes += self.line.len() as u64;
        Ok(())
    }
}
