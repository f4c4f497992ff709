//! Routes, own addresses, and networks that are refused.

extern crate std;
use super::*;
use alloc::vec;
use saiga_wire::ethernet::{EtherType, Tag};
use std::string::ToString as _;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ethernet(tags: Tags, addresses: &[&str]) -> Interface {
    Interface {
        link: Link::Ethernet {
            mac: Mac([2, 0, 0, 0, 0, 1]),
            tags,
        },
        mtu: 1500,
        addresses: addresses.iter().map(|one| net(one)).collect(),
    }
}

fn via(destination: &str, gateway: Option<&str>, interface: usize) -> Route {
    Route {
        destination: net(destination),
        gateway: gateway.map(ip),
        interface,
    }
}

/// Two VLANs with a default route each, and a more special route.
fn two_vlans() -> Network {
    Network {
        interfaces: vec![
            ethernet(Tags::None, &["10.0.0.2/24", "fe80::2/64", "2001:db8::2/64"]),
            ethernet(Tags::One(Tag::vlan(7)), &["10.7.0.2/24", "fe80::7/64"]),
        ],
        routes: vec![
            via("0.0.0.0/0", Some("10.0.0.1"), 0),
            via("0.0.0.0/0", Some("10.7.0.1"), 1),
            via("198.51.100.0/24", Some("10.0.0.9"), 0),
            via("::/0", Some("fe80::1"), 0),
        ],
    }
}

#[test]
fn the_longest_prefix_and_then_the_interface_of_the_source_decide() {
    let routing = Routing::new(two_vlans()).unwrap();
    for (source, destination, expected) in [
        ("10.0.0.2", "10.0.0.77", Some((0, "10.0.0.77"))),
        ("10.0.0.2", "192.0.2.1", Some((0, "10.0.0.1"))),
        ("10.7.0.2", "192.0.2.1", Some((1, "10.7.0.1"))),
        ("10.7.0.2", "198.51.100.3", Some((0, "10.0.0.9"))),
        ("10.7.0.2", "10.0.0.77", Some((0, "10.0.0.77"))),
        ("fe80::2", "fe80::99", Some((0, "fe80::99"))),
        ("fe80::7", "fe80::99", Some((1, "fe80::99"))),
        ("2001:db8::2", "2001:db8:1::1", Some((0, "fe80::1"))),
        ("10.0.0.3", "10.0.0.77", None), // The source is not an own address.
    ] {
        let path = routing.path(ip(source), ip(destination));
        let path = path.map(|path| (path.interface, path.next_hop));
        let expected = expected.map(|(interface, hop)| (interface, ip(hop)));
        assert_eq!(path, expected, "{source} to {destination}");
    }
}

#[test]
fn own_addresses() {
    let routing = Routing::new(two_vlans()).unwrap();
    assert!(routing.is_own(ip("10.7.0.2")));
    assert!(!routing.is_own(ip("10.7.0.1")));
    assert_eq!(routing.interface_with(ip("fe80::7")), Some(1));
}

#[test]
fn frames_belong_to_the_interface_of_their_vlan() {
    let routing = Routing::new(two_vlans()).unwrap();
    let provider = Tag {
        kind: EtherType::PROVIDER_VLAN,
        ..Tag::vlan(7)
    };
    for (tags, expected) in [
        (Tags::None, Some(0)),
        (Tags::One(Tag::vlan(7)), Some(1)),
        (Tags::One(provider), Some(1)),
        (Tags::One(Tag::vlan(8)), None),
        // VLAN 0 with a priority.
        (
            Tags::One(Tag {
                control: 0xe000,
                ..provider
            }),
            Some(0),
        ),
    ] {
        assert_eq!(routing.interface_of(tags), expected, "{tags:?}");
    }
}

#[test]
fn networks_that_cannot_work_are_refused() {
    let refused = |change: fn(&mut Network)| {
        let mut network = two_vlans();
        change(&mut network);
        Routing::new(network).unwrap_err().to_string()
    };
    for (message, expected) in [
        (
            refused(|network| network.interfaces[0].mtu = 1279),
            "interface 0: MTU 1279 is less than 1280",
        ),
        (
            refused(|network| network.interfaces[1] = network.interfaces[0].clone()),
            "interface 1 receives the same frames as another one",
        ),
        (
            refused(|network| network.interfaces[1].addresses.push(net("10.0.0.2/8"))),
            "10.0.0.2 is the address of two interfaces, a multicast or an unspecified address",
        ),
        (
            refused(|network| network.interfaces[1].addresses.push(net("224.0.0.1/8"))),
            "224.0.0.1 is the address of two interfaces, a multicast or an unspecified address",
        ),
        (
            refused(|network| {
                network
                    .routes
                    .push(via("192.0.2.0/24", Some("10.9.0.1"), 1))
            }),
            "route to 192.0.2.0/24: its gateway is not on the link of interface 1",
        ),
        (
            refused(|network| network.routes.push(via("192.0.2.0/24", Some("fe80::1"), 1))),
            "route to 192.0.2.0/24: its gateway is not on the link of interface 1",
        ),
        (
            refused(|network| network.routes.push(via("192.0.2.0/24", None, 2))),
            "route to 192.0.2.0/24: its gateway is not on the link of interface 2",
        ),
        (
            refused(|network| network.routes = vec![via("192.0.2.0/24", None, 0); 1025]),
            "1025 routes exceed the limit of 1024",
        ),
    ] {
        assert_eq!(message, expected);
    }
}
