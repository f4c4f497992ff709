//! The application's buffers as slices; null pointers become EFAULT.

#![expect(unsafe_code, reason = "the caller of a hook promises its buffers")]

use libc::iovec;
use saiga_channel::sys::{Errno, Sys};

/// Buffers served at once; a longer vector is served in several steps or in part.
pub(crate) const STEP: usize = 16;

fn check(v: &iovec) -> Sys<()> {
    if v.iov_base.is_null() && v.iov_len > 0 {
        Err(Errno(libc::EFAULT))
    } else {
        Ok(())
    }
}

/// Writable slices of the first vectors, at most [`STEP`] of them.
///
/// # Safety
/// As `writev(2)` asks: every vector is writable for its length and they do not overlap.
pub(crate) unsafe fn writable<'a>(
    iov: &[iovec],
    out: &'a mut [&'static mut [u8]; STEP],
) -> Sys<&'a mut [&'static mut [u8]]> {
    let n = iov.len().min(STEP);
    for (slot, v) in out.iter_mut().zip(&iov[..n]) {
        check(v)?;
        if v.iov_len > 0 {
            // SAFETY: promised by our caller, and not null.
            *slot = unsafe { core::slice::from_raw_parts_mut(v.iov_base.cast(), v.iov_len) };
        }
    }
    Ok(&mut out[..n])
}
