//! System calls without a safe wrapper: NVMe commands, and a lock on one byte of a file.
//!
//! Kernel: include/uapi/linux/nvme_ioctl.h; `man 2 fcntl`, open file description locks. Sends only
//! commands that read pages.
#![expect(
    unsafe_code,
    reason = "ioctl and fcntl take structures by pointer; all such calls are in this file"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::page::{Page, Queue};
use crate::status::Status;

/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xc048_4e41;
/// `_IOWR('N', 0x43, struct nvme_passthru_cmd)`.
const NVME_IOCTL_IO_CMD: libc::Ioctl = 0xc048_4e43;
/// `_IO('N', 0x40)`: the namespace ID of a block device.
const NVME_IOCTL_ID: libc::Ioctl = 0x4e40;
/// The time limit of a command.
const TIMEOUT_MS: u32 = 10_000;
const PAGE: usize = 4096;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Debug, Default)]
struct Passthru {
    opcode: u8,
    flags: u8,
    reserved: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<Passthru>() == 72, "as the ioctl's number says");
const _: () = assert!(align_of::<Passthru>() == 8, "as the kernel lays it out");

/// A buffer in one page of memory: some drives fail with buffers that cross a page boundary.
#[repr(C, align(4096))]
struct Buffer([u8; PAGE]);

/// An error of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The system call failed.
    System(io::Error),
    /// The drive completed the command with an error status.
    Drive(Status),
}

/// Reads a page from the drive of `device`.
pub(crate) fn read_page(device: BorrowedFd<'_>, page: Page) -> Result<Vec<u8>, Failure> {
    let mut buffer = Box::new(Buffer([0; PAGE]));
    let length = page.length().min(PAGE);
    let data_len = if page.is_word() { 0 } else { length };
    let command = page.command();
    let request = match command.queue {
        Queue::Admin => NVME_IOCTL_ADMIN_CMD,
        Queue::Io => NVME_IOCTL_IO_CMD,
    };
    let mut passthru = Passthru {
        opcode: command.opcode,
        nsid: command.nsid,
        // The kernel writes to this address, which is passed as a number: expose the provenance.
        addr: u64::try_from((&raw mut buffer.0).expose_provenance()).unwrap_or(0),
        data_len: u32::try_from(data_len).unwrap_or(0),
        cdw10: command.cdw10,
        cdw11: command.cdw11,
        cdw14: command.cdw14,
        timeout_ms: TIMEOUT_MS,
        ..Passthru::default()
    };
    // SAFETY: the request takes a pointer to a live structure of the size in its number; the kernel
    // writes at most `data_len` bytes at `addr`, a live buffer of at least that length without
    // other references.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), request, &raw mut passthru) };
    match u16::try_from(result) {
        Ok(0) if page.is_word() => Ok(passthru.result.to_le_bytes().to_vec()),
        Ok(0) => Ok(buffer.0[..length].to_vec()),
        Ok(status) => Err(Failure::Drive(Status::new(status))),
        Err(_) => Err(Failure::System(io::Error::last_os_error())),
    }
}

/// Returns the namespace ID of a block device; `None` for the device of a controller.
pub(crate) fn namespace(device: BorrowedFd<'_>) -> Option<u32> {
    // SAFETY: the request takes no argument.
    let nsid = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ID) };
    u32::try_from(nsid).ok().filter(|nsid| *nsid > 0)
}

/// Locks one byte of a file until `file` is closed. Returns `false` if another open file
/// description has the lock.
pub(crate) fn lock_byte(file: BorrowedFd<'_>, byte: i64) -> io::Result<bool> {
    // SAFETY: the structure has only integers, for which zero is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // Never fails: both constants are 0 or 1.
    lock.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or_default();
    lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    lock.l_start = byte;
    lock.l_len = 1;
    // SAFETY: the command takes a pointer to this structure, which lives until the call returns.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}
