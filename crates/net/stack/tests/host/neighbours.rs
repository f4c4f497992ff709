//! Neighbours that answer, neighbours that do not, and what connections learn of it.

use std::net::IpAddr;

use saiga_stack::{CloseReason, Config, Micros};
use saiga_wire::ethernet::Mac;
use saiga_wire::frame::Content;
use saiga_wire::{arp, icmp4, icmp6, ndp};

use crate::frames::{arp_frame, icmp4_to, icmp6_to};
use crate::world::{BUFFER, Host, World, mac, packet, read, segment, v4, v6};

/// A host that does not exist: its address is asked for three times.
#[test]
fn a_host_that_does_not_exist_is_unreachable() {
    for (own, peer) in [(v4(1), v4(77)), (v6(1), v6(77))] {
        let mut world = World::new();
        let id = world.connect(own, peer);
        world.run(Micros::from_secs(10));
        let closed = world.hosts[0].conversation(id).closed();
        assert_eq!(closed, Some(CloseReason::Unreachable));
        assert!(world.hosts[0].stack.is_empty());
        assert_eq!(world.seen.len(), 3);
        assert!(world.seen.iter().all(|(_, frame)| segment(frame).is_none()));
    }
}

/// The first segment waits for the MAC address instead of being lost.
#[test]
fn the_first_segment_waits() {
    let mut world = World::new();
    world.connect(v4(1), v4(2));
    world.run(Micros::from_millis(1));
    let kinds: Vec<bool> = world
        .seen
        .iter()
        .map(|(_, frame)| matches!(read(frame).content, Content::Arp(_)))
        .collect();
    // A request, its answer, and the handshake: the request told the second host the address.
    assert_eq!(kinds, [true, true, false, false, false]);
}

/// The MAC address of a neighbour changes, and the neighbour says so.
#[test]
fn a_new_mac_address_is_used() {
    let mut world = World::new();
    let id = world.connect(v4(1), v4(2));
    world.run(Micros::from_secs(1));
    let announcement = arp_frame(
        Mac::BROADCAST,
        arp::Operation::Request,
        [10, 0, 0, 2],
        [10, 0, 0, 2],
    );
    let now = world.now;
    let _verdict = world.hosts[0].on_frame(&announcement, now);
    world.hosts[0].write(id, b"x", now);
    let frames = world.hosts[0].frames(now);
    assert_eq!(read(&frames[0].1).link.destination, mac(9));
}

/// An error of a router about a segment that is too big: smaller ones follow at once.
#[test]
fn smaller_segments_follow_an_error_about_the_mtu() {
    let mut world = World::new();
    let id = world.connect(v4(1), v4(2));
    world.run(Micros::from_secs(1));
    world.hosts[0].write(id, &[1; 10_000], world.now);
    let now = world.now;
    let frames = world.hosts[0].frames(now);
    let largest = frames.iter().map(|(_, frame)| frame.len()).max();
    assert_eq!(largest, Some(1514));
    let quote = icmp4::quotable(&frames[0].1[14..]);
    for (mtu, expected) in [(1400, 1414), (1300, 1314)] {
        let error = icmp4::Message::FragmentationNeeded { mtu, quote };
        let error = icmp4_to(mac(1), (v4(2), v4(1)), &error);
        let _verdict = world.hosts[0].on_frame(&error, now);
        let frames = world.hosts[0].frames(now);
        let largest = frames.iter().map(|(_, frame)| frame.len()).max();
        assert_eq!(largest, Some(expected), "MTU {mtu}");
    }
    // The next connection to the host knows it.
    assert_eq!(largest_of_next(&mut world, v4(1), v4(2)), 1314);
}

/// Bytes of the largest frame that a new connection sends before it can learn anything.
fn largest_of_next(world: &mut World, own: IpAddr, peer: IpAddr) -> usize {
    let id = world.connect(own, peer);
    world.run(Micros::from_millis(10));
    world.hosts[0].write(id, &[1; 10_000], world.now);
    let now = world.now;
    let frames = world.hosts[0].frames(now);
    let lengths = frames.iter().map(|(_, frame)| frame.len());
    lengths.max().unwrap()
}

/// The owner may know a path where errors go to the kernel. It may be the side that listens.
#[test]
fn a_path_that_the_owner_knows_holds_for_new_connections() {
    let mut world = World::new();
    let now = world.now;
    for (own, peer) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        world.hosts[0].stack.learn_path_mtu(peer, 1400, now);
        assert_eq!(largest_of_next(&mut world, own, peer), 1414);
        world.hosts[1].stack.learn_path_mtu(own, 1350, now);
        world.connect(own, peer);
        world.run(Micros::from_millis(10));
        let server = *world.hosts[1].accepted().last().unwrap();
        world.hosts[1].write(server, &[1; 10_000], world.now);
        let frames = world.hosts[1].frames(world.now);
        assert!(frames.iter().all(|(_, frame)| frame.len() <= 1364));
        assert!(frames.iter().any(|(_, frame)| frame.len() == 1364));
    }
}

