//! Why settings could not be read.

use std::io;
use std::path::PathBuf;

/// Why settings could not be read; the text names the file or variable at fault.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file that `SAIGA_CONFIG` names is not there.
    #[error("SAIGA_CONFIG names {path}, which does not exist; correct it or unset it", path = path.display())]
    NamedFileMissing {
        /// The file.
        path: PathBuf,
    },
    /// The file exists and cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The path leads to something that is not a settings file.
    #[error("{path} is not a settings file: {what}", path = path.display())]
    NotASettingsFile {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// A line of the file is not TOML, names an unknown key, or holds a bad value.
    #[error("{path} line {line}: {problem}", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A variable holds a bad value.
    #[error("{name}={value}: {problem}")]
    Variable {
        /// The variable's name.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}
