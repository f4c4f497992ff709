//! The table of interposed functions: signature and reason.
//!
//! A test compares the exported symbols of the library with this table. `next::NAME` calls the next
//! function of that name after ours; its address is resolved at the first call. A row has in
//! brackets the system call that takes the same arguments, with the architecture if only one has
//! it, and after `also` further names of its function. `hooks/numbers.rs` has the system calls
//! whose arguments differ from those of their function.

#![expect(unsafe_code, reason = "calls functions found by dlsym")]

use crate::hooks;
use core::ffi::{c_char, c_int, c_long, c_void};
use libc::{
    FILE, aiocb, epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t, pollfd, sigset_t,
    size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

/// An array of C strings, as for `execve(2)`.
pub(crate) type Strings = *const *const c_char;

macro_rules! symbols {
    ($($name:ident $args:tt $([$number:ident $($arch:literal)?])? -> $ret:ty = $why:literal $(also $alias:ident)*;)*) => {
        /// Names and reasons, in the order of the table.
        #[used]
        pub(crate) static TABLE: &[(&str, &str)] = &[
            $((stringify!($name), $why), $((stringify!($alias), $why),)*)*
            ("execl", "as execve; its arguments are passed on untouched"),
            ("execlp", "as execl"),
            ("execle", "as execl"),
            ("dlopen", "RTLD_DEEPBIND: the object's waits pass by our hooks: downgrade"),
            ("dlmopen", "as dlopen, also for another namespace"),
            ("dprintf", "stdio writes without our hooks: downgrade; its arguments are passed on untouched"),
            ("__dprintf_chk", "fortified dprintf"),
        ];

        /// The next functions after our hooks.
        pub(crate) mod next {
            use super::*;
            use core::sync::atomic::{AtomicPtr, Ordering};

            $(next! { $why $name $args -> $ret })*

            fn find(name: &'static str) -> *mut c_void {
                // SAFETY: the name is terminated.
                let at = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) };
                if !at.is_null() || !name.contains("io_uring") {
                    return at;
                }
                // liburing was loaded by a module (dlopen), so it is not behind us in the search
                // order.
                let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
                // SAFETY: a terminated name; loads nothing that is not loaded already.
                let liburing = unsafe { libc::dlopen(c"liburing.so.2".as_ptr(), flags) };
                if liburing.is_null() {
                    return at;
                }
                // SAFETY: a library that is loaded; the name is terminated.
                unsafe { libc::dlsym(liburing, name.as_ptr().cast()) }
            }
        }

        $($(alias! { $alias $name $args -> $ret })*)*

        /// Serves a system call that takes the same arguments as a hook, through that hook. `None`
        /// for any other number.
        ///
        /// # Safety
        /// The registers hold valid arguments of the numbered call.
        pub(crate) unsafe fn by_number(nr: c_long, registers: [c_long; 6]) -> Option<c_long> {
            Some(match nr {
                $($(
                    $(#[cfg(target_arch = $arch)])?
                    libc::$number => by_register!(registers $name $args),
                )?)*
                _ => return None,
            })
        }
    };
}

/// Defines the call of the next function after a hook.
macro_rules! next {
    ($why:literal $name:ident ($($arg:ident : $kind:ty),*) -> $ret:ty) => {
        #[doc = $why]
        #[expect(clippy::allow_attributes, reason = "one list for many shapes")]
        #[allow(
            clippy::too_many_arguments,
            dead_code,
            non_snake_case,
            reason = "C's names and arguments; some rows are served by another row's function"
        )]
        pub(crate) unsafe fn $name($($arg: $kind),*) -> $ret {
            static AT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let mut at = AT.load(Ordering::Relaxed);
            if at.is_null() {
                at = find(concat!(stringify!($name), "\0"));
                if at.is_null() {
                    return super::Missing::missing();
                }
                AT.store(at, Ordering::Relaxed);
            }
            type Function = unsafe extern "C" fn($($kind),*) -> $ret;
            // SAFETY: libc's function of this name has this signature (checked below
            // where the libc crate declares it).
            let f = unsafe { core::mem::transmute::<*mut c_void, Function>(at) };
            // SAFETY: forwarded from our caller.
            unsafe { f($($arg),*) }
        }
    };
}

/// Exports a hook under another name of its function.
macro_rules! alias {
    ($alias:ident $name:ident ($($arg:ident : $kind:ty),*) -> $ret:ty) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $alias($($arg: $kind),*) -> $ret {
            // SAFETY: arguments pass unchanged.
            unsafe { hooks::$name($($arg),*) }
        }
    };
}

