//! Finds running labellers by their lock files, and ends them through a pidfd.
//!
//! A lock file has the PID of the process that took the lock, and remains after that process has
//! ended. The PID may then belong to another process. Therefore the process is opened first
//! (`man 2 pidfd_open`). The process counts as the holder only if one of its descriptors has the
//! lock on this file (/proc/PID/fdinfo). Signals go to the pidfd, never to the PID.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;
use saiga_process::pidfd::Process;

use crate::lock;
use crate::tree;

/// A running labeller.
#[derive(Debug)]
pub struct Holder {
    pid: u32,
    process: Process,
    locks: Vec<HeldLock>,
}

/// A lock of a labeller, and the directory that the lock protects.
#[derive(Debug)]
struct HeldLock {
    name: OsString,
    dir: PathBuf,
}

/// The reason why labellers could not be found or ended.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// The directory of the locks, or a lock, cannot be read.
    #[error("cannot look for locks in {}: {error}{}", dir.display(), advice(.error))]
    LockDir { dir: PathBuf, error: io::Error },
    /// The descriptors of a process that a lock names cannot be read.
    #[error(
        "pid {pid} may be the labeller of {}, but its descriptors cannot be read: {error}; run \
         this as root", dir.display()
    )]
    Hidden {
        pid: u32,
        dir: PathBuf,
        error: io::Error,
    },
    #[error("cannot end the labeller with pid {pid}: {error}")]
    Signal { pid: u32, error: io::Error },
    #[error(
        "the labeller with pid {pid} has not ended within {limit:?}; kill -9 ends it and allows \
         all opens that wait at its gate"
    )]
    Late { pid: u32, limit: Duration },
}

/// Returns the advice for an error: only root and the owner of a lock file can read the file.
fn advice(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        "; run this as root"
    } else {
        ""
    }
}

/// Finds the labellers whose locks are in `lock_dir` or in a directory there.
///
/// # Errors
/// Fails if a lock cannot be read, or the descriptors of a process that a lock names.
pub fn holders(lock_dir: &Path) -> Result<Vec<Holder>, HolderError> {
    let fail = |error| HolderError::LockDir {
        dir: lock_dir.to_owned(),
        error,
    };
    let mut found: Vec<Holder> = Vec::new();
    for path in lock::files(lock_dir).map_err(fail)? {
        let Some((pid, dir)) = read(&path).map_err(fail)? else {
            continue;
        };
        let Some(process) = process_with(pid, &path).map_err(|error| HolderError::Hidden {
            pid,
            dir: dir.clone(),
            error,
        })?
        else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_owned();
        let held = HeldLock { name, dir };
        match found.iter_mut().find(|holder| holder.pid == pid) {
            Some(holder) => holder.locks.push(held),
            None => found.push(Holder {
                pid,
                process,
                locks: vec![held],
            }),
        }
    }
    Ok(found)
}

/// Reads PID and directory from a lock file. `None` if the file is deleted, empty or not valid.
fn read(path: &Path) -> io::Result<Option<(u32, PathBuf)>> {
    let file = match lock::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    Ok(lock::holder_in(&file).and_then(|(pid, dir)| Some((pid_of(pid)?, dir))))
}

/// Parses the text of a PID file; `None` if it is not a valid PID.
#[must_use]
pub fn pid_in(text: &str) -> Option<u32> {
    pid_of(text.trim().parse().ok()?)
}

/// Refuses 0 and numbers that are negative as an `i32`: kill(2) takes them for process groups.
fn pid_of(number: u32) -> Option<u32> {
    (1..=i32::MAX.unsigned_abs())
        .contains(&number)
        .then_some(number)
}

/// Opens the process `pid` if it exists and holds the lock (`man 2 flock`) of the file at `path`.
///
/// # Errors
/// The file or the descriptors of the process cannot be read.
pub fn process_with(pid: u32, path: &Path) -> io::Result<Option<Process>> {
    let Some(process) = Process::open(pid)? else {
        return Ok(None);
    };
    let holds = match has_locked(pid, path) {
        // The process has ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) if tree::errno(&error) == Errno::SRCH => false,
        holds => holds?,
    };
    // /proc/PID was that of this process only if the process still runs.
    Ok((holds && !process.ends_within(Duration::ZERO)?).then_some(process))
}

