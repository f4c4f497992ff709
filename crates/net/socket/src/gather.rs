//! The bytes of one sending call: parts taken in order.
//!
//! The vector is not copied into slices first. So all of it, however long, is written under one
//! lock, and two writers do not interleave their records (`man 2 writev`).

#![expect(unsafe_code, reason = "the caller of a hook promises its buffers")]

use libc::iovec;
use saiga_channel::sys::{Errno, Sys};

/// The bytes left to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gather<'a> {
    /// The rest of a part that was sent in part.
    first: &'a [u8],
    rest: &'a [iovec],
}

impl<'a> From<&'a [u8]> for Gather<'a> {
    fn from(first: &'a [u8]) -> Self {
        Self { first, rest: &[] }
    }
}

impl<'a> Gather<'a> {
    /// A call without bytes.
    pub(crate) const EMPTY: Gather<'static> = Gather {
        first: &[],
        rest: &[],
    };

    /// The parts of a vector, up to the first null pointer.
    ///
    /// # Errors
    /// EFAULT when no byte comes before the null pointer.
    ///
    /// # Safety
    /// As `writev(2)` asks: every part is readable for its length while the result is used.
    pub(crate) unsafe fn new(iov: &'a [iovec]) -> Sys<Gather<'a>> {
        let is_bad = |v: &iovec| v.iov_base.is_null() && v.iov_len > 0;
        let good = iov.iter().position(is_bad).unwrap_or(iov.len());
        let all = Gather {
            first: &[],
            rest: &iov[..good],
        };
        if good < iov.len() && all.len() == 0 {
            return Err(Errno(libc::EFAULT));
        }
        Ok(all)
    }

    /// Number of bytes in all parts together.
    pub(crate) fn len(self) -> usize {
        self.parts().map(<[u8]>::len).sum()
    }

    /// The parts that are not empty.
    pub(crate) fn parts(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        let slice = |v: &'a iovec| match v.iov_len {
            0 => &[][..],
            // SAFETY: promised to `new`, which has left out null pointers.
            n => unsafe { core::slice::from_raw_parts(v.iov_base.cast(), n) },
        };
        let all = core::iter::once(self.first).chain(self.rest.iter().map(slice));
        all.filter(|part| !part.is_empty())
    }

    /// The bytes after the first `n`.
    pub(crate) fn behind(mut self, mut n: usize) -> Gather<'a> {
        if n == 0 {
            return self;
        }
        while n >= self.first.len() {
            n -= self.first.len();
            let Some((next, rest)) = self.rest.split_first() else {
                return Gather::EMPTY;
            };
            let first = Gather {
                first: &[],
                rest: core::slice::from_ref(next),
            };
            self = Gather {
                first: first.parts().next().unwrap_or(&[]),
                rest,
            };
        }
        self.first = &self.first[n..];
        self
    }

    /// The vector as the kernel takes it, if no part of it was sent.
    pub(crate) fn untouched(self) -> Option<&'a [iovec]> {
        self.first.is_empty().then_some(self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(parts: &[&'static [u8]]) -> Vec<iovec> {
        let one = |part: &&'static [u8]| iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        };
        parts.iter().map(one).collect()
    }

    fn text(gather: Gather<'_>) -> Vec<u8> {
        gather.parts().collect::<Vec<_>>().concat()
    }

    #[test]
    fn every_byte_is_behind_those_before_it() {
        let iov = vector(&[b"", b"ab", b"", b"c", b"defg", b""]);
        // SAFETY: the parts are static.
        let all = unsafe { Gather::new(&iov) }.expect("no null pointer");
        assert_eq!(all.len(), 7);
        for n in 0..=7 {
            assert_eq!(text(all.behind(n)), b"abcdefg"[n..], "behind {n}");
        }
        assert_eq!(text(all.behind(3).behind(2)), b"fg");
        assert!(all.behind(8).len() == 0);
    }

    #[test]
    fn parts_before_a_null_pointer_are_sent() {
        let null = iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 1,
        };
        let mut iov = vector(&[b"ab"]);
        iov.push(null);
        // SAFETY: the part is static, and what follows is never looked at.
        let some = unsafe { Gather::new(&iov) }.expect("two bytes come first");
        assert_eq!(text(some), b"ab");
        // SAFETY: as above.
        let none = unsafe { Gather::new(&iov[1..]) };
        assert_eq!(none.err(), Some(Errno(libc::EFAULT)));
    }
}
