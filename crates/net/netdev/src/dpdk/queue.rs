//! A queue of a port as a [`Device`].
//!
//! Received frames are read in DPDK's buffers; a chain of buffers is copied together. A frame to
//! send is written into such a buffer, or, if the port divides super-segments, into memory of its
//! own, from which it is copied to a chain.
#![expect(unsafe_code, reason = "the functions of the plug-in are C")]

use std::io;
use std::os::fd::BorrowedFd;
use std::slice;
use std::sync::Arc;
use std::time::Instant;

use saiga_wire::virtio::Header;

use super::offload;
use super::pace::Pace;
use super::plugin::check;
use super::port::Port;
use super::raw::{BURST, Counts, FrameRequest, RawFrame, RawQueue};
use crate::device::{Counters, Device, DeviceError, Drops, Frame, Info, Traffic};

/// The frames of an Ethernet header alone, or less, are malformed.
const LEAST_BYTES: usize = 14;

/// One queue. Opened by [`Dpdk::open`](super::Dpdk::open).
#[derive(Debug)]
pub struct Queue {
    info: Info,
    handle: Handle,
    pace: Pace,
    received: Traffic,
    malformed: u64,
    /// Frames that this side refused.
    refused: u64,
    /// Calls that have sent frames.
    batches: u64,
}

/// A queue of the plug-in, which this value alone uses.
#[derive(Debug)]
pub(super) struct Handle {
    port: Arc<Port>,
    queue: *mut RawQueue,
}

// SAFETY: the functions of the plug-in may be called by any thread, one at a time for each queue,
// and only one value has the queue.
unsafe impl Send for Handle {}

/// A received frame, until the frames of the queue are released.
struct Received<'a> {
    bytes: &'a [u8],
    is_verified: bool,
}

impl Handle {
    /// All queues of a port.
    pub(super) fn all(port: Port) -> Vec<Self> {
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "the queues that make it so are each used by one thread"
        )]
        let port = Arc::new(port);
        let queues = port.queues().iter().copied();
        queues
            .map(|queue| Self {
                port: Arc::clone(&port),
                queue,
            })
            .collect()
    }

    fn receive(&mut self, most: u16) -> u16 {
        // SAFETY: the queue is open, and no other thread uses it.
        unsafe { (self.port.plugin.0.receive)(self.queue, most) }
    }

    /// A frame that was taken; `None` if it is too long.
    fn frame(&mut self, number: u16) -> Option<Received<'_>> {
        let mut frame = RawFrame {
            bytes: std::ptr::null(),
            length: 0,
            is_verified: 0,
        };
        // SAFETY: as for `receive`, and so many frames were taken.
        let done = unsafe { (self.port.plugin.0.frame)(self.queue, number, &raw mut frame) };
        check(done).ok()?;
        // SAFETY: the frame has so many bytes until it is released, or the next one is asked for,
        // both of which need this value.
        let bytes = unsafe { slice::from_raw_parts(frame.bytes, frame.length as usize) };
        let is_verified = frame.is_verified != 0;
        Some(Received { bytes, is_verified })
    }

    fn release(&mut self) {
        // SAFETY: as for `receive`, and no frame is borrowed.
        unsafe { (self.port.plugin.0.release)(self.queue) };
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        let mut length = 0;
        // SAFETY: as for `receive`; the length is written.
        let room = unsafe { (self.port.plugin.0.room)(self.queue, &raw mut length) };
        if room.is_null() {
            return None;
        }
        // SAFETY: there are so many bytes, which nothing else uses until the frame is sent, and
        // sending needs this value. DPDK's memory is initialised, because it comes from the kernel.
        Some(unsafe { slice::from_raw_parts_mut(room, length as usize) })
    }

    fn send(&mut self, length: u32, request: &FrameRequest) -> io::Result<()> {
        // SAFETY: as for `receive`; the request is read.
        check(unsafe { (self.port.plugin.0.send)(self.queue, length, request) })
    }

    fn flush(&mut self) -> u16 {
        // SAFETY: as for `receive`.
        unsafe { (self.port.plugin.0.flush)(self.queue) }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: as for `receive`; the counts are written.
        unsafe { (self.port.plugin.0.counts)(self.queue, &raw mut counts) };
        counts
    }
}

impl Queue {
    pub(super) const fn new(info: Info, handle: Handle, pace: Pace) -> Self {
        const NONE: Traffic = Traffic {
            frames: 0,
            bytes: 0,
            batches: 0,
        };
        Self {
            info,
            handle,
            pace,
            received: NONE,
            malformed: 0,
            refused: 0,
            batches: 0,
        }
    }

    fn timer_failed(&self, source: io::Error) -> DeviceError {
        DeviceError::System {
            name: self.info.name.clone(),
            call: "timerfd_settime",
            source,
        }
    }

    /// Passes the frames of a burst on.
    fn pass(&mut self, taken: u16, each: &mut dyn FnMut(Frame<'_>)) {
        for number in 0..taken {
            let received = self.handle.frame(number);
            let Some(received) = received.filter(|one| one.bytes.len() >= LEAST_BYTES) else {
                self.malformed += 1;
                continue;
            };
            self.received.add_frame(received.bytes.len());
            let offload = Header {
                verified: received.is_verified,
                ..Header::NONE
            };
            each(Frame {
                bytes: received.bytes,
                offload,
            });
        }
        self.handle.release();
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
        let mut total = 0;
        while total < most {
            let asked = u16::try_from(most - total).unwrap_or(BURST).min(BURST);
            let taken = self.handle.receive(asked);
            self.pass(taken, each);
            total += usize::from(taken);
            if taken < asked {
                let set = self.pace.on_empty(total > 0, Instant::now());
                set.map_err(|error| self.timer_failed(error))?;
                break;
            }
        }
        self.received.batches += u64::from(total > 0);
        Ok(total)
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        self.handle.room()
    }

    fn send(&mut self, length: usize, offload: &Header) {
        let can = self.info.offload;
        let room = self.handle.room();
        let frame = room.and_then(|room| room.get_mut(..length));
        let frame = frame.filter(|frame| frame.len() >= LEAST_BYTES);
        let request = frame.and_then(|frame| offload::request(frame, offload, &can));
        let bytes = u32::try_from(length).unwrap_or(u32::MAX);
        let is_sent = request.is_some_and(|request| self.handle.send(bytes, &request).is_ok());
        self.refused += u64::from(!is_sent);
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if self.handle.flush() == 0 {
            return Ok(());
        }
        self.batches += 1;
        let set = self.pace.on_sent(Instant::now());
        set.map_err(|error| self.timer_failed(error))
    }

    /// Readable when it is time to look for frames, so also when none wait.
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.pace.descriptor()
    }

    fn is_polled(&self) -> bool {
        true
    }

    /// Received frames that found no memory are counted by the port, for all its queues: queue 0
    /// tells them.
    fn counters(&self) -> Counters {
        let Counts {
            sent,
            sent_bytes,
            down,
            refused,
            missed,
        } = self.handle.counts();
        Counters {
            received: self.received,
            sent: Traffic {
                frames: sent,
                bytes: sent_bytes,
                batches: self.batches,
            },
            drops: Drops {
                malformed: self.malformed,
                overflowed: missed,
                down,
                refused: self.refused + refused,
            },
        }
    }
}
