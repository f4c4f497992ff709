//! Connections from the first SYN to the end of TIME-WAIT.

use std::net::SocketAddr;

use saiga_stack::{CloseReason, Config, Micros, StateName};
use saiga_wire::ethernet::{Tag, Tags};
use saiga_wire::frame::Content;
use saiga_wire::ip::Ecn;

use crate::world::{BUFFER, Decision, World, mac, network, packet, read, segment, v4, v6};

const SECOND: Micros = Micros::from_secs(1);

/// A request and its answer over each version of IP, with the MAC addresses found first.
#[test]
fn a_request_and_its_answer() {
    for (own, peer) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let mut world = World::new();
        let id = world.connect(own, peer);
        world.hosts[0].write(id, b"ping", world.now);
        world.run(SECOND);
        let server = world.hosts[1].accepted()[0];
        assert_eq!(world.hosts[1].conversation(server).read, b"ping");
        world.hosts[1].write(server, b"pong!", world.now);
        world.run(SECOND);
        assert_eq!(world.hosts[0].conversation(id).read, b"pong!");
        assert_eq!(world.hosts[0].stack.state(id), Some(StateName::Established));
        let flow = world.hosts[1].stack.flow(server).unwrap();
        assert_eq!(flow.local(), SocketAddr::new(peer, 80));
        for (_, frame) in &world.seen {
            read(frame);
        }
    }
}

#[test]
fn both_sides_close_and_nothing_is_left() {
    let mut world = World::new();
    let id = world.connect(v4(1), v4(2));
    world.run(SECOND);
    let server = world.hosts[1].accepted()[0];
    let _ = world.hosts[0].stack.close(id, world.now);
    world.run(SECOND);
    assert!(
        world.hosts[1]
            .conversation(server)
            .events
            .iter()
            .any(|events| events.is_finished)
    );
    let _ = world.hosts[1].stack.close(server, world.now);
    world.run(SECOND);
    assert_eq!(world.hosts[0].stack.state(id), Some(StateName::TimeWait));
    assert!(world.hosts[1].stack.is_empty());
    world.run(Micros::from_secs(61));
    assert!(world.hosts[0].stack.is_empty());
    assert_eq!(
        world.hosts[0].conversation(id).closed(),
        Some(CloseReason::Finished)
    );
    assert_eq!(world.hosts[0].stack.state(id), None);
}

/// The peer takes a connection with the ports of the last one for a new one.
#[test]
fn a_port_in_time_wait_can_be_used_again() {
    let mut world = World::new();
    let (own, peer) = (SocketAddr::new(v4(1), 5000), SocketAddr::new(v4(2), 80));
    for round in 0..3 {
        let stack = &mut world.hosts[0].stack;
        let id = stack.connect(own, peer, BUFFER, world.now).unwrap();
        assert_eq!(stack.end_time_wait(own, peer), None);
        world.run(SECOND);
        world.hosts[0].write(id, b"ping", world.now);
        world.run(SECOND);
        let server = world.hosts[1].accepted()[round];
        assert_eq!(world.hosts[1].conversation(server).read, b"ping");
        let _ = world.hosts[0].stack.close(id, world.now);
        world.run(SECOND);
        let _ = world.hosts[1].stack.close(server, world.now);
        world.run(SECOND);
        let stack = &mut world.hosts[0].stack;
        stack.connect(own, peer, BUFFER, world.now).unwrap_err();
        assert_eq!(stack.end_time_wait(own, peer), Some(id));
    }
    world.run(SECOND);
    assert!(world.hosts[0].stack.is_empty());
}

/// What an operator sees of a connection before, during and after the loss of its only segment.
#[test]
fn a_view_has_the_state_and_the_numbers() {
    let mut world = World::new();
    assert_eq!(world.hosts[0].stack.places(), 0);
    let id = world.connect(v4(1), v4(2));
    let begun = world.hosts[0].stack.view(id.index(), world.now).unwrap();
    assert_eq!((begun.state, begun.info), (Some(StateName::SynSent), None));
    world.run(SECOND);
    world.hosts[0].write(id, b"lost", world.now);
    assert_eq!(world.hosts[0].frames(world.now).len(), 1);
    let view = world.hosts[0].stack.view(id.index(), world.now).unwrap();
    assert_eq!((view.id, view.state), (id, Some(StateName::Established)));
    let info = view.info.unwrap();
    assert_eq!((info.in_flight, info.retransmitted), (4, 0));
    // 1500 bytes without the headers of IPv4 and TCP, and without timestamps.
    assert_eq!((info.mss, info.ssthresh), (1448, u32::MAX));
    assert!(info.srtt >= Some(Micros(100)) && info.rttvar.is_some());
    assert!(info.snd_wnd > 0 && info.snd_wnd <= BUFFER, "{info:?}");
    world.run(SECOND);
    let view = world.hosts[0].stack.view(id.index(), world.now).unwrap();
    let info = view.info.unwrap();
    assert_eq!((info.in_flight, info.retransmitted), (0, 1));
    assert_eq!(world.hosts[0].stack.places(), 1);
    assert_eq!(world.hosts[0].stack.view(1, world.now), None);
}

