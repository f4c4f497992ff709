//! The way of frames between the kernel and a port that the kernel does not have.
//!
//! What the stack hands back goes to the kernel through a TAP device, and what the kernel sends
//! there leaves by the port. Each frame is copied. A frame that finds no room is lost, as on a full
//! link, and counted among the drops of the kernel's device.

use saiga_netdev::{Counters, Device, DeviceError, Frame};

/// Frames of the kernel that are taken at a time.
const BATCH: usize = 64;

/// A device that leads to the kernel.
#[derive(Debug)]
pub(super) struct Bypass<D> {
    device: D,
    /// Whether the kernel may have sent frames.
    pub(super) has_frames: bool,
    /// Frames that found no room on the port, and on the kernel's device.
    lost: u64,
}

impl<D: Device> Bypass<D> {
    pub(super) const fn new(device: D) -> Self {
        Self {
            device,
            has_frames: true,
            lost: 0,
        }
    }

    /// Hands a received frame to the kernel.
    pub(super) fn deliver(&mut self, frame: &Frame<'_>) {
        self.lost += u64::from(!copy(frame, &mut self.device));
    }

    /// Sends what was handed over.
    pub(super) fn flush(&mut self) -> Result<(), DeviceError> {
        self.device.flush()
    }

    /// Sends waiting frames of the kernel on the port, which the caller flushes. Returns how many
    /// there were.
    pub(super) fn forward(&mut self, port: &mut impl Device) -> Result<usize, DeviceError> {
        if !self.has_frames {
            return Ok(0);
        }
        let mut lost = 0;
        let forwarded = self.device.receive(BATCH, &mut |frame| {
            lost += u64::from(!copy(&frame, port));
        })?;
        self.lost += lost;
        self.has_frames = forwarded == BATCH;
        Ok(forwarded)
    }

    /// The counts of the kernel's device, with the lost frames of both directions.
    pub(super) fn counters(&self) -> Counters {
        let mut counters = self.device.counters();
        counters.drops.overflowed += self.lost;
        counters
    }
}

/// Copies a frame to a device; false if there is no room.
fn copy(frame: &Frame<'_>, to: &mut impl Device) -> bool {
    let length = frame.bytes.len();
    let Some(room) = to.room().and_then(|room| room.get_mut(..length)) else {
        return false;
    };
    room.copy_from_slice(frame.bytes);
    to.send(length, &frame.offload);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use saiga_netdev::memory::Memory;
    use saiga_netdev::{Info, Offload};
    use saiga_wire::virtio::Header;

    fn pair(most_frames: usize) -> [Memory; 2] {
        let info = |name: &str| Info {
            name: name.to_owned(),
            queue: 0,
            mac: None,
            mtu: 1500,
            offload: Offload::NONE,
        };
        Memory::pair([info("near"), info("far")], most_frames).unwrap()
    }

    fn received(device: &mut Memory) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let each = &mut |frame: Frame<'_>| frames.push(frame.bytes.to_vec());
        device.receive(100, each).unwrap();
        frames
    }

    #[test]
    fn frames_pass_both_ways_and_lost_ones_are_counted() {
        let [tap, mut kernel] = pair(2);
        let [mut port, mut wire] = pair(1);
        let mut bypass = Bypass::new(tap);
        for bytes in [b"one", b"two", b"six"] {
            bypass.deliver(&Frame {
                bytes,
                offload: Header::NONE,
            });
        }
        bypass.flush().unwrap();
        assert_eq!(received(&mut kernel), [b"one", b"two"]);
        for bytes in [b"a", b"b"] {
            kernel.room().unwrap()[..1].copy_from_slice(bytes);
            kernel.send(1, &Header::NONE);
        }
        kernel.flush().unwrap();
        assert_eq!(bypass.forward(&mut port).unwrap(), 2);
        port.flush().unwrap();
        assert_eq!(received(&mut wire), [b"a"]);
        assert_eq!(bypass.counters().drops.overflowed, 2);
        assert!(!bypass.has_frames);
        assert_eq!(bypass.forward(&mut port).unwrap(), 0);
    }
}
