//! What the kernel knows of one file, without its bytes.

use std::io;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp};

/// The bits of a mode that chmod sets.
const PERMISSIONS: u16 = 0o7777;

/// Which file, whatever its name: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) inode: u64,
}

/// A point in time as file systems keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// Kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Directory,
    File,
    Symlink,
    /// FIFO, socket or device: nothing that a snapshot holds.
    Special(&'static str),
}

/// One look at a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) identity: Identity,
    pub(crate) sort: Sort,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    pub(crate) size: u64,
    /// Bytes that it takes on the disk.
    pub(crate) allocated: u64,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    /// A file system is mounted here.
    pub(crate) is_mount_point: bool,
    /// chattr's `+i` or `+a`: nobody can change it.
    pub(crate) is_immutable: bool,
}

impl Stat {
    /// Looks at `path` below `dir`, at the link itself when it is one.
    pub(crate) fn of(dir: impl AsFd, path: &Path) -> io::Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        Self::read(dir, path, flags)
    }

    /// Looks at an open file.
    pub(crate) fn of_open(file: impl AsFd) -> io::Result<Self> {
        Self::read(file, Path::new(""), AtFlags::EMPTY_PATH)
    }

    /// Looks at `path`, or where it leads.
    pub(crate) fn through_links(path: &Path) -> io::Result<Self> {
        Self::read(rustix::fs::CWD, path, AtFlags::empty())
    }

    fn read(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Self> {
        let x: Statx = rustix::fs::statx(dir, path, flags, StatxFlags::BASIC_STATS)?;
        let attributes = x.stx_attributes;
        Ok(Self {
            identity: Identity {
                major: x.stx_dev_major,
                minor: x.stx_dev_minor,
                inode: x.stx_ino,
            },
            sort: sort(x.stx_mode),
            mode: u32::from(x.stx_mode & PERMISSIONS),
            uid: x.stx_uid,
            gid: x.stx_gid,
            links: x.stx_nlink,
            size: x.stx_size,
            allocated: x.stx_blocks.saturating_mul(512),
            mtime: time(x.stx_mtime),
            ctime: time(x.stx_ctime),
            is_mount_point: attributes.contains(StatxAttributes::MOUNT_ROOT),
            is_immutable: attributes
                .intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND),
        })
    }
}

fn sort(mode: u16) -> Sort {
    match FileType::from_raw_mode(u32::from(mode)) {
        FileType::Directory => Sort::Directory,
        FileType::RegularFile => Sort::File,
        FileType::Symlink => Sort::Symlink,
        FileType::Fifo => Sort::Special("FIFO"),
        FileType::Socket => Sort::Special("socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Sort::Special("device"),
        FileType::Unknown => Sort::Special("file of unknown kind"),
    }
}

fn time(stamp: StatxTimestamp) -> Time {
    Time {
        seconds: stamp.tv_sec,
        nanos: stamp.tv_nsec,
    }
}
