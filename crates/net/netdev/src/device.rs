//! The trait of a packet device, and what a device tells about itself.
//!
//! Deliberately absent: a method that hands a frame to the kernel. With AF_XDP, a program in the
//! kernel passes foreign frames before they arrive here. With DPDK and memif, foreign frames are
//! sent on a TAP device, which is a second [`Device`]: so the wrappers apply to it, too, and its
//! queue may be full without effect on the first. [`Device::receive`] borrows only the device whose
//! frames arrive, so its callback may send on others.

use std::io;
use std::os::fd::BorrowedFd;

use saiga_wire::ethernet::{self, Mac};
use saiga_wire::ipv4;
use saiga_wire::offload::Fill;
use saiga_wire::virtio;

/// Bytes of the largest frame: a VLAN-tagged Ethernet header and the largest IPv6 packet.
pub const LARGEST_FRAME_BYTES: usize = 22 + 40 + 65_535;

/// One queue of a packet device. One worker thread owns it. No method waits.
pub trait Device {
    /// What the device was when it was opened.
    fn info(&self) -> &Info;

    /// Takes waiting frames, at most `most` of them, and passes them to `each` in the order of
    /// their arrival; returns how many were taken. The frames are in the memory of the device until
    /// `each` returns.
    ///
    /// After fewer than `most`, none waited any more: the descriptor becomes readable by the next
    /// one, which an edge-triggered epoll(7) tells, after [`Self::before_wait`]. Frames that
    /// contradict their offload header are taken, dropped and counted.
    ///
    /// # Errors
    /// [`DeviceError::Gone`] if the device was removed. A device that is down has no frames, which
    /// is not an error.
    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError>;

    /// Where the next frame is written. The same place, with what was written there, until it is
    /// sent. `None`: the queue is full until a later `flush` has made room.
    ///
    /// There is room for the largest frame: the MTU, or the largest super-segment with 120 bytes of
    /// headers, and 22 bytes of link layer.
    fn room(&mut self) -> Option<&mut [u8]>;

    /// Sends the first `length` bytes of the place that [`Self::room`] has returned. The frame
    /// leaves at the latest with the next `flush` that the device has room for.
    ///
    /// A frame is dropped and counted if `length` exceeds the room, or if the device refuses it.
    fn send(&mut self, length: usize, offload: &virtio::Header);

    /// Sends what waits, as far as the device takes it, and takes back the memory of frames that
    /// have left.
    ///
    /// # Errors
    /// As [`Self::receive`]. A device that is down drops and counts the frames.
    fn flush(&mut self) -> Result<(), DeviceError>;

    /// Readable when frames wait, for poll(2) and epoll(7). Only the device reads from it.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Whether frames can wait before the descriptor tells of them, because the device has no
    /// interrupts, or only those that [`Self::before_wait`] asks for. `receive` finds the frames at
    /// once, and costs little: a worker that looks for work calls it.
    fn is_polled(&self) -> bool {
        false
    }

    /// Must be called before a wait for the descriptor. Returns whether frames wait already, of
    /// which the descriptor may not tell.
    ///
    /// # Errors
    /// As [`Self::receive`].
    fn before_wait(&mut self) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// The counts since the device was opened.
    fn counters(&self) -> Counters;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn info(&self) -> &Info {
        (**self).info()
    }

    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError> {
        (**self).receive(most, each)
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        (**self).room()
    }

    fn send(&mut self, length: usize, offload: &virtio::Header) {
        (**self).send(length, offload);
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        (**self).flush()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        (**self).descriptor()
    }

    fn is_polled(&self) -> bool {
        (**self).is_polled()
    }

    fn before_wait(&mut self) -> Result<bool, DeviceError> {
        (**self).before_wait()
    }

    fn counters(&self) -> Counters {
        (**self).counters()
    }
}

/// A received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// An Ethernet frame without its frame check sequence, or an IP packet on a device without a
    /// link layer.
    pub bytes: &'a [u8],
    /// What the device found out, and what the sender on this host left open.
    pub offload: virtio::Header,
}

