//! Snapshots and their networks, as tables. Every network must suit a stack.

use std::net::IpAddr;

use saiga_stack::{Config, Instant, Secrets, Stack};
use saiga_wire::ethernet::{EtherType, Mac, Tag};

use super::*;
use crate::address::AddressFlags;
use crate::link::Link as KernelLink;

const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// An interface that is up, without addresses.
fn interface(index: u32, tags: Tags) -> Interface {
    Interface {
        link: KernelLink {
            index,
            name: format!("eth{index}").into(),
            mac: Some(MAC),
            mtu: 1500,
            is_up: true,
            has_carrier: true,
            kind: String::new(),
            xdp_program: None,
            vlan: None,
        },
        tags,
        addresses: Vec::new(),
        routes: Vec::new(),
        neighbours: Vec::new(),
    }
}

fn device() -> Interface {
    interface(2, Tags::None)
}

/// A permanent address such as `10.0.0.1/24`.
fn address(text: &str) -> Address {
    Address {
        address: net(text).addr(),
        network: net(text).trunc(),
        scope: Scope::Global,
        flags: AddressFlags(0x80),
    }
}

fn flagged(text: &str, flags: u32) -> Address {
    Address {
        flags: AddressFlags(flags),
        ..address(text)
    }
}

fn to(destination: &str, next_hop: NextHop) -> Route {
    Route {
        destination: net(destination),
        kind: RouteKind::Unicast,
        next_hop,
        preferred_source: None,
        metric: 0,
        is_selective: false,
    }
}

fn via(destination: &str, router: &str) -> Route {
    to(destination, NextHop::Router(ip(router)))
}

fn of_kind(destination: &str, kind: RouteKind) -> Route {
    Route {
        kind,
        ..to(destination, NextHop::Link)
    }
}

fn with_metric(metric: u32, route: Route) -> Route {
    Route { metric, ..route }
}

/// An address and the route to its network.
fn connected(addresses: &[&str]) -> Interface {
    let routes = addresses.iter().map(|text| {
        let network = net(text).trunc().to_string();
        to(&network, NextHop::Link)
    });
    Interface {
        addresses: addresses.iter().map(|text| address(text)).collect(),
        routes: routes.collect(),
        ..device()
    }
}

/// The network of a device and VLANs. A stack takes it.
fn translate(device: Interface, vlans: Vec<Interface>) -> Translation {
    let snapshot = Snapshot {
        device,
        vlans,
        refused: Vec::new(),
    };
    let translation = network(&snapshot);
    let secrets = Secrets {
        flows: [0; 2],
        sequence_numbers: [0; 2],
        cookies: [0; 2],
    };
    let config = Config {
        most_connections: 16,
        ..Config::default()
    };
    let mut stack = Stack::new(config, secrets, Instant(0));
    let done = stack.configure(translation.network.clone(), Instant(0));
    assert_eq!(done, Ok(()), "{translation:?}");
    assert_eq!(
        translation.indexes.len(),
        translation.network.interfaces.len()
    );
    translation
}

/// Addresses of the first interface, as text.
fn addresses(translation: &Translation) -> Vec<String> {
    let first = translation.network.interfaces.first();
    let addresses = first.map(|one| &one.addresses).into_iter().flatten();
    addresses.map(ToString::to_string).collect()
}

/// Routes as text.
fn routes(translation: &Translation) -> Vec<String> {
    let text = |route: &StackRoute| match route.gateway {
        Some(gateway) => format!("{} via {gateway} on {}", route.destination, route.interface),
        None => format!("{} on {}", route.destination, route.interface),
    };
    translation.network.routes.iter().map(text).collect()
}

/// What is left out with its reasons.
fn left_out(translation: &Translation) -> Vec<(What, Reason)> {
    let one = |out: &LeftOut| (out.what, out.reason);
    translation.left_out.iter().map(one).collect()
}

