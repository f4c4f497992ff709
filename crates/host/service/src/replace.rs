//! Replaces a file so that a reader finds all of the old or all of the new content, and acts with
//! the rights of the owner of the file's folder: where another user may write, a symbolic link of
//! that user must not lead root to another file.
#![expect(unsafe_code, reason = "setfsuid and setfsgid")]

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use saiga_process::replace::NewFile;

/// A file that cannot be read, written or removed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {}: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("cannot write {}: {error} (are you root?)", file.display())]
    Write { file: PathBuf, error: io::Error },
    #[error("cannot remove {}: {error} (are you root?)", file.display())]
    Remove { file: PathBuf, error: io::Error },
}

impl FileError {
    pub(crate) fn read(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        |error| Self::Read { file, error }
    }

    pub(crate) fn write(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        |error| Self::Write { file, error }
    }

    pub(crate) fn remove(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        |error| Self::Remove { file, error }
    }
}

/// The rights with which this thread accesses files: those of a user and a group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rights {
    Caller,
    /// Root can take on another account; a different caller keeps its own rights.
    Of {
        user: u32,
        group: u32,
    },
}

impl Rights {
    /// The rights of the owner of `path`. A symbolic link is not followed.
    pub(crate) fn of_owner(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self::Of {
            user: metadata.uid(),
            group: metadata.gid(),
        })
    }

    /// Calls `act` with these rights (`man 2 setfsuid`).
    pub(crate) fn with<T>(self, act: impl FnOnce() -> T) -> T {
        let Self::Of { user, group } = self else {
            return act();
        };
        // SAFETY: takes a number and changes this thread's rights on files only.
        let group_before = unsafe { libc::setfsgid(group) };
        // SAFETY: as above.
        let user_before = unsafe { libc::setfsuid(user) };
        let result = act();
        // SAFETY: as above. The user comes first, because only root may change its group back.
        unsafe { libc::setfsuid(user_before.cast_unsigned()) };
        // SAFETY: as above.
        unsafe { libc::setfsgid(group_before.cast_unsigned()) };
        result
    }
}

/// Replaces the file `path` by one with `bytes` and with the owner and permissions of `old`. If
/// this fails, `path` is unchanged.
pub(crate) fn replace(path: &Path, bytes: &[u8], old: &Metadata, rights: Rights) -> io::Result<()> {
    put(path, bytes, old.mode() & 0o777, Some(old), rights)
}

/// Writes the file `path` of root's, readable for every user, and creates its folder.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)
        .and_then(|()| put(path, text.as_bytes(), 0o644, None, Rights::Caller))
        .map_err(FileError::write(path))
}

/// Writes a file beside `path`, then renames it to `path`. Without `owner`, it belongs to the
/// caller.
fn put(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    owner: Option<&Metadata>,
    rights: Rights,
) -> io::Result<()> {
    let new = rights.with(|| NewFile::beside(path, 0o600))?;
    let filled = fill(new.file(), bytes, mode, owner);
    // Also the removal of a file that was not renamed is done with these rights.
    rights.with(move || match filled {
        Ok(()) => new.replace(),
        Err(error) => {
            drop(new);
            Err(error)
        }
    })
}

fn fill(mut file: &File, bytes: &[u8], mode: u32, owner: Option<&Metadata>) -> io::Result<()> {
    file.write_all(bytes)?;
    let created = file.metadata()?;
    if let Some(owner) = owner
        && (owner.uid(), owner.gid()) != (created.uid(), created.gid())
    {
        fchown(file, Some(owner.uid()), Some(owner.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/file");
        write(&path, "old").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&path), 0o644);
        fs::set_permissions(&path, Permissions::from_mode(0o4640)).unwrap();
        let old = fs::metadata(&path).unwrap();
        let rights = Rights::of_owner(folder.path()).unwrap();
        replace(&path, b"new", &old, rights).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(mode(&path), 0o640, "without setuid");
    }

    #[test]
    fn a_failure_leaves_no_file_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::create_dir(&path).unwrap();
        let error = write(&path, "text").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot write {}", path.display())),
            "{error}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
