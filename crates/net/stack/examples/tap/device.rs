//! A TAP device, with a virtio header in front of each frame.
//!
//! Spec: Documentation/networking/tuntap.rst, linux/virtio_net.h. With offloads, the kernel leaves
//! checksums open and passes super-segments; without them, it does neither.

#![expect(
    unsafe_code,
    reason = "no crate of the project wraps the requests of TAP devices"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use saiga_stack::Outgoing;
use saiga_wire::virtio::{HEADER_BYTES, Header};

/// Room for a virtio header and the largest super-segment.
pub(crate) const FRAME_BYTES: usize = 70_000;

/// A TAP device.
pub(crate) struct Tap(File);

impl Tap {
    /// Opens the device `name`, which is made if it does not exist.
    pub(crate) fn open(name: &str, has_offloads: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        // SAFETY: all fields of an ifreq can be zero.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let room = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
        if name.len() > room.len() {
            return Err(io::Error::other(
                "the name of a device has at most 15 bytes",
            ));
        }
        for (to, byte) in room.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([byte]);
        }
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = i16::try_from(flags).unwrap_or(0);
        // SAFETY: TUNSETIFF reads and writes one ifreq.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        check(done)?;
        if has_offloads {
            let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
            // SAFETY: TUNSETOFFLOAD takes a number.
            check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) })?;
        }
        Ok(Self(file))
    }

    /// Waits until a frame has come, or the time is over.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        let millis = timeout.map_or(-1, |span| {
            i32::try_from(span.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX)
        });
        let mut poll = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: poll takes one pollfd.
        check(unsafe { libc::poll(&raw mut poll, 1, millis) })
    }

    /// Reads a frame with its virtio header, if there is one; returns their length.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the frame that begins at [`HEADER_BYTES`] of `buffer`. A frame that the kernel does
    /// not take is lost, as on any wire.
    pub(crate) fn send(&mut self, outgoing: &Outgoing, buffer: &mut [u8]) {
        let Outgoing { length, offload } = outgoing;
        if offload.emit(buffer).is_ok() {
            let _lost = self.0.write(&buffer[..HEADER_BYTES + length]);
        }
    }
}

/// Reads the virtio header of a frame.
pub(crate) fn header(frame: &[u8]) -> Option<(Header, &[u8])> {
    let (header, frame) = frame.split_at_checked(HEADER_BYTES)?;
    Some((Header::parse(header).ok()?, frame))
}

fn check(done: i32) -> io::Result<()> {
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
