//! bpf(2) and the memory of its rings. All unsafe code of this crate.
//!
//! Kernel: include/uapi/linux/bpf.h, kernel/bpf/ringbuf.c. Maps know the sizes of their keys and values, so that the
//! kernel never writes more than there is room for; positions and lengths in a ring are checked before they are used.
#![expect(
    unsafe_code,
    reason = "bpf(2) takes structures by pointer, and rings are memory shared with the kernel"
)]

use std::ffi::{CStr, c_long};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::bpf::Instruction;

/// `enum bpf_cmd`.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapNextKey = 4,
    ProgramLoad = 5,
    InfoByFd = 15,
    RawTracepointOpen = 17,
}

/// A kind of map (`enum bpf_map_type`).
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(crate) enum MapKind {
    Hash = 1,
    Array = 2,
    Ring = 27,
}

/// `BPF_PROG_TYPE_RAW_TRACEPOINT`.
const RAW_TRACEPOINT: u32 = 17;

// Parts of `union bpf_attr`, without padding; the kernel takes what is behind them for zero.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
struct Element {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct RawTracepointOpen {
    name: u64,
    program: u32,
    zero: u32,
}

#[repr(C)]
struct InfoByFd {
    object: u32,
    bytes: u32,
    info: u64,
}

/// How much of `struct bpf_prog_info` is asked for, and where in it `recursion_misses` is (5.12; else it stays 0).
const INFO_BYTES: usize = 216;
const MISSES: usize = 208;

/// Calls bpf(2).
///
/// # Safety
/// `attributes` is the part of `union bpf_attr` that belongs to the command, and its pointers are valid for what the
/// command reads and writes.
unsafe fn bpf<T>(command: Command, attributes: &mut T) -> Result<c_long, Errno> {
    let attributes: *mut T = attributes;
    // SAFETY: the caller's promise; the kernel reads and writes no more than the given size of the structure.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command as i32, attributes, size_of::<T>()) };
    if answer < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(answer)
}

fn owned(answer: c_long) -> Result<OwnedFd, Errno> {
    let number = i32::try_from(answer).map_err(|_| Errno::BADF)?;
    // SAFETY: the command answered with a new descriptor that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn address<T>(bytes: &[T]) -> u64 {
    bytes.as_ptr() as u64
}

fn length<T>(things: &[T]) -> Result<u32, Errno> {
    u32::try_from(things.len()).map_err(|_| Errno::TOOBIG)
}

/// A BPF map with keys of `K` bytes and values of `V`; a ring has neither.
#[derive(Debug)]
pub(crate) struct Map<const K: usize, const V: usize> {
    fd: OwnedFd,
}

impl<const K: usize, const V: usize> Map<K, V> {
    /// Makes one.
    pub(crate) fn new(kind: MapKind, entries: u32) -> Result<Self, Errno> {
        let bytes = |size| u32::try_from(size).map_err(|_| Errno::TOOBIG);
        let mut attributes = MapCreate {
            kind: kind as u32,
            key_bytes: bytes(K)?,
            value_bytes: bytes(V)?,
            entries,
        };
        // SAFETY: these are the attributes of the command; they have no pointers.
        let fd = owned(unsafe { bpf(Command::MapCreate, &mut attributes) }?)?;
        Ok(Self { fd })
    }

