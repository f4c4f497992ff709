//! The TUN device through which the local routes of a gateway lead.
//!
//! Spec: kernel Documentation/networking/tuntap.rst. The device exists so that it ends: the kernel
//! removes it, and all routes through it, when the process ends, however it ends. Its name is the
//! lock between the gateways of a network namespace. The kernel delivers packets of local routes by
//! `lo`, so none passes it by a route. What a program of the gateway redirects to it can be read
//! from its file. The device always has its queue, so that no other
//! process can attach to it and inject packets.

use std::fs::{File, OpenOptions};
use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};

use crate::netlink::Netlink;
use crate::sys;

/// The file of the TUN driver.
const DRIVER: &str = "/dev/net/tun";

/// Why the TUN device was not made.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The name cannot be a device's.
    #[error("`{name}` cannot be the name of a network device; it has 1 to 15 characters")]
    Name {
        /// The name.
        name: String,
    },
    /// The TUN driver cannot be opened.
    #[error("{DRIVER} cannot be opened: {source}; load the kernel module tun")]
    Driver {
        /// The error of `open(2)`.
        source: io::Error,
    },
    /// A device has the name.
    #[error("the network device {name} exists: stop the other gateway, or configure another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// The process lacks a right.
    #[error("a TUN device needs CAP_NET_ADMIN")]
    NoRight,
    /// Another error.
    #[error("the TUN device {name} cannot be set up: {source}")]
    System {
        /// The name of the device.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A TUN device that exists as long as this value.
pub(crate) struct Tun {
    /// The open file is the device.
    pub(crate) file: File,
    /// Index of the device in its network namespace.
    pub(crate) index: u32,
}

impl Tun {
    /// Makes the device `name`, which must not exist, and sets it up.
    pub(crate) fn make(name: &str, netlink: &mut Netlink) -> Result<Self, TunError> {
        let is_pattern = name.contains('%');
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || is_pattern {
            return Err(invalid(name));
        }
        let driver = OpenOptions::new().read(true).write(true).open(DRIVER);
        let device = driver.map_err(|source| TunError::Driver { source })?;
        sys::make_tun(&device, name).map_err(|error| fault(name, error))?;
        let index = index(name).map_err(|error| fault(name, error))?;
        set_up(netlink, index).map_err(|error| fault(name, error))?;
        Ok(Self {
            file: device,
            index,
        })
    }

    /// Sets the device up, if it is down; ENODEV if it was removed.
    pub(crate) fn set_up(&self, netlink: &mut Netlink) -> io::Result<()> {
        set_up(netlink, self.index)
    }
}

fn index(name: &str) -> io::Result<u32> {
    let any = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    Ok(name_to_index(&any, name)?)
}

/// `ip link set up`.
fn set_up(netlink: &mut Netlink, index: u32) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    netlink.change(RouteNetlinkMessage::SetLink(message), 0)
}

fn invalid(name: &str) -> TunError {
    TunError::Name {
        name: name.to_owned(),
    }
}

fn fault(name: &str, source: io::Error) -> TunError {
    match source.raw_os_error() {
        Some(libc::EINVAL) => invalid(name),
        Some(libc::EPERM) => TunError::NoRight,
        Some(libc::EBUSY) => TunError::Taken {
            name: name.to_owned(),
        },
        _ => TunError::System {
            name: name.to_owned(),
            source,
        },
    }
}
