//! Fault injection: a device whose frames are lost, doubled, delayed, reordered and corrupted, from
//! a seed.
//!
//! Each direction has a [`Path`] of its own, and frames may be corrupted on it: one bit flips. Time
//! comes from the caller's clock, so that the same seed and the same instants give the same faults.
//! A super-segment is one frame: one fault strikes it as a whole.
//!
//! Deliberately absent: congestion marks (`Path::mark_above` is without effect).

mod alarm;
mod direction;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

pub use saiga_path::{Chance, Loss, Path, Queue, Reordering};
use saiga_wire::virtio::Header;

use crate::device::{Counters, Device, DeviceError, Frame, Info, LARGEST_FRAME_BYTES};
use crate::stored::Stored;
use alarm::Alarm;
use direction::Direction;
pub use direction::{Faults, Totals};

/// What happens to the frames of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Decides about all that happens by chance.
    pub seed: u64,
    /// Faults of received frames.
    pub receiving: Faults,
    /// Faults of sent frames.
    pub sending: Faults,
}

/// A device with faults. `clock` tells the time since any fixed instant; the time does not run
/// backwards.
pub struct Faulty<D, C> {
    device: D,
    clock: C,
    receiving: Direction,
    sending: Direction,
    room: Box<[u8]>,
    /// Frames that were longer than the room.
    refused: u64,
    alarm: Alarm,
}

impl<D: Device, C: Fn() -> Duration> Faulty<D, C> {
    /// Injects faults into the frames of `device`.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)` and `timerfd_create(2)`: EMFILE and ENFILE.
    pub fn new(device: D, settings: &Settings, clock: C) -> io::Result<Self> {
        let alarm = Alarm::beside(device.descriptor())?;
        let mut seeds = fastrand::Rng::with_seed(settings.seed);
        Ok(Self {
            receiving: Direction::new(settings.receiving, &mut seeds),
            sending: Direction::new(settings.sending, &mut seeds),
            room: vec![0; LARGEST_FRAME_BYTES].into(),
            refused: 0,
            device,
            clock,
            alarm,
        })
    }

    /// What happened to received frames.
    pub fn receiving(&self) -> Totals {
        self.receiving.totals()
    }

    /// What happened to sent frames.
    pub fn sending(&self) -> Totals {
        self.sending.totals()
    }

    fn now_us(&self) -> u64 {
        u64::try_from((self.clock)().as_micros()).unwrap_or(u64::MAX)
    }

    /// Sends the frames whose time has come.
    fn forward(&mut self, now_us: u64) -> Result<(), DeviceError> {
        while let Some(room) = self.device.room() {
            let Some(Stored { bytes, offload }) = self.sending.arrived(now_us) else {
                break;
            };
            // The device counts a frame that is longer than its room.
            if let Some(place) = room.get_mut(..bytes.len()) {
                place.copy_from_slice(&bytes);
            }
            self.device.send(bytes.len(), &offload);
        }
        self.device.flush()
    }

    /// Makes the descriptor readable when the next frame arrives.
    fn set_alarm(&mut self, now_us: u64) -> Result<(), DeviceError> {
        let arrivals = [self.receiving.next_us(), self.sending.next_us()];
        let next = arrivals.into_iter().flatten().min();
        self.alarm.set(next, now_us).map_err(|source| {
            let name = self.device.info().name.clone();
            let call = "timerfd_settime";
            DeviceError::System { name, call, source }
        })
    }
}

impl<D: Device, C: Fn() -> Duration> Device for Faulty<D, C> {
    fn info(&self) -> &Info {
        self.device.info()
    }

    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError> {
        let now_us = self.now_us();
        self.forward(now_us)?;
        let receiving = &mut self.receiving;
        self.device
            .receive(most, &mut |frame| receiving.take(&frame, now_us))?;
        let mut passed = 0;
        while passed < most
            && let Some(frame) = self.receiving.arrived(now_us)
        {
            each(frame.frame());
            passed += 1;
        }
        self.set_alarm(now_us)?;
        Ok(passed)
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.room)
    }

    fn send(&mut self, length: usize, offload: &Header) {
        let now_us = self.now_us();
        let Some(bytes) = self.room.get(..length) else {
            self.refused += 1;
            return;
        };
        let offload = *offload;
        self.sending.take(&Frame { bytes, offload }, now_us);
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let now_us = self.now_us();
        self.forward(now_us)?;
        self.set_alarm(now_us)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.alarm.descriptor()
    }

    fn is_polled(&self) -> bool {
        self.device.is_polled()
    }

    fn before_wait(&mut self) -> Result<bool, DeviceError> {
        self.device.before_wait()
    }

    /// Those of the device: its received frames include the ones that were lost afterwards.
    fn counters(&self) -> Counters {
        let mut counters = self.device.counters();
        counters.drops.refused += self.refused;
        counters
    }
}
