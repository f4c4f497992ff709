//! TAP and TUN devices: the kernel is at the other end of the link.
//!
//! Source: Documentation/networking/tuntap.rst, drivers/net/tun.c, linux/if_tun.h. Each frame has a
//! virtio header in front (`IFF_VNET_HDR`), and costs one system call: read(2) or write(2). With
//! offloads, checksums stay open and super-segments pass in both directions, so that a system call
//! moves up to 64 KiB. The kernel sends the frames of a flow to the queue on which the last frame
//! of that flow was written.
//!
//! Deliberately absent: batches of system calls by io_uring, and segmentation of UDP.

mod open;
mod sys;

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use saiga_wire::ethernet::Mac;
use saiga_wire::offload::Fill;
use saiga_wire::virtio::{HEADER_BYTES, Header};

use crate::device::{
    Counters, Device, DeviceError, Frame, Info, LARGEST_FRAME_BYTES, Link, Offload, Segmentation,
};
pub use open::{OpenError, Origin, Settings};

/// Room for a virtio header, the largest frame and one byte more: the kernel cuts a frame that does
/// not fit without a word, so that only a full buffer shows it.
const BUFFER_BYTES: usize = HEADER_BYTES + LARGEST_FRAME_BYTES + 1;
/// Most payload of a super-segment: with all headers, an IP packet is shorter than 64 KiB.
const MOST_SEGMENTED_BYTES: u32 = 65_000;

/// One queue of a TAP or TUN device.
#[derive(Debug)]
pub struct Tap {
    file: File,
    info: Info,
    incoming: Box<[u8]>,
    outgoing: Box<[u8]>,
    counters: Counters,
    /// Frames that the kernel has taken since the last flush.
    written: usize,
    /// A write has found that the interface was removed.
    is_gone: bool,
}

impl Tap {
    /// Opens all queues of a device; the index of each is its number.
    ///
    /// The device is not set up, and has no address: ip(8) does that.
    ///
    /// # Errors
    /// Each [`OpenError`] says when. A device that was made is gone again.
    pub fn open(settings: &Settings<'_>) -> Result<Vec<Self>, OpenError> {
        let open::Queues { files, interfaces } = settings.open()?;
        let mtu = interfaces.mtu(settings.name);
        let mtu = mtu.map_err(|error| settings.failed("SIOCGIFMTU", error))?;
        let mac = match settings.link {
            Link::Ethernet => Some(interfaces.mac(settings.name)),
            Link::Ip => None,
        };
        let mac = mac.transpose();
        let mac = mac.map_err(|error| settings.failed("SIOCGIFHWADDR", error))?;
        let info = |queue| Info {
            name: settings.name.to_owned(),
            queue,
            mac: mac.map(other_end),
            mtu,
            offload: offload(settings.has_offloads),
        };
        let numbered = (0..).zip(files);
        Ok(numbered
            .map(|(queue, file)| Self::new(file, info(queue)))
            .collect())
    }

    fn new(file: File, info: Info) -> Self {
        Self {
            file,
            info,
            incoming: vec![0; BUFFER_BYTES].into(),
            outgoing: vec![0; BUFFER_BYTES].into(),
            counters: Counters::default(),
            written: 0,
            is_gone: false,
        }
    }

    /// Reads a frame with its virtio header, if one waits; returns their length.
    fn read(&mut self) -> Result<Option<usize>, DeviceError> {
        match self.file.read(&mut self.incoming) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Err(self.gone()),
            Err(source) => Err(DeviceError::System {
                name: self.info.name.clone(),
                call: "read",
                source,
            }),
        }
    }

    /// Counts a frame that the kernel did not take.
    fn on_refusal(&mut self, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::EIO) => self.counters.drops.down += 1,
            Some(libc::EBADFD) => self.is_gone = true,
            _ => self.counters.drops.refused += 1,
        }
    }

    fn gone(&self) -> DeviceError {
        let name = self.info.name.clone();
        DeviceError::Gone { name }
    }
}

impl Device for Tap {
    fn info(&self) -> &Info {
        &self.info
    }

    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError> {
        let mut taken = 0;
        while taken < most {
            let Some(length) = self.read()? else {
                break;
            };
            taken += 1;
            let Some(frame) = parse(&self.incoming[..length], self.info.link()) else {
                self.counters.drops.malformed += 1;
                continue;
            };
            self.counters.received.add_frame(frame.bytes.len());
            each(frame);
        }
        self.counters.received.batches += u64::from(taken > 0);
        Ok(taken)
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        let room = HEADER_BYTES..HEADER_BYTES + LARGEST_FRAME_BYTES;
        self.outgoing.get_mut(room)
    }

