//! System calls made without libc's entry points.
//!
//! Inside `libsaiga.so` the names `send`, `close`, `syscall` are our own hooks, so all calls of the
//! library itself go to the kernel directly. Errors are errno values; nothing here changes the
//! thread's `errno`.

#![expect(unsafe_code, reason = "system calls")]

use core::ffi::{c_int, c_void};
use syscalls::Sysno;

/// Number of a file descriptor, not owned.
pub type Fd = c_int;

/// An errno value (`man 3 errno`), positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "errno {}", self.0)
    }
}
impl core::error::Error for Errno {}

/// Result of a system call.
pub type Sys<T> = Result<T, Errno>;

/// Calls the kernel with six arguments.
///
/// # Safety
/// As the call itself: pointers among the arguments are valid for it.
pub unsafe fn call(nr: Sysno, a: [usize; 6]) -> Sys<usize> {
    // SAFETY: forwarded from our caller.
    unsafe { syscalls::syscall!(nr, a[0], a[1], a[2], a[3], a[4], a[5]) }
        .map_err(|e| Errno(e.into_raw()))
}

/// Calls the kernel with arguments that contain no pointer.
fn plain(nr: Sysno, a: [usize; 6]) -> Sys<usize> {
    // SAFETY: every caller of this function passes numbers and descriptors only.
    unsafe { call(nr, a) }
}

/// Converts a value that the kernel returned to a descriptor or count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "kernel ints"
)]
fn int(value: usize) -> c_int {
    value as c_int
}

/// Converts a C int to a register.
#[expect(clippy::cast_sign_loss, reason = "registers carry the bits of the int")]
pub fn reg(value: c_int) -> usize {
    value as isize as usize
}

/// `close(2)`. Ignores errors: the descriptor is closed in any case.
pub fn close(fd: Fd) {
    let _ = plain(Sysno::close, [reg(fd), 0, 0, 0, 0, 0]);
}

pub fn socket(domain: c_int, kind: c_int, protocol: c_int) -> Sys<Fd> {
    plain(
        Sysno::socket,
        [reg(domain), reg(kind), reg(protocol), 0, 0, 0],
    )
    .map(int)
}

/// `bind(2)` or `connect(2)` with an address of `len` bytes at `addr`.
fn with_address(nr: Sysno, fd: Fd, addr: &[u8]) -> Sys<()> {
    // SAFETY: the kernel reads `addr.len()` bytes at `addr`.
    unsafe { call(nr, [reg(fd), addr.as_ptr() as usize, addr.len(), 0, 0, 0]) }.map(drop)
}

/// `bind(2)`; `addr` is a whole sockaddr.
pub fn bind(fd: Fd, addr: &[u8]) -> Sys<()> {
    with_address(Sysno::bind, fd, addr)
}

/// `connect(2)`; `addr` is a whole sockaddr.
pub fn connect(fd: Fd, addr: &[u8]) -> Sys<()> {
    with_address(Sysno::connect, fd, addr)
}

/// `shutdown(2)`; `how` is SHUT_RD, SHUT_WR or SHUT_RDWR.
pub fn shutdown(fd: Fd, how: c_int) -> Sys<()> {
    // SAFETY: no pointers.
    unsafe { call(Sysno::shutdown, [reg(fd), reg(how), 0, 0, 0, 0]) }.map(drop)
}

pub fn listen(fd: Fd, backlog: c_int) -> Sys<()> {
    plain(Sysno::listen, [reg(fd), reg(backlog), 0, 0, 0, 0]).map(drop)
}

/// `accept4(2)` without an address.
pub fn accept(fd: Fd, flags: c_int) -> Sys<Fd> {
    plain(Sysno::accept4, [reg(fd), 0, 0, reg(flags), 0, 0]).map(int)
}

/// `sendto(2)`; `addr` is a whole sockaddr or empty.
pub fn sendto(fd: Fd, bytes: &[u8], flags: c_int, addr: &[u8]) -> Sys<usize> {
    let at = if addr.is_empty() {
        0
    } else {
        addr.as_ptr() as usize
    };
    let args = [
        reg(fd),
        bytes.as_ptr() as usize,
        bytes.len(),
        reg(flags),
        at,
        addr.len(),
    ];
    // SAFETY: both slices are readable for their lengths.
    unsafe { call(Sysno::sendto, args) }
}

