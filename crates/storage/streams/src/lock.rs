//! At most one labeller for each directory, by a lock file named after the directory's identity.
//!
//! The identity is device, inode and time of birth, so that two paths to one directory have the
//! same lock. Labellers of several users cannot write to one directory of locks: each has its own
//! below [`LOCK_DIR`], and looks for the lock in all of them.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use saiga_process::lock::{FlockOperation, try_lock};

use crate::labels;
use crate::tree::{self, Identity};

/// Default directory of locks.
pub const LOCK_DIR: &str = "/run/saiga";

/// The lock of a directory, held until this value is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    labels: PathBuf,
    identity: Identity,
}

/// An error of locking a directory.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another labeller has the directory.
    #[error("{} is labelled by another `saiga streams run`{}; `saiga streams stop` ends it", dir.display(), holder(.pid))]
    Taken { dir: PathBuf, pid: Option<u32> },
    /// Another labeller has a directory above or below it.
    #[error(
        "{} and {}, which is labelled by another `saiga streams run`{}, share files; give both to one labeller, or \
         end the other one with `saiga streams stop`", dir.display(), other.display(), holder(.pid)
    )]
    Shared {
        dir: PathBuf,
        other: PathBuf,
        pid: Option<u32>,
    },
    /// Other users can write to the directory of locks.
    #[error(
        "{} belongs to another user, or others may write there, so locks in it are not safe; \
         chown and chmod it, or give another one with --lock-dir", .0.display()
    )]
    Open(PathBuf),
    /// The lock cannot be created.
    #[error("cannot lock in {}: {error}; give another place with --lock-dir", path.display())]
    Io { path: PathBuf, error: io::Error },
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

impl Lock {
    /// Takes the lock of the directory at `dir` with `identity`, in the directory of locks `place`.
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
        let path = place.join(name(identity));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            // Any process that can open the file can lock it.
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(fail(&path))?;
        let own = Permissions::from_mode(0o600);
        file.set_permissions(own).map_err(fail(&path))?;
        let is_free = try_lock(&file, FlockOperation::NonBlockingLockExclusive);
        if !is_free.map_err(fail(&path))? {
            let pid = holder_in(&file).map(|(pid, _)| pid);
            return Err(LockError::Taken {
                dir: dir.to_owned(),
                pid,
            });
        }
        // The flock counts; the text only tells others where to look. It is written before other
        // locks are read: of two labellers that start at the same time, at least one sees the
        // other.
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let mut text = format!("{}\n", std::process::id()).into_bytes();
        text.extend(dir.as_os_str().as_encoded_bytes());
        text.push(b'\n');
        let written = (file.set_len(0))
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(&text));
        written.map_err(fail(&path))?;
        for other in other_locks(place, &path).map_err(fail(place))? {
            is_apart(&dir, path.file_name(), &other)?;
        }
        Ok(Self {
            _file: file,
            labels: labels::beside(&path),
            identity,
        })
    }

    /// The file that stores the labels of the directory.
    pub(crate) fn labels(&self) -> &Path {
        &self.labels
    }

    /// Whether this is the lock of the directory with `identity`.
    pub(crate) fn is_of(&self, identity: Identity) -> bool {
        self.identity == identity
    }
}

/// Fails if the labeller of the lock at `other` has files of `dir`; `name` is the lock of `dir`.
fn is_apart(dir: &Path, name: Option<&OsStr>, other: &Path) -> Result<(), LockError> {
    let fail = |error| LockError::Io {
        path: other.to_owned(),
        error,
    };
    let file = match open(other) {
        Ok(file) => file,
        // Deleted, or another user's that cannot be read.
        Err(error) if is_hidden(&error) => return Ok(()),
        Err(error) => return Err(fail(error)),
    };
    let Some((pid, theirs)) = holder_in(&file) else {
        return Ok(());
    };
    // Directories of this process may be nested: its own checks tell them apart.
    let is_ours = pid == std::process::id();
    let is_same = name == other.file_name() || !is_ours && theirs == dir;
    if !is_same && (is_ours || !share(dir, &theirs)) {
        return Ok(());
    }
    if try_lock(&file, FlockOperation::NonBlockingLockShared).map_err(fail)? {
        return Ok(());
    }
    let (dir, pid) = (dir.to_owned(), Some(pid));
    Err(if is_same {
        LockError::Taken { dir, pid }
    } else {
        LockError::Shared {
            dir,
            other: theirs,
            pid,
        }
    })
}

