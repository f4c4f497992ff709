//! A directory tree, walked by open directories: no link that somebody puts there meanwhile leads out of it.
//!
//! Links to directories and directories on other mounts are reported, not entered: a mount of the same file system, too,
//! for what is below it has other paths on the outer one.

use std::ffi::OsStr;
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
/// Names that vanish meanwhile are nothing.
pub fn walk(dir: BorrowedFd<'_>, prefix: &Path, visit: &mut Visit<'_>) -> Vec<Unseen> {
    let mut unseen = Vec::new();
    // Whether the visitor ended the walk is known to the visitor.
    let _ = enter(dir, prefix, visit, &mut unseen);
    unseen
}

fn enter(
    dir: BorrowedFd<'_>,
    prefix: &Path,
    visit: &mut Visit<'_>,
    unseen: &mut Vec<Unseen>,
) -> ControlFlow<()> {
    visit(prefix, Found::Directory(dir))?;
    let mut names = Vec::new();
    match Dir::read_from(dir) {
        Err(error) => unseen_at(prefix, error, unseen),
        Ok(entries) => {
            for entry in entries {
                match entry {
                    Err(error) => unseen_at(prefix, error, unseen),
                    Ok(entry) => names.push(entry.file_name().to_owned()),
                }
            }
        }
    }
    for name in names {
        let name = OsStr::from_bytes(name.as_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let path = prefix.join(name);
        match look(dir, name) {
            Err(error) => unseen_at(&path, error, unseen),
            Ok(Entry::Other) => {}
            Ok(Entry::Elsewhere) => visit(&path, Found::Elsewhere)?,
            Ok(Entry::File(identity, bytes)) => visit(
                &path,
                Found::File {
                    dir,
                    name,
                    identity,
                    bytes,
                },
            )?,
            Ok(Entry::Directory) => match open_child(dir, name) {
                Err(error) => unseen_at(&path, error, unseen),
                Ok(child) => enter(child.as_fd(), &path, visit, unseen)?,
            },
        }
    }
    ControlFlow::Continue(())
}

/// Notes what could not be seen; what is not there any more is nothing.
fn unseen_at(path: &Path, error: Errno, unseen: &mut Vec<Unseen>) {
    if !matches!(
        error,
        Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::LOOP
    ) {
        unseen.push(Unseen {
            path: path.to_owned(),
            error,
        });
    }
}