/// `write(2)`.
pub fn write(fd: Fd, bytes: &[u8]) -> Sys<usize> {
    let args = [reg(fd), bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: `bytes` is readable for its length.
    unsafe { call(Sysno::write, args) }
}

/// `recvfrom(2)` without an address.
pub fn recv(fd: Fd, bytes: &mut [u8], flags: c_int) -> Sys<usize> {
    let args = [
        reg(fd),
        bytes.as_mut_ptr() as usize,
        bytes.len(),
        reg(flags),
        0,
        0,
    ];
    // SAFETY: the slice is writable for its length.
    unsafe { call(Sysno::recvfrom, args) }
}

/// `fcntl(2)` with an integer argument.
pub fn fcntl(fd: Fd, cmd: c_int, arg: usize) -> Sys<c_int> {
    plain(Sysno::fcntl, [reg(fd), reg(cmd), arg, 0, 0, 0]).map(int)
}

/// `getsockopt(2)` into a plain value; returns the length that the kernel wrote.
pub fn getsockopt<T: Copy>(fd: Fd, level: c_int, name: c_int, value: &mut T) -> Sys<usize> {
    let mut len = u32::try_from(size_of::<T>()).unwrap_or(0);
    let (at, len_at) = (core::ptr::from_mut(value) as usize, &raw mut len as usize);
    // SAFETY: `value` is writable for `len` bytes and plain data for every bit pattern in use.
    unsafe {
        call(
            Sysno::getsockopt,
            [reg(fd), reg(level), reg(name), at, len_at, 0],
        )
    }?;
    Ok(len as usize)
}

/// `setsockopt(2)` from a plain value.
pub fn setsockopt<T: Copy>(fd: Fd, level: c_int, name: c_int, value: &T) -> Sys<()> {
    let at = core::ptr::from_ref(value) as usize;
    let args = [reg(fd), reg(level), reg(name), at, size_of::<T>(), 0];
    // SAFETY: `value` is readable for its size.
    unsafe { call(Sysno::setsockopt, args) }.map(drop)
}

/// `getsockname(2)` (or `getpeername`) into `out`; returns the address length.
pub fn name(fd: Fd, peer: bool, out: &mut [u8; 128]) -> Sys<usize> {
    let mut len = 128u32;
    let nr = if peer {
        Sysno::getpeername
    } else {
        Sysno::getsockname
    };
    let args = [
        reg(fd),
        out.as_mut_ptr() as usize,
        &raw mut len as usize,
        0,
        0,
        0,
    ];
    // SAFETY: `out` is writable for the 128 bytes that `len` announces.
    unsafe { call(nr, args) }?;
    Ok(len as usize)
}

/// `ioctl(2)` that writes one int (`SIOCINQ`, `SIOCOUTQ`).
pub fn ioctl_int(fd: Fd, request: u64) -> Sys<c_int> {
    let mut value: c_int = 0;
    let request = usize::try_from(request).unwrap_or(0);
    // SAFETY: the requests used here write one int.
    unsafe {
        call(
            Sysno::ioctl,
            [reg(fd), request, &raw mut value as usize, 0, 0, 0],
        )
    }?;
    Ok(value)
}

/// `ppoll(2)`; `timeout` is relative, `None` waits for ever. No signal mask.
pub fn ppoll(fds: &mut [libc::pollfd], timeout: Option<libc::timespec>) -> Sys<usize> {
    let at = timeout
        .as_ref()
        .map_or(0, |t| core::ptr::from_ref(t) as usize);
    let args = [fds.as_mut_ptr() as usize, fds.len(), at, 0, 8, 0];
    // SAFETY: the slice and the time outlive the call.
    unsafe { call(Sysno::ppoll, args) }
}

/// `poll(2)` that does not wait: the events of one descriptor.
pub fn poll_now(fd: Fd, events: i16) -> i16 {
    let mut p = [libc::pollfd {
        fd,
        events,
        revents: 0,
    }];
    match ppoll(
        &mut p,
        Some(libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    ) {
        Ok(_) => p[0].revents,
        Err(_) => 0,
    }
}

pub fn epoll_ctl(epfd: Fd, op: c_int, fd: Fd, events: u32, data: u64) -> Sys<()> {
    let mut event = libc::epoll_event { events, u64: data };
    let args = [reg(epfd), reg(op), reg(fd), &raw mut event as usize, 0, 0];
    // SAFETY: the event outlives the call.
    unsafe { call(Sysno::epoll_ctl, args) }.map(drop)
}

/// Makes a memfd of `bytes` zeroed bytes (`man 2 memfd_create`): sealing allowed, close-on-exec,
/// and not executable if the kernel knows that flag.
///
/// # Errors
/// EFBIG above the limit on file sizes, where `ftruncate(2)` would raise SIGXFSZ; else the errors
/// of the two calls. If the limit cannot be read, there is no limit.
pub fn memfd(name: &core::ffi::CStr, bytes: usize) -> Sys<Fd> {
    if file_size_limit() < bytes as u64 {
        return Err(Errno(libc::EFBIG));
    }
    let fd = empty_memfd(name)?;
    let sized = ftruncate(fd, bytes);
    if sized.is_err() {
        close(fd);
    }
    sized.map(|()| fd)
}

fn empty_memfd(name: &core::ffi::CStr) -> Sys<Fd> {
    const MFD_CLOEXEC: usize = 1;
    const MFD_ALLOW_SEALING: usize = 2;
    const MFD_NOEXEC_SEAL: usize = 8;
    let with = |flags: usize| {
        // SAFETY: the name is a terminated string.
        unsafe {
            call(
                Sysno::memfd_create,
                [name.as_ptr() as usize, flags, 0, 0, 0, 0],
            )
        }
        .map(int)
    };
    // Kernels before 6.3 return EINVAL for the third flag.
    with(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL)
        .or_else(|_| with(MFD_CLOEXEC | MFD_ALLOW_SEALING))
}

pub fn ftruncate(fd: Fd, len: usize) -> Sys<()> {
    plain(Sysno::ftruncate, [reg(fd), len, 0, 0, 0, 0]).map(drop)
}

/// `fallocate(2)`: mode 0 allocates memory, `PUNCH_HOLE | KEEP_SIZE` releases it.
pub fn fallocate(fd: Fd, mode: c_int, offset: usize, len: usize) -> Sys<()> {
    plain(Sysno::fallocate, [reg(fd), reg(mode), offset, len, 0, 0]).map(drop)
}

/// Largest size in bytes that this process may give a file (RLIMIT_FSIZE, `man 2 getrlimit`).
/// A call that makes a file larger raises SIGXFSZ.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let resource = libc::RLIMIT_FSIZE as usize;
    let args = [0, resource, 0, &raw mut limit as usize, 0, 0];
    // SAFETY: writes one rlimit, which outlives the call.
    let asked = unsafe { call(Sysno::prlimit64, args) };
    asked.map_or(u64::MAX, |_| limit.rlim_cur)
}

/// Size of the file behind a descriptor, in bytes.
pub fn file_size(fd: Fd) -> Sys<usize> {
    plain(Sysno::lseek, [reg(fd), 0, reg(libc::SEEK_END), 0, 0, 0])
}

/// Inode number of the file behind a descriptor (`man 2 fstat`).
pub fn inode(fd: Fd) -> Sys<u64> {
    let mut facts = core::mem::MaybeUninit::<libc::stat>::uninit();
    let at = facts.as_mut_ptr() as usize;
    // SAFETY: writes one stat, which outlives the call.
    unsafe { call(Sysno::fstat, [reg(fd), at, 0, 0, 0, 0]) }?;
    // SAFETY: the kernel has filled it.
    Ok(unsafe { facts.assume_init() }.st_ino)
}

/// Maps `len` bytes of `fd` shared (or, with -1, anonymous memory private to the process).
///
/// # Errors
/// ENOMEM and the other errors of `man 2 mmap`.
pub fn map(fd: Fd, len: usize) -> Sys<*mut c_void> {
    let flags = if fd >= 0 {
        libc::MAP_SHARED
    } else {
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS
    };
    map_with(libc::PROT_READ | libc::PROT_WRITE, flags, fd, len)
}

/// Maps `len` zeroed bytes that processes forked from now on share.
///
/// # Errors
/// ENOMEM and the other errors of `man 2 mmap`.
pub fn map_shared(len: usize) -> Sys<*mut c_void> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    map_with(prot, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, len)
}

