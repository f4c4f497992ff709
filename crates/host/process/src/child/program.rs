//! Finds the program of a command line and the interpreter of a script, for clear error messages.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{CommandLine, SpawnError};

/// The kernel reads this many bytes of a script's first line (`BINPRM_BUF_SIZE`).
const LONGEST_FIRST_LINE: u64 = 256;

impl CommandLine {
    /// Checks that the program exists, for callers that start it later. A path with a slash is not
    /// checked, because a hook may create the file before the start.
    ///
    /// # Errors
    /// Returns [`SpawnError::NotInstalled`] if the program is not in `PATH`.
    pub fn find(&self, package: &str) -> Result<(), SpawnError> {
        let can_run = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        if self.program.contains('/') || self.candidates().iter().any(can_run) {
            return Ok(());
        }
        Err(SpawnError::NotInstalled {
            program: self.program.clone(),
            package: package.to_owned(),
        })
    }

    /// The paths at which a name without a slash is searched.
    fn candidates(&self) -> Vec<PathBuf> {
        let path = match self.env.get("PATH") {
            Some(path) => path.into(),
            None => std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into()),
        };
        let folders = std::env::split_paths(&path);
        folders.map(|folder| folder.join(&self.program)).collect()
    }

    /// The path of the program and the interpreter in its first line; `None` if it is not a script.
    pub(super) fn script(&self) -> Option<(PathBuf, String)> {
        let path = if self.program.contains('/') {
            let base = self.directory.as_deref().unwrap_or(Path::new(""));
            base.join(&self.program)
        } else {
            self.candidates().into_iter().find(|file| file.is_file())?
        };
        let mut start = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(LONGEST_FIRST_LINE).read_to_end(&mut start))
            .ok()?;
        let first = start
            .strip_prefix(b"#!")?
            .split(|byte| *byte == b'\n')
            .next()?;
        let first = String::from_utf8_lossy(first);
        let interpreter = first.split_whitespace().next()?.to_owned();
        Some((path, interpreter))
    }
}
