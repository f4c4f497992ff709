//! stdio that writes a descriptor by its number: it passes our hooks by, so the connection goes
//! back to TCP first.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

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

/// Defines a function whose arguments, numbers with a fraction among them, C passes as variable
/// ones: it gives the connection back and jumps to libc's with every register and the stack as
/// they came.
macro_rules! printing {
    ($($(#[$doc:meta])* $name:ident $which:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the manual page says.
            #[cfg(target_arch = "x86_64")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub(crate) unsafe extern "C" fn $name() {
                core::arch::naked_asm!(
                    "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
                    "push rax",
                    "sub rsp, 128",
                    "movups [rsp], xmm0", "movups [rsp + 16], xmm1",
                    "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
                    "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5",
                    "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
                    "call {before}",
                    "mov edi, {which}",
                    "call {find}",
                    "mov r11, rax",
                    "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]",
                    "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
                    "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]",
                    "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
                    "add rsp, 128",
                    "pop rax",
                    "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                    "jmp r11",
                    before = sym before_print,
                    find = sym printer,
                    which = const $which,
                )
            }

            $(#[$doc])*
            ///
            /// # Safety
            /// As the manual page says.
            #[cfg(target_arch = "aarch64")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub(crate) unsafe extern "C" fn $name() {
                core::arch::naked_asm!(
                    "stp x29, x30, [sp, -208]!",
                    "stp x0, x1, [sp, 16]", "stp x2, x3, [sp, 32]",
                    "stp x4, x5, [sp, 48]", "stp x6, x7, [sp, 64]",
                    "stp q0, q1, [sp, 80]", "stp q2, q3, [sp, 112]",
                    "stp q4, q5, [sp, 144]", "stp q6, q7, [sp, 176]",
                    "bl {before}",
                    "mov x0, {which}",
                    "bl {find}",
                    "mov x16, x0",
                    "ldp q0, q1, [sp, 80]", "ldp q2, q3, [sp, 112]",
                    "ldp q4, q5, [sp, 144]", "ldp q6, q7, [sp, 176]",
                    "ldp x0, x1, [sp, 16]", "ldp x2, x3, [sp, 32]",
                    "ldp x4, x5, [sp, 48]", "ldp x6, x7, [sp, 64]",
                    "ldp x29, x30, [sp], 208",
                    "br x16",
                    before = sym before_print,
                    find = sym printer,
                    which = const $which,
                )
            }
        )*
    };
}

printing! {
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
