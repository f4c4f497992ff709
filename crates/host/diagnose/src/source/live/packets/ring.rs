//! The ring of a packet socket (`Documentation/networking/packet_mmap.rst`, TPACKET_V3): the kernel
//! fills blocks with packets, so that one wake-up is enough for many.
#![expect(
    unsafe_code,
    reason = "packet sockets and their ring have no safe wrapper"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "sizes of structures and constants of the kernel are small"
)]

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{c_int, sock_filter, tpacket_block_desc, tpacket_hdr_v1, tpacket3_hdr};
use saiga_capture::{Link, Packet, Timestamp};

/// Size of a block, a multiple of the page size of every architecture.
const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 16;
/// Largest room for a packet; it must divide a block.
const FRAME: usize = 2048;
/// Time after which the kernel hands over a block that is not full.
const RETIRE_MS: u32 = 100;

/// A packet socket with its ring.
#[derive(Debug)]
pub(super) struct Ring {
    socket: OwnedFd,
    start: NonNull<u8>,
    /// The block that is filled next.
    next: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens a socket for the packets that `filter` accepts, on all devices of this network
    /// namespace.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW.
    pub(super) fn open(filter: &mut [sock_filter]) -> io::Result<Self> {
        // Protocol 0: no packet arrives before the filter is there (`man 7 packet`).
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let socket = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: a new descriptor that nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (BLOCK / FRAME * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the ring that was just requested.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BLOCK * BLOCKS,
                protection,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        let ring = Self {
            socket,
            start,
            next: 0,
        };
        ring.bind()?;
        Ok(ring)
    }

    /// Receives from all devices.
    fn bind(&self) -> io::Result<()> {
        // SAFETY: all-zero is a valid address: it holds integers only.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        let length = size_of::<libc::sockaddr_ll>() as u32;
        let address = (&raw const address).cast();
        // SAFETY: a valid address of this length.
        checked(unsafe { libc::bind(self.socket.as_raw_fd(), address, length) }).map(drop)
    }

    /// Waits until a block is there, at most for `limit`, and passes on its packets. False if none
    /// came.
    pub(super) fn read(&mut self, limit: Duration, take: &mut dyn FnMut(Packet<'_>)) -> bool {
        if !self.is_ready() {
            let mut entry = libc::pollfd {
                fd: self.socket.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let limit = c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX);
            // SAFETY: one entry.
            unsafe { libc::poll(&raw mut entry, 1, limit) };
        }
        if !self.is_ready() {
            return false;
        }
        self.packets(take);
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// The packets that did not find room since the last call.
    pub(super) fn dropped(&self) -> u64 {
        let mut numbers = libc::tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        let mut length = size_of::<libc::tpacket_stats_v3>() as u32;
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let socket = self.socket.as_raw_fd();
        // SAFETY: room for the structure, whose length is given.
        let result = unsafe {
            libc::getsockopt(
                socket,
                level,
                name,
                (&raw mut numbers).cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            u64::from(numbers.tp_drops)
        } else {
            0
        }
    }

    /// The next block.
    fn block(&self) -> *mut u8 {
        // SAFETY: `next` is below BLOCKS, so the result lies in the mapping.
        unsafe { self.start.as_ptr().add(self.next * BLOCK) }
    }

    /// The word that says who may use the next block.
    fn status(&self) -> &AtomicU32 {
        let offset = offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, block_status);
        // SAFETY: the offset lies inside the block.
        let word = unsafe { self.block().add(offset) };
        // SAFETY: aligned, and shared with the kernel, which changes it atomically.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Passes on the packets of the next block, which belongs to us.
    fn packets(&self, take: &mut dyn FnMut(Packet<'_>)) {
        // SAFETY: the kernel does not touch the block until its status is written.
        let block = unsafe { std::slice::from_raw_parts(self.block(), BLOCK) };
        let first = offset_of!(tpacket_block_desc, hdr);
        let Some(header) = copied::<tpacket_hdr_v1>(block, first) else {
            return;
        };
        let mut at = header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            let Some(packet) = copied::<tpacket3_hdr>(block, at) else {
                return;
            };
            let data = at + usize::from(packet.tp_net);
            let bytes = block.get(data..data + packet.tp_snaplen as usize);
            if let Some(bytes) = bytes {
                take(Packet {
                    at: Timestamp(
                        u64::from(packet.tp_sec) * 1_000_000_000 + u64::from(packet.tp_nsec),
                    ),
                    link: Link::RawIp,
                    bytes,
                    length: packet.tp_len,
                });
            }
            at += packet.tp_next_offset as usize;
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, which nothing else uses.
        unsafe { libc::munmap(self.start.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

/// A structure of the kernel at an offset; `None` if it does not lie inside.
fn copied<T: Copy>(bytes: &[u8], offset: usize) -> Option<T> {
    let part = bytes.get(offset..offset + size_of::<T>())?;
    // SAFETY: enough bytes, and the structures of this file hold integers only.
    Some(unsafe { part.as_ptr().cast::<T>().read_unaligned() })
}

fn set<T>(socket: &OwnedFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let (socket, length) = (socket.as_raw_fd(), size_of::<T>() as u32);
    let value = ptr::from_ref(value).cast();
    // SAFETY: a value of this length.
    checked(unsafe { libc::setsockopt(socket, level, name, value, length) }).map(drop)
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
