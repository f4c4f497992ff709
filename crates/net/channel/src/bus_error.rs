//! Handles SIGBUS on a segment's memory: it ends that segment's connections, not the process.
//!
//! A peer can punch holes into a segment (`man 2 fallocate`). A thread that accesses a hole gets a
//! new page, unless vm.overcommit_memory is 2 and the commit limit is reached: then the kernel
//! raises SIGBUS (`shmem_inode_acct_blocks` in mm/shmem.c). In the other modes the kernel does not
//! refuse the page, so no handler is installed.
//!
//! The handler maps substitute memory over the segment. Its header is all ones, which no ring
//! accepts: every connection is reset at its next use, as after corruption. The substitute is
//! charged in full when it is made; mapping it again is not charged. A handler that the application
//! installs later replaces this one.

#![expect(unsafe_code, reason = "a signal handler that maps memory")]

use crate::layout::{DATA_AT, SEGMENT_BYTES, STRIDE_SHIFT};
use crate::sys::{self, Errno, Sys};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use syscalls::Sysno;

/// Segments that can be watched: as many as a process keeps, and those that up to 64 threads have
/// mapped and may have to reject.
const MOST: usize = 4096 + 64;
/// Bytes of a ring that are replaced at once, a divisor of the room for a ring. Single pages would
/// need a mapping each, and a process can have 65,530.
const WINDOW: usize = 1 << 16;
const _: () = assert!(WINDOW <= 1 << STRIDE_SHIFT);
/// Flag in a segment's entry: some of its memory was replaced.
const DAMAGED: usize = 1;
/// `si_code` of a memory error that the kernel reports before any access to the page.
const BUS_MCEERR_AO: c_int = 5;

type WithInfo = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Addresses of the watched segments; 0: free.
type Watched = [AtomicUsize; MOST];

/// The array of watched segments, in private memory. Null: no handler.
static WATCHED: AtomicPtr<Watched> = AtomicPtr::new(core::ptr::null_mut());
/// The substitute memory: a header of ones, then [`WINDOW`] bytes.
static SUBSTITUTE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::zeroed()));

/// The process's action for SIGBUS before ours.
struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);
// SAFETY: written by one thread before our handler is installed, and only read from then on.
unsafe impl Sync for Previous {}

impl Previous {
    fn get(&self) -> libc::sigaction {
        // SAFETY: not written any more, by the comment above.
        let action = unsafe { self.0.get().read() };
        // SAFETY: zeroed at first, which is the default action, and whole afterwards.
        unsafe { action.assume_init() }
    }
}

/// Installs the handler if a segment can raise SIGBUS, and if it is not installed yet. Call it
/// before the first segment. Two threads must not call it at the same time.
///
/// # Errors
/// EMFILE, ENFILE or ENOMEM if the need for a handler cannot be determined, or there is no
/// substitute memory.
pub fn prepare() -> Sys<()> {
    if commit_is_limited()? {
        install()
    } else {
        Ok(())
    }
}

/// Whether vm.overcommit_memory is 2; assumed false if /proc is not visible.
fn commit_is_limited() -> Sys<bool> {
    let fd = match sys::open_to_read(b"/proc/sys/vm/overcommit_memory\0") {
        Ok(fd) => fd,
        Err(short @ Errno(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => return Err(short),
        Err(_) => return Ok(false),
    };
    let mut mode = [0; 1];
    let read = sys::read(fd, &mut mode);
    sys::close(fd);
    Ok(read.is_ok() && mode == *b"2")
}

fn install() -> Sys<()> {
    let ours = on_bus_error as WithInfo as usize;
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only reads the action, into memory that is large enough.
    unsafe { libc::sigaction(libc::SIGBUS, core::ptr::null(), previous.as_mut_ptr()) };
    // SAFETY: zeroed, so initialised whatever the call has done.
    let previous = unsafe { previous.assume_init() };
    if previous.sa_sigaction == ours {
        return Ok(());
    }
    let substitute = sys::map_shared(DATA_AT + WINDOW)?;
    let watched = sys::map(-1, size_of::<Watched>()).inspect_err(|_| {
        // SAFETY: just mapped, and not used yet.
        unsafe { sys::unmap(substitute, DATA_AT + WINDOW) };
    })?;
    // SAFETY: our handler is not installed, and our caller is the only one here.
    unsafe { PREVIOUS.0.get().write(MaybeUninit::new(previous)) };
    SUBSTITUTE.store(substitute.cast(), Ordering::Release);
    WATCHED.store(watched.cast(), Ordering::Release);
    let mut action = previous; // Including its mask: its handler runs inside ours.
    action.sa_sigaction = ours;
    action.sa_flags = libc::SA_SIGINFO
        | match previous.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => libc::SA_ONSTACK | libc::SA_RESTART,
            _ => previous.sa_flags & (libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_NODEFER),
        };
    set_action(&action);
    Ok(())
}

fn set_action(action: &libc::sigaction) {
    // SAFETY: an action that was in force, or is our handler.
    unsafe { libc::sigaction(libc::SIGBUS, action, core::ptr::null_mut()) };
}

fn watched() -> Option<&'static Watched> {
    // SAFETY: null, or zeroed memory of that size that stays mapped.
    unsafe { WATCHED.load(Ordering::Acquire).as_ref() }
}