/// Calls a hook with the content of registers.
macro_rules! by_register {
    ($registers:ident $name:ident ($($arg:ident : $kind:ty),*)) => {{
        let [$($arg,)* ..] = $registers;
        // SAFETY: as our caller promises.
        unsafe { hooks::$name($(<$kind as Register>::of($arg)),*) as c_long }
    }};
}

/// The result of a function that libc lacks: errno is ENOSYS.
pub(crate) trait Missing {
    fn missing() -> Self;
}

macro_rules! missing {
    ($($kind:ty => $value:expr),*) => {
        $(impl Missing for $kind {
            fn missing() -> Self {
                saiga_socket::set_errno(saiga_socket::Errno(libc::ENOSYS));
                $value
            }
        })*
    };
}
missing!(c_int => -1, i64 => -1, isize => -1, *mut FILE => core::ptr::null_mut(), () => ());

/// An argument of a system call.
pub(crate) trait Register {
    /// Converts a register as the kernel does.
    fn of(register: c_long) -> Self;
}

macro_rules! registers {
    ($($kind:ty),*) => {
        $(impl Register for $kind {
            #[expect(clippy::allow_attributes, reason = "one list for several widths")]
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the kernel reads the low half of a register, and any bits"
            )]
            fn of(register: c_long) -> Self {
                register as Self
            }
        })*
    };
}
registers!(i32, u32, i64, u64, usize);

impl<T> Register for *mut T {
    fn of(register: c_long) -> Self {
        core::ptr::with_exposed_provenance_mut(usize::of(register))
    }
}

impl<T> Register for *const T {
    fn of(register: c_long) -> Self {
        core::ptr::with_exposed_provenance(usize::of(register))
    }
}

