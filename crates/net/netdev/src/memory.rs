//! Two devices in one process that are joined by a link: what one sends, the other receives.
//!
//! For tests of what uses devices. A frame arrives as it was sent, with its open checksum and its
//! segmentation, as between two virtual machines on one host.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use saiga_wire::virtio::Header;

use crate::device::{Counters, Device, DeviceError, Frame, Info, LARGEST_FRAME_BYTES};
use crate::stored::Stored;

/// One end of a link.
#[derive(Debug)]
pub struct Memory {
    info: Info,
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
    /// Most frames that wait in a direction.
    most_frames: usize,
    room: Box<[u8]>,
    /// Frames that were sent and not flushed.
    unsent: VecDeque<Stored>,
    counters: Counters,
}

/// The frames on their way in one direction.
#[derive(Debug)]
struct Direction {
    frames: Mutex<VecDeque<Stored>>,
    /// An eventfd, which is not 0 while frames wait.
    is_waiting: OwnedFd,
}

impl Memory {
    /// A link and its two ends. Up to `most_frames` wait in each direction until they are received,
    /// and as many in each end until there is room.
    ///
    /// # Errors
    /// Those of eventfd(2): EMFILE and ENFILE.
    pub fn pair(infos: [Info; 2], most_frames: usize) -> io::Result<[Self; 2]> {
        let [left, right] = infos;
        let there = Arc::new(Direction::new()?);
        let back = Arc::new(Direction::new()?);
        let end = |info, incoming, outgoing| Self {
            info,
            incoming,
            outgoing,
            most_frames,
            room: vec![0; LARGEST_FRAME_BYTES].into(),
            unsent: VecDeque::new(),
            counters: Counters::default(),
        };
        Ok([
            end(left, Arc::clone(&back), Arc::clone(&there)),
            end(right, there, back),
        ])
    }
}

impl Device for Memory {
    fn info(&self) -> &Info {
        &self.info
    }

    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError> {
        let frames = self
            .incoming
            .take(most)
            .map_err(|error| self.failed(error))?;
        for stored in &frames {
            self.counters.received.add_frame(stored.bytes.len());
            each(stored.frame());
        }
        self.counters.received.batches += u64::from(!frames.is_empty());
        Ok(frames.len())
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        (self.unsent.len() < self.most_frames).then_some(&mut *self.room)
    }

    fn send(&mut self, length: usize, offload: &Header) {
        let Some(bytes) = self.room.get(..length) else {
            self.counters.drops.refused += 1;
            return;
        };
        self.unsent.push_back(Stored::of(&Frame {
            bytes,
            offload: *offload,
        }));
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let room = self.outgoing.room(self.most_frames);
        let count = room.min(self.unsent.len());
        let moved: Vec<Stored> = self.unsent.drain(..count).collect();
        for stored in &moved {
            self.counters.sent.add_frame(stored.bytes.len());
        }
        self.counters.sent.batches += u64::from(!moved.is_empty());
        self.outgoing.put(moved).map_err(|error| self.failed(error))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.incoming.is_waiting.as_fd()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

impl Memory {
    fn failed(&self, source: io::Error) -> DeviceError {
        DeviceError::System {
            name: self.info.name.clone(),
            call: "eventfd",
            source,
        }
    }
}

impl Direction {
    fn new() -> io::Result<Self> {
        Ok(Self {
            frames: Mutex::default(),
            is_waiting: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// How many more frames may wait. Only the receiver makes the answer larger.
    fn room(&self, most: usize) -> usize {
        most.saturating_sub(self.lock().len())
    }

    /// Adds frames. The descriptor changes under the lock, so that it agrees with the queue.
    fn put(&self, frames: Vec<Stored>) -> io::Result<()> {
        let mut waiting = self.lock();
        if waiting.is_empty() && !frames.is_empty() {
            rustix::io::write(&self.is_waiting, &1_u64.to_ne_bytes())?;
        }
        waiting.extend(frames);
        Ok(())
    }

    /// Takes up to `most` frames.
    fn take(&self, most: usize) -> io::Result<Vec<Stored>> {
        let mut waiting = self.lock();
        let length = waiting.len();
        if length > 0 && length <= most {
            rustix::io::read(&self.is_waiting, &mut [0; 8])?;
        }
        Ok(waiting.drain(..most.min(length)).collect())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Stored>> {
        // A queue is whole after every statement.
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Offload;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use saiga_wire::ethernet::Mac;

    /// A pair of Ethernet devices without offloads, named `left` and `right`.
    pub(crate) fn pair(most_frames: usize) -> [Memory; 2] {
        let info = |name: &str, last| Info {
            name: name.to_owned(),
            queue: 0,
            mac: Some(Mac([2, 0, 0, 0, 0, last])),
            mtu: 1500,
            offload: Offload::NONE,
        };
        Memory::pair([info("left", 1), info("right", 2)], most_frames).unwrap()
    }

    /// Sends a frame without an offload request; false if there is no room.
    pub(crate) fn send(device: &mut dyn Device, bytes: &[u8]) -> bool {
        let Some(room) = device.room() else {
            return false;
        };
        room[..bytes.len()].copy_from_slice(bytes);
        device.send(bytes.len(), &Header::NONE);
        true
    }

    /// All frames that wait.
    pub(crate) fn received(device: &mut dyn Device) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let counted = device
            .receive(1_000, &mut |frame| frames.push(frame.bytes.to_vec()))
            .unwrap();
        assert_eq!(counted, frames.len());
        frames
    }

    pub(crate) fn is_readable(device: &dyn Device) -> bool {
        let descriptor = device.descriptor();
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
    }

    #[test]
    fn what_one_end_flushes_the_other_receives() {
        let [mut left, mut right] = pair(8);
        assert!(send(&mut left, b"one") && send(&mut left, b"two"));
        assert!(!is_readable(&right));
        left.flush().unwrap();
        assert!(is_readable(&right) && !is_readable(&left));
        let mut first = Vec::new();
        let passed = right.receive(1, &mut |frame| first.extend_from_slice(frame.bytes));
        assert_eq!(passed.unwrap(), 1);
        assert_eq!(first, b"one");
        assert!(is_readable(&right));
        assert_eq!(received(&mut right), [b"two"]);
        assert!(!is_readable(&right));
        assert_eq!(received(&mut right), [b""; 0]);
        let (sent, received) = (left.counters().sent, right.counters().received);
        assert_eq!((sent.frames, sent.bytes, sent.batches), (2, 6, 1));
        assert_eq!(
            (received.frames, received.bytes, received.batches),
            (2, 6, 2)
        );
    }

    #[test]
    fn a_full_queue_has_no_room_until_frames_are_received() {
        let [mut left, mut right] = pair(2);
        for _ in 0..2 {
            assert!(send(&mut left, b"a") && send(&mut left, b"b"));
            assert!(!send(&mut left, b"c"));
            left.flush().unwrap();
        }
        // Two frames wait on the link, two in the device.
        left.flush().unwrap();
        assert!(left.room().is_none());
        assert_eq!(received(&mut right), [b"a", b"b"]);
        left.flush().unwrap();
        assert!(left.room().is_some());
        assert_eq!(received(&mut right), [b"a", b"b"]);
    }

    #[test]
    fn a_length_beyond_the_room_is_refused() {
        let [mut left, mut right] = pair(2);
        left.send(LARGEST_FRAME_BYTES + 1, &Header::NONE);
        left.flush().unwrap();
        assert_eq!(left.counters().drops.refused, 1);
        assert!(received(&mut right).is_empty());
    }
}
