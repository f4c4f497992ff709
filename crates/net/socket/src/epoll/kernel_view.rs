//! Reads a registration from the kernel: `/proc/self/fdinfo/EPFD` (`man 5 proc`).
//!
//! Needed only to find out whether a one-shot registration has fired, which no system call
//! tells. A line reads `tfd: 5 events: 40000001 data: 5 pos:0 ino:a0 sdev:8`; a registration that
//! has fired has no event bits left.
//!
//! The number alone does not identify a registration: that of a closed descriptor stays while its
//! file is open elsewhere (in a thread inside a call, or in our own copy), and the number may soon
//! refer to another connection. So the inode must agree, too.

use saiga_channel::sys::{self, Fd};

/// Bits of the mask that are not events: EPOLLWAKEUP, EPOLLONESHOT, EPOLLET, EPOLLEXCLUSIVE.
const PRIVATE: u32 = (1 << 29) | (1 << 30) | (1 << 31) | (1 << 28);

/// Whether a one-shot registration of `fd` in the set has fired and waits to be armed again.
/// `None` when the kernel does not say.
pub(super) fn is_spent(epfd: Fd, fd: Fd) -> Option<bool> {
    let mut path = *b"/proc/self/fdinfo/0000000000\0";
    number(epfd, &mut path[18..28]);
    let inode = sys::inode(fd).ok()?;
    let file = sys::open_to_read(&path).ok()?;
    let found = find(file, fd, inode);
    sys::close(file);
    found.map(|events| events & !PRIVATE == 0)
}

/// Writes a number in decimal, leading zeros dropped, the rest of `out` ended by NULs.
fn number(value: Fd, out: &mut [u8]) {
    let mut digits = [0u8; 10];
    let mut rest = value.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 || at == 0 {
            break;
        }
    }
    out.fill(0);
    out[..digits.len() - at].copy_from_slice(&digits[at..]);
}

/// The event mask of the line about `fd` and its `inode`. Reads the file in parts; lines are short.
fn find(file: Fd, fd: Fd, inode: u64) -> Option<u32> {
    let mut buffer = [0u8; 4096];
    let mut filled = 0;
    loop {
        let n = sys::read(file, &mut buffer[filled..])
            .ok()
            .filter(|n| *n > 0)?;
        filled += n;
        let whole = buffer[..filled]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let hit = buffer[..whole]
            .split(|b| *b == b'\n')
            .find_map(|line| events_of(line, fd, inode));
        if hit.is_some() {
            return hit;
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
        if filled == buffer.len() {
            return None;
        }
    }
}

/// The mask in a line about `fd` and, where the line has one, its inode.
fn events_of(line: &[u8], fd: Fd, inode: u64) -> Option<u32> {
    let text = core::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let speaks = words.next()? == "tfd:" && words.next()?.parse() == Ok(fd);
    if !speaks || words.next()? != "events:" {
        return None;
    }
    let events = u32::from_str_radix(words.next()?, 16).ok()?;
    let named = words.find_map(|word| word.strip_prefix("ino:"));
    let agrees = named.is_none_or(|hex| u64::from_str_radix(hex, 16) == Ok(inode));
    agrees.then_some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_the_right_line_is_read() {
        let line = b"tfd:        5 events: 40000001 data:                5  pos:0 ino:a0 sdev:8";
        assert_eq!(events_of(line, 5, 0xa0), Some(0x4000_0001));
        assert_eq!(events_of(line, 6, 0xa0), None);
        assert_eq!(
            events_of(line, 5, 0xa1),
            None,
            "the number belonged to another file before"
        );
        assert_eq!(
            events_of(&line[..51], 5, 0xa1),
            Some(0x4000_0001),
            "before Linux 4.13"
        );
        assert_eq!(events_of(b"pos:\t0", 5, 0xa0), None);
    }

    #[test]
    fn numbers_are_paths() {
        let mut out = [b'x'; 10];
        number(4095, &mut out);
        assert_eq!(&out, b"4095\0\0\0\0\0\0");
        number(0, &mut out);
        assert_eq!(&out[..2], b"0\0");
    }
}
