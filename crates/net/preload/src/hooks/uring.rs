//! Hooks of liburing: they show each request to the library before it is submitted.
//!
//! Requests to a ring that a program makes without liburing's shared library are not seen
//! (`saiga_socket::uring`).

#![expect(unsafe_code, reason = "C functions on the caller's memory")]

use super::transmit;
use crate::symbols::next;
use core::ffi::{c_int, c_void};
use libc::{sigset_t, size_t, timespec};
use saiga_socket::uring;

/// liburing's `struct io_uring`: compiled into every program that uses it, so it does not change.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ring {
    head: *const u32,
    tail: *const u32,
    mask: *const u32,
    others: [*const u32; 4],
    requests: *const u8,
    /// Number of requests submitted so far.
    submitted: u32,
    prepared: u32,
    sizes: [u64; 4],
    completions: [u64; 11],
    flags: u32,
    fd: c_int,
}

const _: () = {
    assert!(core::mem::offset_of!(Ring, requests) == 56);
    assert!(core::mem::offset_of!(Ring, submitted) == 64);
    assert!(core::mem::offset_of!(Ring, flags) == 192);
    assert!(core::mem::offset_of!(Ring, fd) == 196);
};

/// IORING_SETUP_SQE128: each request is as large as two.
const LARGE_REQUESTS: u32 = 1 << 10;

/// Shows the requests that are prepared and not submitted yet.
///
/// # Safety
/// `ring` is a ring that liburing has made.
unsafe fn show_prepared(ring: *const Ring) {
    // SAFETY: promised by our caller.
    let ring = unsafe { &*ring };
    // SAFETY: liburing makes this point into the ring's own memory.
    let mask = unsafe { ring.mask.read() };
    let large = ring.flags & LARGE_REQUESTS != 0;
    let mut at = ring.submitted;
    while at != ring.prepared {
        let index = ((at & mask) as usize) << usize::from(large);
        // SAFETY: the index is within the ring's requests, 64 bytes each.
        let request = unsafe { ring.requests.add(index * 64) };
        // SAFETY: a request that was prepared.
        unsafe { show(request) };
        at = at.wrapping_add(1);
    }
}

/// # Safety
/// `request` is a request that the application is about to submit.
unsafe fn show(request: *const u8) {
    // SAFETY: promised by our caller.
    if let Some(message) = unsafe { uring::submitting(request) } {
        // SAFETY: the application submits it as a valid message.
        let message = unsafe { &*message };
        // SAFETY: as above.
        unsafe { transmit::downgrade_passed(message) };
    }
}

macro_rules! submits {
    ($($(#[$doc:meta])* $name:ident ( $($arg:ident : $kind:ty),* );)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The arguments are valid for the function of libc with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(ring: *mut Ring, $($arg: $kind),*) -> c_int {
                // SAFETY: promised by our caller.
                unsafe { show_prepared(ring) };
                // SAFETY: arguments pass unchanged.
                unsafe { next::$name(ring.cast(), $($arg),*) }
            }
        )*
    };
}

submits! {
    io_uring_submit();
    io_uring_submit_and_wait(count: u32);
    io_uring_submit_and_get_events();
    io_uring_submit_and_wait_timeout(first: *mut *mut c_void, count: u32, time: *mut timespec, mask: *mut sigset_t);
    io_uring_submit_and_wait_min_timeout(first: *mut *mut c_void, count: u32, time: *mut timespec, least: u32, mask: *mut sigset_t);
    io_uring_submit_and_wait_reg(first: *mut *mut c_void, count: u32, index: c_int);
    io_uring_wait_cqes(first: *mut *mut c_void, count: u32, time: *mut timespec, mask: *mut sigset_t);
    io_uring_wait_cqe_timeout(first: *mut *mut c_void, time: *mut timespec);
}

macro_rules! makes {
    ($($(#[$doc:meta])* $name:ident ( $($before:ident : $kind:ty),* ; $($behind:ident : $rest:ty),* );)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The arguments are valid for the function of libc with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($before: $kind,)* ring: *mut Ring, $($behind: $rest),*) -> c_int {
                // SAFETY: arguments pass unchanged.
                let make = || unsafe { next::$name($($before,)* ring.cast(), $($behind),*) };
                let result = uring::by_liburing(make);
                if result >= 0 {
                    // SAFETY: liburing has just filled it in.
                    uring::made(unsafe { (*ring).fd });
                }
                result
            }
        )*
    };
}

makes! {
    io_uring_queue_init(entries: u32; flags: u32);
    io_uring_queue_init_params(entries: u32; params: *mut c_void);
    io_uring_queue_init_mem(entries: u32; params: *mut c_void, memory: *mut c_void, size: size_t);
}

/// # Safety
/// The arguments are valid for `io_uring_queue_exit(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn io_uring_queue_exit(ring: *mut Ring) {
    // SAFETY: a ring that liburing has made.
    uring::ended(unsafe { (*ring).fd });
    // SAFETY: arguments pass unchanged.
    unsafe { next::io_uring_queue_exit(ring.cast()) };
}

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident ( $($before:ident : $kind:ty),* ; $($tags:ident : $rest:ty),* );)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The arguments are valid for the function of libc with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(ring: *mut Ring, $($before: $kind,)* files: *const c_int, $($tags: $rest,)* count: u32) -> c_int {
                // SAFETY: the caller promises `count` descriptors.
                unsafe { uring::registering(files, count) };
                // SAFETY: arguments pass unchanged.
                unsafe { next::$name(ring.cast(), $($before,)* files, $($tags,)* count) }
            }
        )*
    };
}

registers! {
    io_uring_register_files(;);
    io_uring_register_files_tags(; tags: *const u64);
    io_uring_register_files_update(from: u32;);
    io_uring_register_files_update_tag(from: u32; tags: *const u64);
}
