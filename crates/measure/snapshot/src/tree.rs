//! A directory whose operations cannot reach files outside of it.
//!
//! Paths are relative to the directory. The folder that contains a name is opened by openat2 with
//! RESOLVE_BENEATH, NO_SYMLINKS and NO_XDEV (Linux 5.6). Therefore neither `..`, nor a symbolic
//! link, nor a file system mounted inside can redirect an operation, even if another process
//! changes the tree at the same time.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT, Uid,
};
use rustix::io::Errno;

use crate::disk::{Disk, Fault, Op};
use crate::handle::Handle;
use crate::stat::{Stat, Time};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);
const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// An open directory whose operations pass the gate of its [`Disk`].
#[derive(Debug)]
pub(crate) struct Tree<'d> {
    disk: &'d Disk,
    root: OwnedFd,
    path: PathBuf,
}

/// Access mode of [`Tree::file`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Reading and writing; a missing file is created.
    Write,
}

impl<'d> Tree<'d> {
    /// Opens the directory `path`, whose last component is not a link.
    pub(crate) fn open(disk: &'d Disk, path: &Path) -> Result<Self, Fault> {
        let open = || rustix::fs::open(path, FOLDER, Mode::empty());
        let root = disk.pass(Op::Inspect, open);
        let root = root.map_err(Fault::at("open", path))?;
        let path = path.to_owned();
        Ok(Self { disk, root, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The full path of `inner`.
    pub(crate) fn full_path(&self, inner: &Path) -> PathBuf {
        if inner.as_os_str().is_empty() {
            self.path.clone()
        } else {
            self.path.join(inner)
        }
    }

    /// Calls `work` with the open folder that contains `inner`, and with its name there.
    fn at<T, E: Into<io::Error>>(
        &self,
        op: Op,
        doing: &'static str,
        inner: &Path,
        work: impl FnOnce(&OwnedFd, &OsStr) -> Result<T, E>,
    ) -> Result<T, Fault> {
        let attempt = || {
            let parent = self.folder(inner.parent().unwrap_or(Path::new("")))?;
            let name = last_name(inner)?;
            work(parent.as_ref().unwrap_or(&self.root), name).map_err(Into::into)
        };
        let done = self.disk.pass(op, attempt);
        done.map_err(Fault::at(doing, &self.full_path(inner)))
    }

    /// Opens the folder `inner`; `None` stands for the root.
    fn folder(&self, inner: &Path) -> io::Result<Option<OwnedFd>> {
        if inner.as_os_str().is_empty() {
            return Ok(None);
        }
        let folder = rustix::fs::openat2(&self.root, inner, FOLDER, Mode::empty(), INSIDE)?;
        Ok(Some(folder))
    }

    /// Metadata of `inner`; `None` if it does not exist.
    pub(crate) fn stat(&self, inner: &Path) -> Result<Option<Stat>, Fault> {
        if inner.as_os_str().is_empty() {
            let stat = self.disk.pass(Op::Inspect, || Stat::of_open(&self.root));
            return stat.map(Some).map_err(Fault::at("stat", &self.path));
        }
        self.at(Op::Inspect, "stat", inner, |dir, name| {
            match Stat::of(dir, Path::new(name)) {
                Ok(stat) => Ok(Some(stat)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    /// The names in the folder `inner`, unsorted.
    pub(crate) fn list(&self, inner: &Path) -> Result<Vec<OsString>, Fault> {
        let read = || -> io::Result<Vec<OsString>> {
            let folder = self.folder(inner)?;
            let folder = folder.as_ref().unwrap_or(&self.root);
            let mut names = Vec::new();
            for entry in Dir::read_from(folder)? {
                let name = entry?.file_name().to_bytes().to_vec();
                if name != b"." && name != b".." {
                    names.push(OsString::from_vec(name));
                }
            }
            Ok(names)
        };
        let names = self.disk.pass(Op::Inspect, read);
        names.map_err(Fault::at("list", &self.full_path(inner)))
    }

    /// Opens the regular file `inner`; fails for any other file type.
    pub(crate) fn file(&self, inner: &Path, access: Access) -> Result<Handle<'d>, Fault> {
        let (op, doing, flags) = match access {
            Access::Read => (Op::Inspect, "open", FILE | OFlags::RDONLY),
            Access::Write => (Op::Make, "write", FILE | OFlags::RDWR | OFlags::CREATE),
        };
        let own = Mode::RUSR | Mode::WUSR;
        let file = self.at(op, doing, inner, |dir, name| -> io::Result<File> {
            let file = rustix::fs::openat(dir, name, flags, own)?;
            // A FIFO or a device may have replaced the file.
            let file_type = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
            if file_type == FileType::RegularFile {
                Ok(File::from(file))
            } else {
                Err(Errno::INVAL.into())
            }
        })?;
        Ok(Handle::new(self.disk, file, self.full_path(inner)))
    }

    /// Opens the folder `inner` for reading or changing its metadata.
    pub(crate) fn folder_handle(&self, inner: &Path) -> Result<Handle<'d>, Fault> {
        let open = || -> io::Result<File> {
            let folder = match self.folder(inner)? {
                Some(folder) => folder,
                None => self.root.try_clone()?,
            };
            Ok(File::from(folder))
        };
        let file = self.disk.pass(Op::Inspect, open);
        let file = file.map_err(Fault::at("open", &self.full_path(inner)))?;
        Ok(Handle::new(self.disk, file, self.full_path(inner)))
    }

    /// The target of the symbolic link `inner`, not resolved.
    pub(crate) fn read_link(&self, inner: &Path) -> Result<PathBuf, Fault> {
        let read = |dir: &OwnedFd, name: &OsStr| rustix::fs::readlinkat(dir, name, Vec::new());
        let target = self.at(Op::Inspect, "read the link", inner, read)?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Makes the folder `inner` with the mode 0700.
    pub(crate) fn make_folder(&self, inner: &Path) -> Result<(), Fault> {
        self.at(Op::Make, "make the folder", inner, |dir, name| {
            rustix::fs::mkdirat(dir, name, Mode::RWXU)
        })
    }

    /// Makes the symbolic link `inner`.
    pub(crate) fn make_link(&self, inner: &Path, target: &Path) -> Result<(), Fault> {
        self.at(Op::Make, "make the link", inner, |dir, name| {
            rustix::fs::symlinkat(target, dir, name)
        })
    }

    /// Makes the hard link `inner` to the file `other_inner` of `other`.
    pub(crate) fn make_hard_link(
        &self,
        inner: &Path,
        other: &Tree<'_>,
        other_inner: &Path,
    ) -> Result<(), Fault> {
        self.at(
            Op::Make,
            "link",
            inner,
            |dir, name| -> Result<(), io::Error> {
                let parent = other_inner.parent().unwrap_or(Path::new(""));
                let from = other.folder(parent)?;
                let from = from.as_ref().unwrap_or(&other.root);
                let old = last_name(other_inner)?;
                Ok(rustix::fs::linkat(from, old, dir, name, AtFlags::empty())?)
            },
        )
    }

    /// Atomically renames `from` to `to`, in the same folder; replaces an existing file.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), Fault> {
        self.at(
            Op::Make,
            "rename",
            to,
            |dir, name| -> Result<(), io::Error> {
                Ok(rustix::fs::renameat(dir, last_name(from)?, dir, name)?)
            },
        )
    }

    /// Removes a name; fails for a folder.
    pub(crate) fn remove(&self, inner: &Path) -> Result<(), Fault> {
        self.at(Op::Remove, "remove", inner, |dir, name| {
            rustix::fs::unlinkat(dir, name, AtFlags::empty())
        })
    }

    /// Removes a folder, which must be empty.
    pub(crate) fn remove_folder(&self, inner: &Path) -> Result<(), Fault> {
        self.at(Op::Remove, "remove the folder", inner, |dir, name| {
            rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
        })
    }

    /// Sets owner and modification time of the symbolic link `inner`.
    pub(crate) fn set_link_metadata(
        &self,
        inner: &Path,
        owner: Option<(u32, u32)>,
        mtime: Time,
    ) -> Result<(), Fault> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        self.at(
            Op::SetMetadata,
            "set the owner and time of",
            inner,
            |dir, name| {
                if let Some((uid, gid)) = owner {
                    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
                    rustix::fs::chownat(dir, name, Some(uid), Some(gid), flags)?;
                }
                rustix::fs::utimensat(dir, name, &timestamps(mtime), flags)
            },
        )
    }

    /// Waits until the whole file system is on its disk (`man 2 syncfs`). Also fails if data were
    /// lost since this tree was opened (Linux 5.8).
    pub(crate) fn flush(&self) -> Result<(), Fault> {
        let flush = || rustix::fs::syncfs(&self.root);
        let flushed = self.disk.pass(Op::Flush, flush);
        flushed.map_err(Fault::at("flush the file system of", &self.path))
    }

    /// Free bytes of the file system that this user may use.
    pub(crate) fn free_bytes(&self) -> Result<u64, Fault> {
        let ask = || rustix::fs::fstatvfs(&self.root);
        let space = self.disk.pass(Op::Inspect, ask);
        let space = space.map_err(Fault::at("query the free space of", &self.path))?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    /// An unnamed file (O_TMPFILE) for tests of the file system; `None` if it has no such files.
    pub(crate) fn unnamed_file(&self) -> Option<Handle<'d>> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&self.root, ".", flags, Mode::RUSR | Mode::WUSR);
        let file = self.disk.pass(Op::Inspect, open).ok()?;
        let path = self.full_path(Path::new("."));
        Some(Handle::new(self.disk, File::from(file), path))
    }
}

/// The last component of a path; fails unless it is a name.
fn last_name(inner: &Path) -> io::Result<&OsStr> {
    match inner.components().next_back() {
        Some(Component::Normal(name)) => Ok(name),
        Some(
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir,
        )
        | None => Err(Errno::INVAL.into()),
    }
}

/// The argument of utimensat(2) that sets `mtime` and keeps the access time.
pub(crate) fn timestamps(mtime: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime.seconds,
            tv_nsec: mtime.nanos.into(),
        },
    }
}
