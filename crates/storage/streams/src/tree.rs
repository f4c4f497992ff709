//! A directory tree, walked by open directories: no link that somebody puts there meanwhile leads out of it.
//!
//! Links to directories and directories on other mounts are reported, not entered: a mount of the same file system, too,
//! for what is below it has other paths on the outer one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;

/// What a file is, whatever it is called. An inode number that is used again comes with another birth.
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

    /// A file that was seen before: the device that holds it, its number there, and when it was made.
    pub(crate) fn new(device: (u32, u32), inode: u64, born: (i64, u32)) -> Self {
        Self {
            device,
            inode,
            born,
        }
    }

    /// The device that holds it.
    #[must_use]
    pub fn device(&self) -> (u32, u32) {
        self.device
    }

    /// Its number there.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// When it was made, seconds and nanoseconds; zeroes where nobody knows.
    pub(crate) fn born(&self) -> (i64, u32) {
        self.born
    }

    /// Whether it tells one file from the next one with its number.
    pub(crate) fn is_certain(&self) -> bool {
        self.born != (0, 0)
    }
}

/// What was found in a tree.
pub enum Found<'a> {
    /// A directory that is entered next.
    Directory(BorrowedFd<'a>),
    /// A regular file.
    File {
        /// Its directory.
        dir: BorrowedFd<'a>,
        /// Its name there.
        name: &'a OsStr,
        /// What it is.
        identity: Identity,
        /// Its size.
        bytes: u64,
    },
    /// A link to a directory, or a directory on another mount.
    Elsewhere,
}

/// Called with each thing and its path below the start; ends the walk by breaking.
pub type Visit<'a> = dyn FnMut(&Path, Found<'_>) -> ControlFlow<()> + 'a;

/// What could not be looked at on the way.
#[derive(Debug)]
pub struct Unseen {
    /// Where it is.
    pub path: PathBuf,
    /// Why not.
    pub error: Errno,
}

/// The number of an error that came by way of std.
pub fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Opens a directory by path.
pub fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// Opens a directory by its name in another one; a link is none.
pub fn open_child(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// Opens a regular file for reading, and nothing else: opening a pipe or a tape has consequences.
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
        // Only the owner and root may leave the time of the last access alone.
        Err(Errno::PERM) => rustix::fs::open(&own, flags, Mode::empty())?,
        file => file?,
    };
    Ok((file.into(), Identity::of(&stat), stat.stx_size))
}

/// A path that leads to an open file, whatever has become of its name.
pub fn own_path(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// The path under which the kernel knows an open file now.
pub fn known_path(file: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let path = rustix::fs::readlink(own_path(file), Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
}

/// What an open file or directory is.
pub fn identity(file: BorrowedFd<'_>) -> Result<Identity, Errno> {
    Ok(Identity::of(&stat_open(file)?))
}

/// The file system of an open file, and the mount by which it was opened (from Linux 5.8 on).
pub(crate) fn whereabouts(file: BorrowedFd<'_>) -> Result<((u32, u32), Option<u64>), Errno> {
    Ok(place(&stat_open(file)?))
}

/// As [`whereabouts`]; `None` for a file that has no name.
pub(crate) fn whereabouts_named(file: BorrowedFd<'_>) -> Option<((u32, u32), Option<u64>)> {
    let stat = stat_open(file).ok()?;
    (stat.stx_nlink > 0).then(|| place(&stat))
}

fn place(stat: &Statx) -> ((u32, u32), Option<u64>) {
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

/// What stands under a name in a directory.
pub enum Entry {
    /// A regular file and its size.
    File(Identity, u64),
    /// A directory.
    Directory,
    /// A link to a directory, or a directory on another mount.
    Elsewhere,
    /// Something else.
    Other,
}

/// Looks at one name; a link is followed to see whether a directory is behind it.
pub fn look(dir: BorrowedFd<'_>, name: &OsStr) -> Result<Entry, Errno> {
    let stat = rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, wanted())?;
    Ok(match kind(&stat) {
        FileType::RegularFile => Entry::File(Identity::of(&stat), stat.stx_size),
        FileType::Directory => {
            if place(&stat_open(dir)?) == place(&stat) {
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

/// Visits everything below `dir`, whose own path below the start is `prefix`, and answers with what it could not see.
///
/// Names that vanish meanwhile are nothing. However deep it goes, it holds few descriptors.
pub fn walk(dir: BorrowedFd<'_>, prefix: &Path, visit: &mut Visit<'_>) -> Vec<Unseen> {
    let mut walk = Walk {
        start: dir,
        levels: Vec::new(),
        path: prefix.to_owned(),
        unseen: Vec::new(),
    };
    match open_child(dir, OsStr::new(".")) {
        Err(error) => unseen_at(prefix, error, &mut walk.unseen),
        // Whether the visitor ended the walk is known to the visitor.
        Ok(open) => {
            let _ = walk.enter(OsString::new(), open, visit);
            while !walk.levels.is_empty() && walk.step(visit).is_continue() {}
        }
    }
    walk.unseen
}

/// Directories on the way down that are held open.
const HELD: usize = 32;

/// A directory on the way down.
struct Level {
    /// In the one above.
    name: OsString,
    identity: Identity,
    /// `None` while it is not held open.
    dir: Option<OwnedFd>,
    /// What is still to be looked at, the next one last.
    names: Vec<OsString>,
}

/// A walk on its way.
struct Walk<'a> {
    start: BorrowedFd<'a>,
    levels: Vec<Level>,
    path: PathBuf,
    unseen: Vec<Unseen>,
}

impl Walk<'_> {
    /// Goes down into `dir`, whose path is there already.
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

    /// The names in a directory, the first one last.
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

    /// Looks at the next name, or goes back up.
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
        match look(dir, &name) {
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

    /// Goes back up, and opens what was not held open.
    fn leave(&mut self) {
        let child = self.levels.pop().and_then(|level| level.dir);
        if self.levels.is_empty() {
            return;
        }
        self.path.pop();
        let is_it = |dir: &OwnedFd, level: &Level| identity(dir.as_fd()) == Ok(level.identity);
        let Some(level) = self.levels.last().filter(|level| level.dir.is_none()) else {
            return;
        };
        let above = child.and_then(|child| open_child(child.as_fd(), OsStr::new("..")).ok());
        let above = above.filter(|dir| is_it(dir, level));
        // The child was moved elsewhere meanwhile; and what is not there any more is nothing.
        let above = above.or_else(|| self.descend().filter(|dir| is_it(dir, level)));
        if let Some(level) = self.levels.last_mut() {
            level.dir = above;
        }
    }

    /// The directory at the end of the names, from the start down.
    fn descend(&self) -> Option<OwnedFd> {
        let mut dir = open_child(self.start, OsStr::new(".")).ok()?;
        for level in self.levels.iter().skip(1) {
            dir = open_child(dir.as_fd(), &level.name).ok()?;
        }
        Some(dir)
    }
}

/// Notes what could not be seen; what is not there any more is nothing.
fn unseen_at(path: &Path, error: Errno, unseen: &mut Vec<Unseen>) {
    if !is_gone(error) {
        unseen.push(Unseen {
            path: path.to_owned(),
            error,
        });
    }
}

/// Whether an error says that something is not there any more, or something else by now.
pub(crate) fn is_gone(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::LOOP
    )
}
