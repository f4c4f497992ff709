//! The version of an installed program, by asking it.

use std::fs;
use std::io;
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::process::{CommandLine, SpawnError, Waited};

/// `--version` takes milliseconds.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a program cannot take part on this machine.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is missing.
    #[error(transparent)]
    Missing(#[from] SpawnError),
    /// It does not even say its version.
    #[error("{program} --version fails ({why}); is it installed completely?")]
    Broken {
        /// The program.
        program: String,
        /// How it failed.
        why: String,
    },
    /// No folder for temporary files.
    #[error("cannot use the folder for temporary files: {0}; set TMPDIR to one that is writable")]
    Temporary(io::Error),
}

/// The version that `program --version` prints; `package` is named when there is no such program.
///
/// # Errors
/// [`ProgramError`].
pub fn of(program: &str, package: &str) -> Result<String, ProgramError> {
    let dir = tempfile::tempdir().map_err(ProgramError::Temporary)?;
    let path = dir.path().join("version");
    let mut child = CommandLine::new(program, ["--version"]).spawn_logged(package, &path)?;
    let broken = |why: String| ProgramError::Broken {
        program: program.to_owned(),
        why,
    };
    let waited = child.wait(LIMIT, &Interrupt::never());
    match waited.map_err(ProgramError::Temporary)? {
        Waited::Ended(ended) if ended.status.success() => {
            let said = fs::read_to_string(&path).map_err(ProgramError::Temporary)?;
            Ok(version_in(&said))
        }
        Waited::Ended(ended) => Err(broken(ended.status.to_string())),
        Waited::TimeOver | Waited::Interrupted => Err(broken("no answer".to_owned())),
    }
}

/// `7.0.15` in `Redis server v=7.0.15 sha=...` and in `redis-benchmark 7.0.15`.
fn version_in(text: &str) -> String {
    let words = text
        .split_whitespace()
        .map(|word| word.strip_prefix("v=").unwrap_or(word));
    let mut versions = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    versions.next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_the_programs_print() {
        let server = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64\n";
        assert_eq!(version_in(server), "7.0.15");
        assert_eq!(version_in("redis-benchmark 6.2.14 (git:abc)\n"), "6.2.14");
        assert_eq!(
            version_in("postgres (PostgreSQL) 15.18 (Debian 1)\n"),
            "15.18"
        );
        assert_eq!(version_in(""), "unknown");
    }
}
