//! How TAP and TUN devices are opened, and why that fails.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU16;
use std::os::unix::fs::OpenOptionsExt as _;

use libc::{EBUSY, EINVAL, EPERM, c_int};
use saiga_wire::virtio::HEADER_BYTES;

use super::sys::{self, Interfaces, Kind};
use crate::device::Link;

/// What is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings<'a> {
    /// Name of the network interface in the calling thread's network namespace.
    pub name: &'a str,
    /// [`Link::Ethernet`] for a TAP device, [`Link::Ip`] for a TUN device.
    pub link: Link,
    /// Where the network interface comes from.
    pub origin: Origin,
    /// Number of queues, at most 256. With more than one, an existing device must be
    /// `multi_queue`.
    pub queues: NonZeroU16,
    /// Whether checksums are left open and super-segments pass, in both directions. An attached
    /// device keeps what is set here when the process ends.
    pub has_offloads: bool,
}

/// Where a network interface comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is made, and vanishes when its last queue is dropped or the process ends.
    Make,
    /// It exists (`ip tuntap add`), and stays.
    Attach,
}

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel does not accept the name, or would make another name of it.
    #[error(
        "`{name}` cannot be the name of a network interface: \
         use 1 to 15 bytes without `/`, `:`, `%` and white space"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// [`Origin::Make`], but a network interface has this name.
    #[error(
        "network interface {name} exists already: choose another name, \
         remove it (ip link delete {name}), or attach to it"
    )]
    Exists {
        /// Name of the network interface.
        name: String,
    },
    /// [`Origin::Attach`], but no network interface has this name.
    #[error(
        "network interface {name} does not exist in this network namespace: \
         create it (ip tuntap add {name} mode {mode})"
    )]
    Missing {
        /// Name of the network interface.
        name: String,
        /// `tap` or `tun`.
        mode: &'static str,
    },
    /// The network interface is of another kind.
    #[error("network interface {name} is not a {mode} device, but of kind {kind}")]
    OtherKind {
        /// Name of the network interface.
        name: String,
        /// `tap` or `tun`.
        mode: &'static str,
        /// Driver of the interface, `tap` or `tun`.
        kind: String,
    },
    /// Another process has the only queue.
    #[error(
        "network interface {name} is in use by another process: end that process, \
         or use an interface with several queues"
    )]
    Busy {
        /// Name of the network interface.
        name: String,
    },
    /// Several queues of an interface that has one.
    #[error(
        "network interface {name} has one queue: set one queue, \
         or create it again (ip tuntap add {name} mode {mode} multi_queue)"
    )]
    OneQueue {
        /// Name of the network interface.
        name: String,
        /// `tap` or `tun`.
        mode: &'static str,
    },
    /// The process may not make or use the interface.
    #[error(
        "no permission for network interface {name}: the process needs CAP_NET_ADMIN, \
         or an interface that belongs to its user (ip tuntap add {name} mode {mode} user USER)"
    )]
    Permission {
        /// Name of the network interface.
        name: String,
        /// `tap` or `tun`.
        mode: &'static str,
    },
    /// `/dev/net/tun` cannot be opened.
    #[error("/dev/net/tun cannot be opened: load the driver (modprobe tun) or allow this device")]
    Driver(#[source] io::Error),
    /// A request failed for another reason.
    #[error("network interface {name}: {request} failed")]
    Request {
        /// Name of the network interface.
        name: String,
        /// Name of the request.
        request: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// The open queues of a device.
pub(super) struct Queues {
    pub(super) files: Vec<File>,
    pub(super) interfaces: Interfaces,
}

impl Settings<'_> {
    /// Opens all queues.
    pub(super) fn open(&self) -> Result<Queues, OpenError> {
        if !is_name(self.name) {
            return Err(OpenError::Name { name: self.name() });
        }
        let interfaces = Interfaces::new().map_err(|error| self.failed("socket", error))?;
        self.check_kind(&interfaces)?;
        let first = self.first_queue()?;
        self.prepare(&first)?;
        let mut files = vec![first];
        for _ in 1..self.queues.get() {
            files.push(self.queue(self.flags() | libc::IFF_MULTI_QUEUE)?);
        }
        Ok(Queues { files, interfaces })
    }

    /// Whether the interface exists and is of the right kind.
    fn check_kind(&self, interfaces: &Interfaces) -> Result<(), OpenError> {
        let kind = interfaces.kind(self.name);
        let kind = kind.map_err(|error| self.failed("ETHTOOL_GDRVINFO", error))?;
        let (name, mode) = (self.name(), self.mode());
        let kind = match (self.origin, kind, self.link) {
            (Origin::Make, None, _)
            | (Origin::Attach, Some(Kind::Tap), Link::Ethernet)
            | (Origin::Attach, Some(Kind::Tun), Link::Ip) => return Ok(()),
            (Origin::Make, Some(_), _) => return Err(OpenError::Exists { name }),
            (Origin::Attach, None, _) => return Err(OpenError::Missing { name, mode }),
            (Origin::Attach, Some(Kind::Other(driver)), _) => driver,
            (Origin::Attach, Some(Kind::Tap), Link::Ip) => "tap".to_owned(),
            (Origin::Attach, Some(Kind::Tun), Link::Ethernet) => "tun".to_owned(),
        };
        Err(OpenError::OtherKind { name, mode, kind })
    }

    /// Opens the queue that makes the interface, or tells how many an existing interface has.
    fn first_queue(&self) -> Result<File, OpenError> {
        let several = libc::IFF_MULTI_QUEUE;
        match (self.origin, self.queues.get()) {
            (Origin::Make, 1) => self.queue(self.flags() | libc::IFF_TUN_EXCL),
            (Origin::Make, _) => self.queue(self.flags() | libc::IFF_TUN_EXCL | several),
            (Origin::Attach, 1) => match self.queue(self.flags()) {
                // An interface that is made for several queues can be used with one.
                Err(OpenError::OneQueue { .. }) => self.queue(self.flags() | several),
                opened => opened,
            },
            (Origin::Attach, _) => self.queue(self.flags() | several),
        }
    }

    fn queue(&self, flags: c_int) -> Result<File, OpenError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(OpenError::Driver)?;
        sys::set_interface(&file, self.name, flags).map_err(|error| self.refused(error))?;
        Ok(file)
    }

    /// Sets what all queues share.
    fn prepare(&self, file: &File) -> Result<(), OpenError> {
        let header_bytes = c_int::try_from(HEADER_BYTES).unwrap_or(c_int::MAX);
        sys::set_header_bytes(file, header_bytes)
            .map_err(|error| self.failed("TUNSETVNETHDRSZ", error))?;
        sys::set_little_endian(file).map_err(|error| self.failed("TUNSETVNETLE", error))?;
        let offloads = if self.has_offloads {
            libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6
        } else {
            0
        };
        sys::set_offloads(file, offloads).map_err(|error| self.failed("TUNSETOFFLOAD", error))
    }

    fn flags(&self) -> c_int {
        let kind = match self.link {
            Link::Ethernet => libc::IFF_TAP,
            Link::Ip => libc::IFF_TUN,
        };
        kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR
    }

    /// The error of TUNSETIFF.
    fn refused(&self, error: io::Error) -> OpenError {
        let (name, mode) = (self.name(), self.mode());
        match (error.raw_os_error(), self.origin) {
            (Some(EBUSY), Origin::Make) => OpenError::Exists { name },
            (Some(EBUSY), Origin::Attach) => OpenError::Busy { name },
            (Some(EPERM), _) => OpenError::Permission { name, mode },
            // The kind is right: the number of queues is not.
            (Some(EINVAL), Origin::Attach) => OpenError::OneQueue { name, mode },
            _ => self.failed("TUNSETIFF", error),
        }
    }

    pub(super) fn failed(&self, request: &'static str, source: io::Error) -> OpenError {
        OpenError::Request {
            name: self.name(),
            request,
            source,
        }
    }

    fn name(&self) -> String {
        self.name.to_owned()
    }

    /// As ip(8) names it.
    const fn mode(&self) -> &'static str {
        match self.link {
            Link::Ethernet => "tap",
            Link::Ip => "tun",
        }
    }
}

/// Whether the kernel takes the name as it is (`dev_valid_name` in net/core/dev.c). It replaces
/// `%d` by a number, and takes the byte 0xa0 for a space of Latin-1.
fn is_name(name: &str) -> bool {
    let is_foreign = |byte: u8| {
        matches!(byte, b'/' | b':' | b'%' | 0 | 0x0b | 0xa0) || byte.is_ascii_whitespace()
    };
    (1..libc::IFNAMSIZ).contains(&name.len())
        && !matches!(name, "." | "..")
        && !name.bytes().any(is_foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_takes_as_they_are() {
        for (name, valid) in [
            ("tap0", true),
            ("fifteen_letters", true),
            ("sixteen_letters_", false),
            ("", false),
            (".", false),
            ("..", false),
            ("...", true),
            ("a/b", false),
            ("a:1", false),
            ("tap%d", false),
            ("a b", false),
            ("a\tb", false),
            ("a\0b", false),
            ("übertragung1", true),
            ("voilà", false),
        ] {
            assert_eq!(is_name(name), valid, "{name:?}");
        }
    }
}