    /// Writes the frame at once: with a system call for each frame, there is nothing to collect.
    fn send(&mut self, length: usize, offload: &Header) {
        let end = HEADER_BYTES.saturating_add(length);
        let frame = self.outgoing.get_mut(..end);
        let Some(frame) = frame.filter(|_| length <= LARGEST_FRAME_BYTES) else {
            self.counters.drops.refused += 1;
            return;
        };
        // A virtio header fits in front of every frame.
        let _emitted = offload.emit(frame);
        // The kernel takes a frame as a whole, or not at all.
        match self.file.write_all(frame) {
            Ok(()) => {
                self.counters.sent.add_frame(length);
                self.written += 1;
            }
            Err(error) => self.on_refusal(&error),
        }
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.counters.sent.batches += u64::from(self.written > 0);
        self.written = 0;
        if self.is_gone {
            return Err(self.gone());
        }
        Ok(())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// An address for this end of the link: that of the network interface with another last bit, so
/// that it stays the same when an existing device is opened again.
fn other_end(interface: Mac) -> Mac {
    let Mac([a, b, c, d, e, f]) = interface;
    Mac([a, b, c, d, e, f ^ 1])
}

fn offload(has_offloads: bool) -> Offload {
    if !has_offloads {
        return Offload::NONE;
    }
    Offload {
        checksum: Fill::PseudoHeader,
        segmentation: Some(Segmentation {
            checksum: Fill::PseudoHeader,
            most_bytes: MOST_SEGMENTED_BYTES,
        }),
    }
}

/// The frame behind a virtio header; `None` if it was cut or contradicts the header.
fn parse(read: &[u8], link: Link) -> Option<Frame<'_>> {
    let (header, bytes) = read.split_at_checked(HEADER_BYTES)?;
    let offload = Header::parse(header).ok()?;
    let frame = Frame { bytes, offload };
    frame.is_consistent(link).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A virtio header and a frame of so many bytes.
    fn read(header: [u8; 10], length: usize) -> Vec<u8> {
        [&header[..], &vec![0; length]].concat()
    }

    #[test]
    fn frames_that_contradict_their_header_are_dropped() {
        let plain = [0; 10];
        // NEEDS_CSUM with its field at 50 and 51; TCPV4 with segments of 1,000 bytes, then of none.
        let checksum = [1, 0, 0, 0, 0, 0, 34, 0, 16, 0];
        let segmented = [1, 1, 54, 0, 0xe8, 3, 34, 0, 16, 0];
        let without_size = [1, 1, 54, 0, 0, 0, 34, 0, 16, 0];
        for (name, header, length, link, valid) in [
            ("plain", plain, 60, Link::Ethernet, true),
            ("only a link layer", plain, 14, Link::Ethernet, true),
            ("less", plain, 13, Link::Ethernet, false),
            ("an IP header", plain, 20, Link::Ip, true),
            ("less than an IP header", plain, 19, Link::Ip, false),
            ("the largest", plain, 65_597, Link::Ethernet, true),
            ("a cut one", plain, 65_598, Link::Ethernet, false),
            ("checksum", checksum, 52, Link::Ethernet, true),
            ("checksum outside", checksum, 51, Link::Ethernet, false),
            ("segments", segmented, 5_000, Link::Ethernet, true),
            (
                "no segment size",
                without_size,
                5_000,
                Link::Ethernet,
                false,
            ),
            (
                "UDP segmentation",
                [0, 5, 0, 0, 0, 0, 0, 0, 0, 0],
                5_000,
                Link::Ethernet,
                false,
            ),
        ] {
            let bytes = read(header, length);
            let found = parse(&bytes, link).map(|frame| frame.bytes.len());
            assert_eq!(found, valid.then_some(length), "{name}");
        }
        assert_eq!(parse(&[0; 9], Link::Ethernet), None);
    }

    #[test]
    fn this_end_has_an_address_of_its_own() {
        let interface = Mac([2, 0, 0, 0, 0, 6]);
        assert_eq!(other_end(interface), Mac([2, 0, 0, 0, 0, 7]));
        assert_eq!(other_end(other_end(interface)), interface);
    }
}
