//! Asynchronous input and output of POSIX: threads of libc read and write by number, past our
//! hooks, so the connection goes back to TCP first.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use crate::symbols::next;
use core::ffi::{c_int, c_void};
use libc::aiocb;
use saiga_socket::{Reason, lookup};

/// Gives the connection of a request back.
///
/// # Safety
/// `request` is null or readable.
unsafe fn before_request(request: *const aiocb) {
    // SAFETY: promised by our caller.
    let asked = unsafe { request.as_ref() };
    if let Some(request) = asked
        && let Some(handle) = lookup(request.aio_fildes)
    {
        handle.stay_on_tcp(request.aio_fildes, Reason::UnsupportedCall);
    }
}

/// `aio_read(3)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aio_read(request: *mut aiocb) -> c_int {
    // SAFETY: as our caller promises.
    unsafe { before_request(request) };
    // SAFETY: arguments pass unchanged.
    unsafe { next::aio_read(request) }
}

/// The large-file name of `aio_read`.
///
/// # Safety
/// As `aio_read(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aio_read64(request: *mut aiocb) -> c_int {
    // SAFETY: forwarded.
    unsafe { aio_read(request) }
}

/// `aio_write(3)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aio_write(request: *mut aiocb) -> c_int {
    // SAFETY: as our caller promises.
    unsafe { before_request(request) };
    // SAFETY: arguments pass unchanged.
    unsafe { next::aio_write(request) }
}

/// The large-file name of `aio_write`.
///
/// # Safety
/// As `aio_write(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aio_write64(request: *mut aiocb) -> c_int {
    // SAFETY: forwarded.
    unsafe { aio_write(request) }
}

/// `lio_listio(3)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lio_listio(
    mode: c_int,
    list: *const *mut aiocb,
    n: c_int,
    notice: *mut c_void,
) -> c_int {
    for i in 0..usize::try_from(n).unwrap_or(0) {
        // SAFETY: our caller promises `n` requests.
        let at = unsafe { list.add(i) };
        // SAFETY: as above.
        let request = unsafe { *at };
        // SAFETY: as above; null perhaps.
        unsafe { before_request(request) };
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::lio_listio(mode, list, n, notice) }
}

/// The large-file name of `lio_listio`.
///
/// # Safety
/// As `lio_listio(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lio_listio64(
    mode: c_int,
    list: *const *mut aiocb,
    n: c_int,
    notice: *mut c_void,
) -> c_int {
    // SAFETY: forwarded.
    unsafe { lio_listio(mode, list, n, notice) }
}
