//! Hooks of stdio functions that write to a descriptor number. They write without our hooks, so the
//! connection is downgraded first.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::variadic::forwards;
use crate::symbols::next;
use core::ffi::{c_char, c_int, c_void};
use saiga_socket::{Reason, lookup};

/// Downgrades a connection before stdio writes to it.
extern "C" fn before_print(fd: c_int) {
    if let Some(handle) = lookup(fd) {
        handle.stay_on_tcp(fd, Reason::Stdio);
    }
}

/// Address of the next printing function after ours.
extern "C" fn printer(which: usize) -> *mut c_void {
    let name = [c"dprintf", c"__dprintf_chk"][which % 2];
    // SAFETY: a terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

forwards! {
    before_print, printer:
    dprintf 0;
    /// `dprintf` with the checks of `_FORTIFY_SOURCE`.
    __dprintf_chk 1;
}

/// `vdprintf(3)`. On all our architectures a `va_list` is an address, or passed by address.
///
/// # Safety
/// The arguments are valid for `vdprintf(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn vdprintf(
    fd: c_int,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    before_print(fd);
    // SAFETY: arguments pass unchanged.
    unsafe { next::vdprintf(fd, format, list) }
}

/// `vdprintf` with the checks of `_FORTIFY_SOURCE`.
///
/// # Safety
/// The arguments are valid for `vdprintf(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    list: *mut c_void,
) -> c_int {
    before_print(fd);
    // SAFETY: arguments pass unchanged.
    unsafe { next::__vdprintf_chk(fd, flag, format, list) }
}
