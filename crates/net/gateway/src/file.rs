//! Text files with settings, and the problems in them.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of the largest file.
const MOST_BYTES: u64 = 64 << 10;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line, counted from 1; 0 if the mistake has no line, such as a missing table.
    pub line: usize,
    /// Key and value, what is wrong, and what to write instead.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.text),
            line => write!(f, "line {line}: {}", self.text),
        }
    }
}

/// Why a file gives no settings.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file does not exist, or this process may not read it.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The file cannot contain settings.
    #[error("{} is not a settings file: {problem}", path.display())]
    NotSettings {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: &'static str,
    },
    /// The file contains mistakes.
    #[error("{} is not valid:{}", path.display(), listed(problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// All mistakes, in the order of the lines.
        problems: Vec<Problem>,
    },
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|one| format!("\n  {one}")).collect()
}

/// Reads a text file and parses its contents.
///
/// # Errors
/// Returns [`FileError::Invalid`] for the problems that `parse` returns, and the other variants for
/// a file that cannot be read, is not a regular file, is larger than 64 KiB, or is not UTF-8.
pub(crate) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<Problem>>,
) -> Result<T, FileError> {
    let unreadable = |source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let not_settings = |problem| FileError::NotSettings {
        path: path.to_owned(),
        problem,
    };
    // Checked before open(2), which would wait for the writer of a FIFO.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(not_settings("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    let limited = &mut file.take(MOST_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(not_settings("it is larger than 64 KiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| not_settings("it is not UTF-8 text"))?;
    parse(&text).map_err(|problems| FileError::Invalid {
        path: path.to_owned(),
        problems,
    })
}
