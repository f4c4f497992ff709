//! Where the bytes of an open file lie on its device: the ioctl FIEMAP. All unsafe code of this crate.
//!
//! Kernel: Documentation/filesystems/fiemap.rst, include/uapi/linux/fiemap.h.
#![expect(unsafe_code, reason = "FIEMAP takes a structure by pointer")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::io::Errno;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b;
/// Extents that are asked for at once.
const BATCH: usize = 128;

/// No extent comes after this one.
const LAST: u32 = 0x1;
/// Its place is not known, or not decided yet.
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
/// Its place is not where its bytes could be read.
const ENCODED: u32 = 0x8;
const ENCRYPTED: u32 = 0x80;
/// It shares a block with metadata or with the ends of other files.
const INLINE: u32 = 0x200;
const TAIL: u32 = 0x400;
/// Allocated, and nothing was written yet.
const UNWRITTEN: u32 = 0x800;
/// Other files have it, too.
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

/// `struct fiemap` with room for some extents.
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

/// A part of a file that has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first byte on the file system's device.
    pub(crate) start: u64,
    /// How many bytes.
    pub(crate) length: u64,
    /// Whether it holds data.
    pub(crate) is_written: bool,
    /// Whether other files may have it, too.
    pub(crate) is_shared: bool,
}

/// All that is known of a file's places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// In the order of the file.
    pub(crate) extents: Vec<Extent>,
    /// Some of its bytes are in memory and get their place later.
    pub(crate) is_delayed: bool,
    /// Bytes that have no place of their own: inline, in the ends of others, compressed.
    pub(crate) placeless_bytes: u64,
}

/// Looks where a file lies. What is in memory only stays there.
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
        // SAFETY: FIEMAP reads the head of the request and writes as many extents as it says that there is room for.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
        if answer == -1 {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        let found = usize::try_from(request.mapped).unwrap_or(BATCH).min(BATCH);
        let extents = request.extents.get(..found).unwrap_or_default();
        for extent in extents {
            layout.enter(extent);
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
    fn enter(&mut self, raw: &RawExtent) {
        let has = |flags: u32| raw.flags & flags != 0;
        // Encrypted bytes take as much room as plain ones; compressed ones do not.
        let is_encoded = has(ENCODED) && !has(ENCRYPTED);
        if has(DELAYED) || has(UNKNOWN) {
            self.is_delayed = true;
        } else if is_encoded || has(INLINE | TAIL) {
            self.placeless_bytes = self.placeless_bytes.saturating_add(raw.length);
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
    fn only_bytes_with_a_place_of_their_own_are_extents() {
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
            layout.enter(&RawExtent {
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
            placeless_bytes: 8192,
        };
        assert_eq!(layout, expected);
    }
}
