//! Replaces a file so that a reader finds all of the old or all of the new, with the rights of
//! whoever owns its folder: where others may write, their symbolic links must not lead root.
#![expect(unsafe_code, reason = "file system user and group of this thread")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// With whose rights files are touched.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rights {
    /// Those that this process has.
    Caller,
    /// A user's and a group's, as far as this process may take them on.
    Of {
        /// User number.
        user: u32,
        /// Group number.
        group: u32,
    },
}

impl Rights {
    /// Those of the owner of `path`; of a symbolic link, the link's.
    ///
    /// # Errors
    /// When `path` cannot be looked at.
    pub(super) fn of_owner(path: &Path) -> io::Result<Self> {
        let facts = fs::symlink_metadata(path)?;
        Ok(Self::Of {
            user: facts.uid(),
            group: facts.gid(),
        })
    }

    /// Calls `act` with these rights (`man 2 setfsuid`).
    pub(super) fn with<T>(self, act: impl FnOnce() -> T) -> T {
        let Self::Of { user, group } = self else {
            return act();
        };
        // SAFETY: takes a number and changes this thread's rights over files only.
        let group_before = unsafe { libc::setfsgid(group) };
        // SAFETY: as above.
        let user_before = unsafe { libc::setfsuid(user) };
        let answer = act();
        // SAFETY: as above; the user comes first, for only root may take its group back.
        unsafe { libc::setfsuid(user_before.cast_unsigned()) };
        // SAFETY: as above.
        unsafe { libc::setfsgid(group_before.cast_unsigned()) };
        answer
    }
}

/// What a new file is like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Like {
    /// Permission bits.
    pub(super) mode: u32,
    /// User and group; `None`: whoever makes it.
    pub(super) owner: Option<(u32, u32)>,
}

impl Like {
    /// As the file that `facts` describe, without bits that give rights.
    pub(super) fn file(facts: &fs::Metadata) -> Self {
        Self {
            mode: facts.mode() & 0o777,
            owner: Some((facts.uid(), facts.gid())),
        }
    }
}

/// Puts a file with `bytes` in the place of `path`.
///
/// # Errors
/// What the system says; `path` is then as it was.
pub(super) fn replace(path: &Path, bytes: &[u8], like: Like, rights: Rights) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = rights.with(|| options.open(&fresh))?;
    let replaced = fill(&file, bytes, like).and_then(|()| rights.with(|| fs::rename(&fresh, path)));
    if replaced.is_err() {
        // What matters is the error that stopped us.
        let _ = rights.with(|| fs::remove_file(&fresh));
    }
    replaced
}

fn fill(mut file: &File, bytes: &[u8], like: Like) -> io::Result<()> {
    file.write_all(bytes)?;
    let made = file.metadata()?;
    if let Some((user, group)) = like.owner
        && (user, group) != (made.uid(), made.gid())
    {
        fchown(file, Some(user), Some(group))?;
    }
    file.set_permissions(PermissionsExt::from_mode(like.mode))?;
    file.sync_all()
}
