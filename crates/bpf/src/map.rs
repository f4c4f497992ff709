//! Maps: tables that programs and this process share.
//!
//! Kernel: Documentation/bpf/maps.rst. The sizes of a map's keys and values are part of its type,
//! so the kernel never reads or writes beyond a buffer.
#![expect(unsafe_code, reason = "bpf(2) takes keys and values by pointer")]

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::call::{Command, address, bpf, number, open};

/// A kind of map (`enum bpf_map_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MapKind {
    /// A hash table (`BPF_MAP_TYPE_HASH`).
    Hash = 1,
    /// An array, whose keys are indexes of 4 bytes (`BPF_MAP_TYPE_ARRAY`).
    Array = 2,
    /// Prefixes, of which a lookup finds the longest (`BPF_MAP_TYPE_LPM_TRIE`): keys begin with the
    /// number of bits of the prefix, in 4 bytes.
    Prefixes = 11,
    /// An array of sockets (`BPF_MAP_TYPE_SOCKMAP`): keys are indexes of 4 bytes, and values are
    /// descriptors.
    Streams = 15,
    /// An array of AF_XDP sockets (`BPF_MAP_TYPE_XSKMAP`): keys are indexes of 4 bytes, and values
    /// are descriptors.
    Sockets = 17,
    /// The memory of a [`Ring`](crate::Ring) (`BPF_MAP_TYPE_RINGBUF`).
    Ring = 27,
}

// Members of `union bpf_attr`, without padding.
#[repr(C)]
struct Create {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

/// `BPF_F_NO_PREALLOC`, without which the kernel makes no map of prefixes.
const NO_PREALLOCATION: u32 = 1;

#[repr(C)]
struct Element {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A BPF map with keys of `K` bytes and values of `V` bytes; both are 0 for a ring.
#[derive(Debug)]
pub struct Map<const K: usize, const V: usize> {
    fd: OwnedFd,
}

impl<const K: usize, const V: usize> Map<K, V> {
    /// Creates a map with room for `entries` entries; for a ring, they are bytes.
    ///
    /// # Errors
    /// `EPERM` without the right to create maps (CAP_BPF; CAP_NET_ADMIN for sockets), and before
    /// Linux 5.11 also if the map exceeds RLIMIT_MEMLOCK; `EINVAL` if the kernel does not know this
    /// kind of map or the sizes are not valid.
    pub fn new(kind: MapKind, entries: u32) -> Result<Self, Errno> {
        let bytes = |size| u32::try_from(size).map_err(|_| Errno::TOOBIG);
        let mut attributes = Create {
            kind: kind as u32,
            key_bytes: bytes(K)?,
            value_bytes: bytes(V)?,
            entries,
            flags: if kind == MapKind::Prefixes {
                NO_PREALLOCATION
            } else {
                0
            },
        };
        // SAFETY: these are the attributes of the command, which have no pointers. The command
        // returns a new descriptor.
        let fd = unsafe { open(Command::MapCreate, &mut attributes) }?;
        Ok(Self { fd })
    }

    /// Returns the map's descriptor, which instructions refer to.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Returns the value of a key; `None` if the map does not have the key.
    ///
    /// # Errors
    /// Those of the kernel, such as `EOPNOTSUPP` for maps of sockets.
    pub fn value(&self, key: &[u8; K]) -> Result<Option<[u8; V]>, Errno> {
        let mut value = [0; V];
        let mut attributes = self.element(Some(key), value.as_mut_ptr() as u64);
        // SAFETY: these are the attributes of the command. The map's keys have K bytes and its
        // values V bytes, and so have `key` and `value`.
        let done = unsafe { bpf(Command::MapLookup, &mut attributes) };
        found(done.map(|_| value))
    }

    /// Sets the value of a key, which is added if the map does not have it.
    ///
    /// # Errors
    /// `E2BIG` if the map is full; `EOPNOTSUPP` or `EINVAL` if it refuses the value, such as a
    /// descriptor that is not an AF_XDP socket.
    pub fn insert(&self, key: &[u8; K], value: &[u8; V]) -> Result<(), Errno> {
        let mut attributes = self.element(Some(key), address(value));
        // SAFETY: these are the attributes of the command. The map's keys have K bytes and its
        // values V bytes, and so have `key` and `value`, which the kernel only reads.
        unsafe { bpf(Command::MapUpdate, &mut attributes) }.map(drop)
    }

    /// Removes a key; returns whether the map had it.
    ///
    /// # Errors
    /// `EINVAL` if the kind of map keeps all its keys.
    pub fn remove(&self, key: &[u8; K]) -> Result<bool, Errno> {
        let mut attributes = self.element(Some(key), 0);
        // SAFETY: these are the attributes of the command. The map's keys have K bytes, and so has
        // `key`.
        let done = unsafe { bpf(Command::MapDelete, &mut attributes) };
        found(done).map(|done| done.is_some())
    }

    /// Returns the key after `key`, or the first key for `None`.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn key_after(&self, key: Option<&[u8; K]>) -> Result<Option<[u8; K]>, Errno> {
        let mut next = [0; K];
        let mut attributes = self.element(key, next.as_mut_ptr() as u64);
        // SAFETY: these are the attributes of the command. Keys have K bytes; null requests the
        // first key.
        let done = unsafe { bpf(Command::MapNextKey, &mut attributes) };
        found(done.map(|_| next))
    }

    fn element(&self, key: Option<&[u8; K]>, value: u64) -> Element {
        Element {
            map: number(self.fd.as_fd()),
            zero: 0,
            key: key.map_or(0, |key| address(key)),
            value,
            flags: 0,
        }
    }
}

impl<const K: usize, const V: usize> AsFd for Map<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// `None` for a key that the map does not have.
fn found<T>(done: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
