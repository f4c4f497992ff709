//! Hooks of fork, exec, spawned programs, seccomp and namespaces. Connections that go to a program
//! without the library, or that the process can no longer serve, are downgraded before the call.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::variadic::forwards;
use crate::symbols::{Strings, next};
use core::ffi::{c_char, c_int, c_long, c_void};
use libc::FILE;
use saiga_socket::{self as sockets, deep_bound, fork as forks, namespaces};

/// `fork(2)`. libc runs our handlers (`pthread_atfork`), also in its own functions such as
/// `daemon(3)`.
///
/// # Safety
/// The arguments are valid for `fork(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fork() -> c_int {
    // SAFETY: no pointers.
    unsafe { next::fork() }
}

/// `_Fork(3)`, which runs no handlers.
///
/// # Safety
/// The arguments are valid for `_Fork(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Fork() -> c_int {
    forks::prepare();
    // SAFETY: no pointers.
    let pid = unsafe { next::_Fork() };
    if pid == 0 {
        forks::child();
    } else {
        forks::parent();
    }
    pid
}

/// `_exit(2)`: neither exit handlers nor our destructor run, so reading ends here.
///
/// # Safety
/// The arguments are valid for `_exit(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _exit(status: c_int) {
    sockets::end_reading();
    // SAFETY: no pointers. The call does not return.
    unsafe { next::_exit(status) };
}

macro_rules! exec {
    ($($(#[$doc:meta])* $name:ident ( $($arg:ident : $kind:ty),* );)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The arguments are valid for the function of libc with this name.
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
    execve(path: *const c_char, argv: Strings, envp: Strings);
    execv(path: *const c_char, argv: Strings);
    execvp(file: *const c_char, argv: Strings);
    execvpe(file: *const c_char, argv: Strings, envp: Strings);
    fexecve(fd: c_int, argv: Strings, envp: Strings);
    execveat(dir: c_int, path: *const c_char, argv: Strings, envp: Strings, flags: c_int);
}

/// Downgrades connections before a variadic exec function.
extern "C" fn before_variadic_exec() {
    sockets::before_exec();
}

/// Address of the next variadic exec function after ours.
extern "C" fn variadic_exec(which: usize) -> *mut c_void {
    let name = [c"execl", c"execlp", c"execle"][which % 3];
    // SAFETY: a terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

forwards! {
    before_variadic_exec, variadic_exec:
    execl 0;
    execlp 1;
    execle 2;
}

extern "C" fn before_dlopen(_name: *const c_char, flags: c_int) {
    if flags & (libc::RTLD_DEEPBIND | libc::RTLD_NOLOAD) == libc::RTLD_DEEPBIND {
        deep_bound::loading(false);
    }
}

extern "C" fn before_dlmopen(namespace: c_long, name: *const c_char, flags: c_int) {
    if namespace == libc::LM_ID_BASE {
        before_dlopen(name, flags);
    } else if flags & libc::RTLD_NOLOAD == 0 {
        deep_bound::loading(true);
    }
}

/// Address of the loader's next function after ours.
extern "C" fn loader(which: usize) -> *mut c_void {
    let name = [c"dlopen", c"dlmopen"][which % 2];
    // SAFETY: a terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

// The loader searches folders that the calling object names, so it must find that object's address
// as the one to return to.
forwards! { before_dlopen, loader: dlopen 0; }
forwards! { before_dlmopen, loader: dlmopen 1; }

/// `posix_spawn_file_actions_adddup2(3)`: libc makes that copy, and starts the program, without our
/// hooks.
///
/// # Safety
/// The arguments are valid for `posix_spawn_file_actions_adddup2(3)`.
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
            /// The arguments are valid for the function of libc with this name.
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
    posix_spawn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    posix_spawnp(pid: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    pidfd_spawn(pidfd: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    pidfd_spawnp(pidfd: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int;
    /// `system(3)` starts its shell without the hook of `posix_spawn`.
    system(command: *const c_char) -> c_int;
    /// `popen(3)`, as `system`.
    popen(command: *const c_char, mode: *const c_char) -> *mut FILE;
    /// `wordexp(3)`, as `system` for each command in the words.
    wordexp(words: *const c_char, result: *mut c_void, flags: c_int) -> c_int;
}

/// # Safety
/// The arguments are valid for `prctl(2)`.
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

/// `seccomp(2)`, from libc or libseccomp.
///
/// # Safety
/// The arguments are valid for `seccomp(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn seccomp(operation: u32, flags: u32, args: *mut c_void) -> c_int {
    sockets::sandboxed();
    // SAFETY: arguments pass unchanged.
    unsafe { next::seccomp(operation, flags, args) }
}

/// # Safety
/// The arguments are valid for `unshare(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    // SAFETY: no pointers.
    let switch = || unsafe { next::unshare(flags) };
    if namespaces::leaves(flags) {
        namespaces::leave(switch)
    } else {
        switch()
    }
}

/// `setns(2)`; with kind 0, the descriptor may refer to a namespace of any kind.
///
/// # Safety
/// The arguments are valid for `setns(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setns(fd: c_int, kind: c_int) -> c_int {
    // SAFETY: no pointers.
    let switch = || unsafe { next::setns(fd, kind) };
    if kind == 0 || namespaces::leaves(kind) {
        namespaces::leave(switch)
    } else {
        switch()
    }
}
