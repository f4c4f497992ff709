//! One labeller for one directory: a lock file that is named after what the directory is, not after its path.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::tree::Identity;

/// Where locks are, when nobody says otherwise.
pub const LOCK_DIR: &str = "/run/saiga";

/// A directory that is ours to label, until this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why a directory is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another labeller is at work there.
    #[error("{} is labelled by another `saiga streams run`{}; stop it first", dir.display(), holder(.pid))]
    Taken {
        /// The directory.
        dir: PathBuf,
        /// Its process, if the lock says so.
        pid: Option<u32>,
    },
    /// The place for locks could be changed by others.
    #[error(
        "{} belongs to another user, or others may write there, so locks in it are worth nothing; chown and chmod it, or \
         give another one with --lock-dir", .0.display()
    )]
    Open(PathBuf),
    /// It cannot be made.
    #[error("cannot lock in {}: {error}; give another place with --lock-dir", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

impl Lock {
    /// Takes the lock of the directory at `dir`, which is `identity`, in `place`.
    pub(crate) fn take(place: &Path, dir: &Path, identity: Identity) -> Result<Self, LockError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |error| LockError::Io { path, error }
        };
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o755).create(place);
        made.map_err(fail(place))?;
        let stat = std::fs::symlink_metadata(place).map_err(fail(place))?;
        let ours = rustix::process::geteuid().as_raw();
        if !stat.is_dir() || stat.uid() != ours || stat.mode() & 0o022 != 0 {
            return Err(LockError::Open(place.to_owned()));
        }
        let (major, minor) = identity.device();
        let name = format!("streams-{major}-{minor}-{}.lock", identity.inode());
        let path = place.join(name);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(fail(&path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                return Err(LockError::Taken {
                    dir: dir.to_owned(),
                    pid: text.lines().next().and_then(|line| line.parse().ok()),
                });
            }
            Err(error) => return Err(fail(&path)(error.into())),
        }
        // What is in it is for people; the lock is what counts.
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}\n{}", std::process::id(), dir.display()));
        written.map_err(fail(&path))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::tree::{identity, open_dir};

    fn take(place: &Path, dir: &Path) -> Result<Lock, String> {
        let open = open_dir(dir).unwrap();
        let identity = identity(open.as_fd()).unwrap();
        Lock::take(place, dir, identity).map_err(|error| error.to_string())
    }

    #[test]
    fn a_directory_has_one_labeller_by_whatever_path() {
        let folder = tempfile::tempdir().unwrap();
        let (place, data) = (folder.path().join("locks"), folder.path().join("data"));
        std::fs::create_dir(&data).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let first = take(&place, &data).unwrap();
        let second = take(&place, &link).unwrap_err();
        let pid = std::process::id();
        assert!(
            second.contains(&format!("(pid {pid}); stop it first")),
            "{second}"
        );
        let other = take(&place, folder.path());
        assert!(other.is_ok());
        drop(first);
        assert!(take(&place, &link).is_ok());
    }

    #[test]
    fn a_place_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("locks");
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).unwrap();
        let error = take(&place, folder.path()).unwrap_err();
        assert!(error.contains("others may write there"), "{error}");
    }
}