/// Reserves `len` bytes of address space for private memory: see [`make_accessible`].
///
/// # Errors
/// ENOMEM and the other errors of `man 2 mmap`.
pub fn reserve(len: usize) -> Sys<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    map_with(libc::PROT_NONE, flags, -1, len)
}

/// Maps `len` bytes of `fd` shared, inaccessible at first, excluded from core dumps. They are not
/// locked in memory, whatever mlockall(2) has set, until it is called again.
///
/// # Errors
/// ENOMEM and the other errors of `man 2 mmap`.
pub fn reserve_shared(fd: Fd, len: usize) -> Sys<*mut c_void> {
    let at = map_with(libc::PROT_NONE, libc::MAP_SHARED, fd, len)?;
    let range = |nr, advice| {
        // SAFETY: the range is our own new mapping; neither call changes its content.
        let _ = unsafe { call(nr, [at as usize, len, advice, 0, 0, 0]) };
    };
    range(Sysno::madvise, reg(libc::MADV_DONTDUMP));
    range(Sysno::munlock, 0);
    Ok(at)
}

/// Makes `len` bytes of a reserved range readable and writable; `at` is the start of a page.
///
/// # Errors
/// ENOMEM when memory is short.
///
/// # Safety
/// The bytes lie in a range that this module reserved.
pub unsafe fn make_accessible(at: *mut c_void, len: usize) -> Sys<()> {
    let prot = reg(libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: promised by our caller; more access breaks no reference.
    unsafe { call(Sysno::mprotect, [at as usize, len, prot, 0, 0, 0]) }.map(drop)
}

fn map_with(prot: c_int, flags: c_int, fd: Fd, len: usize) -> Sys<*mut c_void> {
    let flags = flags | libc::MAP_NORESERVE;
    let args = [0, len, reg(prot), reg(flags), reg(fd), 0];
    // SAFETY: a new mapping at an address that the kernel chooses affects no existing memory.
    let at = unsafe { call(Sysno::mmap, args) }?;
    Ok(core::ptr::with_exposed_provenance_mut(at))
}

/// `munmap(2)`.
///
/// # Safety
/// Nothing refers to the range any more.
pub unsafe fn unmap(at: *mut c_void, len: usize) {
    // SAFETY: promised by our caller.
    let _ = unsafe { call(Sysno::munmap, [at as usize, len, 0, 0, 0, 0]) };
}

/// Opens a file for reading; the path ends with a NUL.
///
/// # Errors
/// EINVAL for a path without a NUL; else the errors of `openat(2)`.
pub fn open_to_read(path: &[u8]) -> Sys<Fd> {
    if !path.contains(&0) {
        return Err(Errno(libc::EINVAL));
    }
    let flags = reg(libc::O_RDONLY | libc::O_CLOEXEC);
    let args = [reg(libc::AT_FDCWD), path.as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: the path is terminated.
    unsafe { call(Sysno::openat, args) }.map(int)
}

pub fn read(fd: Fd, bytes: &mut [u8]) -> Sys<usize> {
    let args = [reg(fd), bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: the slice is writable for its length.
    unsafe { call(Sysno::read, args) }
}

/// Thread id of the caller.
pub fn gettid() -> u32 {
    u32::try_from(plain(Sysno::gettid, [0; 6]).unwrap_or(0)).unwrap_or(0)
}

/// Process id of the caller, read from the kernel: also correct in a vfork child.
pub fn getpid() -> u32 {
    u32::try_from(plain(Sysno::getpid, [0; 6]).unwrap_or(0)).unwrap_or(0)
}

/// Effective user id of the caller.
pub fn geteuid() -> u32 {
    u32::try_from(plain(Sysno::geteuid, [0; 6]).unwrap_or(0)).unwrap_or(u32::MAX)
}

/// Whether a process or thread with this id exists (`kill(2)` with signal 0).
pub fn alive(pid: u32) -> bool {
    plain(Sysno::kill, [pid as usize, 0, 0, 0, 0, 0]) != Err(Errno(libc::ESRCH))
}

/// `membarrier(2)` without flags or a CPU; `command` is one of MEMBARRIER_CMD_*.
pub(crate) fn membarrier(command: usize) -> Sys<()> {
    plain(Sysno::membarrier, [command, 0, 0, 0, 0, 0]).map(drop)
}

pub fn yield_cpu() {
    let _ = plain(Sysno::sched_yield, [0; 6]);
}

/// Eight random bytes (`getrandom(2)`).
pub fn random() -> u64 {
    let mut value = 0u64;
    // SAFETY: eight writable bytes.
    let _ = unsafe { call(Sysno::getrandom, [&raw mut value as usize, 8, 0, 0, 0, 0]) };
    value
}

/// `dup`s a descriptor to a number at or above `floor`, close-on-exec, and closes the original.
pub fn move_up(fd: Fd, floor: usize) -> Sys<Fd> {
    let moved = fcntl(fd, libc::F_DUPFD_CLOEXEC, floor);
    close(fd);
    moved
}
