//! The extents of an open file on its device, by the ioctl FIEMAP. All unsafe code of this crate.
//!
//! Kernel: Documentation/filesystems/fiemap.rst, include/uapi/linux/fiemap.h.
#![expect(unsafe_code, reason = "FIEMAP takes a structure by pointer")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::io::Errno;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b;
/// Extents that are read by one call.
const BATCH: usize = 128;

/// FIEMAP_EXTENT_LAST: no extent follows.
const LAST: u32 = 0x1;
/// The address is unknown or not allocated yet.
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
/// The bytes at the address are encoded.
const ENCODED: u32 = 0x8;
const ENCRYPTED: u32 = 0x80;
/// The extent shares a block with metadata or with the ends of other files.
const INLINE: u32 = 0x200;
const TAIL: u32 = 0x400;
/// Allocated but not written yet.
const UNWRITTEN: u32 = 0x800;
/// Shared with other files.
const SHARED: u32 = 0x2000;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with a buffer for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

const _: () = assert!(size_of::<RawExtent>() == 56, "as the kernel lays it out");
const _: () = assert!(size_of::<Request>() == 32 + 56 * BATCH, "without padding");

/// An extent of a file on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Address of the first byte on the file system's device.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Whether data were written to it.
    pub(crate) is_written: bool,
    /// Whether other files may share it.
    pub(crate) is_shared: bool,
}

/// The extents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// Extents in the order of the file.
    pub(crate) extents: Vec<Extent>,
    /// Whether some bytes are only in memory (delayed allocation).
    pub(crate) is_delayed: bool,
    /// Bytes without an extent of their own: inline, in tails, or compressed.
    pub(crate) unmapped_bytes: u64,
}

/// Reads the extents of a file, without flushing delayed allocations.
pub(crate) fn layout(file: BorrowedFd<'_>) -> Result<Layout, Errno> {
    let mut layout = Layout::default();
    let mut start = 0;
    loop {
        let mut request = Request {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            room: u32::try_from(BATCH).map_err(|_| Errno::INVAL)?,
            reserved: 0,
            extents: [RawExtent::default(); BATCH],
        };
        // SAFETY: FIEMAP reads the head of the request and writes at most `room` extents after it.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
        if status == -1 {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        let found = usize::try_from(request.mapped).unwrap_or(BATCH).min(BATCH);
        let extents = request.extents.get(..found).unwrap_or_default();
        for extent in extents {
            layout.add(extent);
        }
        let end = extents
            .last()
            .map(|last| (last.logical.checked_add(last.length), last.flags));
        match end {
            Some((Some(end), flags)) if flags & LAST == 0 && end > start => start = end,
            _ => return Ok(layout),
        }
    }
}

impl Layout {
    fn add(&mut self, raw: &RawExtent) {
        let has = |flags: u32| raw.flags & flags != 0;
        // Encrypted data have the size of the plain data; compressed data do not.
        let is_encoded = has(ENCODED) && !has(ENCRYPTED);
        if has(DELAYED) || has(UNKNOWN) {
            self.is_delayed = true;
        } else if is_encoded || has(INLINE | TAIL) {
            self.unmapped_bytes = self.unmapped_bytes.saturating_add(raw.length);
        } else {
            self.extents.push(Extent {
                start: raw.physical,
                length: raw.length,
                is_written: !has(UNWRITTEN),
                is_shared: has(SHARED),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_with_an_address_of_their_own_are_extents() {
        let mut layout = Layout::default();
        for (flags, physical) in [
            (0, 0),
            (UNWRITTEN, 4096),
            (SHARED | LAST, 8192),
            (DELAYED | UNKNOWN, 0),
            (INLINE, 77),
            (ENCODED, 12_288),
            (ENCODED | ENCRYPTED, 16_384),
        ] {
            layout.add(&RawExtent {
                physical,
                length: 4096,
                flags,
                ..RawExtent::default()
            });
        }
        let extent = |start, is_written, is_shared| Extent {
            start,
            length: 4096,
            is_written,
            is_shared,
        };
        let expected = Layout {
            extents: vec![
                extent(0, true, false),
                extent(4096, false, false),
                extent(8192, true, true),
                extent(16_384, true, false),
            ],
            is_delayed: true,
            unmapped_bytes: 8192,
        };
        assert_eq!(layout, expected);
    }
}