fn has_locked(pid: u32, path: &Path) -> io::Result<bool> {
    let lock = std::fs::metadata(path)?;
    let place = PathBuf::from(format!("/proc/{pid}"));
    for entry in std::fs::read_dir(place.join("fd"))? {
        let entry = entry?;
        let is_lock = std::fs::metadata(entry.path())
            .is_ok_and(|stat| (stat.dev(), stat.ino()) == (lock.dev(), lock.ino()));
        if is_lock {
            let info = std::fs::read_to_string(place.join("fdinfo").join(entry.file_name()))?;
            let mut lines = info.lines();
            if lines.any(|line| line.starts_with("lock:") && line.contains(" FLOCK ")) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

impl Holder {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The directories that the process labels, as absolute paths in which links are not resolved.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.locks.iter().map(|held| held.dir.as_path())
    }

    /// Whether the process labels `dir`. The identity of the directory decides, or its path, which
    /// also works while the directory is missing.
    #[must_use]
    pub fn labels(&self, dir: &Path) -> bool {
        let name = lock::name_of(dir);
        let path = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        self.locks
            .iter()
            .any(|held| name.as_ref().is_some_and(|name| *name == held.name) || held.dir == path)
    }

    /// Sends SIGTERM, and SIGCONT in case the process is stopped, and waits for its end.
    ///
    /// # Errors
    /// The process belongs to another user, or still runs after `limit`.
    pub fn end(&self, limit: Duration) -> Result<(), HolderError> {
        end(self.pid, &self.process, limit)
    }
}

/// Ends the labeller `process` with the PID `pid` as [`Holder::end`] does, with its errors.
pub fn end(pid: u32, process: &Process, limit: Duration) -> Result<(), HolderError> {
    let fail = |error| HolderError::Signal { pid, error };
    for signal in [Signal::TERM, Signal::CONT] {
        process.signal(signal).map_err(fail)?;
    }
    match process.ends_within(limit).map_err(fail)? {
        true => Ok(()),
        false => Err(HolderError::Late { pid, limit }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::process::Command;

    use super::*;
    use crate::lock::Lock;

    fn take(place: &Path, dir: &Path) -> Lock {
        let open = tree::open_dir(dir).unwrap();
        let identity = tree::identity(open.as_fd()).unwrap();
        Lock::take(place, dir, identity).unwrap()
    }

    #[test]
    fn a_holder_is_recognised_by_the_files_that_it_has_locked() {
        let folder = tempfile::tempdir().unwrap();
        let (place, data) = (folder.path().join("locks"), folder.path().join("data"));
        std::fs::create_dir(&data).unwrap();
        let (one, two) = (take(&place, &data), take(&place, folder.path()));
        let found = holders(&place).unwrap();
        let [holder] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(holder.pid(), std::process::id());
        assert_eq!(holder.dirs().count(), 2);
        assert!(holder.labels(&data) && holder.labels(&data.join("..")));
        assert!(!holder.labels(Path::new("/")));
        drop(one);
        let found = holders(&place).unwrap();
        assert!(!found[0].labels(&data), "{found:?}");
        drop(two);
        assert!(holders(&place).unwrap().is_empty());
    }

    /// The PID in a stale lock file belongs to another process. That process has the file open, but
    /// not locked.
    #[test]
    fn another_process_with_the_pid_is_not_a_holder() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("locks");
        drop(take(&place, folder.path()));
        let path = lock::files(&place).unwrap().remove(0);
        let open = std::fs::File::open(&path).unwrap();
        let mut other = Command::new("sleep")
            .arg("600")
            .stdin(open)
            .spawn()
            .unwrap();
        let text = format!("{}\n{}\n", other.id(), folder.path().display());
        std::fs::write(&path, text).unwrap();
        let found = holders(&place);
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(found.unwrap().is_empty());
    }

    #[test]
    fn invalid_locks_have_no_holder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(holders(&folder.path().join("none")).unwrap().is_empty());
        for text in ["", "0\n/data\n", "-1\n/data\n", "x\n/data\n", "1", "1\n"] {
            std::fs::write(folder.path().join("streams-1-2-3.lock"), text).unwrap();
            assert!(holders(folder.path()).unwrap().is_empty(), "{text:?}");
        }
    }
}
