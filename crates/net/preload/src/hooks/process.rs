//! fork, exec, programs that are started, sandboxes and namespaces.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::variadic::forwards;
use crate::symbols::{Strings, next};
use core::ffi::{c_char, c_int, c_long, c_void};
use libc::FILE;
use saiga_socket::{self as sockets, fork as forks, namespaces};

/// `fork(2)`. libc runs our handlers (`pthread_atfork`), also for its own callers such as
/// `daemon(3)`.
///
/// # Safety
/// None beyond libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fork() -> c_int {
    // SAFETY: no pointers.
    unsafe { next::fork() }
}

/// `_Fork(3)`, which runs no handlers.
///
/// # Safety
/// None beyond libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Fork() -> c_int {
    forks::prepare();
    // SAFETY: no pointers.
    let pid = unsafe { next::_Fork() };
    if pid == 0 {
        forks::child();
    }
    pid
}

/// `_exit(2)`: neither exit handlers nor our destructor run, so reading ends here.
///
/// # Safety
/// None beyond libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _exit(status: c_int) {
    sockets::end_reading();
    // SAFETY: no pointers. It does not return.
    unsafe { next::_exit(status) };
}

macro_rules! exec {
    ($($(#[$doc:meta])* $name:ident ( $($arg:ident : $kind:ty),* );)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the manual page says.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($arg: $kind),*) -> c_int {
                sockets::before_exec();
                // SAFETY: arguments pass unchanged.
                unsafe { next::$name($($arg),*) }
            }
        )*
    };
}

exec! {
    /// `execve(2)`.
    execve(path: *const c_char, argv: Strings, envp: Strings);
    /// `execv(3)`.
    execv(path: *const c_char, argv: Strings);
    /// `execvp(3)`.
    execvp(file: *const c_char, argv: Strings);
    /// `execvpe(3)`.
    execvpe(file: *const c_char, argv: Strings, envp: Strings);
    /// `fexecve(3)`.
    fexecve(fd: c_int, argv: Strings, envp: Strings);
    /// `execveat(2)`.
    execveat(dir: c_int, path: *const c_char, argv: Strings, envp: Strings, flags: c_int);
}

/// Gives connections back before one of the variadic exec functions.
extern "C" fn before_variadic_exec() {
    sockets::before_exec();
}

/// Address of a variadic exec function behind ours.
extern "C" fn variadic_exec(which: usize) -> *mut c_void {
    let name = [c"execl", c"execlp", c"execle"][which % 3];
    // SAFETY: a terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

forwards! {
    before_variadic_exec, variadic_exec:
    /// `execl(3)`.
    execl 0;
    /// `execlp(3)`.
    execlp 1;
    /// `execle(3)`.
    execle 2;
}

/// `posix_spawn_file_actions_adddup2(3)`: libc makes that copy, and the new program, out of our
/// sight.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawn_file_actions_adddup2(
    actions: *mut c_void,
    fd: c_int,
    new: c_int,
) -> c_int {
    if let Some(handle) = sockets::lookup(fd) {
        handle.stay_on_tcp(fd, sockets::Reason::Exec);
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::posix_spawn_file_actions_adddup2(actions, fd, new) }
}

macro_rules! spawns {
    ($($(#[$doc:meta])* $name:ident ( $($arg:ident : $kind:ty),* ) -> $ret:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the manual page says.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($arg: $kind),*) -> $ret {
                sockets::before_spawn();
                // SAFETY: arguments pass unchanged.
                unsafe { next::$name($($arg),*) }
            }
        )*
    };
}

spawns! {
    /// `posix_spawn(3)`.
    posix_spawn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    /// `posix_spawnp(3)`.
    posix_spawnp(pid: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    /// `pidfd_spawn(3)`.
    pidfd_spawn(pidfd: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    /// `pidfd_spawnp(3)`.
    pidfd_spawnp(pidfd: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    /// `system(3)`: its shell is started past the hook of `posix_spawn`.
    system(command: *const c_char) -> c_int;
    /// `popen(3)`, as `system`.
    popen(command: *const c_char, mode: *const c_char) -> *mut FILE;
    /// `wordexp(3)`, as `system` for each command in the words.
    wordexp(words: *const c_char, result: *mut c_void, flags: c_int) -> c_int;
}

/// `prctl(2)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn prctl(
    option: c_int,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        sockets::sandboxed();
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::prctl(option, a, b, c, d) }
}

/// `seccomp(2)`, where libc or libseccomp has it.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn seccomp(operation: u32, flags: u32, args: *mut c_void) -> c_int {
    sockets::sandboxed();
    // SAFETY: arguments pass unchanged.
    unsafe { next::seccomp(operation, flags, args) }
}

/// `unshare(2)`.
///
/// # Safety
/// None beyond libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    // SAFETY: no pointers.
    let go = || unsafe { next::unshare(flags) };
    if namespaces::leaves(flags) {
        namespaces::leave(go)
    } else {
        go()
    }
}

/// `setns(2)`; without a kind, the descriptor may stand for any.
///
/// # Safety
/// None beyond libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setns(fd: c_int, kind: c_int) -> c_int {
    // SAFETY: no pointers.
    let go = || unsafe { next::setns(fd, kind) };
    if kind == 0 || namespaces::leaves(kind) {
        namespaces::leave(go)
    } else {
        go()
    }
}
