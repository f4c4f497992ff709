//! Hooks of C functions with variadic arguments.
//!
//! Rust cannot receive such arguments and pass them on, so these hooks are written in assembly:
//! they call `before` with the first argument, get libc's function from `find`, and jump there with
//! all registers and the stack unchanged.

/// Defines such functions: `forwards! { before, find: /** doc */ name number; ... }`, where `find`
/// is called with the number. Vector registers are saved, too: they carry floating-point arguments.
macro_rules! forwards {
    ($before:ident, $find:ident: $($(#[$doc:meta])* $name:ident $which:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The arguments are valid for the function of libc with this name.
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
                    before = sym $before,
                    find = sym $find,
                    which = const $which,
                )
            }

            $(#[$doc])*
            ///
            /// # Safety
            /// The arguments are valid for the function of libc with this name.
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
                    before = sym $before,
                    find = sym $find,
                    which = const $which,
                )
            }
        )*
    };
}
pub(super) use forwards;
