//! Asynchronous I/O of POSIX and Linux. Threads of libc, or the kernel, read and write without our
//! hooks, so the connection is downgraded first.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use crate::symbols::next;
use core::ffi::{c_int, c_long, c_void};
use libc::aiocb;
use saiga_socket::{Reason, lookup, poll as sockets};

/// Downgrades the connection of a request.
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

/// # Safety
/// The arguments are valid for `aio_read(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aio_read(request: *mut aiocb) -> c_int {
    // SAFETY: as our caller promises.
    unsafe { before_request(request) };
    // SAFETY: arguments pass unchanged.
    unsafe { next::aio_read(request) }
}

/// # Safety
/// The arguments are valid for `aio_write(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aio_write(request: *mut aiocb) -> c_int {
    // SAFETY: as our caller promises.
    unsafe { before_request(request) };
    // SAFETY: arguments pass unchanged.
    unsafe { next::aio_write(request) }
}

/// # Safety
/// The arguments are valid for `lio_listio(3)`.
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
        // SAFETY: as above; it may be null.
        unsafe { before_request(request) };
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::lio_listio(mode, list, n, notice) }
}

/// Downgrades the connections of `io_submit(2)`, and makes the bell of a polled epoll set ring for
/// events that only the library knows.
///
/// # Safety
/// `list` points to `n` pointers to `struct iocb`.
pub(super) unsafe fn submitting(n: c_long, list: *const *const c_void) {
    /// Offset of `aio_fildes` (`include/uapi/linux/aio_abi.h`).
    const DESCRIPTOR_AT: usize = 20;
    for i in 0..usize::try_from(n).unwrap_or(0) {
        // SAFETY: our caller promises `n` pointers.
        let at = unsafe { list.add(i) };
        // SAFETY: as above.
        let request = unsafe { at.read() };
        if request.is_null() {
            continue;
        }
        // SAFETY: a request has 64 bytes.
        let fd = unsafe { request.byte_add(DESCRIPTOR_AT) }.cast::<c_int>();
        // SAFETY: as above.
        let fd = unsafe { fd.read_unaligned() };
        sockets::concerns([fd]);
        if let Some(handle) = lookup(fd) {
            handle.stay_on_tcp(fd, Reason::UnsupportedCall);
        }
    }
}
