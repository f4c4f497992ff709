//! What a network interface says about itself.
//!
//! Spec: netdevice(7), linux/ethtool.h (`ETHTOOL_GCHANNELS`, `ETHTOOL_GFLAGS`, `ETHTOOL_GDRVINFO`).
//! ioctl(2) asks in the network namespace of the calling thread; /sys would answer for that of its
//! mount.
#![expect(unsafe_code, reason = "ioctl(2) takes structures by pointer")]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use saiga_wire::ethernet::Mac;

use super::error::OpenError;

/// `ETHTOOL_GDRVINFO`, `ETHTOOL_GFLAGS`, `ETHTOOL_GCHANNELS`.
const DRIVER: u32 = 0x03;
const FLAGS: u32 = 0x25;
const CHANNELS: u32 = 0x3c;
/// `ETHTOOL_GGRO`
const MERGING: u32 = 0x2b;
/// `ETH_FLAG_RXVLAN`
const RX_VLAN: u32 = 1 << 8;
/// `ARPHRD_ETHER`
const ETHERNET: u16 = 1;

/// The facts that matter to AF_XDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nic {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mac: Mac,
    pub(super) mtu: u32,
    /// Number of receive queues in use.
    pub(super) queues: u32,
    pub(super) driver: String,
    /// The device takes VLAN tags out of the frames (`ethtool -K NAME rxvlan on`).
    pub(super) takes_tags_out: bool,
}

/// `struct ifreq`.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; 24],
}

const _: () = assert!(
    size_of::<Request>() >= size_of::<libc::ifreq>(),
    "the kernel reads and writes a whole ifreq"
);

impl Nic {
    /// Asks the kernel about the interface `name`.
    pub(super) fn read(name: &str) -> Result<Self, OpenError> {
        let socket = Asking::new(name)?;
        let system = |action: &'static str| {
            move |error: Errno| match error {
                Errno::NODEV => OpenError::NoInterface {
                    name: name.to_owned(),
                },
                other => OpenError::System {
                    name: name.to_owned(),
                    action,
                    source: other.into(),
                },
            }
        };
        let index = rustix::net::netdevice::name_to_index(&socket.fd, name);
        let index = index.map_err(system("find its index"))?;
        let mtu = socket
            .ask(libc::SIOCGIFMTU)
            .map_err(system("read its MTU"))?;
        let address = socket.ask(libc::SIOCGIFHWADDR);
        let address = address.map_err(system("read its MAC address"))?;
        Ok(Self {
            name: name.to_owned(),
            index,
            mac: mac(&address).ok_or_else(|| OpenError::NotEthernet {
                name: name.to_owned(),
            })?,
            mtu: first_word(&mtu),
            queues: socket.queues().map_err(system("count its queues"))?,
            driver: socket.driver().map_err(system("ask for its driver"))?,
            takes_tags_out: socket.flags().map_err(system("read its settings"))? & RX_VLAN != 0,
        })
    }
}

/// Whether the kernel merges the packets that an interface receives (`ethtool -K NAME gro on`). A
/// device above it gets packets that are larger than a frame of AF_XDP, and loses them.
#[must_use]
pub fn merges(name: &str) -> bool {
    let answer = Asking::new(name).map(|asking| asking.ask_driver::<2>(MERGING));
    matches!(answer, Ok(Ok([_, value])) if value != 0)
}

/// A socket for requests about one interface.
struct Asking<'a> {
    fd: OwnedFd,
    name: &'a str,
}

impl<'a> Asking<'a> {
    fn new(name: &'a str) -> Result<Self, OpenError> {
        let flags = SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None);
        let fd = fd.map_err(|error| OpenError::System {
            name: name.to_owned(),
            action: "open a socket",
            source: error.into(),
        })?;
        Ok(Self { fd, name })
    }

    /// The number of receive queues. A device that does not answer has one.
    fn queues(&self) -> Result<u32, Errno> {
        match self.ask_driver::<9>(CHANNELS) {
            // Queues for receiving alone, and queues for both directions.
            Ok([_, _, _, _, _, receiving, _, _, both]) => Ok(receiving.saturating_add(both).max(1)),
            Err(Errno::OPNOTSUPP) => Ok(1),
            Err(error) => Err(error),
        }
    }

    fn flags(&self) -> Result<u32, Errno> {
        match self.ask_driver::<2>(FLAGS) {
            Ok([_, flags]) => Ok(flags),
            Err(Errno::OPNOTSUPP) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The driver's name; empty if it has none.
    fn driver(&self) -> Result<String, Errno> {
        let info = match self.ask_driver::<49>(DRIVER) {
            Ok(info) => info,
            Err(Errno::OPNOTSUPP) => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        let bytes = info[1..9].iter().flat_map(|word| word.to_ne_bytes());
        let name: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// Asks the driver with a structure of `N` words, the first of which is the command.
    fn ask_driver<const N: usize>(&self, command: u32) -> Result<[u32; N], Errno> {
        let mut words = [0; N];
        words[0] = command;
        let mut request = self.request(&(words.as_mut_ptr() as usize).to_ne_bytes())?;
        // SAFETY: the request points to `words`, which has the length of the command's structure:
        // nine words for channels, two for flags, 49 for the driver.
        unsafe { ioctl(&self.fd, libc::SIOCETHTOOL, &mut request) }?;
        Ok(words)
    }

    /// Asks for a value in the request itself.
    fn ask(&self, code: libc::Ioctl) -> Result<[u8; 24], Errno> {
        let mut request = self.request(&[])?;
        // SAFETY: these requests have no pointers.
        unsafe { ioctl(&self.fd, code, &mut request) }?;
        Ok(request.value)
    }

    fn request(&self, argument: &[u8]) -> Result<Request, Errno> {
        let mut request = Request {
            name: [0; libc::IFNAMSIZ],
            value: [0; 24],
        };
        // The last byte ends the name.
        if self.name.len() >= request.name.len() {
            return Err(Errno::NODEV);
        }
        for (to, from) in request.name.iter_mut().zip(self.name.bytes()) {
            *to = from;
        }
        for (to, from) in request.value.iter_mut().zip(argument) {
            *to = *from;
        }
        Ok(request)
    }
}

/// Calls ioctl(2).
///
/// # Safety The request must be that of the code. A pointer in it must be valid for what the kernel
/// reads and writes.
unsafe fn ioctl(fd: &OwnedFd, code: libc::Ioctl, request: &mut Request) -> Result<(), Errno> {
    // SAFETY: see above; the kernel reads and writes one ifreq.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), code, &raw mut *request) };
    if done < 0 {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(())
}

/// The address in a `struct sockaddr`, if it is an Ethernet address.
fn mac(value: &[u8; 24]) -> Option<Mac> {
    let [family0, family1, a, b, c, d, e, f, ..] = *value;
    let is_ethernet = u16::from_ne_bytes([family0, family1]) == ETHERNET;
    is_ethernet.then_some(Mac([a, b, c, d, e, f]))
}

fn first_word(value: &[u8; 24]) -> u32 {
    let [a, b, c, d, ..] = *value;
    u32::from_ne_bytes([a, b, c, d])
}
