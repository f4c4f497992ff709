//! An open file: content, holes and metadata (owner, mode, attributes, times).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FallocateFlags, Gid, Mode, SeekFrom, Uid, XattrFlags};
use rustix::io::Errno;

use crate::disk::{Disk, Fault, Op};
use crate::span::Span;
use crate::stat::{Stat, Time};
use crate::tree::timestamps;

/// Extended attributes by name, including POSIX ACLs.
pub(crate) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// An open file whose operations pass the gate of its [`Disk`].
#[derive(Debug)]
pub(crate) struct Handle<'d> {
    disk: &'d Disk,
    file: File,
    path: PathBuf,
}

/// Result of an operation that a file system may not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    Done,
    Unsupported,
}

impl<'d> Handle<'d> {
    pub(crate) fn new(disk: &'d Disk, file: File, path: PathBuf) -> Self {
        Self { disk, file, path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn pass<T, E: Into<io::Error>>(
        &self,
        op: Op,
        doing: &'static str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Fault> {
        let done = self.disk.pass(op, work);
        done.map_err(Fault::at(doing, &self.path))
    }

    pub(crate) fn stat(&self) -> Result<Stat, Fault> {
        self.pass(Op::Inspect, "stat", || Stat::of_open(&self.file))
    }

    /// Reads `buffer.len()` bytes, or fewer at the end of the file; returns the number read.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Fault> {
        self.pass(Op::Read, "read", || {
            let mut filled = 0;
            while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match self.file.read_at(rest, offset + filled as u64) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(filled)
        })
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Fault> {
        self.pass(Op::Write, "write", || self.file.write_all_at(bytes, offset))
    }

    pub(crate) fn set_len(&self, len: u64) -> Result<(), Fault> {
        self.pass(Op::Write, "set the length of", || self.file.set_len(len))
    }

    /// Replaces the content by that of `source`, sharing its extents (`man 2 ioctl_ficlone`).
    pub(crate) fn clone_from(&self, source: &Handle<'_>) -> Result<Support, Fault> {
        self.pass(Op::Write, "share extents with", || {
            match rustix::fs::ioctl_ficlone(&self.file, &source.file) {
                Ok(()) => Ok(Support::Done),
                // No such operation, two file systems, or a pair that cannot share extents.
                Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::XDEV | Errno::INVAL) => {
                    Ok(Support::Unsupported)
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Turns `span` into a hole, or into zeros on a file system without holes.
    pub(crate) fn punch(&self, span: Span) -> Result<(), Fault> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.pass(
            Op::Write,
            "punch a hole into",
            || match rustix::fs::fallocate(&self.file, flags, span.start, span.len()) {
                Err(Errno::OPNOTSUPP) => write_zeros(&self.file, span),
                done => Ok(done?),
            },
        )
    }

    /// Allocates blocks for the holes within the first `len` bytes.
    pub(crate) fn reserve(&self, len: u64) -> Result<Support, Fault> {
        self.pass(
            Op::Write,
            "reserve space for",
            || match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
                Ok(()) => Ok(Support::Done),
                Err(Errno::OPNOTSUPP) => Ok(Support::Unsupported),
                Err(error) => Err(error),
            },
        )
    }

    /// The spans of the first `size` bytes that have data, in order; all other bytes are holes.
    pub(crate) fn data(&self, size: u64) -> Result<Vec<Span>, Fault> {
        self.pass(Op::Inspect, "find the holes of", || {
            let mut spans = Vec::new();
            let mut at = 0;
            while at < size {
                let start = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                    Ok(start) => start,
                    Err(Errno::NXIO) => break,
                    // A file system without holes.
                    Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                        return Ok(vec![Span {
                            start: 0,
                            end: size,
                        }]);
                    }
                    Err(error) => return Err(error),
                };
                let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start))?;
                let end = end.min(size);
                if start >= end {
                    break;
                }
                spans.push(Span { start, end });
                at = end;
            }
            Ok(spans)
        })
    }

