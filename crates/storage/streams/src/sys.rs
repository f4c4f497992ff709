//! System calls that rustix lacks: write-lifetime hints, fanotify, file handles, signals; in
//! [`regex`], regular expressions of the C library. All unsafe code of this crate is here.
#![expect(
    unsafe_code,
    reason = "fcntl with hints, fanotify, open_by_handle_at and regcomp have no safe wrapper"
)]

pub(crate) mod regex;

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use rustix::io::Errno;

/// `linux/fcntl.h`: F_LINUX_SPECIFIC_BASE + 11.
const F_GET_RW_HINT: c_int = 1035;
/// `linux/fcntl.h`: F_LINUX_SPECIFIC_BASE + 12.
const F_SET_RW_HINT: c_int = 1036;

/// Most bytes of a file handle (`MAX_HANDLE_SZ`).
pub(crate) const HANDLE_LIMIT: usize = 128;

fn errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn done(status: c_int) -> Result<(), Errno> {
    if status == -1 { Err(errno()) } else { Ok(()) }
}

fn owned(status: c_int) -> Result<OwnedFd, Errno> {
    done(status)?;
    // SAFETY: the call returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(status) })
}

/// Returns the hint of an open file's inode.
pub(crate) fn rw_hint(file: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut raw: u64 = 0;
    // SAFETY: F_GET_RW_HINT writes one u64, for which the pointer is valid.
    done(unsafe { libc::fcntl(file.as_raw_fd(), F_GET_RW_HINT, &raw mut raw) })?;
    Ok(raw)
}

/// Sets the hint of an open file's inode. The kernel reads all 64 bits of `raw`.
pub(crate) fn set_rw_hint(file: BorrowedFd<'_>, raw: u64) -> Result<(), Errno> {
    // SAFETY: F_SET_RW_HINT reads one u64, for which the pointer is valid.
    done(unsafe { libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, &raw const raw) })
}

/// Creates a fanotify group.
pub(crate) fn fanotify_init(flags: u32, event_flags: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes numbers only.
    owned(unsafe { libc::fanotify_init(flags, event_flags) })
}

/// Adds a mark on the open directory `dir`, or on its file system, as `flags` say.
pub(crate) fn fanotify_mark(
    group: BorrowedFd<'_>,
    flags: u32,
    mask: u64,
    dir: BorrowedFd<'_>,
) -> Result<(), Errno> {
    // SAFETY: a null path means the directory itself (fanotify_mark(2)).
    done(unsafe {
        libc::fanotify_mark(
            group.as_raw_fd(),
            flags,
            mask,
            dir.as_raw_fd(),
            std::ptr::null(),
        )
    })
}

/// `struct file_handle` with a buffer for the longest handle.
#[repr(C)]
struct FileHandle {
    bytes: u32,
    kind: c_int,
    handle: [u8; HANDLE_LIMIT],
}

/// The kernel's handle of a file or directory, valid on its file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) kind: c_int,
    pub(crate) bytes: Vec<u8>,
}

/// Returns the handle of an open file.
pub(crate) fn handle_of(file: BorrowedFd<'_>) -> Result<Handle, Errno> {
    let mut whole = FileHandle {
        // Never fails: HANDLE_LIMIT is 128.
        bytes: u32::try_from(HANDLE_LIMIT).unwrap_or(0),
        kind: 0,
        handle: [0; HANDLE_LIMIT],
    };
    let mut mount = 0;
    let pointer = (&raw mut whole).cast::<libc::file_handle>();
    // SAFETY: `whole` begins like struct file_handle and has as many bytes after that as it says;
    // the empty path is a constant.
    done(unsafe {
        libc::name_to_handle_at(
            file.as_raw_fd(),
            c"".as_ptr(),
            pointer,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    })?;
    let len = usize::try_from(whole.bytes).map_err(|_| Errno::OVERFLOW)?;
    let bytes = whole.handle.get(..len).ok_or(Errno::OVERFLOW)?;
    Ok(Handle {
        kind: whole.kind,
        bytes: bytes.to_vec(),
    })
}

/// Opens the file with this handle on the file system of `mount`. `flags` include O_PATH, so that
/// the open causes no events and waits for no leases.
pub(crate) fn open_by_handle(
    mount: BorrowedFd<'_>,
    handle: &Handle,
    flags: c_int,
) -> Result<OwnedFd, Errno> {
    let Handle { kind, bytes } = handle;
    let mut whole = FileHandle {
        bytes: u32::try_from(bytes.len()).map_err(|_| Errno::INVAL)?,
        kind: *kind,
        handle: [0; HANDLE_LIMIT],
    };
    let room = whole.handle.get_mut(..bytes.len()).ok_or(Errno::INVAL)?;
    room.copy_from_slice(bytes);
    let flags = flags | libc::O_CLOEXEC;
    let pointer = (&raw mut whole).cast::<libc::file_handle>();
    // SAFETY: `whole` begins like struct file_handle and has as many bytes as it says.
    owned(unsafe { libc::open_by_handle_at(mount.as_raw_fd(), pointer, flags) })
}

/// Takes the descriptor of a fanotify event; `None` if the event has none.
///
/// `raw` must come from an event that was just read, and be passed once.
pub(crate) fn event_file(raw: c_int) -> Option<OwnedFd> {
    // SAFETY: the kernel opened this descriptor for the reader of the event, our caller.
    (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Ignores a signal from now on.
pub(crate) fn ignore(signal: c_int) -> Result<(), Errno> {
    // SAFETY: no handler is installed.
    let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
    if before == libc::SIG_ERR {
        Err(errno())
    } else {
        Ok(())
    }
}

/// The signal mask before [`block_signals`], restored when this value is dropped.
pub(crate) struct BlockedSignals(libc::sigset_t);

/// Blocks SIGTERM, SIGINT and SIGHUP in this thread, so that another thread handles them.
pub(crate) fn block_signals() -> BlockedSignals {
    // SAFETY: all zeros are a valid value; sigemptyset initialises the set below.
    let mut ours: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = ours;
    // SAFETY: the pointer is valid for a signal set.
    unsafe { libc::sigemptyset(&raw mut ours) };
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: the pointer is valid for an initialised signal set.
        unsafe { libc::sigaddset(&raw mut ours, signal) };
    }
    // SAFETY: both pointers are valid for signal sets; only this thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ours, &raw mut before) };
    BlockedSignals(before)
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the mask that the kernel returned; the old mask is not stored (null).
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

/// Replaces `old` by a duplicate of `new` atomically: the number is never free in between.
pub(crate) fn replace(old: &impl AsFd, new: &impl AsFd) -> Result<(), Errno> {
    let (old, new) = (old.as_fd().as_raw_fd(), new.as_fd().as_raw_fd());
    // SAFETY: the owner of `old` still owns an open descriptor with that number.
    done(unsafe { libc::dup3(new, old, libc::O_CLOEXEC) })
}