fn is_hidden(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    )
}

/// Whether one of two directories contains the other.
fn share(one: &Path, other: &Path) -> bool {
    let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let (one, other) = (real(one), real(other));
    one.starts_with(&other) || other.starts_with(&one)
}

fn name(identity: Identity) -> OsString {
    let (major, minor) = identity.device();
    let (inode, (seconds, nanoseconds)) = (identity.inode(), identity.born());
    // Birth tells directories of two disks apart that had the same device number, one after the
    // other.
    format!("streams-{major}-{minor}-{inode}-{seconds}.{nanoseconds}.lock").into()
}

/// Returns the name of the lock for the directory at `dir`; `None` if it cannot be opened.
pub(crate) fn name_of(dir: &Path) -> Option<OsString> {
    let open = tree::open_dir(dir).ok()?;
    Some(name(tree::identity(open.as_fd()).ok()?))
}

/// Reads PID and directory from an open lock file; `None` while the file is still empty.
pub(crate) fn holder_in(mut file: &File) -> Option<(u32, PathBuf)> {
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    let mut lines = text.splitn(2, |byte| *byte == b'\n');
    let pid = std::str::from_utf8(lines.next()?).ok()?.parse().ok()?;
    let dir = lines.next()?.strip_suffix(b"\n")?;
    Some((pid, PathBuf::from(OsString::from_vec(dir.to_owned()))))
}

pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    File::options().read(true).custom_flags(flags).open(path)
}

/// Returns other locks: in `place` and the directories in it, and, if `place` is in [`LOCK_DIR`],
/// in all of that directory.
fn other_locks(place: &Path, own: &Path) -> io::Result<Vec<PathBuf>> {
    let above = place.parent().filter(|above| *above == Path::new(LOCK_DIR));
    let mut all = files(above.unwrap_or(place))?;
    all.retain(|path| path != own);
    Ok(all)
}

/// Returns all locks in `place` and in the directories there, sorted. A missing `place` has none.
pub(crate) fn files(place: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in names(place)? {
        if path.symlink_metadata().is_ok_and(|stat| stat.is_dir()) {
            // Directories of other users that cannot be read are left out.
            found.extend(names(&path).unwrap_or_default());
        } else {
            found.push(path);
        }
    }
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let is_file = path.symlink_metadata().is_ok_and(|stat| stat.is_file());
        is_file && name.starts_with(b"streams-") && name.ends_with(b".lock")
    });
    found.sort();
    Ok(found)
}

fn names(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
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
    fn a_directory_has_one_labeller_by_any_path() {
        let folder = tempfile::tempdir().unwrap();
        let (place, data) = (folder.path().join("locks"), folder.path().join("data"));
        std::fs::create_dir(&data).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let first = take(&place, &data).unwrap();
        let second = take(&place, &link).unwrap_err();
        let pid = std::process::id();
        assert!(
            second.contains(&format!("(pid {pid}); `saiga streams stop` ends it")),
            "{second}"
        );
        let other = take(&place, folder.path());
        assert!(other.is_ok());
        drop(first);
        assert!(take(&place, &link).is_ok());
    }

    #[test]
    fn a_lock_in_a_directory_of_another_user_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("locks");
        let first = take(&place.join("unit"), folder.path()).unwrap();
        let second = take(&place, folder.path()).unwrap_err();
        assert!(second.contains("is labelled by another"), "{second}");
        drop(first);
        assert!(take(&place, folder.path()).is_ok());
    }

    #[test]
    fn a_lock_directory_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("locks");
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).unwrap();
        let error = take(&place, folder.path()).unwrap_err();
        assert!(error.contains("others may write there"), "{error}");
    }
}
