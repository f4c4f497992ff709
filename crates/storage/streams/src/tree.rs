//! Walks a directory tree by open directories, so that links created during the walk cannot lead
//! out of it.
//!
//! Links to directories and mount points are reported, not entered. That includes mounts of the
//! same file system, whose files have other paths on the outer mount.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;

/// The identity of a file independent of its names: device, inode and time of birth. The birth
/// distinguishes files that use an inode number one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

impl Identity {
    fn of(stat: &Statx) -> Self {
        let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        let born = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
        Self {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            born: if has_birth { born } else { (0, 0) },
        }
    }

    /// Creates an identity from stored numbers.
    pub(crate) fn new(device: (u32, u32), inode: u64, born: (i64, u32)) -> Self {
        Self {
            device,
            inode,
            born,
        }
    }

    /// Returns the device number of its file system.
    #[must_use]
    pub fn device(&self) -> (u32, u32) {
        self.device
    }

    /// Returns the inode number.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns the time of birth in seconds and nanoseconds; zeros if the file system stores none.
    pub(crate) fn born(&self) -> (i64, u32) {
        self.born
    }

    /// Whether it has a time of birth, so that no later file has the same identity.
    pub(crate) fn is_certain(&self) -> bool {
        self.born != (0, 0)
    }
}

/// An entry that a walk has found.
pub enum Found<'a> {
    /// A directory that the walk enters next.
    Directory(BorrowedFd<'a>),
    /// A regular file: its directory, its name there, its identity and its size.
    File {
        dir: BorrowedFd<'a>,
        name: &'a OsStr,
        identity: Identity,
        bytes: u64,
    },
    /// A link to a directory, or a directory on another mount.
    Elsewhere,
}

/// A visitor, called with each entry and its path below the start. `Break` ends the walk.
pub type Visit<'a> = dyn FnMut(&Path, Found<'_>) -> ControlFlow<()> + 'a;

/// A path that could not be read during a walk.
#[derive(Debug)]
pub struct Unseen {
    pub path: PathBuf,
    pub error: Errno,
}

