//! Requests to TUN devices and to network interfaces.
//!
//! Source: linux/if_tun.h, linux/ethtool.h, netdevice(7).

#![expect(
    unsafe_code,
    reason = "no crate of the project wraps the requests of TUN devices"
)]

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixDatagram;

use libc::{c_char, c_int, c_ulong, ifreq};
use saiga_wire::ethernet::Mac;

/// `ETHTOOL_GDRVINFO`: tells the driver of a network interface.
const GET_DRIVER: u32 = 3;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    rom: [u8; 32],
    reserved: [u8; 12],
    numbers: [u32; 5],
}

const _: () = assert!(size_of::<DriverInfo>() == 196);

/// What a network interface is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A TUN device with a link layer.
    Tap,
    /// A TUN device without a link layer.
    Tun,
    /// A network interface of this driver.
    Other(String),
}

/// Binds `/dev/net/tun` to the network interface `name`, which is made if it does not exist.
/// `name` has at most 15 bytes.
pub(super) fn set_interface(file: &File, name: &str, flags: c_int) -> io::Result<()> {
    let mut request = request_for(name);
    request.ifr_ifru.ifru_flags = u16::try_from(flags)
        .map_err(io::Error::other)?
        .cast_signed();
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
}

/// What the device may leave to its reader: `TUN_F_*`.
pub(super) fn set_offloads(file: &File, offloads: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number.
    check(unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            libc::TUNSETOFFLOAD,
            c_ulong::from(offloads),
        )
    })
}

/// Sets the length of the virtio header.
pub(super) fn set_header_bytes(file: &File, bytes: c_int) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one int, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const bytes) })
}

/// Makes the integers of the virtio header little-endian on every machine.
pub(super) fn set_little_endian(file: &File) -> io::Result<()> {
    let is_little: c_int = 1;
    // SAFETY: TUNSETVNETLE reads one int, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETLE, &raw const is_little) })
}

/// The network interfaces of the calling thread's network namespace.
pub(super) struct Interfaces(UnixDatagram);

impl Interfaces {
    pub(super) fn new() -> io::Result<Self> {
        // Requests about interfaces are answered by sockets of every family.
        UnixDatagram::unbound().map(Self)
    }

    /// What the interface is; `None` if it does not exist.
    pub(super) fn kind(&self, name: &str) -> io::Result<Option<Kind>> {
        // SAFETY: all fields are integers, which can be zero.
        let mut info: DriverInfo = unsafe { mem::zeroed() };
        info.command = GET_DRIVER;
        let mut request = request_for(name);
        request.ifr_ifru.ifru_data = (&raw mut info).cast::<c_char>();
        // SAFETY: the request writes one ethtool_drvinfo, which lives until the call returns.
        let done = check(unsafe { libc::ioctl(self.fd(), libc::SIOCETHTOOL, &raw mut request) });
        if let Err(error) = done {
            return match error.raw_os_error() {
                Some(libc::ENODEV) => Ok(None),
                Some(libc::EOPNOTSUPP) => Ok(Some(Kind::Other("unknown".to_owned()))),
                _ => Err(error),
            };
        }
        let driver = text(&info.driver);
        Ok(Some(match (driver.as_str(), text(&info.bus).as_str()) {
            ("tun", "tap") => Kind::Tap,
            ("tun", _) => Kind::Tun,
            _ => Kind::Other(driver),
        }))
    }

    /// Bytes of the largest IP packet.
    pub(super) fn mtu(&self, name: &str) -> io::Result<u16> {
        let mut request = request_for(name);
        // SAFETY: SIOCGIFMTU reads and writes one ifreq, which lives until the call returns.
        check(unsafe { libc::ioctl(self.fd(), libc::SIOCGIFMTU, &raw mut request) })?;
        // SAFETY: SIOCGIFMTU has written this field.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
    }

    /// Address of the link layer.
    pub(super) fn mac(&self, name: &str) -> io::Result<Mac> {
        let mut request = request_for(name);
        // SAFETY: SIOCGIFHWADDR reads and writes one ifreq, which lives until the call returns.
        check(unsafe { libc::ioctl(self.fd(), libc::SIOCGIFHWADDR, &raw mut request) })?;
        // SAFETY: SIOCGIFHWADDR has written this field.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let [a, b, c, d, e, f, ..] = address.sa_data.map(|byte| byte.to_ne_bytes()[0]);
        Ok(Mac([a, b, c, d, e, f]))
    }

    fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A request about the interface `name`. Bytes of the name after the 15th are left out.
fn request_for(name: &str) -> ifreq {
    // SAFETY: all fields of an ifreq can be zero.
    let mut request: ifreq = unsafe { mem::zeroed() };
    let room = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
    for (to, byte) in room.iter_mut().zip(name.bytes()) {
        *to = c_char::from_ne_bytes([byte]);
    }
    request
}

/// The text before the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