    /// Its descriptor, for instructions.
    pub(crate) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The value of a key, if it has one.
    pub(crate) fn value(&self, key: &[u8; K]) -> Result<Option<[u8; V]>, Errno> {
        let mut value = [0; V];
        let mut attributes = Element {
            map: number(self.fd.as_fd()),
            zero: 0,
            key: address(key),
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: these are the attributes of the command; the map has keys of K bytes and values of V, as there are.
        match unsafe { bpf(Command::MapLookup, &mut attributes) } {
            Ok(_) => Ok(Some(value)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The key after another one, or the first.
    pub(crate) fn key_after(&self, key: Option<&[u8; K]>) -> Result<Option<[u8; K]>, Errno> {
        let mut next = [0; K];
        let mut attributes = Element {
            map: number(self.fd.as_fd()),
            zero: 0,
            key: key.map_or(0, |key| address(key)),
            value: next.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: these are the attributes of the command; a key has K bytes, and null asks for the first.
        match unsafe { bpf(Command::MapNextKey, &mut attributes) } {
            Ok(_) => Ok(Some(next)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A program that runs at a raw tracepoint until it is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    fd: OwnedFd,
    /// Where it is attached.
    _link: OwnedFd,
}

/// Which step of starting a program failed.
#[derive(Debug)]
pub(crate) enum ProgramFailure {
    /// The kernel did not load it; what its verifier said.
    Load(Errno, String),
    /// It did not attach it.
    Attach(Errno),
}

/// The program is offered under either, and the kernel lets only such read its memory.
const LICENSE: &CStr = c"Dual MIT/GPL";

impl Program {
    /// Loads a program and attaches it to a tracepoint.
    pub(crate) fn start(
        name: [u8; 16],
        code: &[Instruction],
        tracepoint: &CStr,
    ) -> Result<Self, ProgramFailure> {
        let fd = load(name, code, &mut []).map_err(|error| {
            let mut log = vec![0; 1 << 20];
            // Once more, to hear why. If that goes well, the first answer still was a refusal.
            let _ = load(name, code, &mut log);
            let text = String::from_utf8_lossy(&log);
            let text = text.trim_end_matches('\0').trim_end().to_owned();
            ProgramFailure::Load(error, text)
        })?;
        let mut attributes = RawTracepointOpen {
            name: tracepoint.as_ptr() as u64,
            program: number(fd.as_fd()),
            zero: 0,
        };
        // SAFETY: these are the attributes of the command; the name ends with a zero.
        let link = unsafe { bpf(Command::RawTracepointOpen, &mut attributes) };
        let link = link.and_then(owned).map_err(ProgramFailure::Attach)?;
        Ok(Self { fd, _link: link })
    }

    /// How often it was not run because it was running on that CPU already.
    pub(crate) fn misses(&self) -> Result<u64, Errno> {
        let mut info = [0_u8; INFO_BYTES];
        let mut attributes = InfoByFd {
            object: number(self.fd.as_fd()),
            bytes: length(&info)?,
            info: info.as_mut_ptr() as u64,
        };
        // SAFETY: these are the attributes of the command; the kernel writes at most as many bytes as are given. What
        // it reads of them (where to put listings of the program) is zero, which asks for none.
        unsafe { bpf(Command::InfoByFd, &mut attributes) }?;
        let misses = info.get(MISSES..).and_then(|rest| rest.try_into().ok());
        Ok(misses.map_or(0, u64::from_ne_bytes))
    }
}

/// Loads a program; `log` gets what the verifier says, if it has any room.
fn load(name: [u8; 16], code: &[Instruction], log: &mut [u8]) -> Result<OwnedFd, Errno> {
    let mut attributes = ProgramLoad {
        kind: RAW_TRACEPOINT,
        instruction_count: length(code)?,
        instructions: address(code),
        license: LICENSE.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: length(log)?,
        log: if log.is_empty() {
            0
        } else {
            log.as_mut_ptr() as u64
        },
        kernel_version: 0,
        flags: 0,
        name,
    };
    // SAFETY: these are the attributes of the command; instructions and log are as long as is said, the licence ends
    // with a zero.
    owned(unsafe { bpf(Command::ProgramLoad, &mut attributes) }?)
}

/// A record has a header of so many bytes: its length, and where its page is.
const HEADER: usize = 8;
/// In the length: it is still being written.
const IS_BUSY: u32 = 1 << 31;
/// In the length: its writer has given it up.
const IS_DISCARDED: u32 = 1 << 30;

/// What stands next in a ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, or what is not finished yet.
    Nothing,
    /// A record that was given up.
    Discarded,
    /// A record; it was copied.
    Record,
    /// A length that no record of ours has.
    Nonsense(u32),
}

/// The memory of a ring: a page with our position, a page with the kernel's, and the data twice in a row, so that a
/// record never wraps.
#[derive(Debug)]
pub(crate) struct Ring {
    map: Map<0, 0>,
    ours: NonNull<u8>,
    theirs: NonNull<u8>,
    page: usize,
    bytes: usize,
}

// SAFETY: the pointers are to memory that belongs to this value alone.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes a ring of `bytes`, a power of two and whole pages.
    pub(crate) fn new(bytes: u32) -> Result<Self, Errno> {
        let map = Map::new(MapKind::Ring, bytes)?;
        let bytes = usize::try_from(bytes).map_err(|_| Errno::TOOBIG)?;
        let page = rustix::param::page_size();
        let whole = bytes
            .checked_mul(2)
            .and_then(|both| both.checked_add(page))
            .ok_or(Errno::TOOBIG)?;
        let ours = map_memory(&map, page, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let theirs = map_memory(&map, whole, ProtFlags::READ, page);
        if theirs.is_err() {
            // SAFETY: it was mapped just now, with this length, and nobody points there.
            let _ = unsafe { rustix::mm::munmap(ours.as_ptr().cast(), page) };
        }
        Ok(Self {
            map,
            ours,
            theirs: theirs?,
            page,
            bytes,
        })
    }

    /// Its descriptor, for instructions.
    pub(crate) fn number(&self) -> i32 {
        self.map.number()
    }

    /// How many records of so many bytes it holds at most.
    pub(crate) fn records(&self, bytes: usize) -> usize {
        self.bytes / (bytes.next_multiple_of(8) + HEADER)
    }

    /// The position on a page: an `unsigned long` at its beginning.
    fn position(page: &NonNull<u8>) -> &AtomicUsize {
        // SAFETY: a page begins aligned and stays mapped as long as the ring; kernel and we access it atomically only.
        unsafe { AtomicUsize::from_ptr(page.as_ptr().cast()) }
    }

    /// Takes the next record and copies it to `into`, whose length is that of all records.
    pub(crate) fn take(&self, into: &mut [u8]) -> Next {
        let ours = Self::position(&self.ours);
        let at = ours.load(Ordering::Relaxed);
        // Memory that may not be written is loaded relaxed (std::sync::atomic); the fence makes it an acquire.
        let end = Self::position(&self.theirs).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let waiting = end.wrapping_sub(at);
        if waiting < HEADER {
            return Next::Nothing;
        }
        // Positions only grow; records begin at multiples of eight.
        let place = (at % self.bytes) & !7;
        // SAFETY: the place is within the first copy of the data, which follows the kernel's page.
        let header = unsafe { self.theirs.add(self.page + place) };
        // SAFETY: the header is aligned as the place is, and mapped; the kernel writes it atomically.
        let header = unsafe { AtomicU32::from_ptr(header.as_ptr().cast()) };
        let length = header.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if length & IS_BUSY != 0 {
            return Next::Nothing;
        }
        let bytes = (length & !IS_DISCARDED) as usize;
        let whole = bytes.next_multiple_of(8) + HEADER;
        if bytes != into.len() || whole > waiting || whole > self.bytes {
            return Next::Nonsense(length);
        }
        if length & IS_DISCARDED == 0 {
            // SAFETY: place < bytes and whole <= bytes, so that header and record end within the second copy.
            let from = unsafe { self.theirs.add(self.page + place + HEADER) };
            // SAFETY: as many bytes are mapped there; the kernel has finished them and leaves them alone until our
            // position is behind them; `into` is memory of ours.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), bytes) };
        }
        ours.store(at.wrapping_add(whole), Ordering::Release);
        if length & IS_DISCARDED == 0 {
            Next::Record
        } else {
            Next::Discarded
        }
    }
}

fn map_memory(
    map: &Map<0, 0>,
    bytes: usize,
    protection: ProtFlags,
    offset: usize,
) -> Result<NonNull<u8>, Errno> {
    // SAFETY: the kernel chooses where; nothing of ours is replaced.
    let memory = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            MapFlags::SHARED,
            &map.fd,
            offset as u64,
        )
    }?;
    NonNull::new(memory.cast()).ok_or(Errno::NOMEM)
}

impl Drop for Ring {
    fn drop(&mut self) {
        for (memory, bytes) in [
            (self.ours, self.page),
            (self.theirs, self.page + 2 * self.bytes),
        ] {
            // SAFETY: it was mapped with this length, and what pointed there goes with us.
            let _ = unsafe { rustix::mm::munmap(memory.as_ptr().cast(), bytes) };
        }
    }
}
