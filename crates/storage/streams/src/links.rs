//! Resolves a path link by link, and refuses links of untrusted users.
//!
//! The labeller runs as root, and the database's user can create links in the data directory.
//! Therefore a link is followed only if it belongs to root, to the labeller's own user, or to the
//! owner of the directory at the end of the path. The kernel has a similar rule for links in sticky
//! directories (`fs.protected_symlinks`). Each link is opened before its owner and target are read,
//! so that both come from the same link.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::tree;

/// The kernel's limit for links in a path (`MAXSYMLINKS`).
const LINKS: usize = 40;

/// The directory at the end of a path.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) dir: OwnedFd,
    /// Absolute path without links.
    pub(crate) path: PathBuf,
}

/// The reason why a path was not followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Errno(#[from] Errno),
    #[error(
        "the link {} belongs to user {owner}, and {}, to which it leads, to user {end_owner}; \
         `chown -h root` the link if it is intended", link.display(), end.display()
    )]
    Distrusted {
        link: PathBuf,
        owner: u32,
        end: PathBuf,
        end_owner: u32,
    },
}

/// A link in the path.
struct Link {
    path: PathBuf,
    owner: u32,
}

/// Opens the directory to which the absolute `path` leads.
pub(crate) fn follow(path: &Path) -> Result<End, LinkError> {
    let place = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = || rustix::fs::open("/", place, Mode::empty());
    let mut links = Vec::new();
    let mut at = root()?;
    let mut rest = backwards(path);
    while let Some(name) = rest.pop() {
        let next = rustix::fs::openat(&at, &name, place, Mode::empty())?;
        let stat = rustix::fs::fstat(&next)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            at = next;
            continue;
        }
        if links.len() == LINKS {
            return Err(Errno::LOOP.into());
        }
        links.push(Link {
            path: tree::known_path(next.as_fd())?,
            owner: stat.st_uid,
        });
        let text = rustix::fs::readlinkat(&next, c"", Vec::new())?;
        let text = PathBuf::from(OsString::from_vec(text.into_bytes()));
        if text.is_absolute() {
            at = root()?;
        }
        rest.extend(backwards(&text));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(&at, c".", flags, Mode::empty())?;
    let path = tree::known_path(dir.as_fd())?;
    let end_owner = rustix::fs::fstat(&dir)?.st_uid;
    let trusted = [0, rustix::process::geteuid().as_raw(), end_owner];
    match links
        .into_iter()
        .find(|link| !trusted.contains(&link.owner))
    {
        None => Ok(End { dir, path }),
        Some(Link { path: link, owner }) => Err(LinkError::Distrusted {
            link,
            owner,
            end: path,
            end_owner,
        }),
    }
}

/// Returns the names in a path in reverse order; `..` is a name, `.` is left out.
fn backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_are_resolved_as_by_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b/c")).unwrap();
        std::fs::write(top.join("file"), "").unwrap();
        for (link, text) in [
            ("relative", "a/b"),
            ("a/up", "../a/./b//c/"),
            ("twice", "relative/../up"),
            ("circle", "circle"),
            ("nowhere", "gone"),
            ("to_file", "file"),
        ] {
            symlink(text, top.join(link)).unwrap();
        }
        symlink(top.join("a"), top.join("absolute")).unwrap();
        for name in [
            "a",
            "relative",
            "a/up",
            "twice",
            "circle",
            "nowhere",
            "to_file",
            "absolute/b",
            "absolute/up/..",
            "file/x",
        ] {
            let path = top.join(name);
            let kernel = path.canonicalize().ok().filter(|end| end.is_dir());
            assert_eq!(follow(&path).ok().map(|end| end.path), kernel, "{name}");
        }
        assert_eq!(follow(Path::new("/")).unwrap().path, Path::new("/"));
    }
}
