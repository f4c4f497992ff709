//! Interfaces, addresses and ports of this network namespace, and features of the kernel.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;

use saiga_anchor::own_addresses;
use saiga_interface::{Address, Interface, Link, Scope, Snapshot, SnapshotError};
use saiga_netdev::xdp;
use saiga_process::root::Root;
use saiga_wire::ethernet::{Tag, Tags};
use socket2::{Domain, Socket, Type};

use super::Found;
use crate::settings::{Feature, InterfaceName};

fn snapshot(name: &InterfaceName) -> Result<Snapshot, SnapshotError> {
    Snapshot::take(OsStr::new(name.as_str()))
}

/// Decides by the state of an interface.
fn of(name: &InterfaceName, decide: impl FnOnce(&Snapshot) -> Found) -> Found {
    match snapshot(name) {
        Ok(snapshot) => decide(&snapshot),
        Err(error) => Found::lacks(&error),
    }
}

pub(super) fn interface(name: &InterfaceName) -> Found {
    of(name, |found| {
        unfit(&found.device.link).map_or(Found::There, Found::Lacks)
    })
}

/// Why AF_XDP cannot serve an interface, and what to do.
pub(crate) fn unfit(link: &Link) -> Option<String> {
    let (kind, name) = (&link.kind, link.name.display());
    // The kernel runs the program for the NICs below, whose frames a socket of the bond refuses
    // (net/xdp/xsk.c, `xsk_rcv_check`). A team has more queues than it tells.
    if ["bond", "team"].contains(&kind.as_str()) {
        return Some(format!(
            "it is a {kind}, whose frames do not reach AF_XDP: name a NIC that is not part of a \
             {kind}; or make a bridge of {name} and a TAP device, and serve that (kind = \"tap\")"
        ));
    }
    if link.mac.is_none() {
        return Some("it is not an interface of Ethernet: use a TAP device or a NIC".to_owned());
    }
    let program = link.xdp_program?;
    let program_name = match saiga_bpf::Program::name_of(program) {
        Ok(program_name) => format!(" {program_name:?}"),
        Err(_) => String::new(),
    };
    Some(format!(
        "XDP program {program}{program_name} is attached to it: end the process that has attached \
         it (a gateway's is \"saiga_xdp\"), or detach it (ip link set dev {name} xdp off)"
    ))
}

/// What will not be served well at an interface, and what to do.
pub(super) fn warnings(name: &InterfaceName, vlan: Option<u16>) -> Vec<String> {
    let Ok(found) = snapshot(name) else {
        return Vec::new();
    };
    let device = vlan.map_or(Some(&found.device), |vlan| with_tag(&found, vlan));
    let link_local = device.and_then(missing_link_local);
    let merging = merging(name.as_str()).into_iter().map(|port| {
        format!(
            "{name} loses large parts of what clients send: {port} merges their packets (GRO), \
             which are then too large for AF_XDP: ethtool -K {port} gro off"
        )
    });
    link_local.into_iter().chain(merging).collect()
}

/// The kernel asks for a neighbour without a packet at hand from a link-local address alone
/// (net/ipv6/ndisc.c, `ndisc_solicit`).
fn missing_link_local(device: &Interface) -> Option<String> {
    let name = device.link.name.display();
    let [a, b, c, d, e, f] = device.link.mac?.0;
    let v6 = |one: &&Address| one.address.is_ipv6();
    let mut addresses = device.addresses.iter().filter(v6).peekable();
    addresses.peek()?;
    if addresses.any(|one| one.scope == Scope::Link) {
        return None;
    }
    // RFC 4291, appendix A: the host has it alone, as it has its MAC address.
    let eui = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
    let own = Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(u64::from_be_bytes(eui)));
    Some(format!(
        "{name} has no link-local address, by which the kernel finds the MAC addresses of IPv6 \
         clients on the link: they get no answer after some time; ip address add {own}/64 dev {name}"
    ))
}

/// The interfaces below this one, such as the ports of a bridge, that merge received packets.
fn merging(name: &str) -> Vec<String> {
    let folder = format!("/sys/class/net/{name}");
    let links = Root::host().names(folder).unwrap_or_default();
    let below = links.iter().filter_map(|link| link.strip_prefix("lower_"));
    below
        .flat_map(|port| {
            let itself = xdp::merges(port).then(|| port.to_owned());
            itself.into_iter().chain(merging(port))
        })
        .collect()
}