/// Half a megabyte each way at once: more than both buffers.
#[test]
fn bulk_data_in_both_directions() {
    for (own, peer) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let mut world = World::new();
        let id = world.connect(own, peer);
        world.run(SECOND);
        let server = world.hosts[1].accepted()[0];
        let bytes = |seed: u64| -> Vec<u8> {
            let mut random = fastrand::Rng::with_seed(seed);
            (0..500_000).map(|_| random.u8(..)).collect()
        };
        let (up, down) = (bytes(1), bytes(2));
        world.hosts[0].write(id, &up, world.now);
        world.hosts[1].write(server, &down, world.now);
        world.run(Micros::from_secs(10));
        assert!(world.hosts[1].conversation(server).read == up);
        assert!(world.hosts[0].conversation(id).read == down);
        for (_, frame) in &world.seen {
            assert!(packet_bytes(frame) <= 1500);
        }
    }
}

fn packet_bytes(frame: &[u8]) -> usize {
    match read(frame).content {
        Content::Ip(packet) => packet.bytes.len(),
        Content::Arp(_) | Content::Other(_) => 0,
    }
}

#[test]
fn the_owner_refuses_ignores_and_accepts_later() {
    for (decision, reason) in [
        (Decision::Refuse, Some(CloseReason::Refused)),
        (Decision::Ignore, None),
        (Decision::Later, None),
    ] {
        let mut world = World::new();
        world.hosts[1].decision = decision;
        let id = world.connect(v4(1), v4(2));
        world.run(Micros::from_millis(500));
        let client = world.hosts[0].application.conversations.get(&id);
        assert_eq!(client.and_then(|one| one.closed()), reason, "{decision:?}");
        let answered = world
            .seen
            .iter()
            .any(|(host, frame)| *host == 1 && segment(frame).is_some());
        assert_eq!(answered, reason.is_some(), "{decision:?}");
        world.hosts[1].decision = Decision::Accept;
        world.run(Micros::from_secs(8));
        let is_established = world.hosts[0].conversation(id).is_established();
        // A SYN that was ignored comes again, and is accepted this time.
        assert_eq!(is_established, decision != Decision::Refuse, "{decision:?}");
    }
}

/// While the owner decides, the peer sends its SYN again, or gives up.
#[test]
fn a_peer_may_give_up_before_the_decision() {
    let mut world = World::new();
    world.hosts[1].decision = Decision::Later;
    let id = world.connect(v4(1), v4(2));
    world.run(Micros::from_secs(5));
    assert_eq!(world.hosts[1].application.incoming.len(), 1);
    let _ = world.hosts[0].stack.abort(id, world.now);
    world.run(Micros::from_secs(121));
    let server = world.hosts[1].accepted()[0];
    let closed = world.hosts[1].conversation(server).closed();
    assert_eq!(closed, Some(CloseReason::TimedOut));
    assert!(world.hosts[1].stack.is_empty());
    // The decision comes too late.
    world.hosts[1].decision = Decision::Accept;
    world.run(SECOND);
    assert!(world.hosts[1].stack.is_empty());
}

