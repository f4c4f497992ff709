//! Who holds locks: labellers at work, found by what the kernel says of their descriptors and ended by a pidfd.
//!
//! A lock file names the process that took it, and stays when that process is gone; its number may be a stranger's by
//! then. So the process is taken hold of first (`man 2 pidfd_open`), and is believed when one of its descriptors has
//! this very file locked (/proc/PID/fdinfo). What is signalled is the process that was looked at, never a number.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::lock;
use crate::tree;

/// A labeller at work.
#[derive(Debug)]
pub struct Holder {
    pid: Pid,
    process: OwnedFd,
    locks: Vec<Held>,
}

/// A lock that it holds.
#[derive(Debug)]
struct Held {
    name: OsString,
    dir: PathBuf,
}

/// Why a labeller was not found or not ended.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// The locks cannot be read.
    #[error("cannot look for locks in {}: {error}{}", place.display(), advice(.error))]
    Place {
        /// Where they are.
        place: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The process cannot be looked at.
    #[error("pid {pid} may be the labeller of {}, but cannot be looked at: {error}; run this as root", dir.display())]
    Hidden {
        /// Its number.
        pid: u32,
        /// Its directory.
        dir: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It cannot be signalled.
    #[error("cannot end the labeller with pid {pid}: {error}")]
    Signal {
        /// Its number.
        pid: u32,
        /// Why.
        error: Errno,
    },
    /// It goes on.
    #[error(
        "the labeller with pid {pid} has not ended within {limit:?}; kill -9 ends it and lets everybody through its gate"
    )]
    Late {
        /// Its number.
        pid: u32,
        /// How long it had.
        limit: Duration,
    },
}

/// Locks are their owner's to read.
fn advice(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        "; run this as root"
    } else {
        ""
    }
}

/// The labellers whose locks are in `place`, or in a directory there.
///
/// # Errors
/// When locks, or a process that one of them names, cannot be looked at.
pub fn holders(place: &Path) -> Result<Vec<Holder>, HolderError> {
    let fail = |error| HolderError::Place {
        place: place.to_owned(),
        error,
    };
    let mut found: Vec<Holder> = Vec::new();
    for path in lock::files(place).map_err(fail)? {
        let Some((pid, dir)) = read(&path).map_err(fail)? else {
            continue;
        };
        let Some(process) = process_with(pid, &path).map_err(|error| HolderError::Hidden {
            pid: pid.as_raw_nonzero().get().unsigned_abs(),
            dir: dir.clone(),
            error,
        })?
        else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_owned();
        let held = Held { name, dir };
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

/// The process and the directory that a lock file names; `None` when it has been made just now, or is gone again.
fn read(path: &Path) -> io::Result<Option<(Pid, PathBuf)>> {
    let file = match lock::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    Ok(lock::holder_in(&file).and_then(|(pid, dir)| Some((pid_of(pid)?, dir))))
}

/// The number of a process, as a file has it.
#[must_use]
pub fn pid_in(text: &str) -> Option<Pid> {
    pid_of(text.trim().parse().ok()?)
}

/// Negative numbers are groups of processes to some calls, and faults to others.
fn pid_of(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// The process with this number, if it is there and holds the lock (`man 2 flock`) of the file at `path`.
///
/// # Errors
/// When the file or the process cannot be looked at.
pub fn process_with(pid: Pid, path: &Path) -> io::Result<Option<OwnedFd>> {
    let process = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let holds = match has_locked(pid, path) {
        // It ended meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) if tree::errno(&error) == Errno::SRCH => false,
        holds => holds?,
    };
    // What was looked at by number was this process only if it is still there.
    Ok((holds && !has_ended(&process, Duration::ZERO)?).then_some(process))
}

fn has_locked(pid: Pid, path: &Path) -> io::Result<bool> {
    let lock = std::fs::metadata(path)?;
    let place = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
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

fn has_ended(process: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).ok();
    let mut wait = [PollFd::new(process, PollFlags::IN)];
    Ok(rustix::event::poll(&mut wait, limit.as_ref())? > 0)
}

impl Holder {
    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The directories that it labels, as they were given to it.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.locks.iter().map(|held| held.dir.as_path())
    }

    /// Whether it labels `dir`, by what that directory is, or by its path when it is not there at the moment.
    #[must_use]
    pub fn labels(&self, dir: &Path) -> bool {
        let name = lock::name_of(dir);
        let path = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        self.locks
            .iter()
            .any(|held| name.as_ref().is_some_and(|name| *name == held.name) || held.dir == path)
    }

    /// Ends it and waits until it is gone; one that is stopped is made to go on for that.
    ///
    /// # Errors
    /// When it is another user's, or is not gone after `limit`.
    pub fn end(&self, limit: Duration) -> Result<(), HolderError> {
        end(self.pid, &self.process, limit)
    }
}

/// Ends the labeller `process`, whose number is `pid`, as [`Holder::end`] does.
///
/// # Errors
/// As there.
pub fn end(pid: Pid, process: &OwnedFd, limit: Duration) -> Result<(), HolderError> {
    let pid = pid.as_raw_nonzero().get().unsigned_abs();
    for signal in [Signal::TERM, Signal::CONT] {
        match rustix::process::pidfd_send_signal(process, signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(HolderError::Signal { pid, error }),
        }
    }
    match has_ended(process, limit) {
        Ok(true) => Ok(()),
        Ok(false) => Err(HolderError::Late { pid, limit }),
        Err(error) => Err(HolderError::Signal {
            pid,
            error: tree::errno(&error),
        }),
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
    fn a_holder_is_known_by_what_it_has_locked() {
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

    /// The number in a lock that was left behind is somebody else's by now, who even has the file open.
    #[test]
    fn a_stranger_with_the_number_is_no_holder() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("locks");
        drop(take(&place, folder.path()));
        let path = lock::files(&place).unwrap().remove(0);
        let open = std::fs::File::open(&path).unwrap();
        let mut stranger = Command::new("sleep")
            .arg("600")
            .stdin(open)
            .spawn()
            .unwrap();
        let text = format!("{}\n{}\n", stranger.id(), folder.path().display());
        std::fs::write(&path, text).unwrap();
        let found = holders(&place);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert!(found.unwrap().is_empty());
    }

    #[test]
    fn nonsense_in_a_lock_is_nobody() {
        let folder = tempfile::tempdir().unwrap();
        assert!(holders(&folder.path().join("none")).unwrap().is_empty());
        for text in ["", "0\n/data\n", "-1\n/data\n", "x\n/data\n", "1", "1\n"] {
            std::fs::write(folder.path().join("streams-1-2-3.lock"), text).unwrap();
            assert!(holders(folder.path()).unwrap().is_empty(), "{text:?}");
        }
    }
}