/// The receive queues that sysfs shows.
pub(super) fn queues(name: &InterfaceName, least: usize) -> Found {
    of(name, |found| {
        let root = Root::host();
        let folder = format!("/sys/class/net/{name}");
        // sysfs can be that of another network namespace.
        let index = root.value(format!("{folder}/ifindex")).ok().flatten();
        if index != Some(found.device.link.index) {
            return Found::Untried;
        }
        let queues = root.names(format!("{folder}/queues")).unwrap_or_default();
        let count = queues.iter().filter(|one| one.starts_with("rx-")).count();
        Found::when(count >= least, || {
            format!("it has {count}: ethtool -L {name} combined {least}, or fewer workers")
        })
    })
}

pub(super) fn mtu(name: &InterfaceName, least: u16) -> Found {
    of(name, |found| {
        let mtu = found.device.link.mtu;
        Found::when(mtu >= u32::from(least), || {
            format!("it is {mtu}: ip link set {name} mtu {least}")
        })
    })
}

fn with_tag(found: &Snapshot, vlan: u16) -> Option<&Interface> {
    let is_tagged = |one: &&Interface| one.tags == Tags::One(Tag::vlan(vlan));
    found.vlans.iter().find(is_tagged)
}

/// The interface of a VLAN. Whether the tags are in the frames, `up` tells.
pub(super) fn vlan(name: &InterfaceName, vlan: u16) -> Found {
    of(name, |found| {
        Found::when(with_tag(found, vlan).is_some(), || {
            format!("ip link add link {name} name {name}.{vlan} type vlan id {vlan}")
        })
    })
}

pub(super) fn interface_address(name: &InterfaceName, vlan: Option<u16>) -> Found {
    of(name, |found| {
        let device = vlan.map_or(Some(&found.device), |vlan| with_tag(found, vlan));
        let addresses = device.map_or(&[][..], |device| &device.addresses);
        let has_some = addresses.iter().any(|one| one.scope != Scope::Link);
        Found::when(has_some, || {
            "ip address add ADDRESS/LENGTH dev INTERFACE".to_owned()
        })
    })
}

/// A TAP device is made, or used if it is there.
pub(super) fn tap_name(name: &InterfaceName) -> Found {
    match snapshot(name) {
        Err(SnapshotError::NoInterface { .. }) => Found::There,
        Err(error) => Found::lacks(&error),
        Ok(_) => Found::Untried,
    }
}

pub(super) fn address(address: IpAddr) -> Found {
    match own_addresses() {
        Ok(own) => Found::when(own.contains(&address), || {
            "no interface has it: ip address add".to_owned()
        }),
        Err(error) => Found::lacks(&error),
    }
}

pub(super) fn free_port(address: SocketAddr) -> Found {
    TcpListener::bind(address).into()
}

pub(super) fn feature(feature: Feature) -> Found {
    match feature {
        Feature::Tun => Found::when(Path::new("/dev/net/tun").exists(), || {
            "/dev/net/tun is missing: modprobe tun".to_owned()
        }),
        Feature::Xdp => {
            // Without CAP_NET_RAW, the answer is EPERM.
            let socket = Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None);
            let unknown = Some(libc::EAFNOSUPPORT);
            let is_known = socket.map_or_else(|error| error.raw_os_error() != unknown, |_| true);
            Found::when(is_known, || "this kernel does not know it".to_owned())
        }
        Feature::LocalPortRange => since(6, 3),
        Feature::OutgoingPrograms => since(6, 6),
    }
}

/// Whether the kernel has at least this version.
fn since(major: u32, minor: u32) -> Found {
    match Root::host().text("/proc/sys/kernel/osrelease") {
        Ok(release) => {
            let release = release.unwrap_or_default();
            Found::when(version(&release) >= Some((major, minor)), || {
                format!("this is Linux {release}")
            })
        }
        Err(error) => Found::lacks(&io::Error::other(error)),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not every kernel has these kinds.
    #[test]
    fn a_bond_is_refused_with_what_to_name_instead() {
        let Snapshot { device, .. } = Snapshot::take(OsStr::new("lo")).unwrap();
        for kind in ["bond", "team"] {
            let link = Link {
                kind: kind.to_owned(),
                ..device.link.clone()
            };
            let reason = unfit(&link).unwrap();
            assert!(reason.contains("a NIC that is not part of a"), "{reason}");
        }
        assert!(unfit(&device.link).unwrap().contains("Ethernet"));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("6.12.117+deb13-cloud-amd64"), Some((6, 12)));
        assert_eq!(version("5.10-rc1"), Some((5, 10)));
        assert!(version("6.12.1") >= Some((6, 3)) && version("5.19.0") < Some((6, 3)));
        assert_eq!(version("six"), None);
    }
}
