//! The hooks, grouped like the manual pages. A hook finds the tracked socket behind a descriptor
//! and calls the socket layer; every other descriptor goes to libc's function.

#![expect(unsafe_code, reason = "the application's vectors as slices")]

mod aio;
mod descriptors;
mod epoll;
mod numbers;
mod options;
mod poll;
mod process;
mod receive;
mod stdio;
mod transmit;
mod uring;
mod variadic;

pub(crate) use {
    aio::*, descriptors::*, epoll::*, options::*, poll::*, process::*, receive::*, transmit::*,
};

use libc::{c_int, iovec};
use saiga_socket::{Errno, set_errno};

/// Fails a call as libc does: sets errno and returns -1.
fn fail(errno: c_int) -> c_int {
    set_errno(Errno(errno));
    -1
}

/// The errno of the last failed call of libc.
fn errno() -> c_int {
    // SAFETY: libc's errno location is valid for the thread.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *at }
}

/// Converts a register's content to an address or a size.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a long has the width of a pointer"
)]
fn word(register: core::ffi::c_long) -> usize {
    register.cast_unsigned() as usize
}

/// A vector with one buffer.
fn one(at: *const core::ffi::c_void, len: usize) -> [iovec; 1] {
    [iovec {
        iov_base: at.cast_mut(),
        iov_len: len,
    }]
}

/// The application's vectors; `None` for an invalid count (libc returns EINVAL).
///
/// # Safety
/// `iov` points to `n` vectors.
unsafe fn vectors<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    const IOV_MAX: usize = 1024;
    if n > IOV_MAX || (iov.is_null() && n > 0) {
        return None;
    }
    if n == 0 {
        return Some(&[]);
    }
    // SAFETY: promised by our caller.
    let all = unsafe { core::slice::from_raw_parts(iov, n) };
    let total = all
        .iter()
        .try_fold(0usize, |sum, v| sum.checked_add(v.iov_len));
    total
        .filter(|sum| isize::try_from(*sum).is_ok())
        .map(|_| all)
}