    /// Drops the first `size` bytes from the page cache, so that the next read comes from the disk.
    pub(crate) fn drop_cache(&self, size: u64) {
        let len = NonZeroU64::new(size);
        // The kernel may ignore this advice; the next read then comes from the cache.
        let _ = rustix::fs::fadvise(&self.file, 0, len, Advice::DontNeed);
    }

    pub(crate) fn attributes(&self) -> Result<Attributes, Fault> {
        self.pass(Op::Inspect, "read the attributes of", || {
            read_attributes(&self.file)
        })
    }

    /// Sets owner, mode and attributes, and removes all other attributes. `owner` is `None` if the
    /// owner need not change.
    pub(crate) fn set_metadata(
        &self,
        owner: Option<(u32, u32)>,
        mode: u32,
        attributes: &Attributes,
    ) -> Result<(), Fault> {
        self.pass(
            Op::SetMetadata,
            "set the owner, mode and attributes of",
            || {
                // chown clears set-user-ID and capabilities, chmod changes the mask of an ACL, and
                // an ACL changes the group bits of the mode. In this order no step undoes an
                // earlier one.
                if let Some((uid, gid)) = owner {
                    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
                    rustix::fs::fchown(&self.file, Some(uid), Some(gid))?;
                }
                let present = read_attributes(&self.file)?;
                for name in present
                    .keys()
                    .filter(|name| !attributes.contains_key(*name))
                {
                    rustix::fs::fremovexattr(&self.file, name.as_slice())?;
                }
                let set = |(name, value): (&Vec<u8>, &Vec<u8>)| {
                    if present.get(name) == Some(value) && !is_acl(name) {
                        return Ok(());
                    }
                    rustix::fs::fsetxattr(&self.file, name.as_slice(), value, XattrFlags::empty())
                };
                // Setting a `user.` attribute needs write permission, which the mode may remove.
                let (of_user, others): (Vec<_>, Vec<_>) =
                    attributes.iter().partition(|(name, _)| is_of_user(name));
                of_user.into_iter().try_for_each(set)?;
                rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?;
                others.into_iter().try_for_each(set)
            },
        )
    }

    pub(crate) fn set_mtime(&self, mtime: Time) -> Result<(), Fault> {
        self.pass(Op::SetMetadata, "set the time of", || {
            rustix::fs::futimens(&self.file, &timestamps(mtime))
        })
    }

    /// Waits until content and metadata are on the disk (`man 2 fsync`).
    pub(crate) fn flush(&self) -> Result<(), Fault> {
        self.pass(Op::Flush, "flush", || self.file.sync_all())
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

fn is_of_user(name: &[u8]) -> bool {
    name.starts_with(b"user.")
}

fn is_acl(name: &[u8]) -> bool {
    name.starts_with(b"system.posix_acl_")
}

fn write_zeros(file: &File, span: Span) -> io::Result<()> {
    let zeros = [0; 1 << 16];
    let mut at = span.start;
    while at < span.end {
        let len = usize::try_from(span.end - at).unwrap_or(usize::MAX);
        let some = zeros.get(..len).unwrap_or(&zeros);
        file.write_all_at(some, at)?;
        at += some.len() as u64;
    }
    Ok(())
}

fn read_attributes(file: &File) -> Result<Attributes, Errno> {
    let names = match grown(|buffer| rustix::fs::flistxattr(file, buffer)) {
        // A file system without attributes.
        Err(Errno::OPNOTSUPP) => return Ok(Attributes::new()),
        names => names?,
    };
    let mut attributes = Attributes::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        match grown(|buffer| rustix::fs::fgetxattr(file, name, buffer)) {
            Ok(value) => {
                attributes.insert(name.to_vec(), value);
            }
            // The attribute was removed, or a security module lists it but does not return it.
            Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(attributes)
}

/// Calls `ask` with larger buffers until the answer fits; the kernel's limit is 64 KiB.
fn grown(ask: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 1024];
    loop {
        match ask(&mut buffer) {
            Ok(len) => {
                buffer.truncate(len);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 1 << 16 => buffer.resize(1 << 16, 0),
            Err(error) => return Err(error),
        }
    }
}
