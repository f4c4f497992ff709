//! bpf(2), and what its commands have in common.
//!
//! Kernel: include/uapi/linux/bpf.h. Each command has a structure of its own, a member of
//! `union bpf_attr`. The modules that define these structures make the calls.
#![expect(unsafe_code, reason = "bpf(2) takes structures by pointer")]

use std::ffi::c_long;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use rustix::io::Errno;

/// `enum bpf_cmd`.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(crate) enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgramLoad = 5,
    ProgramRun = 10,
    ProgramById = 13,
    InfoByFd = 15,
    RawTracepointOpen = 17,
    LinkCreate = 28,
    LinkDetach = 34,
}

/// Calls bpf(2). `attributes` may end before `union bpf_attr` does; the kernel reads the rest as
/// zero.
///
/// # Safety
/// `attributes` must be the member of `union bpf_attr` that belongs to the command, without padding
/// that is not initialised, and its pointers must be valid for the command's reads and writes.
pub(crate) unsafe fn bpf<T>(command: Command, attributes: &mut T) -> Result<c_long, Errno> {
    let attributes: *mut T = attributes;
    // SAFETY: see above; the kernel reads and writes at most `size_of::<T>()` bytes of the
    // structure.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command as i32, attributes, size_of::<T>()) };
    if result < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(result)
}

/// As [`bpf`], for commands that return a new descriptor.
///
/// # Safety
/// As for [`bpf`], and the command must be one that returns a new descriptor.
pub(crate) unsafe fn open<T>(command: Command, attributes: &mut T) -> Result<OwnedFd, Errno> {
    // SAFETY: the same conditions.
    let result = unsafe { bpf(command, attributes) }?;
    let number = i32::try_from(result).map_err(|_| Errno::BADF)?;
    // SAFETY: the command returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A descriptor in the form of the attributes.
pub(crate) fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// The address of a slice in the form of the attributes.
pub(crate) fn address<T>(items: &[T]) -> u64 {
    items.as_ptr() as u64
}

/// The length of a slice in the form of the attributes.
pub(crate) fn length<T>(items: &[T]) -> Result<u32, Errno> {
    u32::try_from(items.len()).map_err(|_| Errno::TOOBIG)
}
