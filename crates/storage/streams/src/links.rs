//! Where a path leads, link by link, and whether those who made the links may send us there.
//!
//! The labeller is root, and links in a database are its user's to make. So it goes as the kernel does in sticky folders
//! (`fs.protected_symlinks`): a link is followed when it is root's or our own, or when its owner owns the directory at the
//! end. A link is opened before it is asked whose it is and where it leads: nobody exchanges it in between.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::tree;

/// The kernel follows as many (`MAXSYMLINKS`).
const LINKS: usize = 40;

/// A directory at the end of a path.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) dir: OwnedFd,
    /// Its path without links.
    pub(crate) path: PathBuf,
}

/// Why there is no directory at the end of a path, or none for us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Errno(#[from] Errno),
    #[error(
        "the link {} belongs to user {owner}, and {}, to which it leads, to user {its}; `chown -h root` the link if it is \
         meant", link.display(), end.display()
    )]
    Distrusted {
        link: PathBuf,
        owner: u32,
        end: PathBuf,
        its: u32,
    },
}

/// A link on the way.
struct Link {
    path: PathBuf,
    owner: u32,
}

/// Goes where the absolute `path` leads.
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
    let its = rustix::fs::fstat(&dir)?.st_uid;
    let trusted = [0, rustix::process::geteuid().as_raw(), its];
    match links
        .into_iter()
        .find(|link| !trusted.contains(&link.owner))
    {
        None => Ok(End { dir, path }),
        Some(Link { path: link, owner }) => Err(LinkError::Distrusted {
            link,
            owner,
            end: path,
            its,
        }),
    }
}

/// The names in a path, the last one first.
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
    fn it_leads_where_the_kernel_goes() {
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