#[test]
fn connections_that_cannot_be() {
    let mut world = World::new();
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    for (own, peer, expected) in [
        (
            "10.0.0.9:0",
            "10.0.0.2:80",
            "10.0.0.9 is not an address of this host",
        ),
        (
            "10.0.0.1:0",
            "10.0.0.1:80",
            "10.0.0.1 is not the address of another host",
        ),
        (
            "10.0.0.1:0",
            "10.0.0.255:80",
            "10.0.0.255 is not the address of another host",
        ),
        (
            "10.0.0.1:0",
            "[2001:db8::2]:80",
            "2001:db8::2 is not the address of another host",
        ),
        ("10.0.0.1:0", "192.0.2.1:80", "no route to 192.0.2.1"),
    ] {
        let stack = &mut world.hosts[0].stack;
        let error = stack.connect(address(own), address(peer), BUFFER, world.now);
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
    let (own, peer) = (address("10.0.0.1:5000"), address("10.0.0.2:80"));
    let stack = &mut world.hosts[0].stack;
    stack.connect(own, peer, BUFFER, world.now).unwrap();
    let error = stack.connect(own, peer, BUFFER, world.now);
    let expected = "a connection from 10.0.0.1:5000 to 10.0.0.2:80 exists already";
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[test]
fn every_port_is_used_before_there_is_none() {
    let mut world = World::new();
    let (own, peer) = (SocketAddr::new(v4(1), 0), SocketAddr::new(v4(2), 80));
    let stack = &mut world.hosts[0].stack;
    for _ in 0..28_232 {
        stack.connect(own, peer, BUFFER, world.now).unwrap();
    }
    let error = stack.connect(own, peer, BUFFER, world.now);
    assert_eq!(
        error.unwrap_err().to_string(),
        "no free port for 10.0.0.2:80"
    );
}

#[test]
fn a_new_connection_follows_one_in_time_wait() {
    let mut world = World::new();
    let own = SocketAddr::new(v4(1), 5000);
    let peer = SocketAddr::new(v4(2), 80);
    for round in 0..5 {
        let stack = &mut world.hosts[0].stack;
        let id = stack.connect(own, peer, BUFFER, world.now).unwrap();
        world.run(SECOND);
        assert!(world.hosts[0].conversation(id).is_established(), "{round}");
        // The server closes first, so that TIME-WAIT is there.
        let server = world.hosts[1].accepted()[round];
        let _ = world.hosts[1].stack.close(server, world.now);
        world.run(SECOND);
        let _ = world.hosts[0].stack.close(id, world.now);
        world.run(SECOND);
        assert!(world.hosts[0].stack.is_empty());
        assert_eq!(world.hosts[1].stack.len(), 1);
    }
}

#[test]
fn the_oldest_in_time_wait_gives_way() {
    let config = Config {
        most_time_wait: 3,
        ..Config::default()
    };
    let mut world = World::of(config, Config::default());
    for _ in 0..10 {
        let id = world.connect(v4(1), v4(2));
        world.run(SECOND);
        let _ = world.hosts[0].stack.close(id, world.now);
        world.run(SECOND);
        let server = *world.hosts[1].accepted().last().unwrap();
        let _ = world.hosts[1].stack.close(server, world.now);
        world.run(SECOND);
    }
    assert_eq!(world.hosts[0].stack.len(), 3);
    assert_eq!(world.hosts[0].stack.counters().time_wait_overflow, 7);
    // The owner learns which connections have gone.
    let conversations = world.hosts[0].application.conversations.values();
    let ended = conversations.filter(|one| one.closed() == Some(CloseReason::Finished));
    assert_eq!(ended.count(), 7);
}

#[test]
fn idle_connections_have_no_timer() {
    let mut world = World::new();
    for _ in 0..10 {
        world.connect(v4(1), v4(2));
    }
    world.run(Micros::from_secs(100));
    for host in &world.hosts {
        assert_eq!(host.stack.len(), 10);
        assert_eq!(host.stack.next_timeout(), None);
    }
}

#[test]
fn frames_of_a_vlan_have_its_tag() {
    let mut world = World::new();
    let tags = Tags::One(Tag::vlan(7));
    for host in [1, 2] {
        let now = world.now;
        let stack = &mut world.hosts[usize::from(host) - 1].stack;
        stack.configure(network(host, tags, 1500), now).unwrap();
    }
    let id = world.connect(v6(1), v6(2));
    world.run(SECOND);
    assert!(world.hosts[0].conversation(id).is_established());
    for (_, frame) in &world.seen {
        assert_eq!(read(frame).link.tags, tags);
    }
}

/// Routes and neighbours change under a connection.
#[test]
fn a_connection_follows_a_change_of_the_network() {
    let mut world = World::new();
    let id = world.connect(v4(1), v4(2));
    world.run(SECOND);
    let changed = network(3, Tags::None, 1500);
    let mut changed = saiga_stack::Network {
        interfaces: vec![saiga_stack::Interface {
            addresses: network(2, Tags::None, 1500).interfaces[0].addresses.clone(),
            ..changed.interfaces[0].clone()
        }],
        ..changed
    };
    changed.routes.clear();
    let now = world.now;
    world.hosts[1].stack.configure(changed, now).unwrap();
    world.hosts[1].stack.announce();
    world.run(SECOND);
    world.hosts[0].write(id, b"after", world.now);
    world.run(Micros::from_secs(5));
    let server = world.hosts[1].accepted()[0];
    assert_eq!(world.hosts[1].conversation(server).read, b"after");
    let (_, last) = world.seen.last().unwrap();
    assert_eq!(read(last).link.source, mac(3));
    assert_eq!(packet(last).network.addresses().source(), v4(2));
}

/// RFC 3168: data can be marked if both hosts agree; acknowledgements cannot.
#[test]
fn data_is_sent_as_capable_of_congestion_marks() {
    let config = || {
        let mut config = Config::default();
        config.tcp.has_ecn = true;
        config
    };
    let mut world = World::of(config(), config());
    let id = world.connect(v6(1), v6(2));
    world.hosts[0].write(id, &[1; 5_000], world.now);
    world.run(SECOND);
    let segments = world
        .seen
        .iter()
        .filter_map(|(_, frame)| Some((segment(frame)?, packet(frame))));
    let mut with_data = 0;
    for (segment, packet) in segments {
        let expected = if segment.payload.is_empty() {
            Ecn::NotCapable
        } else {
            with_data += 1;
            Ecn::Capable0
        };
        assert_eq!(packet.network.traffic_class().ecn(), expected);
    }
    assert!(with_data >= 4);
}