/// A segment's entry in the handler's array; none when there is no handler.
#[derive(Debug)]
pub(crate) struct Watch(Option<&'static AtomicUsize>);

impl Watch {
    /// Watches the segment at `at`, the first byte of a page.
    pub(crate) fn begin(at: *mut u8) -> Watch {
        let takes = |entry: &&AtomicUsize| {
            let (order, at) = (Ordering::SeqCst, at.expose_provenance());
            entry.load(Ordering::Relaxed) == 0
                && entry.compare_exchange(0, at, order, order).is_ok()
        };
        Watch(watched().and_then(|all| all.iter().find(takes)))
    }

    /// Ends the watch, before the segment is unmapped: another mapping may get its address.
    pub(crate) fn end(&self) {
        if let Some(entry) = self.0 {
            entry.store(0, Ordering::SeqCst);
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.0
            .is_some_and(|entry| entry.load(Ordering::Relaxed) & DAMAGED != 0)
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a siginfo_t to a handler with SA_SIGINFO.
    let what = unsafe { &*info };
    let is_fault = what.si_code > 0 && what.si_code != BUS_MCEERR_AO;
    // SAFETY: the address of a SIGBUS; for a signal that was sent, other bytes, and not used.
    let address = unsafe { what.si_addr() }.addr();
    if !is_fault || !replace(address) {
        pass_on(signal, info, context, is_fault);
    }
}

/// Maps the substitute over a watched segment's header, and over the bytes around `address`. False
/// if no segment is there, or the kernel refuses.
fn replace(address: usize) -> bool {
    // The faulting thread uses the segment, so its entry stays. Other entries may change.
    let found = watched().into_iter().flatten().find_map(|entry| {
        let at = entry.load(Ordering::Acquire) & !DAMAGED;
        let offset = address.wrapping_sub(at);
        (at != 0 && offset < SEGMENT_BYTES).then_some((entry, at, offset))
    });
    let Some((entry, at, offset)) = found else {
        return false;
    };
    entry.fetch_or(DAMAGED, Ordering::SeqCst);
    let substitute = SUBSTITUTE.load(Ordering::Acquire);
    // SAFETY: the substitute begins with `DATA_AT` bytes for this, page-aligned, and stays mapped.
    let header =
        unsafe { core::slice::from_raw_parts(substitute.cast::<AtomicU64>(), DATA_AT / 8) };
    for word in header {
        word.store(u64::MAX, Ordering::Relaxed); // A new slot's words may have been stored here.
    }
    // Header first: a copy in progress must not be taken for one that has succeeded.
    if !map_again(substitute.expose_provenance(), at, DATA_AT) {
        return false;
    }
    let Some(in_rings) = offset.checked_sub(DATA_AT) else {
        return true;
    };
    let window = at + DATA_AT + in_rings / WINDOW * WINDOW;
    map_again(substitute.expose_provenance() + DATA_AT, window, WINDOW)
}

/// Maps shared memory at a second address, over the mapping there.
fn map_again(from: usize, to: usize, len: usize) -> bool {
    let flags = sys::reg(libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
    // Shared memory with an old size of 0 stays where it is, too (`man 2 mremap`).
    // SAFETY: replaces part of a segment, whose words are atomic and of any content.
    unsafe { sys::call(Sysno::mremap, [from, 0, len, flags, to, 0]) }.is_ok()
}

/// Performs the action that was in force before this handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, is_fault: bool) {
    let previous = PREVIOUS.get();
    match previous.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            set_action(&previous);
            if !is_fault {
                // A fault repeats; a sent signal does not.
                let (process, thread) = (sys::getpid() as usize, sys::gettid() as usize);
                let args = [process, thread, sys::reg(signal), info.addr(), 0, 0];
                // SAFETY: the kernel's own siginfo_t, which it reads.
                let _ = unsafe { sys::call(Sysno::rt_tgsigqueueinfo, args) };
            }
        }
        handler => {
            if previous.sa_flags & libc::SA_RESETHAND != 0 {
                // SAFETY: all-zero is the default action.
                set_action(&unsafe { core::mem::zeroed() });
            }
            let handler: *const c_void = core::ptr::with_exposed_provenance(handler);
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: with SA_SIGINFO the handler takes three arguments.
                let handler = unsafe { core::mem::transmute::<*const c_void, WithInfo>(handler) };
                handler(signal, info, context);
            } else {
                type Plain = extern "C" fn(c_int);
                // SAFETY: without SA_SIGINFO, one argument.
                let handler = unsafe { core::mem::transmute::<*const c_void, Plain>(handler) };
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{START_SHIFT, Side, SlotIndex};
    use crate::ring::{Got, Put};
    use crate::segment::Segment;

    /// A segment that is not sealed, so that the test can truncate it.
    fn unsealed() -> Segment {
        install().expect("memory");
        let fd = sys::memfd(c"unsealed", SEGMENT_BYTES).expect("a descriptor");
        let segment = Segment::map(fd, Side(0)).expect("memory");
        for slot in [0, 1].map(slot) {
            segment.open_slot(slot).expect("memory");
            segment.slot(slot).rings[0].reset(START_SHIFT);
        }
        segment
    }

    fn slot(number: u32) -> SlotIndex {
        SlotIndex::new(number).expect("a segment has more slots")
    }

    fn write(segment: &Segment, number: u32) -> Put {
        let slot = slot(number);
        let bytes = segment.bytes(slot, 0, START_SHIFT);
        segment.slot(slot).rings[0].write(&bytes, [b"secret"], |_| true)
    }

    fn read(segment: &Segment, number: u32, peek: bool) -> Got {
        let slot = slot(number);
        let bytes = segment.bytes(slot, 0, START_SHIFT);
        segment.slot(slot).rings[0].read(&bytes, &mut [&mut [0; 6]], peek)
    }

    #[test]
    fn a_segment_that_loses_its_memory_is_corrupt() {
        for peek in [false, true] {
            let segment = unsealed();
            assert!(matches!(write(&segment, 0), Put::Bytes { n: 6, .. }));
            assert!(!segment.is_damaged());
            sys::ftruncate(segment.fd(), DATA_AT).expect("it is not sealed");
            assert_eq!(read(&segment, 0, peek), Got::Corrupt, "peek: {peek}");
            assert!(segment.is_damaged());
            assert_eq!(write(&segment, 1), Put::Corrupt, "on another slot");
            // SAFETY: nothing of the segment is used any more.
            unsafe { segment.release() };
        }
        let segment = unsealed();
        sys::ftruncate(segment.fd(), DATA_AT).expect("it is not sealed");
        assert_eq!(
            write(&segment, 1),
            Put::Corrupt,
            "copied, but not published"
        );
        let other = unsealed();
        assert!(!other.is_damaged());
        assert!(matches!(write(&other, 1), Put::Bytes { n: 6, .. }));
        sys::ftruncate(other.fd(), 0).expect("it is not sealed");
        assert_eq!(read(&other, 1, false), Got::Corrupt, "its header is gone");
        for segment in [segment, other] {
            // SAFETY: nothing of the segment is used any more.
            unsafe { segment.release() };
        }
    }
}
