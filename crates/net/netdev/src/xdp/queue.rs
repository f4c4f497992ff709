//! A queue of an AF_XDP interface as a [`Device`].
//!
//! A chunk of memory is in one of three places: the list of free chunks, from which both directions
//! take; the place for the next frame to send; or lent to the kernel. At most half of the chunks
//! are lent for frames to come, so that neither direction can take the other's.
//!
//! Deliberately absent: offloads of sent frames (`XDP_TX_METADATA`), and memory that queues share,
//! because each worker takes it from its own NUMA node.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::io::Errno;
use saiga_wire::offload;
use saiga_wire::virtio::{ChecksumPlace, Header};

use super::options::Copies;
use super::partial;
use super::socket::{Descriptor, Failure, Socket};
use super::umem::Umem;
use crate::device::{Counters, Device, DeviceError, Drops, Frame, Info, Traffic};

/// After so many calls without a frame, the kernel is asked whether the interface still exists.
const CALLS_BETWEEN_CHECKS: u32 = 64;
/// An Ethernet header. The kernel drops shorter frames without giving their memory back.
const LEAST_BYTES: usize = 14;

/// One queue. Opened by [`Interface::open_queue`](super::Interface::open_queue).
#[derive(Debug)]
pub struct Queue {
    info: Info,
    socket: Socket,
    umem: Umem,
    free: Vec<u32>,
    /// The chunk of the next frame to send, once there was a call of `room`.
    next: Option<u32>,
    /// Chunks that are lent for frames to come, and most of them.
    lent: u32,
    most_lent: u32,
    has_partial_checksums: bool,
    polls_busily: bool,
    is_zero_copy: bool,
    /// The interface was down when frames were sent last.
    is_down: bool,
    /// Calls of `receive` since the last frame.
    calls: u32,
    /// Frames that were sent since the last `flush`.
    waiting: Traffic,
    counts: Counts,
}

/// What the kernel does not count.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    received: Traffic,
    sent: Traffic,
    malformed: u64,
    down: u64,
    refused: u64,
}

/// What a queue consists of.
pub(super) struct Parts {
    pub(super) info: Info,
    pub(super) socket: Socket,
    pub(super) umem: Umem,
    pub(super) chunks: u32,
    pub(super) has_partial_checksums: bool,
    pub(super) polls_busily: bool,
}

impl Queue {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts {
            info,
            socket,
            umem,
            chunks,
            has_partial_checksums,
            polls_busily,
        } = parts;
        Self {
            info,
            socket,
            umem,
            free: (0..chunks).collect(),
            next: None,
            lent: 0,
            most_lent: chunks / 2,
            has_partial_checksums,
            polls_busily,
            is_zero_copy: false,
            is_down: false,
            calls: 0,
            waiting: Traffic::default(),
            counts: Counts::default(),
        }
    }

    /// Whether the device reads and writes the frames in the queue's memory itself.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Whether the frames are in huge pages.
    #[must_use]
    pub fn has_huge_pages(&self) -> bool {
        self.umem.is_huge()
    }

    /// Binds the socket to the queue of the interface with this index.
    pub(super) fn bind(&mut self, index: u32, copies: Copies) -> Result<(), Failure> {
        // Drivers take chunks as soon as they have the socket.
        self.refill();
        self.is_zero_copy = self.socket.bind(index, self.info.queue, copies)?;
        Ok(())
    }

    /// Lends chunks for frames to come.
    fn refill(&mut self) {
        let wanted = self.most_lent - self.lent;
        if wanted == 0 {
            return;
        }
        let room = self.socket.fill.free(wanted).min(wanted);
        for _ in 0..room {
            let Some(chunk) = self.free.pop() else {
                break;
            };
            if let Some(address) = self.umem.lend(chunk) {
                self.socket.fill.push([address]);
                self.lent += 1;
            }
        }
        self.socket.fill.publish();
    }

    /// Passes one received frame on. False if its descriptor is not valid.
    fn pass(&mut self, slot: [u64; 2], each: &mut dyn FnMut(Frame<'_>)) -> bool {
        let Descriptor { address, length } = Descriptor::of_slot(slot);
        let Some((chunk, offset)) = self.umem.take_back(address) else {
            return false;
        };
        self.lent = self.lent.saturating_sub(1);
        let bytes = self.umem.frame(chunk, offset, length as usize);
        if let Some(bytes) = bytes {
            let checksum = if self.has_partial_checksums {
                partial::place(bytes)
            } else {
                None
            };
            let offload = Header {
                checksum,
                ..Header::NONE
            };
            each(Frame { bytes, offload });
            self.counts.received.frames += 1;
            self.counts.received.bytes += u64::from(length);
        }
        let is_valid = bytes.is_some();
        self.free.push(chunk);
        is_valid
    }

    /// Calls the kernel where it waits for that, and asks now and then whether there still is an
    /// interface: only a call tells.
    fn wake_receiving(&mut self, has_frames: bool) -> Result<(), DeviceError> {
        self.calls = if has_frames { 0 } else { self.calls + 1 };
        let must_check = self.calls >= CALLS_BETWEEN_CHECKS;
        if !(must_check || self.polls_busily || self.socket.fill.needs_wakeup()) {
            return Ok(());
        }
        self.calls = 0;
        match self.socket.wake_receiving() {
            // Down, or the driver is busy: frames come later.
            Ok(()) | Err(Errno::NETDOWN | Errno::AGAIN | Errno::BUSY | Errno::INTR) => Ok(()),
            Err(error) => Err(self.error("recvfrom", error)),
        }
    }

    /// Lets the kernel take the published frames.
    fn wake_sending(&mut self) -> Result<(), DeviceError> {
        let mut before = self.socket.sending.used();
        if before == 0 {
            self.is_down = false;
        }
        // Each further round needs progress, so there are at most as many as the ring has slots.
        while before > 0 && self.socket.sending.needs_wakeup() {
            match self.socket.wake_sending() {
                Ok(()) => {
                    self.is_down = false;
                    return Ok(());
                }
                // The kernel takes some dozen frames in a call, and stops if the device has no
                // room. Those that are left go with the next flush.
                Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {
                    self.is_down = false;
                    let now = self.socket.sending.used();
                    if now >= before {
                        return Ok(());
                    }
                    before = now;
                }
                Err(Errno::NETDOWN) => {
                    self.is_down = true;
                    return Ok(());
                }
                Err(error) => return Err(self.error("sendto", error)),
            }
        }
        Ok(())
    }

    /// Takes the chunks of sent frames back.
    fn reap(&mut self) {
        for _ in 0..self.socket.completed.available() {
            let [address] = self.socket.completed.pop();
            match self.umem.take_back(address) {
                Some((chunk, _)) => self.free.push(chunk),
                None => self.counts.malformed += 1,
            }
        }
        self.socket.completed.release();
    }

    /// Makes a frame ready for the device; false if that is not possible.
    fn prepare(&mut self, chunk: u32, length: usize, offload: &Header) -> bool {
        let Header {
            checksum,
            verified: _,
            segmentation,
        } = *offload;
        let room = self.umem.room(chunk);
        let Some(frame) = room.and_then(|room| room.get_mut(..length)) else {
            return false;
        };
        if length < LEAST_BYTES || segmentation.is_some() {
            return false;
        }
        match checksum {
            None => true,
            Some(ChecksumPlace { start, offset }) => {
                offload::complete(frame, start.into(), offset.into()).is_ok()
            }
        }
    }

    fn error(&self, call: &'static str, error: Errno) -> DeviceError {
        let name = self.info.name.clone();
        match error {
            // The kernel unbinds the socket of an interface that is removed.
            Errno::NXIO => DeviceError::Gone { name },
            other => DeviceError::System {
                name,
                call,
                source: io::Error::from(other),
            },
        }
    }
}

