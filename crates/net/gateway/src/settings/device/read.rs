//! Reads and checks a `[[device]]`.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::{
    Addresses, COPYING, Copying, DRIVERS, Device, Driver, FRAMES_PER_DESCRIPTOR, Kind, MODES, Mode,
    Port, RING, ROLES, word,
};
use crate::settings::address::{Route, own, route};
use crate::settings::reader::Table;
use crate::settings::service::socket_path;
use crate::settings::value::{list, mac, plain};
use crate::settings::workers::CPU_MAX;

/// Most queues of a TAP device (`drivers/net/tun.c`, `MAX_TAP_QUEUES`); enough for cards, too.
const QUEUES: RangeInclusive<u16> = 1..=256;
/// Least MTU for IPv6 (RFC 8200 §5).
const LEAST_MTU_V6: u16 = 1280;
/// Most descriptors of a ring of memif, as DPDK and VPP have it.
const MEMIF_RING: u32 = 16_384;
/// The keys that name a port of DPDK.
const PORTS: [&str; 3] = ["pci", "mac", "vdev"];
/// Keys of one kind only.
const OWNERS: [(&str, Driver); 8] = [
    ("mode", Driver::Xdp),
    ("copy", Driver::Xdp),
    ("pci", Driver::Dpdk),
    ("mac", Driver::Dpdk),
    ("vdev", Driver::Dpdk),
    ("socket", Driver::Memif),
    ("role", Driver::Memif),
    ("id", Driver::Memif),
];

/// Reads a `[[device]]`; `None` if something required is missing or wrong.
pub(in crate::settings) fn read(table: &Table<'_>) -> Option<Device> {
    table.check_names();
    let is_port = PORTS.into_iter().any(|key| table.has(key));
    let default = if is_port { Driver::Dpdk } else { Driver::Xdp };
    let driver = table.choice("kind", &DRIVERS).unwrap_or(default);
    for (key, owner) in OWNERS {
        if owner != driver && table.has(key) {
            let owner = word(&DRIVERS, owner);
            table.problem(
                key,
                &format!("only kind = \"{owner}\" has this key; remove it"),
            );
        }
    }
    let kind = match driver {
        Driver::Xdp => xdp(table),
        Driver::Tap => tap(table),
        Driver::Dpdk => dpdk(table),
        Driver::Memif => memif(table),
    };
    let cpus = table.parsed_by("cpus", |text| list(text, CPU_MAX));
    let (ring, frames) = rings(table, driver);
    let addresses = addresses(table, driver);
    let mtu = mtu(table, addresses.as_ref());
    Some(Device {
        kind: kind?,
        cpus: cpus.unwrap_or_default(),
        ring,
        frames,
        vlan: table.whole("vlan", &(1..=4094)),
        mtu,
        addresses: addresses?,
    })
}

fn xdp(table: &Table<'_>) -> Option<Kind> {
    table.require("interface", "write the name of the kernel's interface");
    let queues = if table.has("queues") && !table.is_whole("queues") {
        let what = "all queues of the interface are served; write their number, or remove the key";
        table.problem("queues", what);
        None
    } else {
        table.whole("queues", &QUEUES)
    };
    let mode = table.choice("mode", &MODES).unwrap_or(Mode::Auto);
    let copy = table.choice("copy", &COPYING).unwrap_or(Copying::Auto);
    if (mode, copy) == (Mode::Generic, Copying::ZeroCopy) {
        let what = "the kernel copies every frame in mode \"generic\"; write \"copy\" or \"auto\"";
        table.problem("copy", what);
    }
    Some(Kind::Xdp {
        interface: table.parsed("interface")?,
        queues,
        mode,
        copy,
    })
}

fn tap(table: &Table<'_>) -> Option<Kind> {
    table.require("interface", "write a name for the TAP device");
    for key in ["ring", "frames"] {
        if table.has(key) {
            table.problem(key, "a TAP device has no rings; remove it");
        }
    }
    let queues = table.whole("queues", &QUEUES);
    Some(Kind::Tap {
        interface: table.parsed("interface")?,
        queues,
    })
}

fn dpdk(table: &Table<'_>) -> Option<Kind> {
    let given = PORTS.map(|key| table.has(key));
    match given.iter().filter(|is_given| **is_given).count() {
        0 => table.problem("pci", "write the PCI address of the card, or mac, or vdev"),
        1 => {}
        _ => {
            let surplus = if given[2] { "vdev" } else { "mac" };
            table.problem(surplus, "write only one of pci, mac and vdev");
        }
    }
    let interface = table.parsed("interface");
    let queues = table.whole("queues", &QUEUES);
    let port = table.parsed("pci").map(Port::Pci);
    let port = port.or(table.parsed_by("mac", mac).map(Port::Mac));
    let port = port.or(table.parsed_by("vdev", vdev).map(Port::Vdev));
    Some(Kind::Dpdk {
        port: port?,
        interface,
        queues,
    })
}

