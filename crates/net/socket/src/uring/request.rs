//! One request to a ring: the descriptors that it names.

#![expect(unsafe_code, reason = "reads requests from memory of the application")]

use super::{names, note_unseen_ring};
use saiga_channel::sys::Fd;

/// `struct io_uring_sqe` (`include/uapi/linux/io_uring.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Request {
    operation: u8,
    flags: u8,
    priority: u16,
    fd: Fd,
    /// For EPOLL_CTL, the descriptor to register.
    offset: u64,
    address: u64,
    length: u32,
    operation_flags: u32,
    user_data: u64,
    buffer: u32,
    second_fd: Fd,
    rest: [u64; 2],
}

const _: () = {
    assert!(size_of::<Request>() == 64);
    assert!(core::mem::offset_of!(Request, operation_flags) == 28);
    assert!(core::mem::offset_of!(Request, second_fd) == 44);
};

/// IOSQE_FIXED_FILE: `fd` is an index of registered files, which were handled at registration.
const FIXED_FILE: u8 = 1;
/// SPLICE_F_FD_IN_FIXED: the same for `second_fd`.
const SECOND_FIXED: u32 = 1 << 31;

/// `IORING_OP_*`.
mod operation {
    pub(super) const SENDMSG: u8 = 9;
    pub(super) const FILES_UPDATE: u8 = 20;
    pub(super) const EPOLL_CTL: u8 = 29;
    pub(super) const SPLICE: u8 = 30;
    pub(super) const TEE: u8 = 33;
    pub(super) const SENDMSG_ZC: u8 = 48;
    pub(super) const EPOLL_WAIT: u8 = 59;
    /// Operations whose `fd` is not a descriptor, or has no effect on one: NOP, timeouts,
    /// cancellation, updates of files and buffers, WAITID and futex operations; and EPOLL_CTL,
    /// which does not use the set itself.
    pub(super) const OTHERS: [u8; 13] = [0, 11, 12, 14, 15, 20, 29, 31, 32, 50, 51, 52, 53];
}

/// Downgrades connections that the request names. Returns the message that the request sends, if
/// any: the caller handles descriptors passed in it.
///
/// # Safety
/// `request` is a request that the application is about to submit.
#[must_use]
pub unsafe fn submitting(request: *const u8) -> Option<*const libc::msghdr> {
    // SAFETY: 64 readable bytes as our caller promises; every bit pattern is a valid `Request`.
    let request = unsafe { request.cast::<Request>().read_unaligned() };
    let by_number = request.flags & FIXED_FILE == 0;
    if by_number && !operation::OTHERS.contains(&request.operation) {
        names(request.fd);
    }
    match request.operation {
        operation::EPOLL_CTL => names(Fd::try_from(request.offset).unwrap_or(-1)),
        operation::SPLICE | operation::TEE if request.operation_flags & SECOND_FIXED == 0 => {
            names(request.second_fd);
        }
        operation::FILES_UPDATE => {
            let files = core::ptr::with_exposed_provenance(word(request.address));
            // SAFETY: the operation requires that many descriptors there.
            unsafe { registering(files, request.length) };
        }
        // The kernel would report events that only the library can interpret.
        operation::EPOLL_WAIT => note_unseen_ring(),
        operation::SENDMSG | operation::SENDMSG_ZC => {
            let message: *const libc::msghdr =
                core::ptr::with_exposed_provenance(word(request.address));
            return Some(message).filter(|at| !at.is_null());
        }
        _ => {}
    }
    None
}

/// Downgrades connections that are about to become registered files of a ring.
///
/// # Safety
/// `files` is null, or points to `count` descriptors.
pub unsafe fn registering(files: *const Fd, count: u32) {
    if files.is_null() {
        return; // Empty entries for files registered later.
    }
    for nth in 0..count as usize {
        // SAFETY: within the descriptors that the caller promises.
        let at = unsafe { files.add(nth) };
        // SAFETY: as above.
        names(unsafe { at.read_unaligned() });
    }
}

fn word(register: u64) -> usize {
    usize::try_from(register).unwrap_or(0)
}
