//! Neighbours that the kernel resolves, and what it is told about them.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::process::Command;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use saiga_interface::{
    Changes, Follower, Neighbour, NeighbourState, NetlinkError, Resolver, Snapshot,
};
use saiga_wire::ethernet::Mac;

use crate::namespace::{Peer, follow, in_namespace, ip, pair, run, sysctl, until};

const MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
const OTHER_MAC: Mac = Mac([2, 0, 0, 0, 0, 0x22]);

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The last that was told about a neighbour.
fn last(changes: &Changes, address: IpAddr) -> Option<&Neighbour> {
    let mut found = changes.neighbours.iter().rev();
    found.find(|neighbour| neighbour.address == address)
}

/// Waits until the kernel tells a state and a MAC address.
#[track_caller]
fn until_told(
    follower: &mut Follower,
    address: IpAddr,
    expected: (NeighbourState, Option<Mac>),
) -> Neighbour {
    let told = until(follower, |changes| {
        last(changes, address).is_some_and(|one| (one.state, one.mac) == expected)
    });
    *last(&told, address).unwrap()
}

/// What a new snapshot says.
fn now(address: IpAddr) -> (NeighbourState, Option<Mac>) {
    let snapshot = Snapshot::take(OsStr::new("v0")).unwrap();
    let mut neighbours = snapshot.device.neighbours.iter();
    let found = neighbours.find(|one| one.address == address);
    found.map_or((NeighbourState::Absent, None), |one| (one.state, one.mac))
}

/// Makes a wire to another host, and follows this end; gives its index.
fn with_peer(test: impl FnOnce(&Peer, Follower, u32) + Send + 'static) {
    in_namespace(move || {
        let peer = Peer::start();
        ip("address add 10.0.0.1/24 dev v0");
        ip("address add fd00::1/64 dev v0 nodad");
        // A new MAC address is believed at once.
        sysctl("ipv4/neigh/v0/locktime", "0");
        let (follower, snapshot) = follow("v0");
        test(&peer, follower, snapshot.device.link.index);
    });
}

#[test]
fn a_neighbour_is_resolved_and_changes_its_mac_address() {
    with_peer(|peer, mut follower, index| {
        let mut resolver = Resolver::open().unwrap();
        for address in ["10.0.0.2", "fd00::2"].map(address) {
            assert_eq!(now(address), (NeighbourState::Absent, None));
            resolver.resolve(index, address).unwrap();
            let expected = (NeighbourState::Reachable, Some(MAC));
            let told = until_told(&mut follower, address, expected);
            assert_eq!(told.interface, index);
            assert_eq!(now(address), expected);
        }
        peer.inside(|| ip("link set v1 address 02:00:00:00:00:22"));
        // With its address, the other host forgets its neighbours. It gives the new address as it
        // asks for ours.
        for (own, address) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            peer.inside(|| run(Command::new("ping").args(["-c", "1", "-W", "20", own])));
            let address = address.parse().unwrap();
            until(&mut follower, |changes| {
                last(changes, address).is_some_and(|one| one.mac == Some(OTHER_MAC))
            });
            assert_eq!(now(address).1, Some(OTHER_MAC));
        }
    });
}

#[test]
fn a_neighbour_that_does_not_answer_has_no_mac_address() {
    with_peer(|_, mut follower, index| {
        // The kernel asks three times.
        for family in ["ipv4", "ipv6"] {
            sysctl(&format!("{family}/neigh/v0/retrans_time_ms"), "20");
        }
        let mut resolver = Resolver::open().unwrap();
        for address in ["10.0.0.99", "fd00::99"].map(address) {
            resolver.resolve(index, address).unwrap();
            until_told(&mut follower, address, (NeighbourState::Failed, None));
        }
    });
}

/// A stale neighbour that is used is asked after a delay.
#[test]
fn a_stale_neighbour_is_verified() {
    with_peer(|_, mut follower, index| {
        sysctl("ipv4/neigh/v0/delay_first_probe_time", "0");
        let address = address("10.0.0.2");
        ip("neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud stale");
        until_told(&mut follower, address, (NeighbourState::Stale, Some(MAC)));
        Resolver::open().unwrap().resolve(index, address).unwrap();
        until_told(
            &mut follower,
            address,
            (NeighbourState::Reachable, Some(MAC)),
        );
    });
}

#[test]
fn progress_confirms_a_neighbour() {
    with_peer(|_, mut follower, index| {
        let mut resolver = Resolver::open().unwrap();
        for text in ["10.0.0.9", "fd00::9"] {
            // No host has the address, so nothing else can confirm it.
            let address = address(text);
            assert!(
                !resolver.confirm(index, address, MAC).unwrap(),
                "there is no entry"
            );
            ip(&format!(
                "neighbour add {text} lladdr 02:00:00:00:00:02 dev v0 nud stale"
            ));
            let stale = (NeighbourState::Stale, Some(MAC));
            assert!(!resolver.confirm(index, address, OTHER_MAC).unwrap());
            assert_eq!(now(address), stale);
            assert!(resolver.confirm(index, address, MAC).unwrap());
            until_told(
                &mut follower,
                address,
                (NeighbourState::Reachable, Some(MAC)),
            );
        }
    });
}

/// `NTF_USE` and `NUD_REACHABLE` would make the entry temporary.
#[test]
fn entries_of_the_administrator_stay() {
    with_peer(|_, mut follower, index| {
        let mut resolver = Resolver::open().unwrap();
        for text in ["10.0.0.2", "fd00::2"] {
            let address = address(text);
            ip(&format!(
                "neighbour add {text} lladdr 02:00:00:00:00:22 dev v0"
            ));
            let permanent = (NeighbourState::Permanent, Some(OTHER_MAC));
            until_told(&mut follower, address, permanent);
            resolver.resolve(index, address).unwrap();
            assert!(!resolver.confirm(index, address, OTHER_MAC).unwrap());
            assert_eq!(now(address), permanent);
            ip(&format!("neighbour delete {text} dev v0"));
            until_told(&mut follower, address, (NeighbourState::Absent, None));
        }
    });
}

#[test]
fn refusals_are_named() {
    in_namespace(|| {
        pair();
        let mut resolver = Resolver::open().unwrap();
        let error = resolver.resolve(9999, address("10.0.0.2")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the kernel refuses to look up a neighbour: No such device (os error 19)"
        );
        let index = Snapshot::take(OsStr::new("v0")).unwrap().device.link.index;
        sysctl("ipv6/conf/v0/disable_ipv6", "1");
        let error = resolver.resolve(index, address("fd00::2")).unwrap_err();
        assert!(matches!(error, NetlinkError::Refused { .. }), "{error}");
    });
}

/// Reading needs no right.
#[test]
fn a_missing_right_is_named() {
    in_namespace(|| {
        pair();
        let index = follow("v0").1.device.link.index;
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::NET_ADMIN);
        sets.permitted.remove(CapabilitySet::NET_ADMIN);
        set_capabilities(None, sets).unwrap();
        assert_eq!(follow("v0").1.device.link.index, index);
        let error = Resolver::open()
            .unwrap()
            .resolve(index, address("10.0.0.2"))
            .unwrap_err();
        assert!(matches!(error, NetlinkError::Denied { .. }));
        assert_eq!(
            error.to_string(),
            "not permitted to resolve a neighbour: this needs CAP_NET_ADMIN in the network \
             namespace"
        );
    });
}