#[test]
fn an_ordinary_interface_is_translated_in_full() {
    let mut eth = connected(&["10.0.0.1/24", "fd00::1/64"]);
    eth.routes.push(via("0.0.0.0/0", "10.0.0.254"));
    eth.routes.push(via("::/0", "fe80::1"));
    eth.routes.push(to("10.9.0.0/16", NextHop::Link));
    eth.routes.push(of_kind("10.0.0.1/32", RouteKind::Local));
    eth.routes
        .push(of_kind("10.0.0.255/32", RouteKind::Broadcast));
    eth.routes.push(of_kind("fd00::/128", RouteKind::Anycast));
    let found = translate(eth, Vec::new());
    let expected = StackInterface {
        link: Link::Ethernet {
            mac: MAC,
            tags: Tags::None,
        },
        mtu: 1500,
        addresses: vec![net("10.0.0.1/24"), net("fd00::1/64")],
    };
    assert_eq!(found.network.interfaces, [expected]);
    assert_eq!(
        routes(&found),
        [
            "0.0.0.0/0 via 10.0.0.254 on 0",
            "::/0 via fe80::1 on 0",
            "10.9.0.0/16 on 0"
        ]
    );
    assert_eq!(found.left_out, []);
    assert_eq!((found.number(2), found.number(3)), (Some(0), None));
}

#[test]
fn addresses_that_a_stack_cannot_serve_are_left_out() {
    let host = Address {
        scope: Scope::Host,
        ..address("10.0.0.9/24")
    };
    for (address, reason) in [
        (address("fe80::1/64"), Reason::LinkLocal),
        (address("239.1.1.1/32"), Reason::Multicast),
        (host, Reason::HostOnly),
        (address("127.0.0.2/8"), Reason::HostOnly),
        (address("::1/128"), Reason::HostOnly),
        (flagged("fd00::2/64", 0x40), Reason::Tentative),
        (flagged("fd00::2/64", 0xc8), Reason::Duplicate),
        (address("10.0.0.1/24"), Reason::Repeated),
    ] {
        let mut eth = connected(&["10.0.0.1/24", "fd00::1/64"]);
        eth.addresses.push(address);
        let found = translate(eth, Vec::new());
        assert_eq!(
            addresses(&found),
            ["10.0.0.1/24", "fd00::1/64"],
            "{reason:?}"
        );
        let expected = (What::Address(address.address), reason);
        assert_eq!(left_out(&found), [expected]);
    }
}

/// Deprecated, optimistic, secondary (0x01), and link-local of IPv4.
#[test]
fn addresses_with_other_flags_are_served() {
    for one in [
        flagged("fd00::2/64", 0x20),
        flagged("fd00::2/64", 0x44),
        flagged("10.0.0.2/24", 0x81),
        address("169.254.3.4/24"),
    ] {
        let mut eth = device();
        eth.addresses.push(one);
        eth.routes.push(to(&one.network.to_string(), NextHop::Link));
        let found = translate(eth, Vec::new());
        let expected = IpNet::new(one.address, one.network.prefix_len()).unwrap();
        assert_eq!(addresses(&found), [expected.to_string()]);
        assert_eq!(found.left_out, []);
    }
}

/// The stack would take all hosts of the prefix for neighbours.
#[test]
fn an_address_whose_network_is_not_on_the_link_is_alone() {
    let peer = Address {
        network: net("10.0.0.2/32"),
        ..address("10.0.0.1/32")
    };
    let elsewhere = via("10.0.0.0/24", "10.0.0.254");
    let selective = Route {
        is_selective: true,
        ..to("10.0.0.0/24", NextHop::Link)
    };
    for (name, address, route, text) in [
        ("no route", address("10.0.0.1/24"), None, "10.0.0.1/32"),
        ("no route", address("fd00::1/64"), None, "fd00::1/128"),
        (
            "a router",
            address("10.0.0.1/24"),
            Some(elsewhere),
            "10.0.0.1/32",
        ),
        (
            "a selective route",
            address("10.0.0.1/24"),
            Some(selective),
            "10.0.0.1/32",
        ),
        (
            "a peer",
            peer,
            Some(to("10.0.0.2/32", NextHop::Link)),
            "10.0.0.1/32",
        ),
        (
            "a route",
            address("10.0.0.1/24"),
            Some(to("10.0.0.0/24", NextHop::Link)),
            "10.0.0.1/24",
        ),
    ] {
        let mut eth = device();
        eth.addresses.push(address);
        eth.routes.extend(route);
        let found = translate(eth, Vec::new());
        assert_eq!(addresses(&found), [text], "{name}");
    }
}