impl Device for Queue {
    fn info(&self) -> &Info {
        &self.info
    }

    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError> {
        let available = self.socket.received.available() as usize;
        let taken = available.min(most);
        for _ in 0..taken {
            let slot = self.socket.received.pop();
            if !self.pass(slot, each) {
                self.counts.malformed += 1;
            }
        }
        self.socket.received.release();
        self.counts.received.batches += u64::from(taken > 0);
        self.refill();
        self.wake_receiving(taken > 0)?;
        Ok(taken)
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        if self.socket.sending.free(1) == 0 {
            return None;
        }
        if self.next.is_none() {
            if self.free.is_empty() {
                self.reap();
            }
            self.next = self.free.pop();
        }
        self.umem.room(self.next?)
    }

    fn send(&mut self, length: usize, offload: &Header) {
        let Some(chunk) = self.next else {
            self.counts.refused += 1;
            return;
        };
        if self.is_down {
            self.counts.down += 1;
            return;
        }
        let bytes = u32::try_from(length).ok();
        let Some(bytes) = bytes.filter(|_| self.prepare(chunk, length, offload)) else {
            self.counts.refused += 1;
            return;
        };
        if let Some(address) = self.umem.lend(chunk) {
            let descriptor = Descriptor {
                address,
                length: bytes,
            };
            // `room` has found a free slot.
            self.socket.sending.push(descriptor.slot());
            self.next = None;
            self.waiting.frames += 1;
            self.waiting.bytes += u64::from(bytes);
        }
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let Traffic { frames, bytes, .. } = std::mem::take(&mut self.waiting);
        if frames > 0 {
            self.socket.sending.publish();
            self.counts.sent.frames += frames;
            self.counts.sent.bytes += bytes;
            self.counts.sent.batches += 1;
        }
        // Sending stops while the kernel cannot give frames back.
        self.reap();
        let done = self.wake_sending();
        self.reap();
        done
    }

    /// poll(2) and epoll(7) do not tell that the interface was removed. A worker that sleeps learns
    /// it from netlink, or when it wakes up now and then and calls `receive`.
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Frames that found no memory on a device without copies are counted by the device
    /// (`ethtool -S`), and not here.
    fn counters(&self) -> Counters {
        let Counts {
            received,
            sent,
            malformed,
            down,
            refused,
        } = self.counts;
        let mut drops = Drops {
            malformed,
            overflowed: 0,
            down,
            refused,
        };
        if let Ok(kernel) = self.socket.statistics() {
            drops.malformed += kernel.rx_invalid_descs;
            drops.overflowed += kernel.rx_dropped + kernel.rx_ring_full.unwrap_or(0);
            drops.refused += kernel.tx_invalid_descs;
        }
        Counters {
            received,
            sent,
            drops,
        }
    }
}
