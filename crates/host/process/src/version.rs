//! Runs `PROGRAM --version` and extracts the version from its output.

use std::fs;
use std::io;
use std::time::Duration;

use crate::child::{CommandLine, SpawnError, Waited};
use crate::interrupt::Interrupt;

/// Timeout; `--version` usually takes milliseconds.
const LIMIT: Duration = Duration::from_secs(10);

/// A program cannot be used on this machine.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error(transparent)]
    Missing(#[from] SpawnError),
    #[error("{program} --version fails ({reason}); is it installed completely?")]
    Broken { program: String, reason: String },
    #[error("cannot create a temporary directory: {0}; set TMPDIR to one that is writable")]
    Temporary(io::Error),
}

/// The version that `program --version` prints, or `unknown`; errors name `package`, the Debian
/// package to install.
pub fn of(program: &str, package: &str) -> Result<String, ProgramError> {
    let dir = tempfile::tempdir().map_err(ProgramError::Temporary)?;
    let path = dir.path().join("version");
    let mut child = CommandLine::new(program, ["--version"]).spawn_logged(package, &path)?;
    let broken = |reason: String| ProgramError::Broken {
        program: program.to_owned(),
        reason,
    };
    let waited = child.wait(LIMIT, &Interrupt::never());
    match waited.map_err(ProgramError::Temporary)? {
        Waited::Ended(ended) if ended.status.success() => {
            let output = fs::read_to_string(&path).map_err(ProgramError::Temporary)?;
            Ok(version_in(&output))
        }
        Waited::Ended(ended) => Err(broken(ended.status.to_string())),
        Waited::TimeOver | Waited::Interrupted => Err(broken("no answer".to_owned())),
    }
}

/// The first word that begins with a digit, such as `7.0.15` in `redis-benchmark 7.0.15`; a prefix
/// `v=`, as redis-server prints, is removed.
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
    fn versions_are_found_in_the_output_of_programs() {
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
