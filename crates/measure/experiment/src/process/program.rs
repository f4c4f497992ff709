//! Where the program of a command line is, and what runs it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{CommandLine, SpawnError};

/// As much of a script's first line as the kernel reads.
const LONGEST_FIRST_LINE: u64 = 256;

impl CommandLine {
    /// Whether there is such a program, for who starts it only later. A path is not looked at: by
    /// then somebody may have made it.
    ///
    /// # Errors
    /// [`SpawnError::NotInstalled`].
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

    /// Where a name without a slash is looked for.
    fn candidates(&self) -> Vec<PathBuf> {
        let path = match self.env.get("PATH") {
            Some(path) => path.into(),
            None => std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into()),
        };
        let folders = std::env::split_paths(&path);
        folders.map(|folder| folder.join(&self.program)).collect()
    }

    /// The program's file and the interpreter in its first line, if it is a script.
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
