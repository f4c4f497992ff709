//! Errors of reading settings.

use std::io;
use std::path::PathBuf;

/// An error in one layer of settings; its text names the file or variable at fault.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "SAIGA_CONFIG names {path}, which does not exist; correct it or unset it",
        path = path.display()
    )]
    NamedFileMissing { path: PathBuf },
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not a settings file: {problem}", path = path.display())]
    NotASettingsFile {
        path: PathBuf,
        problem: &'static str,
    },
    /// A line of the file is not TOML, names an unknown key, or holds a bad value.
    #[error("{path} line {line}: {problem}", path = path.display())]
    Line {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        problem: String,
    },
    #[error("{name}={value}: {problem}")]
    Variable {
        name: &'static str,
        value: String,
        problem: String,
    },
}