fn memif(table: &Table<'_>) -> Option<Kind> {
    table.require(
        "socket",
        "write the path of the socket of the shared memory",
    );
    table.require(
        "role",
        "write \"server\" at one end and \"client\" at the other",
    );
    for (key, what) in [
        ("queues", "a memif device has one queue; remove it"),
        (
            "frames",
            "a memif device has a frame for each descriptor; remove it",
        ),
    ] {
        if table.has(key) {
            table.problem(key, what);
        }
    }
    let role = table.choice("role", &ROLES);
    let id = table.whole("id", &(0..=u32::MAX));
    let interface = table.parsed("interface");
    Some(Kind::Memif {
        socket: socket_path(table, "socket")?,
        role: role?,
        id: id.unwrap_or(0),
        interface,
    })
}

/// Checks the arguments of a virtual device.
pub(crate) fn vdev(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_whitespace) {
        return Err("write the device and its arguments without spaces".to_owned());
    }
    plain(text)?;
    if text.starts_with("net_af_xdp") {
        return Err("write kind = \"xdp\" and interface; DPDK is not needed for it".to_owned());
    }
    // Its driver interrupts the system calls of the process by signals.
    if text.starts_with("net_tap") {
        return Err("write kind = \"tap\" and interface; DPDK is not needed for it".to_owned());
    }
    Ok(text.to_owned())
}

fn rings(table: &Table<'_>, driver: Driver) -> (u32, u32) {
    let most = if driver == Driver::Memif {
        MEMIF_RING
    } else {
        32_768
    };
    let ring = table.whole("ring", &(64..=most)).unwrap_or(RING);
    if !ring.is_power_of_two() {
        table.problem("ring", "write a power of two such as 2048");
    }
    let frames = table.whole("frames", &(128..=1 << 20));
    let frames = frames.unwrap_or(ring * FRAMES_PER_DESCRIPTOR);
    let least = ring * FRAMES_PER_DESCRIPTOR;
    if frames < least {
        let what = format!("write at least {least}, two for each descriptor of ring");
        table.problem("frames", &what);
    }
    (ring, frames)
}

fn addresses(table: &Table<'_>, driver: Driver) -> Option<Addresses> {
    let is_default = driver == Driver::Xdp && !table.has("addresses");
    if is_default || table.is_word("addresses", "kernel") {
        if driver == Driver::Tap {
            let what = "the kernel's end of a TAP device is another host; write own addresses";
            table.problem("addresses", what);
        }
        if table.has("routes") {
            table.problem(
                "routes",
                "the kernel's routes hold with its addresses; remove the key",
            );
        }
        return Some(Addresses::Kernel);
    }
    let example = "write addresses with their prefix lengths such as [\"192.168.1.10/24\"]";
    table.require("addresses", example);
    let routes = table.parsed_list("routes", route).unwrap_or_default();
    let addresses = table.parsed_list("addresses", own)?;
    if addresses.is_empty() {
        table.problem("addresses", example);
    }
    for (index, route) in routes.iter().enumerate() {
        let is_same = |other: &Route| other.destination == route.destination;
        if routes[..index].iter().any(is_same) {
            let what = format!("there are two routes to {}; remove one", route.destination);
            table.problem("routes", &what);
        }
        if !is_neighbour(&addresses, route) {
            let gateway = route.gateway;
            let what = format!("{gateway} is in no network of addresses; write a router that is");
            table.problem("routes", &what);
        }
    }
    Some(Addresses::Own { addresses, routes })
}

/// Whether the router of a route is in a network of the device.
fn is_neighbour(addresses: &[IpNet], route: &Route) -> bool {
    let is_link_local = match route.gateway {
        IpAddr::V4(_) => false,
        IpAddr::V6(gateway) => gateway.is_unicast_link_local(),
    };
    let is_near = |own: &IpNet| own.contains(&route.gateway) && own.addr() != route.gateway;
    is_link_local || addresses.iter().any(is_near)
}

fn mtu(table: &Table<'_>, addresses: Option<&Addresses>) -> Option<u16> {
    let mtu = table.whole("mtu", &(576..=9600))?;
    let own = addresses.map(Addresses::own).unwrap_or_default();
    if mtu < LEAST_MTU_V6 && own.iter().any(|address| address.addr().is_ipv6()) {
        table.problem("mtu", &format!("IPv6 needs at least {LEAST_MTU_V6}"));
    }
    Some(mtu)
}