/// Converts an error of std; EIO if it has no errno.
pub fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Opens a directory by path.
pub fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// Opens a directory by its name in another one; fails for a link.
pub fn open_child(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// Opens a regular file for reading; returns its identity and size, too. Other files are not
/// opened, because the open of a pipe or a tape has side effects.
pub fn open_file(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(File, Identity, u64), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let stat = stat_open(place.as_fd())?;
    if kind(&stat) != FileType::RegularFile {
        return Err(Errno::NXIO);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let own = own_path(place.as_fd());
    let file = match rustix::fs::open(&own, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner and root may use O_NOATIME.
        Err(Errno::PERM) => rustix::fs::open(&own, flags, Mode::empty())?,
        file => file?,
    };
    Ok((file.into(), Identity::of(&stat), stat.stx_size))
}

/// Returns a path in /proc that leads to an open file, even if the file was renamed or deleted.
pub fn own_path(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns the present path of an open file, by the link in /proc.
pub fn known_path(file: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let path = rustix::fs::readlink(own_path(file), Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
}

/// Returns the identity of an open file or directory.
pub fn identity(file: BorrowedFd<'_>) -> Result<Identity, Errno> {
    Ok(Identity::of(&stat_open(file)?))
}

/// Returns the file system of an open file, and the ID of the mount by which it was opened (from
/// Linux 5.8 on).
pub(crate) fn file_system_and_mount(
    file: BorrowedFd<'_>,
) -> Result<((u32, u32), Option<u64>), Errno> {
    Ok(mount_of(&stat_open(file)?))
}

/// Like [`file_system_and_mount`]; `None` for a file without a name.
pub(crate) fn file_system_and_mount_if_named(
    file: BorrowedFd<'_>,
) -> Option<((u32, u32), Option<u64>)> {
    let stat = stat_open(file).ok()?;
    (stat.stx_nlink > 0).then(|| mount_of(&stat))
}

fn mount_of(stat: &Statx) -> ((u32, u32), Option<u64>) {
    let has_mount = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    let device = (stat.stx_dev_major, stat.stx_dev_minor);
    (device, has_mount.then_some(stat.stx_mnt_id))
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID
}

fn stat_open(file: BorrowedFd<'_>) -> Result<Statx, Errno> {
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted())
}

fn kind(stat: &Statx) -> FileType {
    FileType::from_raw_mode(stat.stx_mode.into())
}

/// An entry of a directory.
pub enum Entry {
    /// A regular file and its size.
    File(Identity, u64),
    Directory,
    /// A link to a directory, or a directory on another mount.
    Elsewhere,
    /// A pipe, socket, device, or link to anything but a directory.
    Other,
}

/// Inspects one name in a directory. Of a link, the type of its target counts.
pub fn inspect(dir: BorrowedFd<'_>, name: &OsStr) -> Result<Entry, Errno> {
    let stat = rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, wanted())?;
    Ok(match kind(&stat) {
        FileType::RegularFile => Entry::File(Identity::of(&stat), stat.stx_size),
        FileType::Directory => {
            if mount_of(&stat_open(dir)?) == mount_of(&stat) {
                Entry::Directory
            } else {
                Entry::Elsewhere
            }
        }
        FileType::Symlink => match rustix::fs::statx(dir, name, AtFlags::empty(), wanted()) {
            Ok(target) if kind(&target) == FileType::Directory => Entry::Elsewhere,
            _ => Entry::Other,
        },
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Entry::Other,
    })
}

/// Visits every entry below `dir`, whose own path is `prefix`. Returns the paths that could not be
/// read.
///
/// Entries deleted during the walk are skipped. Holds at most 33 descriptors at any depth.
pub fn walk(dir: BorrowedFd<'_>, prefix: &Path, visit: &mut Visit<'_>) -> Vec<Unseen> {
    let mut walk = Walk {
        start: dir,
        levels: Vec::new(),
        path: prefix.to_owned(),
        unseen: Vec::new(),
    };
    match open_child(dir, OsStr::new(".")) {
        Err(error) => unseen_at(prefix, error, &mut walk.unseen),
        // The visitor knows whether it ended the walk.
        Ok(open) => {
            let _ = walk.enter(OsString::new(), open, visit);
            while !walk.levels.is_empty() && walk.step(visit).is_continue() {}
        }
    }
    walk.unseen
}

/// Most directories above the current one that are held open.
const HELD: usize = 32;

/// A directory between the start and the current one.
struct Level {
    /// Its name in the directory above.
    name: OsString,
    identity: Identity,
    /// `None` while it is not held open.
    dir: Option<OwnedFd>,
    /// Names still to be visited, the next one last.
    names: Vec<OsString>,
}

/// The state of a walk.
struct Walk<'a> {
    start: BorrowedFd<'a>,
    levels: Vec<Level>,
    path: PathBuf,
    unseen: Vec<Unseen>,
}

impl Walk<'_> {
    /// Enters `dir`; `self.path` is its path already.
    fn enter(&mut self, name: OsString, dir: OwnedFd, visit: &mut Visit<'_>) -> ControlFlow<()> {
        visit(&self.path, Found::Directory(dir.as_fd()))?;
        let identity = match identity(dir.as_fd()) {
            Ok(identity) => identity,
            Err(error) => {
                unseen_at(&self.path, error, &mut self.unseen);
                self.path.pop();
                return ControlFlow::Continue(());
            }
        };
        let names = self.names(dir.as_fd());
        let far = self.levels.len().checked_sub(HELD);
        if let Some(level) = far.and_then(|far| self.levels.get_mut(far)) {
            level.dir = None;
        }
        self.levels.push(Level {
            name,
            identity,
            dir: Some(dir),
            names,
        });
        ControlFlow::Continue(())
    }

    /// Returns the names in a directory, the first one last.
    fn names(&mut self, dir: BorrowedFd<'_>) -> Vec<OsString> {
        let mut names = Vec::new();
        match Dir::read_from(dir) {
            Err(error) => unseen_at(&self.path, error, &mut self.unseen),
            Ok(entries) => {
                for entry in entries {
                    match entry {
                        Err(error) => unseen_at(&self.path, error, &mut self.unseen),
                        Ok(entry) => {
                            names.push(OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
                        }
                    }
                }
            }
        }
        names.retain(|name| name != "." && name != "..");
        names.reverse();
        names
    }

    /// Visits the next name, or leaves the directory after the last one.
    fn step(&mut self, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let Some(level) = self.levels.last_mut() else {
            return ControlFlow::Break(());
        };
        let next = level.names.pop();
        let (Some(name), Some(dir)) = (next, &level.dir) else {
            self.leave();
            return ControlFlow::Continue(());
        };
        let dir = dir.as_fd();
        self.path.push(&name);
        match inspect(dir, &name) {
            Err(error) => unseen_at(&self.path, error, &mut self.unseen),
            Ok(Entry::Other) => {}
            Ok(Entry::Elsewhere) => visit(&self.path, Found::Elsewhere)?,
            Ok(Entry::File(identity, bytes)) => {
                let name = name.as_os_str();
                let file = Found::File {
                    dir,
                    name,
                    identity,
                    bytes,
                };
                visit(&self.path, file)?;
            }
            Ok(Entry::Directory) => match open_child(dir, &name) {
                Err(error) => unseen_at(&self.path, error, &mut self.unseen),
                Ok(child) => return self.enter(name, child, visit),
            },
        }
        self.path.pop();
        ControlFlow::Continue(())
    }

    /// Returns to the directory above, and opens it if it was not held open.
    fn leave(&mut self) {
        let child = self.levels.pop().and_then(|level| level.dir);
        if self.levels.is_empty() {
            return;
        }
        self.path.pop();
        let is_same = |dir: &OwnedFd, level: &Level| identity(dir.as_fd()) == Ok(level.identity);
        let Some(level) = self.levels.last().filter(|level| level.dir.is_none()) else {
            return;
        };
        let above = child.and_then(|child| open_child(child.as_fd(), OsStr::new("..")).ok());
        let above = above.filter(|dir| is_same(dir, level));
        // The child may have been moved: then open the directory by its names. If it was deleted,
        // its remaining names are skipped.
        let above = above.or_else(|| self.descend().filter(|dir| is_same(dir, level)));
        if let Some(level) = self.levels.last_mut() {
            level.dir = above;
        }
    }

    /// Opens the directory of the last level by the names from the start.
    fn descend(&self) -> Option<OwnedFd> {
        let mut dir = open_child(self.start, OsStr::new(".")).ok()?;
        for level in self.levels.iter().skip(1) {
            dir = open_child(dir.as_fd(), &level.name).ok()?;
        }
        Some(dir)
    }
}

/// Records a path that cannot be read, unless it was deleted.
fn unseen_at(path: &Path, error: Errno, unseen: &mut Vec<Unseen>) {
    if !is_gone(error) {
        unseen.push(Unseen {
            path: path.to_owned(),
            error,
        });
    }
}

/// Whether an error means that a file was deleted or replaced.
pub(crate) fn is_gone(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::LOOP
    )
}