#[test]
fn the_peer_of_an_address_is_on_the_link() {
    let mut eth = device();
    eth.addresses.push(Address {
        network: net("10.0.0.2/32"),
        ..address("10.0.0.1/32")
    });
    eth.routes.push(to("10.0.0.2/32", NextHop::Link));
    let found = translate(eth, Vec::new());
    assert_eq!(routes(&found), ["10.0.0.2/32 on 0"]);
    assert_eq!(found.left_out, []);
}

#[test]
fn routes_that_a_stack_cannot_use_are_left_out() {
    let selective = Route {
        is_selective: true,
        ..via("10.9.0.0/16", "10.0.0.254")
    };
    for (route, reason) in [
        (selective, Reason::Selective),
        (to("224.0.0.0/4", NextHop::Link), Reason::Multicast),
        (of_kind("ff00::/8", RouteKind::Multicast), Reason::Multicast),
        (to("fe80::/64", NextHop::Link), Reason::LinkLocal),
        (to("10.9.0.0/16", NextHop::Several), Reason::Multipath),
        (
            to("10.9.0.0/16", NextHop::Encapsulation),
            Reason::Encapsulation,
        ),
        (via("10.9.0.0/16", "fe80::1"), Reason::OtherVersion),
        (via("10.9.0.0/16", "10.1.0.254"), Reason::RouterOffLink),
        (via("10.9.0.0/16", "10.0.0.1"), Reason::RouterOffLink),
        (via("fd09::/64", "fd01::1"), Reason::RouterOffLink),
        (
            of_kind("10.7.0.0/16", RouteKind::Local),
            Reason::LocalNetwork,
        ),
        (
            of_kind("10.9.0.0/16", RouteKind::Blackhole),
            Reason::Refused,
        ),
        (
            of_kind("10.9.0.0/16", RouteKind::Other(11)),
            Reason::UnknownKind,
        ),
    ] {
        let mut eth = connected(&["10.0.0.1/24", "fd00::1/64"]);
        eth.routes.push(route);
        let found = translate(eth, Vec::new());
        assert_eq!(found.network.routes, [], "{reason:?}");
        assert_eq!(left_out(&found), [(What::Route(route.destination), reason)]);
    }
}

#[test]
fn refused_destinations_are_told() {
    let snapshot = Snapshot {
        device: connected(&["10.0.0.1/24"]),
        vlans: Vec::new(),
        refused: vec![of_kind("203.0.113.0/24", RouteKind::Blackhole)],
    };
    let found = network(&snapshot);
    let expected = (What::Route(net("203.0.113.0/24")), Reason::Refused);
    assert_eq!(left_out(&found), [expected]);
    assert_eq!(
        found.left_out[0].to_string(),
        "route to 203.0.113.0/24 of \"eth2\": the kernel refuses to send there, but the gateway \
         does not"
    );
}

