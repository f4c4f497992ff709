//! System calls that the standard library does not offer. They act on the calling thread and its
//! network namespace.
#![expect(unsafe_code, reason = "system calls")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::{c_int, c_void, sockaddr_in, socklen_t};

/// The result of a system call, or errno.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn count(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Gives the calling thread a network namespace of its own.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Makes the descriptor of /dev/net/tun a device for IP packets without a header before them.
pub(crate) fn set_tun(tun: &impl AsRawFd, name: &str) -> io::Result<()> {
    // SAFETY: zeros are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI;
    request.ifr_ifru.ifru_flags = i16::try_from(flags).unwrap();
    // SAFETY: TUNSETIFF reads and writes one ifreq.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) }).map(drop)
}

/// Waits until `fd` can be read, at most `limit`.
pub(crate) fn wait_readable(fd: &impl AsRawFd, limit: Duration) -> io::Result<()> {
    let mut polled = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let limit = libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap(),
        tv_nsec: limit.subsec_nanos().into(),
    };
    // SAFETY: one pollfd and a timespec that live until the call returns.
    check(unsafe { libc::ppoll(&raw mut polled, 1, &raw const limit, std::ptr::null()) }).map(drop)
}

/// A TCP socket that does not block.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: the descriptor is new and belongs to nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn address(address: std::net::SocketAddrV4) -> (sockaddr_in, socklen_t) {
    let address = sockaddr_in {
        sin_family: libc::AF_INET.try_into().unwrap(),
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*address.ip()).to_be(),
        },
        sin_zero: [0; 8],
    };
    (address, size_of::<sockaddr_in>().try_into().unwrap())
}

/// `bind(2)`.
pub(crate) fn bind(fd: &OwnedFd, to: std::net::SocketAddrV4) -> io::Result<()> {
    let (to, length) = address(to);
    // SAFETY: the address lives until the call returns, and has the length that is passed.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const to).cast(), length) }).map(drop)
}

/// `connect(2)` that goes on in the background.
pub(crate) fn connect(fd: &OwnedFd, to: std::net::SocketAddrV4) -> io::Result<()> {
    let (to, length) = address(to);
    // SAFETY: the address lives until the call returns, and has the length that is passed.
    match check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const to).cast(), length) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(drop),
    }
}

/// `listen(2)`.
pub(crate) fn listen(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::listen(fd.as_raw_fd(), 8) }).map(drop)
}

/// `accept4(2)`: a connection that does not block.
pub(crate) fn accept(fd: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let (none, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: null pointers ask for no address.
    let fd = check(unsafe { libc::accept4(fd.as_raw_fd(), none, no_length, flags) })?;
    // SAFETY: the descriptor is new and belongs to nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `send(2)` without a signal, and with urgent data if `flags` is `MSG_OOB`; returns the number of
/// bytes taken.
pub(crate) fn send(fd: &OwnedFd, bytes: &[u8], flags: c_int) -> io::Result<usize> {
    let data: *const c_void = bytes.as_ptr().cast();
    let flags = flags | libc::MSG_NOSIGNAL;
    // SAFETY: `bytes` is readable for its length.
    count(unsafe { libc::send(fd.as_raw_fd(), data, bytes.len(), flags) })
}

/// `recv(2)`; returns the number of bytes read, 0 at the end of the stream.
pub(crate) fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    let data: *mut c_void = buffer.as_mut_ptr().cast();
    // SAFETY: `buffer` is writable for its length.
    count(unsafe { libc::recv(fd.as_raw_fd(), data, buffer.len(), 0) })
}

/// `shutdown(2)` of the direction to the peer.
pub(crate) fn shutdown(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// Sets an option whose value is of the type `T`, as the kernel defines it.
pub(crate) fn set<T>(fd: &OwnedFd, level: c_int, option: c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>().try_into().unwrap();
    let value: *const c_void = (&raw const value).cast();
    // SAFETY: `value` is readable for its length.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, value, length) }).map(drop)
}

/// The pending error of a socket, which is cleared; 0 if there is none.
pub(crate) fn take_error(fd: &OwnedFd) -> io::Result<c_int> {
    let mut error: c_int = 0;
    let mut length: socklen_t = size_of::<c_int>().try_into().unwrap();
    let to: *mut c_void = (&raw mut error).cast();
    let option = libc::SO_ERROR;
    // SAFETY: `error` is writable for `length`, and both live until the call returns.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            to,
            &raw mut length,
        )
    })?;
    Ok(error)
}

/// An `ioctl(2)` that answers with a number: SIOCINQ or SIOCOUTQ.
pub(crate) fn ask(fd: &OwnedFd, request: libc::Ioctl) -> io::Result<u32> {
    let mut answer: c_int = 0;
    // SAFETY: both requests write one int.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request, &raw mut answer) })?;
    Ok(u32::try_from(answer).unwrap_or(0))
}