symbols! {
    socket(domain: c_int, kind: c_int, protocol: c_int) [SYS_socket] -> c_int = "track TCP sockets from the start, also those added to a set before they connect";
    connect(fd: c_int, addr: *const sockaddr, len: socklen_t) [SYS_connect] -> c_int = "an active open, whose end counts the SYN" also __connect;
    accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) [SYS_accept] -> c_int = "track accepted connections";
    accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) [SYS_accept4] -> c_int = "track accepted connections";
    shutdown(fd: c_int, how: c_int) [SYS_shutdown] -> c_int = "half-close by the kernel; end the ring";
    close(fd: c_int) [SYS_close] -> c_int = "end the channel; keep our own descriptors" also __close;
    close_range(first: u32, last: u32, flags: c_int) [SYS_close_range] -> c_int = "as close, for a range; keep our own descriptors";
    closefrom(first: c_int) -> () = "as close_range";
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) [SYS_setsockopt] -> c_int = "options that a channel cannot honour keep the socket on TCP";
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) [SYS_getsockopt] -> c_int = "SO_ERROR of a connection that the library has reset";
    fcntl(fd: c_int, cmd: c_int, arg: c_long) [SYS_fcntl] -> c_int = "F_DUPFD and O_NONBLOCK" also fcntl64 also __fcntl;
    ioctl(fd: c_int, request: c_long, arg: c_long) [SYS_ioctl] -> c_int = "FIONREAD, SIOCOUTQ, FIONBIO";
    read(fd: c_int, buf: *mut c_void, n: size_t) [SYS_read] -> ssize_t = "receive" also __read;
    readv(fd: c_int, iov: *const iovec, n: c_int) [SYS_readv] -> ssize_t = "receive";
    preadv2(fd: c_int, iov: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t = "receive when the offset is -1" also preadv64v2;
    recv(fd: c_int, buf: *mut c_void, n: size_t, flags: c_int) -> ssize_t = "receive";
    recvfrom(fd: c_int, buf: *mut c_void, n: size_t, flags: c_int, addr: *mut sockaddr, len: *mut socklen_t) [SYS_recvfrom] -> ssize_t = "receive";
    recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) [SYS_recvmsg] -> ssize_t = "receive";
    recvmmsg(fd: c_int, msgs: *mut mmsghdr, n: u32, flags: c_int, timeout: *mut timespec) [SYS_recvmmsg] -> c_int = "receive";
    write(fd: c_int, buf: *const c_void, n: size_t) [SYS_write] -> ssize_t = "send" also __write;
    writev(fd: c_int, iov: *const iovec, n: c_int) [SYS_writev] -> ssize_t = "send";
    pwritev2(fd: c_int, iov: *const iovec, n: c_int, at: off_t, flags: c_int) -> ssize_t = "send when the offset is -1" also pwritev64v2;
    send(fd: c_int, buf: *const c_void, n: size_t, flags: c_int) -> ssize_t = "send" also __send;
    sendto(fd: c_int, buf: *const c_void, n: size_t, flags: c_int, addr: *const sockaddr, len: socklen_t) [SYS_sendto] -> ssize_t = "send";
    sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) [SYS_sendmsg] -> ssize_t = "send; downgrade a connection whose descriptor is passed on";
    sendmmsg(fd: c_int, msgs: *mut mmsghdr, n: u32, flags: c_int) [SYS_sendmmsg] -> c_int = "send";
    sendfile(out: c_int, input: c_int, at: *mut off_t, n: size_t) [SYS_sendfile] -> ssize_t = "send file contents through the channel" also sendfile64;
    splice(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, n: size_t, flags: u32) [SYS_splice] -> ssize_t = "pipes to and from a channel";
    dup(fd: c_int) [SYS_dup] -> c_int = "one connection, two numbers";
    dup2(old: c_int, new: c_int) [SYS_dup2 "x86_64"] -> c_int = "as dup; closes the new number first; our own descriptor moves away" also __dup2;
    dup3(old: c_int, new: c_int, flags: c_int) [SYS_dup3] -> c_int = "as dup2";
    poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) [SYS_poll "x86_64"] -> c_int = "readiness of channels" also __poll;
    ppoll(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int = "readiness of channels";
    select(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *mut timeval) [SYS_select "x86_64"] -> c_int = "readiness of channels" also __select;
    pselect(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int = "readiness of channels";
    epoll_create(size: c_int) [SYS_epoll_create "x86_64"] -> c_int = "track the sets";
    epoll_create1(flags: c_int) [SYS_epoll_create1] -> c_int = "track the sets";
    epoll_ctl(epfd: c_int, op: c_int, fd: c_int, event: *mut epoll_event) [SYS_epoll_ctl] -> c_int = "track the registrations";
    epoll_wait(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) [SYS_epoll_wait "x86_64"] -> c_int = "readiness of channels";
    epoll_pwait(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int = "readiness of channels";
    epoll_pwait2(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int = "readiness of channels";
    fdopen(fd: c_int, mode: *const c_char) -> *mut FILE = "stdio reads and writes without our hooks: downgrade" also _IO_fdopen;
    vdprintf(fd: c_int, format: *const c_char, list: *mut c_void) -> c_int = "as dprintf";
    __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, list: *mut c_void) -> c_int = "fortified vdprintf";
    aio_read(request: *mut aiocb) -> c_int = "threads of libc read without our hooks: downgrade" also aio_read64;
    aio_write(request: *mut aiocb) -> c_int = "as aio_read" also aio_write64;
    lio_listio(mode: c_int, list: *const *mut aiocb, n: c_int, notice: *mut c_void) -> c_int = "as aio_read, for many" also lio_listio64;
    __read_chk(fd: c_int, buf: *mut c_void, n: size_t, room: size_t) -> ssize_t = "fortified read";
    __recv_chk(fd: c_int, buf: *mut c_void, n: size_t, room: size_t, flags: c_int) -> ssize_t = "fortified recv";
    __recvfrom_chk(fd: c_int, buf: *mut c_void, n: size_t, room: size_t, flags: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> ssize_t = "fortified recvfrom";
    __poll_chk(fds: *mut pollfd, n: nfds_t, timeout: c_int, room: size_t) -> c_int = "fortified poll";
    __ppoll_chk(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t, room: size_t) -> c_int = "fortified ppoll";
    fork() -> c_int = "the child is another process with copies of our records" also __fork;
    _Fork() -> c_int = "fork without handlers";
    _exit(status: c_int) -> () = "makes peers send by TCP from here on, which refuses the bytes" also _Exit;
    execve(path: *const c_char, argv: Strings, envp: Strings) [SYS_execve] -> c_int = "downgrade connections that survive";
    execv(path: *const c_char, argv: Strings) -> c_int = "as execve";
    execvp(file: *const c_char, argv: Strings) -> c_int = "as execve";
    execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int = "as execve";
    fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int = "as execve";
    execveat(dir: c_int, path: *const c_char, argv: Strings, envp: Strings, flags: c_int) -> c_int = "as execve";
    posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, new: c_int) -> c_int = "the new program gets the connection under another number";
    posix_spawn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int = "downgrade connections that the new program inherits";
    posix_spawnp(pid: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int = "as posix_spawn";
    pidfd_spawn(pidfd: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int = "as posix_spawn";
    pidfd_spawnp(pidfd: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int = "as posix_spawn";
    system(command: *const c_char) -> c_int = "as posix_spawn, of a shell";
    popen(command: *const c_char, mode: *const c_char) -> *mut FILE = "as system" also _IO_popen;
    wordexp(words: *const c_char, result: *mut c_void, flags: c_int) -> c_int = "as system, for each command in the words";
    prctl(option: c_int, a: c_long, b: c_long, c: c_long, d: c_long) [SYS_prctl] -> c_int = "PR_SET_SECCOMP: a process with seccomp is not upgraded";
    seccomp(operation: u32, flags: u32, args: *mut c_void) -> c_int = "as prctl";
    io_uring_queue_init(entries: u32, ring: *mut c_void, flags: u32) -> c_int = "track the rings whose requests are seen";
    io_uring_queue_init_params(entries: u32, ring: *mut c_void, params: *mut c_void) -> c_int = "as io_uring_queue_init";
    io_uring_queue_init_mem(entries: u32, ring: *mut c_void, params: *mut c_void, memory: *mut c_void, size: size_t) -> c_int = "as io_uring_queue_init";
    io_uring_queue_exit(ring: *mut c_void) -> () = "as io_uring_queue_init";
    io_uring_submit(ring: *mut c_void) -> c_int = "downgrade connections that a request names";
    io_uring_submit_and_wait(ring: *mut c_void, count: u32) -> c_int = "as io_uring_submit";
    io_uring_submit_and_get_events(ring: *mut c_void) -> c_int = "as io_uring_submit";
    io_uring_submit_and_wait_timeout(ring: *mut c_void, first: *mut *mut c_void, count: u32, time: *mut timespec, mask: *mut sigset_t) -> c_int = "as io_uring_submit";
    io_uring_submit_and_wait_min_timeout(ring: *mut c_void, first: *mut *mut c_void, count: u32, time: *mut timespec, least: u32, mask: *mut sigset_t) -> c_int = "as io_uring_submit";
    io_uring_submit_and_wait_reg(ring: *mut c_void, first: *mut *mut c_void, count: u32, index: c_int) -> c_int = "as io_uring_submit";
    io_uring_wait_cqes(ring: *mut c_void, first: *mut *mut c_void, count: u32, time: *mut timespec, mask: *mut sigset_t) -> c_int = "submits a timeout, and all before it, to kernels before 5.11";
    io_uring_wait_cqe_timeout(ring: *mut c_void, first: *mut *mut c_void, time: *mut timespec) -> c_int = "as io_uring_wait_cqes";
    io_uring_register_files(ring: *mut c_void, files: *const c_int, count: u32) -> c_int = "later requests name a registered connection by its index";
    io_uring_register_files_tags(ring: *mut c_void, files: *const c_int, tags: *const u64, count: u32) -> c_int = "as io_uring_register_files";
    io_uring_register_files_update(ring: *mut c_void, from: u32, files: *const c_int, count: u32) -> c_int = "as io_uring_register_files";
    io_uring_register_files_update_tag(ring: *mut c_void, from: u32, files: *const c_int, tags: *const u64, count: u32) -> c_int = "as io_uring_register_files";
    unshare(flags: c_int) [SYS_unshare] -> c_int = "in another namespace bells and peers cannot be reached: downgrade";
    setns(fd: c_int, kind: c_int) [SYS_setns] -> c_int = "as unshare";
    syscall(nr: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long = "calls by number go through the hook of their name";
}

macro_rules! same {
    ($($name:ident : $kind:ty;)*) => { $(const _: $kind = libc::$name;)* };
}

// Does not compile if our signature drifts from libc's.
same! {
    recv: unsafe extern "C" fn(c_int, *mut c_void, size_t, c_int) -> ssize_t;
    send: unsafe extern "C" fn(c_int, *const c_void, size_t, c_int) -> ssize_t;
    read: unsafe extern "C" fn(c_int, *mut c_void, size_t) -> ssize_t;
    write: unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
    readv: unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
    writev: unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
    recvfrom: unsafe extern "C" fn(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    sendto: unsafe extern "C" fn(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t;
    recvmsg: unsafe extern "C" fn(c_int, *mut msghdr, c_int) -> ssize_t;
    sendmsg: unsafe extern "C" fn(c_int, *const msghdr, c_int) -> ssize_t;
    sendfile: unsafe extern "C" fn(c_int, c_int, *mut off_t, size_t) -> ssize_t;
    accept4: unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;
    connect: unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;
    shutdown: unsafe extern "C" fn(c_int, c_int) -> c_int;
    close: unsafe extern "C" fn(c_int) -> c_int;
    dup3: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;
    poll: unsafe extern "C" fn(*mut pollfd, nfds_t, c_int) -> c_int;
    ppoll: unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
    select: unsafe extern "C" fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int;
    epoll_ctl: unsafe extern "C" fn(c_int, c_int, c_int, *mut epoll_event) -> c_int;
    epoll_wait: unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;
    epoll_pwait: unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int, *const sigset_t) -> c_int;
    unshare: unsafe extern "C" fn(c_int) -> c_int;
    setns: unsafe extern "C" fn(c_int, c_int) -> c_int;
    execve: unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
}
