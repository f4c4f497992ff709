//! Finds the process's descriptors that are rings: `/proc/self/fd`, by system calls alone.
//!
//! Numbers that the library tracks are skipped, so a process with many connections pays only for
//! listing them.

#![expect(unsafe_code, reason = "system calls with out-parameters")]

use super::is_seen;
use crate::table::{self, Entry};
use saiga_channel::sys::{self, Fd};
use syscalls::Sysno;

/// Target of the symbolic link of a ring.
const LINK: &[u8] = b"anon_inode:[io_uring]";
/// Offsets in `struct linux_dirent64` (`man 2 getdents`).
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;

/// Whether the process has a ring that the hooks have not seen; false if `/proc` cannot be read.
pub(super) fn any_unseen_ring() -> bool {
    let Ok(folder) = sys::open_to_read(b"/proc/self/fd\0") else {
        return false;
    };
    let mut records = [0u8; 2048]; // A thread may have 16 KiB of stack.
    let found = loop {
        let args = [
            sys::reg(folder),
            records.as_mut_ptr() as usize,
            records.len(),
            0,
            0,
            0,
        ];
        // SAFETY: the buffer is writable for its length.
        let filled = unsafe { sys::call(Sysno::getdents64, args) }.unwrap_or(0);
        if filled == 0 {
            break false;
        }
        let mut named = names(records.get(..filled).unwrap_or(&[]));
        if named.any(|name| is_unseen_ring(folder, name)) {
            break true;
        }
    };
    sys::close(folder);
    found
}

/// The names in a buffer of `getdents64`, without their NULs.
fn names(mut records: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let length = records.get(LENGTH_AT..LENGTH_AT + 2)?;
        let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
        let (record, rest) = records.split_at_checked(length.max(NAME_AT))?;
        records = rest;
        record.get(NAME_AT..)?.split(|byte| *byte == 0).next()
    })
}

fn is_unseen_ring(folder: Fd, name: &[u8]) -> bool {
    let number = core::str::from_utf8(name).ok();
    let Some(fd) = number.and_then(|number| number.parse::<Fd>().ok()) else {
        return false;
    };
    if !matches!(table::get(fd), Entry::Unknown) || is_seen(fd) {
        return false;
    }
    let mut path = [0u8; 12];
    if let Some(start) = path.get_mut(..name.len()) {
        start.copy_from_slice(name);
    }
    let mut target = [0u8; LINK.len() + 1];
    let args = [
        sys::reg(folder),
        path.as_ptr() as usize,
        target.as_mut_ptr() as usize,
        target.len(),
        0,
        0,
    ];
    // SAFETY: the path ends with a NUL; the target is writable for its length.
    let length = unsafe { sys::call(Sysno::readlinkat, args) }.unwrap_or(0);
    target.get(..length) == Some(LINK)
}

#[cfg(test)]
mod tests {
    use super::names;

    fn record(name: &[u8], length: usize) -> Vec<u8> {
        let mut record = vec![7; 16];
        record.extend(u16::try_from(length).unwrap_or(0).to_ne_bytes());
        record.push(10);
        record.extend(name);
        record.resize(length, 0);
        record
    }

    #[test]
    fn names_are_read_from_any_buffer() {
        let three = [record(b".", 24), record(b"12", 24), record(b"1023", 32)].concat();
        let seen: Vec<&[u8]> = names(&three).collect();
        assert_eq!(seen, [&b"."[..], b"12", b"1023"]);
        assert_eq!(names(&three[..30]).count(), 1, "cut in the second");
        assert_eq!(names(&[0; 40]).count(), 2, "a length of zero ends");
        assert_eq!(names(&[]).count(), 0);
    }
}
