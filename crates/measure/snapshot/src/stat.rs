//! Metadata of a file from statx(2).

use std::io;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, FileType as RawType, Statx, StatxAttributes, StatxFlags, StatxTimestamp,
};

/// The bits of a mode that chmod(2) sets.
const PERMISSIONS: u16 = 0o7777;

/// Device and inode, which identify a file independently of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) inode: u64,
}

/// A time stamp of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// File type; a snapshot stores only the first three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileType {
    Directory,
    File,
    Symlink,
    /// A FIFO, a socket or a device, with its name for messages.
    Special(&'static str),
}

/// The metadata of a file at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) identity: Identity,
    pub(crate) file_type: FileType,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    pub(crate) size: u64,
    /// Bytes that the file occupies on the disk.
    pub(crate) allocated: u64,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    pub(crate) is_mount_point: bool,
    /// Whether the file has the flag of `chattr +i` or `chattr +a`.
    pub(crate) is_immutable: bool,
}

impl Stat {
    /// Reads the metadata of `path` below `dir`; does not follow a symbolic link.
    pub(crate) fn of(dir: impl AsFd, path: &Path) -> io::Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        Self::read(dir, path, flags)
    }

    /// Reads the metadata of an open file.
    pub(crate) fn of_open(file: impl AsFd) -> io::Result<Self> {
        Self::read(file, Path::new(""), AtFlags::EMPTY_PATH)
    }

    /// Reads the metadata of `path`; follows symbolic links.
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
            file_type: file_type(x.stx_mode),
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

fn file_type(mode: u16) -> FileType {
    match RawType::from_raw_mode(u32::from(mode)) {
        RawType::Directory => FileType::Directory,
        RawType::RegularFile => FileType::File,
        RawType::Symlink => FileType::Symlink,
        RawType::Fifo => FileType::Special("FIFO"),
        RawType::Socket => FileType::Special("socket"),
        RawType::CharacterDevice | RawType::BlockDevice => FileType::Special("device"),
        RawType::Unknown => FileType::Special("file of unknown kind"),
    }
}

fn time(stamp: StatxTimestamp) -> Time {
    Time {
        seconds: stamp.tv_sec,
        nanos: stamp.tv_nsec,
    }
}