impl Frame<'_> {
    /// Whether the frame has the length of one, and the places that its offload header names.
    /// `headers_bytes` is a hint (virtio 1.2 §5.1.6.4.1).
    pub(crate) fn is_consistent(&self, link: Link) -> bool {
        let least = match link {
            Link::Ethernet => ethernet::HEADER_BYTES,
            Link::Ip => ipv4::HEADER_BYTES,
        };
        let virtio::Header {
            checksum,
            segmentation,
            verified: _,
        } = self.offload;
        (least..=LARGEST_FRAME_BYTES).contains(&self.bytes.len())
            && segmentation.is_none_or(|one| one.segment_bytes > 0)
            && checksum.is_none_or(|place| {
                let field_end = usize::from(place.start) + usize::from(place.offset) + 2;
                field_end <= self.bytes.len()
            })
    }
}

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Name of the network interface.
    pub name: String,
    /// The queue, from 0.
    pub queue: u16,
    /// Address of this end of the link, to which frames for the worker are sent; `None` without a
    /// link layer. On an ordinary NIC, this is the address of the network interface. On a TAP
    /// device, the network interface is the other end.
    pub mac: Option<Mac>,
    /// Bytes of the largest IP packet, at the time of opening. A super-segment may be longer.
    pub mtu: u16,
    /// What the device does with segments that are sent.
    pub offload: Offload,
}

impl Info {
    /// What frames begin with.
    #[must_use]
    pub const fn link(&self) -> Link {
        match self.mac {
            Some(_) => Link::Ethernet,
            None => Link::Ip,
        }
    }
}

/// What the frames of a device begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// An Ethernet header.
    Ethernet,
    /// An IP header: the device has no link layer.
    Ip,
}

/// What a device does with segments that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// What the checksum field of a segment must hold.
    pub checksum: Fill,
    /// The largest super-segment that the device divides; `None` if it divides none.
    pub segmentation: Option<Segmentation>,
}

impl Offload {
    /// The device sends frames as they are.
    pub const NONE: Self = Self {
        checksum: Fill::Checksum,
        segmentation: None,
    };
}

/// Division of super-segments by the device (TSO).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// What the checksum field of a super-segment must hold.
    pub checksum: Fill,
    /// Most bytes of payload.
    pub most_bytes: u32,
}

/// Monotonic counts of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Frames that were passed to the caller.
    pub received: Traffic,
    /// Frames that the device took.
    pub sent: Traffic,
    /// Frames that were dropped, by reason.
    pub drops: Drops,
}

/// Frames in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Frames; a super-segment is one.
    pub frames: u64,
    /// Bytes of the frames, without offload headers.
    pub bytes: u64,
    /// Calls of [`Device::receive`] or [`Device::flush`] that moved at least one frame.
    pub batches: u64,
}

impl Traffic {
    pub(crate) fn add_frame(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// Dropped frames, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drops {
    /// Received frames that contradict their offload header or descriptor.
    pub malformed: u64,
    /// Received frames that found no memory, because the worker was late.
    pub overflowed: u64,
    /// Frames that were sent while the device was down.
    pub down: u64,
    /// Sent frames that the device refused, or that were longer than its room.
    pub refused: u64,
}

impl Drops {
    /// All counts with their names.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 4] {
        let Self {
            malformed,
            overflowed,
            down,
            refused,
        } = *self;
        [
            ("malformed", malformed),
            ("overflowed", overflowed),
            ("down", down),
            ("refused", refused),
        ]
    }
}

/// Why a device that was open no longer works.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The network interface was removed. It must be opened again.
    #[error("network interface {name} was removed")]
    Gone {
        /// Name of the network interface.
        name: String,
    },
    /// A system call failed for another reason.
    #[error("network interface {name}: {call} failed")]
    System {
        /// Name of the network interface.
        name: String,
        /// The system call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}