/// Each case has two routes to one destination, the worse one first.
#[test]
fn of_two_routes_that_with_the_smaller_metric_is_used() {
    for (worse, better, expected) in [
        (
            with_metric(200, via("0.0.0.0/0", "10.0.0.253")),
            with_metric(100, via("0.0.0.0/0", "10.0.0.254")),
            vec!["0.0.0.0/0 via 10.0.0.254 on 0"],
        ),
        // The network of an address needs no route.
        (
            with_metric(100, via("10.0.0.0/24", "10.0.0.254")),
            with_metric(0, to("10.0.0.0/24", NextHop::Link)),
            vec![],
        ),
        (
            with_metric(100, to("10.0.0.0/24", NextHop::Link)),
            with_metric(50, via("10.0.0.0/24", "10.0.0.254")),
            vec!["10.0.0.0/24 via 10.0.0.254 on 0"],
        ),
    ] {
        let mut eth = device();
        eth.addresses.push(address("10.0.0.1/24"));
        // A route to the network of the address, which makes the prefix count.
        let is_about_network = worse.destination == net("10.0.0.0/24");
        if !is_about_network {
            eth.routes.push(to("10.0.0.0/24", NextHop::Link));
        }
        eth.routes.extend([worse, better]);
        let found = translate(eth, Vec::new());
        assert_eq!(routes(&found), expected);
        let expected = (What::Route(worse.destination), Reason::Outranked);
        assert_eq!(left_out(&found), [expected]);
    }
}

#[test]
fn interfaces_that_a_stack_cannot_have_are_left_out() {
    let with = |change: fn(&mut Interface)| {
        let mut eth = connected(&["10.0.0.1/24"]);
        change(&mut eth);
        eth
    };
    for (eth, reason) in [
        (with(|eth| eth.link.is_up = false), Reason::Down),
        (with(|eth| eth.link.mac = None), Reason::NotEthernet),
        (with(|eth| eth.link.mtu = 575), Reason::SmallMtu),
        (
            with(|eth| {
                eth.link.mtu = 1279;
                eth.addresses.push(address("fd00::1/64"));
            }),
            Reason::SmallMtu,
        ),
    ] {
        let found = translate(eth, Vec::new());
        assert_eq!(found.network, Network::default(), "{reason:?}");
        assert_eq!(left_out(&found), [(What::Interface, reason)]);
    }
    for mtu in [576, 9000] {
        let mut eth = connected(&["10.0.0.1/24"]);
        (eth.link.mtu, eth.link.has_carrier) = (mtu, false);
        let found = translate(eth, Vec::new());
        assert_eq!(u32::from(found.network.interfaces[0].mtu), mtu);
    }
    let mut eth = device();
    eth.link.mtu = 65_536;
    assert_eq!(translate(eth, Vec::new()).network.interfaces[0].mtu, 65_535);
}

#[test]
fn vlans_are_interfaces_with_tags() {
    let (outer, inner) = (Tag::vlan(7), Tag::vlan(8));
    let mut vlan = interface(3, Tags::One(outer));
    vlan.addresses.push(address("10.7.0.1/24"));
    vlan.routes.push(to("10.7.0.0/24", NextHop::Link));
    vlan.routes.push(via("0.0.0.0/0", "10.7.0.254"));
    let down = {
        let mut down = interface(4, Tags::One(inner));
        down.link.is_up = false;
        down
    };
    let mut deep = interface(5, Tags::Two { outer, inner });
    deep.addresses.push(address("10.7.0.1/24"));
    let provider = Tag {
        kind: EtherType::PROVIDER_VLAN,
        control: 7,
    };
    let same = interface(6, Tags::One(provider));
    let found = translate(connected(&["10.0.0.1/24"]), vec![vlan, down, deep, same]);
    assert_eq!(found.indexes, [2, 3, 5]);
    assert_eq!((found.number(5), found.number(4)), (Some(2), None));
    assert_eq!(routes(&found), ["0.0.0.0/0 via 10.7.0.254 on 1"]);
    let names: Vec<_> = found.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "interface \"eth4\": it is down",
            "address 10.7.0.1 of \"eth5\": another interface has the same address",
            "interface \"eth6\": another interface has frames with the same VLAN numbers",
        ]
    );
}
