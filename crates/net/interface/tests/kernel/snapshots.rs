//! Snapshots of interfaces that ip(8) has made.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use saiga_interface::{
    Interface, NeighbourState, NextHop, Reason, RouteKind, Scope, Snapshot, SnapshotError, What,
    network,
};
use saiga_wire::ethernet::Mac;

use crate::namespace::{follow, in_namespace, ip, ip_batch, pair, run, sysctl, until};

pub(crate) fn take(name: &str) -> Snapshot {
    Snapshot::take(OsStr::new(name)).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Unicast routes that are not of IPv6's link-local network, as text.
pub(crate) fn unicast(interface: &Interface) -> Vec<String> {
    let wanted = interface.routes.iter().filter(|route| {
        let is_local = route.destination.to_string().starts_with("fe80");
        route.kind == RouteKind::Unicast && !is_local
    });
    let text = |route: &saiga_interface::Route| {
        let source = route
            .preferred_source
            .map(|source| format!(" from {source}"));
        let hop = match route.next_hop {
            NextHop::Link => String::new(),
            NextHop::Router(router) => format!(" via {router}"),
            NextHop::Several | NextHop::Encapsulation => format!(" {:?}", route.next_hop),
        };
        let source = source.unwrap_or_default();
        format!("{}{hop}{source} metric {}", route.destination, route.metric)
    };
    let mut texts: Vec<String> = wanted.map(text).collect();
    texts.sort();
    texts
}

#[test]
fn an_interface_is_read_in_full() {
    in_namespace(|| {
        pair();
        ip("link set v0 mtu 1400");
        ip("address add 10.0.0.1/24 dev v0");
        ip("address add 10.5.0.1 peer 10.6.0.1/32 dev v0 scope link");
        ip("address add fd00::1/64 dev v0 nodad");
        ip("address add fd00::9/64 dev v0 nodad preferred_lft 0");
        ip("route add default via 10.0.0.254 dev v0 src 10.0.0.1 metric 50");
        ip("-6 route add fd09::/64 via fd00::254 dev v0");
        ip("neighbour add 10.0.0.7 lladdr 02:00:00:00:00:07 dev v0");
        ip("neighbour add fd00::7 lladdr 02:00:00:00:00:08 dev v0 nud stale");
        let snapshot = take("v0");
        let v0 = &snapshot.device;
        assert_eq!(
            (v0.link.name.as_os_str(), v0.link.mtu),
            (OsStr::new("v0"), 1400)
        );
        assert_eq!(v0.link.mac, Some(Mac([2, 0, 0, 0, 0, 1])));
        assert!(v0.link.is_up && v0.link.has_carrier && v0.link.vlan.is_none());
        assert!(snapshot.vlans.is_empty() && snapshot.refused.is_empty());
        let found = |text| v0.addresses.iter().find(|one| one.address == address(text));
        let peer = found("10.5.0.1").unwrap();
        assert_eq!(
            (peer.network.to_string().as_str(), peer.scope),
            ("10.6.0.1/32", Scope::Link)
        );
        let old = found("fd00::9").unwrap();
        assert!(old.flags.is_deprecated() && old.scope == Scope::Global);
        assert!(!found("fd00::1").unwrap().flags.is_deprecated());
        assert_eq!(
            unicast(v0),
            [
                "0.0.0.0/0 via 10.0.0.254 from 10.0.0.1 metric 50",
                "10.0.0.0/24 from 10.0.0.1 metric 0",
                "10.6.0.1/32 from 10.5.0.1 metric 0",
                "fd00::/64 metric 256",
                "fd09::/64 via fd00::254 metric 1024",
            ]
        );
        let local = v0.routes.iter().any(|route| {
            route.kind == RouteKind::Local && route.destination.addr() == address("10.0.0.1")
        });
        assert!(local, "{:?}", v0.routes);
        let neighbours = v0.neighbours.iter();
        let neighbours = neighbours.map(|one| (one.address.to_string(), one.mac, one.state));
        let neighbours: Vec<_> = neighbours.collect();
        let mac = |last| Some(Mac([2, 0, 0, 0, 0, last]));
        assert_eq!(
            neighbours,
            [
                ("10.0.0.7".to_owned(), mac(7), NeighbourState::Permanent),
                ("fd00::7".to_owned(), mac(8), NeighbourState::Stale),
            ]
        );
        let addresses = &network(&snapshot).network.interfaces[0].addresses;
        let mut addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        addresses.sort();
        assert_eq!(
            addresses,
            ["10.0.0.1/24", "10.5.0.1/32", "fd00::1/64", "fd00::9/64"]
        );
    });
}

#[test]
fn a_namespace_without_addresses_has_a_snapshot() {
    in_namespace(|| {
        let snapshot = take("lo");
        assert!(!snapshot.device.link.is_up);
        assert_eq!(snapshot.device.link.mac, None);
        assert!(snapshot.device.addresses.is_empty() && snapshot.device.routes.is_empty());
    });
}

#[test]
fn what_a_stack_cannot_use_is_told() {
    in_namespace(|| {
        pair();
        // The detection of duplicates does not end during the test.
        sysctl("ipv6/conf/v0/dad_transmits", "1000");
        ip("address add 10.0.0.1/24 dev v0");
        ip("address add fd00::1/64 dev v0");
        ip("route add blackhole 203.0.113.0/24");
        ip("route add unreachable 2001:db8:1::/48");
        ip("route add throw 198.51.100.0/24");
        ip("route add prohibit 198.51.101.0/24 table 77");
        ip("route add 10.9.0.0/16 nexthop via 10.0.0.253 dev v0 nexthop via 10.0.0.254 dev v0");
        ip("route add 10.8.0.0/16 tos 0x10 via 10.0.0.254 dev v0");
        ip("route add 10.7.0.0/16 via inet6 fd00::254 dev v0");
        ip("route add 10.6.0.0/16 via 192.0.2.1 dev v0 onlink");
        ip("route add local 10.5.0.0/16 dev v0");
        let snapshot = take("v0");
        let left_out = network(&snapshot).left_out;
        let reason = |what: What| {
            let mut found = left_out.iter().filter(|one| one.what == what);
            let reason = found.next().map(|one| one.reason);
            assert!(found.next().is_none(), "{left_out:?}");
            reason
        };
        let route = |text: &str| reason(What::Route(text.parse().unwrap()));
        let tentative = reason(What::Address(address("fd00::1")));
        assert_eq!(tentative, Some(Reason::Tentative));
        assert_eq!(route("203.0.113.0/24"), Some(Reason::Refused));
        assert_eq!(route("2001:db8:1::/48"), Some(Reason::Refused));
        assert_eq!(route("198.51.100.0/24"), Some(Reason::Refused));
        assert_eq!(route("198.51.101.0/24"), None, "it is in another table");
        assert_eq!(route("10.9.0.0/16"), Some(Reason::Multipath));
        assert_eq!(route("10.8.0.0/16"), Some(Reason::Selective));
        assert_eq!(route("10.7.0.0/16"), Some(Reason::OtherVersion));
        assert_eq!(route("10.6.0.0/16"), Some(Reason::RouterOffLink));
        assert_eq!(route("10.5.0.0/16"), Some(Reason::LocalNetwork));
        assert_eq!(route("10.0.0.1/32"), None, "it follows from the address");
        assert_eq!(route("ff00::/8"), Some(Reason::Multicast));
    });
}

/// Detection of duplicates ends by itself.
#[test]
fn a_tentative_address_becomes_usable() {
    in_namespace(|| {
        pair();
        sysctl("ipv6/neigh/v0/retrans_time_ms", "20");
        // The detection does not begin before the link works.
        ip("link set v1 down");
        ip("address add fd00::1/64 dev v0");
        let (mut follower, mut snapshot) = follow("v0");
        let is_tentative = |snapshot: &Snapshot| {
            let mut addresses = snapshot.device.addresses.iter();
            addresses.any(|one| one.address == address("fd00::1") && one.flags.is_tentative())
        };
        assert!(is_tentative(&snapshot), "{:?}", snapshot.device.addresses);
        ip("link set v1 up");
        while is_tentative(&snapshot) {
            until(&mut follower, |changes| changes.cause.is_some());
            snapshot = follower.renew().unwrap();
        }
        let served = &network(&snapshot).network.interfaces[0].addresses;
        assert_eq!(served, &["fd00::1/64".parse().unwrap()]);
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    in_namespace(|| {
        pair();
        ip("link property add dev v0 altname another");
        for name in [
            "v2",
            "",
            "another",
            "v0\0",
            "v0 ",
            "a-name-of-more-than-15-bytes",
            ".",
        ] {
            let error = Snapshot::take(OsStr::new(name)).unwrap_err();
            assert!(matches!(&error, SnapshotError::NoInterface { name: found } if found == name));
            assert_eq!(
                error.to_string(),
                format!("there is no network interface {name:?}")
            );
        }
    });
}

/// Bytes that are not UTF-8, and an escape character.
#[test]
fn names_need_not_be_text() {
    in_namespace(|| {
        pair();
        let name = OsStr::from_bytes(b"w\xff\x1b[7m");
        let words = [
            OsStr::new("link"),
            OsStr::new("add"),
            OsStr::new("name"),
            name,
        ];
        run(Command::new("ip").args(words).args(["type", "bridge"]));
        assert_eq!(take("v0").device.link.name, OsStr::new("v0"));
        let odd = Snapshot::take(name).unwrap();
        assert_eq!(odd.device.link.name, name);
        let told = &network(&odd).left_out[0].to_string();
        assert_eq!(told, "interface \"w\\xFF\\u{1b}[7m\": it is down");
    });
}

/// More entries than one datagram holds.
#[test]
fn large_tables_are_read_in_full() {
    in_namespace(|| {
        pair();
        ip("address add 10.0.0.1/24 dev v0");
        let mut lines = String::new();
        let mac = "02:00:00:00:00:07";
        for number in 0..4000 {
            let (high, low) = (number / 200, number % 200);
            lines += &format!("route add 10.{high}.{low}.0/26 dev v0\n");
            lines += &format!("neighbour add 10.{high}.{low}.9 lladdr {mac} dev v0\n");
        }
        // The other interface has as many routes.
        for number in 1..4000 {
            lines += &format!("route add fd00:{number:x}::/64 dev v1\n");
        }
        ip_batch(&lines);
        let snapshot = take("v0");
        assert_eq!(unicast(&snapshot.device).len(), 4001);
        assert_eq!(snapshot.device.neighbours.len(), 4000);
        let routes = &network(&snapshot).network.routes;
        assert_eq!(
            routes.len(),
            4000,
            "the network of the address is not a route"
        );
    });
}