/// RFC 5927 §4.1: the quote must be of a segment that is under way.
#[test]
fn forged_errors_change_nothing() {
    let mut world = World::new();
    let id = world.connect(v4(1), v4(2));
    world.run(Micros::from_secs(1));
    let now = world.now;
    world.hosts[0].write(id, b"x", now);
    let frame = world.hosts[0].frames(now).remove(0).1;
    let mut quote = frame[14..].to_vec();
    quote[24] ^= 1; // The sequence number.
    let error = icmp4::Message::FragmentationNeeded {
        mtu: 576,
        quote: icmp4::quotable(&quote),
    };
    let _verdict = world.hosts[0].on_frame(&icmp4_to(mac(1), (v4(2), v4(1)), &error), now);
    world.hosts[0].write(id, &[1; 5_000], now);
    let frames = world.hosts[0].frames(now);
    assert!(
        frames
            .iter()
            .any(|(_, frame)| packet(frame).bytes.len() == 1500)
    );
    let counters = world.hosts[0].stack.counters();
    assert_eq!(counters.tcp.out_of_window_icmps, 1);
}

/// A host of another network is reached by its router.
#[test]
fn frames_for_other_networks_go_to_the_router() {
    let mut host = Host::new(1, Config::default());
    let now = saiga_stack::Instant(2_000_000);
    let mut network = crate::world::network(1, saiga_wire::ethernet::Tags::None, 1500);
    network.routes.push(saiga_stack::Route {
        destination: "0.0.0.0/0".parse().unwrap(),
        gateway: Some(v4(254)),
        interface: 0,
    });
    host.stack.configure(network, now).unwrap();
    let peer = "192.0.2.1:80".parse().unwrap();
    let own = std::net::SocketAddr::new(v4(1), 0);
    host.stack.connect(own, peer, BUFFER, now).unwrap();
    let frames = host.frames(now);
    let Content::Arp(request) = read(&frames[0].1).content else {
        panic!()
    };
    assert_eq!(request.target, std::net::Ipv4Addr::new(10, 0, 0, 254));
    let answer = arp_frame(
        mac(1),
        arp::Operation::Reply,
        [10, 0, 0, 254],
        [10, 0, 0, 1],
    );
    let _verdict = host.on_frame(&answer, now);
    let frames = host.frames(now);
    assert_eq!(read(&frames[0].1).link.destination, mac(9));
    assert!(segment(&frames[0].1).is_some());
}

/// No path of IPv6 takes less than 1,280 bytes (RFC 8200 §5).
#[test]
fn segments_of_ipv6_have_a_least_size() {
    let mut world = World::new();
    let id = world.connect(v6(1), v6(2));
    world.run(Micros::from_secs(1));
    world.hosts[0].write(id, &[1; 10_000], world.now);
    let now = world.now;
    let frames = world.hosts[0].frames(now);
    let error = icmp6::Message::PacketTooBig {
        mtu: 600,
        quote: icmp6::quotable(&frames[0].1[14..]),
    };
    let _verdict = world.hosts[0].on_frame(&icmp6_to(mac(1), (v6(2), v6(1)), &error), now);
    let frames = world.hosts[0].frames(now);
    let largest = frames.iter().map(|(_, frame)| frame.len()).max();
    assert_eq!(largest, Some(1_294));
}

/// What another stack with the same addresses has got is learnt, and not answered a second time.
#[test]
fn overheard_frames_are_not_answered() {
    let mut world = World::new();
    let now = world.now;
    let host = &mut world.hosts[0];
    let request = arp_frame(
        mac(1),
        arp::Operation::Request,
        [10, 0, 0, 7],
        [10, 0, 0, 1],
    );
    host.stack.overhear(&request, now, &mut host.application);
    let solicitation = icmp6::Message::Ndp(ndp::Message::NeighbourSolicitation {
        target: "2001:db8::1".parse().unwrap(),
        source_mac: Some(mac(9)),
    });
    let solicitation = icmp6_to(mac(1), (v6(7), v6(1)), &solicitation);
    host.stack
        .overhear(&solicitation, now, &mut host.application);
    assert_eq!(host.frames(now).len(), 0);
    for (own, peer) in [(v4(1), v4(7)), (v6(1), v6(7))] {
        world.connect(own, peer);
        let frames = world.hosts[0].frames(now);
        assert_eq!(frames.len(), 1);
        assert!(segment(&frames[0].1).is_some(), "the neighbour is known");
        assert_eq!(read(&frames[0].1).link.destination, mac(9));
    }
}
