//! Devices of memif: shared memory, with the TAP device beside it.

use std::io::{self, Write as _};
use std::net::IpAddr;

use rustix::net::SocketType;
use saiga_netdev::Device as _;
use saiga_netdev::memif::{End, Memif, Options};
use saiga_netdev::tap::Tap;
use saiga_wire::ethernet::Mac;

use super::{ServiceError, beside, system};
use crate::random;
use crate::settings::{Device, Kind, Role};
use crate::socket::{Owner, Place, Socket};

/// Bytes of the largest IP packet, unless the settings say otherwise.
const MTU: u16 = 1500;

/// A device of the settings, opened, and the TAP device. A socket that the gateway makes belongs to
/// `owner`.
pub(super) fn open(device: &Device, owner: Owner) -> Result<(Memif, Vec<Tap>), ServiceError> {
    let Kind::Memif {
        socket, role, id, ..
    } = &device.kind
    else {
        return Err(ServiceError::Absent("the device does not belong to memif"));
    };
    let end = match role {
        Role::Server => {
            let place = Place {
                key: "device.socket",
                path: socket,
                kind: SocketType::SEQPACKET,
            };
            End::Server(Box::new(Socket::open(&place, owner)?))
        }
        Role::Client => End::Client(socket.clone()),
    };
    let memif = Memif::open(Options {
        name: format!("memif-{}", beside::interface(device)),
        end,
        id: *id,
        ring: device.ring,
        mac: mac(device).map_err(system("no random numbers"))?,
        mtu: device.mtu.unwrap_or(MTU),
        log: say,
    })?;
    // What the kernel leaves open, the device does itself.
    let taps = beside::open(device, memif.info(), 1, true)?;
    Ok((memif, taps))
}

/// A local MAC address, which follows from the first IP address: so neighbours know it after a
/// restart.
fn mac(device: &Device) -> io::Result<Mac> {
    let first = device.addresses.own().first().map(ipnet::IpNet::addr);
    let [a, b, c, d] = match first {
        Some(IpAddr::V4(address)) => address.octets(),
        Some(IpAddr::V6(address)) => {
            let words = address.octets();
            let (words, _) = words.as_chunks::<4>();
            let folded = words.iter().map(|word| u32::from_be_bytes(*word));
            folded.fold(0, |all, word| all ^ word).to_be_bytes()
        }
        None => {
            let [a, b, c, d, ..] = random::key()?[0].to_be_bytes();
            [a, b, c, d]
        }
    };
    Ok(Mac([0x02, 0x5a, a, b, c, d]))
}

/// Prints a line beside the messages of the gateway.
fn say(line: &str) {
    // Nothing is left to do with an error of stderr.
    let _written = io::stderr().write_all(format!("saiga: {line}\n").as_bytes());
}
