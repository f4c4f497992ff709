//! bpf(2) and the memory of its rings: all unsafe code of this crate.
//!
//! Kernel: include/uapi/linux/bpf.h, kernel/bpf/ringbuf.c. The sizes of a map's keys and values are
//! part of its type, so the kernel never writes beyond a buffer. Positions and lengths in a ring
//! are checked before they are used.
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

// Members of `union bpf_attr`, without padding. The kernel reads the rest of the union as zero.
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

/// Bytes of `struct bpf_prog_info` that are requested, up to and with `recursion_misses`.
const INFO_BYTES: usize = 216;
/// Offset of `recursion_misses`, which stays 0 before Linux 5.12.
const MISSES: usize = 208;

/// Calls bpf(2).
///
/// # Safety
/// `attributes` must be the member of `union bpf_attr` that belongs to the command, and its
/// pointers must be valid for the command's reads and writes.
unsafe fn bpf<T>(command: Command, attributes: &mut T) -> Result<c_long, Errno> {
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

fn owned(result: c_long) -> Result<OwnedFd, Errno> {
    let number = i32::try_from(result).map_err(|_| Errno::BADF)?;
    // SAFETY: the command returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn address<T>(bytes: &[T]) -> u64 {
    bytes.as_ptr() as u64
}

fn length<T>(items: &[T]) -> Result<u32, Errno> {
    u32::try_from(items.len()).map_err(|_| Errno::TOOBIG)
}

/// A BPF map with keys of `K` bytes and values of `V` bytes; both are 0 for a ring.
#[derive(Debug)]
pub(crate) struct Map<const K: usize, const V: usize> {
    fd: OwnedFd,
}

impl<const K: usize, const V: usize> Map<K, V> {
    pub(crate) fn new(kind: MapKind, entries: u32) -> Result<Self, Errno> {
        let bytes = |size| u32::try_from(size).map_err(|_| Errno::TOOBIG);
        let mut attributes = MapCreate {
            kind: kind as u32,
            key_bytes: bytes(K)?,
            value_bytes: bytes(V)?,
            entries,
        };
        // SAFETY: these are the attributes of the command, and they have no pointers.
        let fd = owned(unsafe { bpf(Command::MapCreate, &mut attributes) }?)?;
        Ok(Self { fd })
    }

    /// Returns the map's descriptor, which instructions refer to.
    pub(crate) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Returns the value of a key; `None` if the map does not have the key.
    pub(crate) fn value(&self, key: &[u8; K]) -> Result<Option<[u8; V]>, Errno> {
        let mut value = [0; V];
        let mut attributes = Element {
            map: number(self.fd.as_fd()),
            zero: 0,
            key: address(key),
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: these are the attributes of the command. The map's keys have K bytes and its
        // values V bytes, and so have `key` and `value`.
        match unsafe { bpf(Command::MapLookup, &mut attributes) } {
            Ok(_) => Ok(Some(value)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the key after `key`, or the first key for `None`.
    pub(crate) fn key_after(&self, key: Option<&[u8; K]>) -> Result<Option<[u8; K]>, Errno> {
        let mut next = [0; K];
        let mut attributes = Element {
            map: number(self.fd.as_fd()),
            zero: 0,
            key: key.map_or(0, |key| address(key)),
            value: next.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: these are the attributes of the command. Keys have K bytes; null requests the
        // first key.
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
    /// Attaches the program while it is open.
    _link: OwnedFd,
}

/// The step at which the start of a program failed.
#[derive(Debug)]
pub(crate) enum ProgramError {
    /// The kernel refused to load the program; with the output of its verifier.
    Load(Errno, String),
    Attach(Errno),
}

/// The kernel allows bpf_probe_read_kernel only to programs with a GPL-compatible licence.
const LICENSE: &CStr = c"Dual MIT/GPL";

impl Program {
    /// Loads a program and attaches it to a tracepoint.
    pub(crate) fn start(
        name: [u8; 16],
        code: &[Instruction],
        tracepoint: &CStr,
    ) -> Result<Self, ProgramError> {
        let fd = load(name, code, &mut []).map_err(|error| {
            let mut log = vec![0; 1 << 20];
            // Loads again for the verifier's output. The first error counts even if this succeeds.
            let _ = load(name, code, &mut log);
            let text = String::from_utf8_lossy(&log);
            let text = text.trim_end_matches('\0').trim_end().to_owned();
            ProgramError::Load(error, text)
        })?;
        let mut attributes = RawTracepointOpen {
            name: tracepoint.as_ptr() as u64,
            program: number(fd.as_fd()),
            zero: 0,
        };
        // SAFETY: these are the attributes of the command; the name ends with a zero.
        let link = unsafe { bpf(Command::RawTracepointOpen, &mut attributes) };
        let link = link.and_then(owned).map_err(ProgramError::Attach)?;
        Ok(Self { fd, _link: link })
    }

    /// Returns how often the program did not run because it was running on that CPU already.
    pub(crate) fn misses(&self) -> Result<u64, Errno> {
        let mut info = [0_u8; INFO_BYTES];
        let mut attributes = InfoByFd {
            object: number(self.fd.as_fd()),
            bytes: length(&info)?,
            info: info.as_mut_ptr() as u64,
        };
        // SAFETY: these are the attributes of the command; the kernel writes at most `bytes` bytes.
        // The pointers that it reads from `info` (buffers for listings) are null: no listing.
        unsafe { bpf(Command::InfoByFd, &mut attributes) }?;
        let misses = info.get(MISSES..).and_then(|rest| rest.try_into().ok());
        Ok(misses.map_or(0, u64::from_ne_bytes))
    }
}

/// Loads a program. The verifier writes its output to `log` unless that is empty.
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
    // SAFETY: these are the attributes of the command. The counts are the lengths of instructions
    // and log, and the licence ends with a zero.
    owned(unsafe { bpf(Command::ProgramLoad, &mut attributes) }?)
}

/// Bytes of a record's header (`struct bpf_ringbuf_hdr`): its length, and the offset of its page.
const HEADER: usize = 8;
/// `BPF_RINGBUF_BUSY_BIT` of the length: the record is still being written.
const IS_BUSY: u32 = 1 << 31;
/// `BPF_RINGBUF_DISCARD_BIT` of the length: the writer discarded the record.
const IS_DISCARDED: u32 = 1 << 30;

/// The result of [`Ring::take`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The ring is empty, or the next record is still being written.
    Nothing,
    /// The next record had been discarded by its writer.
    Discarded,
    /// The next record was copied.
    Record,
    /// The next record has this length, which no record of these programs has.
    Invalid(u32),
}

/// The mapped memory of a ring: a page with the consumer's position, which this process writes, a
/// page with the producer's position, and the data, mapped twice in a row so that no record wraps.
#[derive(Debug)]
pub(crate) struct Ring {
    map: Map<0, 0>,
    /// The page with the consumer's position.
    consumer: NonNull<u8>,
    /// The page with the producer's position, followed by the data.
    producer: NonNull<u8>,
    page: usize,
    bytes: usize,
}

// SAFETY: only this value points to the mapped memory.
unsafe impl Send for Ring {}

impl Ring {
    /// Creates a ring of `bytes`, which must be a power of two and a multiple of the page size.
    pub(crate) fn new(bytes: u32) -> Result<Self, Errno> {
        let map = Map::new(MapKind::Ring, bytes)?;
        let bytes = usize::try_from(bytes).map_err(|_| Errno::TOOBIG)?;
        let page = rustix::param::page_size();
        let whole = bytes
            .checked_mul(2)
            .and_then(|both| both.checked_add(page))
            .ok_or(Errno::TOOBIG)?;
        let consumer = map_memory(&map, page, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let producer = map_memory(&map, whole, ProtFlags::READ, page);
        if producer.is_err() {
            // SAFETY: this function mapped the page with this length, and no other pointer exists.
            let _ = unsafe { rustix::mm::munmap(consumer.as_ptr().cast(), page) };
        }
        Ok(Self {
            map,
            consumer,
            producer: producer?,
            page,
            bytes,
        })
    }

    /// Returns the ring's descriptor, which instructions refer to.
    pub(crate) fn number(&self) -> i32 {
        self.map.number()
    }

    /// Returns the largest number of records of `bytes` that the ring holds.
    pub(crate) fn capacity(&self, bytes: usize) -> usize {
        self.bytes / (bytes.next_multiple_of(8) + HEADER)
    }

    /// Returns the position on a page: an `unsigned long` at its start.
    fn position(page: &NonNull<u8>) -> &AtomicUsize {
        // SAFETY: a page is aligned and stays mapped as long as the ring; the kernel and this
        // process access the position only atomically.
        unsafe { AtomicUsize::from_ptr(page.as_ptr().cast()) }
    }

    /// Removes the next record and copies it to `into`, whose length must be that of all records.
    pub(crate) fn take(&self, into: &mut [u8]) -> Next {
        let consumer = Self::position(&self.consumer);
        let start = consumer.load(Ordering::Relaxed);
        // Atomic loads from read-only memory must be relaxed (std::sync::atomic); the fence makes
        // this load an acquire.
        let end = Self::position(&self.producer).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let available = end.wrapping_sub(start);
        if available < HEADER {
            return Next::Nothing;
        }
        // Positions only grow; records start at multiples of eight.
        let offset = (start % self.bytes) & !7;
        // SAFETY: the offset is within the first mapping of the data, which follows the page.
        let header = unsafe { self.producer.add(self.page + offset) };
        // SAFETY: the header is mapped, and aligned to 8; the kernel writes the length atomically.
        let header = unsafe { AtomicU32::from_ptr(header.as_ptr().cast()) };
        let length = header.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if length & IS_BUSY != 0 {
            return Next::Nothing;
        }
        let bytes = (length & !IS_DISCARDED) as usize;
        let whole = bytes.next_multiple_of(8) + HEADER;
        if bytes != into.len() || whole > available || whole > self.bytes {
            return Next::Invalid(length);
        }
        if length & IS_DISCARDED == 0 {
            // SAFETY: offset < self.bytes and whole <= self.bytes, so the record ends within the
            // second mapping of the data.
            let from = unsafe { self.producer.add(self.page + offset + HEADER) };
            // SAFETY: `bytes` bytes are mapped there, and the kernel does not write them again
            // until the consumer's position is behind them; `into` has the same length.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), bytes) };
        }
        consumer.store(start.wrapping_add(whole), Ordering::Release);
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
    // SAFETY: the kernel chooses the address, so the call replaces no mapping.
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
            (self.consumer, self.page),
            (self.producer, self.page + 2 * self.bytes),
        ] {
            // SAFETY: the memory was mapped with this length, and only this value points there.
            let _ = unsafe { rustix::mm::munmap(memory.as_ptr().cast(), bytes) };
        }
    }
}
