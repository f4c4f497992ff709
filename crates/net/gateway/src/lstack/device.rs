//! The device and its network: `devices`, `host_addr`, `nic_rxqueue_size` and their neighbours.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::arguments::Arguments;
use super::reader::Reader;
use crate::settings::{self, Addresses, Copying, Device, Kind, Mode, Port, Route};

/// Descriptors of a ring that Gazelle accepts.
const RING: RangeInclusive<u32> = 512..=8192;
/// Keys that Gazelle does not read with AF_XDP either.
const OF_THE_KERNEL: [&str; 5] = [
    "host_addr",
    "mask_addr",
    "gateway_addr",
    "host_addr6",
    "devices",
];
const MASK: &str = "write the mask of the network such as \"255.255.255.0\"";

/// Translates the device. `None` if something is missing or wrong, which is reported.
pub(super) fn translate(reader: &mut Reader<'_>, arguments: &Arguments) -> Option<Device> {
    let rings = ["nic_rxqueue_size", "nic_txqueue_size"].map(|key| ring(reader, key));
    // 0 and 4095 mean no VLAN, as -1 does.
    let vlan = reader.whole("nic_vlan_mode", &(-1..=4095));
    let vlan = vlan.filter(|vlan| (1..4095).contains(vlan));
    let (kind, addresses) = if arguments.xdp.is_some() {
        xdp(reader, arguments)?
    } else {
        dpdk(reader, arguments)?
    };
    let mut device = settings::plain_device(kind, addresses, rings.into_iter().flatten().max());
    device.vlan = vlan.and_then(|vlan: i32| u16::try_from(vlan).ok());
    Some(device)
}

fn ring(reader: &mut Reader<'_>, key: &str) -> Option<u32> {
    let size = reader.whole(key, &RING)?;
    if !size.is_power_of_two() {
        reader.problem(key, "write a power of two such as 2048");
        return None;
    }
    Some(size)
}

fn xdp(reader: &mut Reader<'_>, arguments: &Arguments) -> Option<(Kind, Addresses)> {
    for key in OF_THE_KERNEL {
        reader.note(
            key,
            "the kernel keeps the interface with its addresses and routes",
        );
    }
    if arguments.dpdk != settings::Dpdk::default() {
        reader.note("dpdk_args", "AF_XDP needs no DPDK and no huge pages");
    }
    let kind = Kind::Xdp {
        interface: arguments.xdp.clone()?,
        queues: None,
        mode: Mode::Auto,
        copy: Copying::Auto,
    };
    Some((kind, Addresses::Kernel))
}

fn dpdk(reader: &mut Reader<'_>, arguments: &Arguments) -> Option<(Kind, Addresses)> {
    let v4 = own_v4(reader);
    // lwIP takes 64 bits for the network of every address of IPv6.
    let v6 = reader.parsed("host_addr6", |text| settings::own(&format!("{text}/64")));
    let addresses: Vec<IpNet> = v4.into_iter().chain(v6).collect();
    if !reader.has("host_addr") && !reader.has("host_addr6") {
        reader.problem("host_addr", "write the address of this host");
    }
    let routes = route(reader, v4).into_iter().collect();
    let mac = reader.parsed("devices", settings::mac);
    let vdev = arguments.vdev.clone().map(Port::Vdev);
    let port = vdev.or(arguments.pci.map(Port::Pci)).or(mac.map(Port::Mac));
    if port.is_none() && !reader.has("devices") {
        reader.problem("devices", "write the MAC address of the network card");
    }
    let kind = Kind::Dpdk {
        port: port?,
        interface: None,
        queues: None,
    };
    Some((kind, Addresses::Own { addresses, routes }))
}

/// The IPv4 address of the host, with the prefix of its network.
fn own_v4(reader: &mut Reader<'_>) -> Option<IpNet> {
    let address = reader.parsed("host_addr", host_v4)??;
    if !reader.has("mask_addr") {
        reader.problem("mask_addr", MASK);
    }
    reader.parsed("mask_addr", |text| {
        let mask: Ipv4Addr = text.parse().map_err(|_| MASK.to_owned())?;
        let network = IpNet::with_netmask(address.into(), mask.into());
        let network = network.map_err(|_| MASK.to_owned())?;
        settings::own(&network.to_string())
    })
}

/// Parses the address of the host. Gazelle takes 0.0.0.0 for none.
fn host_v4(text: &str) -> Result<Option<Ipv4Addr>, String> {
    if text == "0.0.0.0" {
        return Ok(None);
    }
    match settings::host(text)? {
        IpAddr::V4(address) => Ok(Some(address)),
        IpAddr::V6(_) => Err("write an IPv4 address; IPv6 is in host_addr6".to_owned()),
    }
}

/// The default route.
fn route(reader: &mut Reader<'_>, own: Option<IpNet>) -> Option<Route> {
    let gateway = reader.parsed("gateway_addr", |text| {
        let example = "write the address of the router such as \"192.168.1.1\"";
        text.parse::<Ipv4Addr>().map_err(|_| example.to_owned())
    })?;
    let gateway = IpAddr::V4(gateway);
    let own = own?;
    if !own.contains(&gateway) || own.addr() == gateway {
        reader.note(
            "gateway_addr",
            "it is not a router in the network of host_addr; see device.routes",
        );
        return None;
    }
    Some(Route {
        destination: settings::everything(true),
        gateway,
    })
}
