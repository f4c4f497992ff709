//! fork, exec, sandboxes, and system calls by number.

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::variadic::forwards;
use super::{epoll, fail, poll, receive, transmit, uring};
use crate::symbols::{Strings, next};
use core::ffi::{c_char, c_int, c_long, c_void};
use saiga_socket::{self as sockets, fork as forks, is_hidden, namespaces};

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

/// `posix_spawn(3)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawn(
    pid: *mut c_int,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Strings,
    envp: Strings,
) -> c_int {
    sockets::before_spawn();
    // SAFETY: arguments pass unchanged.
    unsafe { next::posix_spawn(pid, path, actions, attributes, argv, envp) }
}

/// `posix_spawnp(3)`.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawnp(
    pid: *mut c_int,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Strings,
    envp: Strings,
) -> c_int {
    sockets::before_spawn();
    // SAFETY: arguments pass unchanged.
    unsafe { next::posix_spawnp(pid, file, actions, attributes, argv, envp) }
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

/// `syscall(2)`: calls that have a hook by name go through it.
///
/// # Safety
/// As the manual page says.
#[unsafe(no_mangle)]
#[expect(clippy::many_single_char_names, reason = "six registers")]
pub(crate) unsafe extern "C" fn syscall(
    nr: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the kernel takes the low half as well"
    )]
    let int = |v: c_long| v as c_int;
    // SAFETY: forwarded; our caller promises what the numbered call asks for.
    if let Some(result) = unsafe { by_number(nr, [a, b, c, d, e, f]) } {
        return result;
    }
    // SAFETY: as above.
    if let Some(result) = unsafe { uring::by_number(nr, [a, b, c, d, e, f]) } {
        return result;
    }
    match nr {
        // SAFETY: no pointers.
        libc::SYS_close => return c_long::from(unsafe { super::descriptors::close(int(a)) }),
        // SAFETY: no pointers.
        libc::SYS_dup => return c_long::from(unsafe { super::descriptors::dup(int(a)) }),
        libc::SYS_dup3 => {
            // SAFETY: no pointers.
            return c_long::from(unsafe { super::descriptors::dup3(int(a), int(b), int(c)) });
        }
        libc::SYS_close_range => {
            let (first, last) = (int(a).cast_unsigned(), int(b).cast_unsigned());
            // SAFETY: no pointers.
            return c_long::from(unsafe { super::descriptors::close_range(first, last, int(c)) });
        }
        libc::SYS_execve => sockets::before_exec(),
        libc::SYS_seccomp => sockets::sandboxed(),
        // SAFETY: no pointers.
        libc::SYS_unshare => return c_long::from(unsafe { unshare(int(a)) }),
        // SAFETY: no pointers.
        libc::SYS_setns => return c_long::from(unsafe { setns(int(a), int(b)) }),
        libc::SYS_clone if namespaces::leaves(int(a)) => {
            // SAFETY: arguments pass unchanged.
            let go = || int(unsafe { next::syscall(nr, a, b, c, d, e, f) });
            return c_long::from(namespaces::leave(go));
        }
        libc::SYS_fcntl if is_hidden(int(a)) => return c_long::from(fail(libc::EBADF)),
        _ => {}
    }
    // SAFETY: arguments pass unchanged.
    unsafe { next::syscall(nr, a, b, c, d, e, f) }
}

/// Moving bytes and polling by number: through the hook of the same name.
///
/// # Safety
/// As the numbered call asks.
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one promise for all arms: the caller's arguments are those of the numbered call"
)]
unsafe fn by_number(nr: c_long, args: [c_long; 6]) -> Option<c_long> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the kernel takes the low half as well"
    )]
    let int = |i: usize| args[i] as c_int;
    let size = |i: usize| super::word(args[i]);
    let at = |i: usize| core::ptr::with_exposed_provenance_mut::<c_void>(size(i));
    let fd = int(0);
    Some(match nr {
        libc::SYS_read => unsafe { receive::read(fd, at(1), size(2)) as c_long },
        libc::SYS_readv => unsafe { receive::readv(fd, at(1).cast(), int(2)) as c_long },
        libc::SYS_recvfrom => unsafe {
            receive::recvfrom(fd, at(1), size(2), int(3), at(4).cast(), at(5).cast()) as c_long
        },
        libc::SYS_recvmsg => unsafe { receive::recvmsg(fd, at(1).cast(), int(2)) as c_long },
        libc::SYS_write => unsafe { transmit::write(fd, at(1), size(2)) as c_long },
        libc::SYS_writev => unsafe { transmit::writev(fd, at(1).cast(), int(2)) as c_long },
        libc::SYS_sendto => unsafe {
            let len = int(5).cast_unsigned();
            transmit::sendto(fd, at(1), size(2), int(3), at(4).cast(), len) as c_long
        },
        libc::SYS_sendmsg => unsafe { transmit::sendmsg(fd, at(1).cast(), int(2)) as c_long },
        libc::SYS_ppoll => unsafe {
            poll::ppoll(at(0).cast(), size(1) as u64, at(2).cast(), at(3).cast()).into()
        },
        libc::SYS_epoll_ctl => unsafe { epoll::epoll_ctl(fd, int(1), int(2), at(3).cast()).into() },
        libc::SYS_epoll_pwait => unsafe {
            epoll::epoll_pwait(fd, at(1).cast(), int(2), int(3), at(4).cast()).into()
        },
        _ => return None,
    })
}
