//! Capture: a device whose frames are written to a pcapng file while they pass.
//!
//! Any number of queues write to one [`Capture`], each as an interface of its own. Blocks are
//! written when [`Device::receive`] or [`Device::flush`] returns, so that a reader that follows the
//! file sees whole blocks soon. A checksum that is still open is formed in the copy, and a
//! super-segment is recorded as it is. A capture that fails or reaches its bound ends; the device
//! goes on. A slow disk delays the worker.
//!
//! Deliberately absent: an order of frames by time across queues (`reordercap` restores it).

mod block;
mod file;

use std::fmt;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use saiga_wire::virtio::Header;

use crate::device::{Counters, Device, DeviceError, Frame, Info, Link};
use crate::filter::Filter;
use block::{Direction, Interface, Packet};
use file::Bounded;
pub use file::{CreateError, End, StartError, Summary, create};

/// What is captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Most bytes of the file: at least 256 KiB and the descriptions of the interfaces. The capture
    /// ends at the first frame that does not fit.
    pub bytes: u64,
    /// Most bytes that are kept of each frame.
    pub snap_bytes: u32,
    /// Frames that do not match are left out.
    pub filter: Filter,
}

/// A capture into which devices write. Clones write into the same file.
#[derive(Debug, Clone)]
pub struct Capture(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    filter: Filter,
    snap_bytes: u32,
    file: Mutex<Bounded>,
}

impl Capture {
    /// Begins a capture of these devices in an empty file, such as [`create`] makes.
    ///
    /// # Errors
    /// Each [`StartError`] says when.
    pub fn start(
        file: File,
        settings: &Settings,
        interfaces: &[&Info],
    ) -> Result<Self, StartError> {
        let Settings {
            bytes,
            snap_bytes,
            filter,
        } = settings;
        let mut head = Vec::new();
        block::section(&mut head, concat!("saiga ", env!("CARGO_PKG_VERSION")));
        for info in interfaces {
            let interface = Interface {
                name: &info.name,
                description: &format!("queue {}", info.queue),
                link: info.link(),
                snap_bytes: *snap_bytes,
                filter: filter.text(),
            };
            block::interface(&mut head, &interface);
        }
        let file = Bounded::begin(file, *bytes, &head)?;
        Ok(Self(Arc::new(Shared {
            filter: filter.clone(),
            snap_bytes: *snap_bytes,
            file: Mutex::new(file),
        })))
    }

    /// What has been written.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.file().summary()
    }

    fn file(&self) -> MutexGuard<'_, Bounded> {
        // Another worker's panic leaves whole blocks.
        self.0.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device whose frames can be captured. `clock` tells the time since the Unix epoch.
pub struct Captured<D, C> {
    device: D,
    clock: C,
    recorder: Option<Recorder>,
}

impl<D: Device, C: Fn() -> Duration> Captured<D, C> {
    /// A device without a capture, which costs one branch a call.
    pub fn new(device: D, clock: C) -> Self {
        Self {
            device,
            clock,
            recorder: None,
        }
    }

    /// Begins to write frames as interface number `interface`, the place of this device among those
    /// with which `capture` was started. Replaces an earlier capture.
    pub fn start(&mut self, capture: Capture, interface: u32) {
        self.stop();
        self.recorder = Some(Recorder {
            capture,
            interface,
            link: self.device.info().link(),
            blocks: Vec::new(),
        });
    }

    /// Ends the capture of this device.
    pub fn stop(&mut self) {
        self.commit();
        self.recorder = None;
    }

    /// As [`Device::receive`]. What `each` returns becomes a comment of the frame in the capture,
    /// such as the verdict of the stack.
    ///
    /// # Errors
    /// As [`Device::receive`].
    pub fn receive_with_comments(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>) -> Option<&'static str>,
    ) -> Result<usize, DeviceError> {
        let clock = &self.clock;
        let Some(recorder) = &mut self.recorder else {
            return self.device.receive(most, &mut |frame| {
                each(frame);
            });
        };
        let received = self.device.receive(most, &mut |frame| {
            let at = clock();
            let comment = each(frame);
            recorder.record(frame, Direction::Received, comment, at);
        });
        self.commit();
        received
    }

    /// Writes the blocks of the last calls.
    fn commit(&mut self) {
        let goes_on = self.recorder.as_mut().is_none_or(Recorder::commit);
        if !goes_on {
            self.recorder = None;
        }
    }
}

impl<D: Device, C: Fn() -> Duration> Device for Captured<D, C> {
    fn info(&self) -> &Info {
        self.device.info()
    }

    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError> {
        self.receive_with_comments(most, &mut |frame| {
            each(frame);
            None
        })
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        self.device.room()
    }

    fn send(&mut self, length: usize, offload: &Header) {
        if let Some(recorder) = &mut self.recorder
            && let Some(room) = self.device.room()
            && let Some(bytes) = room.get(..length)
        {
            let offload = *offload;
            let frame = Frame { bytes, offload };
            recorder.record(frame, Direction::Sent, None, (self.clock)());
        }
        self.device.send(length, offload);
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.commit();
        self.device.flush()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.device.descriptor()
    }

    fn is_polled(&self) -> bool {
        self.device.is_polled()
    }

    fn before_wait(&mut self) -> Result<bool, DeviceError> {
        self.device.before_wait()
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }
}

impl<D: fmt::Debug, C> fmt::Debug for Captured<D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            clock: _,
            recorder,
        } = self;
        f.debug_struct("Captured")
            .field("device", device)
            .field("recorder", recorder)
            .finish_non_exhaustive()
    }
}

impl<D, C> Drop for Captured<D, C> {
    fn drop(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.commit();
        }
    }
}

/// One device's part of a capture.
#[derive(Debug)]
struct Recorder {
    capture: Capture,
    interface: u32,
    link: Link,
    /// Blocks that are not written yet.
    blocks: Vec<u8>,
}

impl Recorder {
    fn record(
        &mut self,
        frame: Frame<'_>,
        direction: Direction,
        comment: Option<&'static str>,
        at: Duration,
    ) {
        let shared = &self.capture.0;
        if !shared.filter.matches(frame.bytes, self.link) {
            return;
        }
        let packet = Packet {
            interface: self.interface,
            at,
            direction,
            frame,
            comment,
            snap_bytes: shared.snap_bytes,
        };
        block::packet(&mut self.blocks, &packet);
    }

    /// Writes the blocks; returns whether the capture goes on.
    fn commit(&mut self) -> bool {
        if self.blocks.is_empty() {
            return true;
        }
        let goes_on = self.capture.file().append(&self.blocks);
        self.blocks.clear();
        goes_on
    }
}

#[cfg(test)]
mod tests;
