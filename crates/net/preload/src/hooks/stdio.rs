//! stdio that writes a descriptor by its number: it passes our hooks by, so the connection goes
//! back to TCP first.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::variadic::forwards;
use crate::symbols::next;
use core::ffi::{c_char, c_int, c_void};
use saiga_socket::{Reason, lookup};

/// Gives a connection back before stdio writes to it.
extern "C" fn before_print(fd: c_int) {
    if let Some(handle) = lookup(fd) {
        handle.stay_on_tcp(fd, Reason::Stdio);
    }
}

/// Address of the printing function behind ours.
extern "C" fn printer(which: usize) -> *mut c_void {
    let name = [c"dprintf", c"__dprintf_chk"][which % 2];
    // SAFETY: a terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

forwards! {
    before_print, printer:
    /// `dprintf(3)`.
    dprintf 0;
    /// Fortified `dprintf`.
    __dprintf_chk 1;
}

/// `vdprintf(3)`. A `va_list` is an address, or passed by one, wherever we build.
///
/// # Safety
/// As the manual page says.
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

/// Fortified `vdprintf`.
///
/// # Safety
/// As `vdprintf(3)`.
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
