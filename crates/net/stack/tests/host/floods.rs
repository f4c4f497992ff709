//! Floods: what many packets of one kind may cost.

use saiga_stack::{Config, Instant, Micros, Presence};
use saiga_wire::frame::Network;
use saiga_wire::icmp::Echo;
use saiga_wire::ip::Protocol;
use saiga_wire::tcp::Flags;
use saiga_wire::{icmp4, ipv4};

use crate::frames::{icmp4_to, ip, raw, tcp};
use crate::world::{Decision, Host, World, mac, segment, v4, v6};

const NOW: Instant = Instant(2_000_000);
const BACKLOG: u32 = 16;

fn syn(peer: u16, port: u16) -> Vec<u8> {
    tcp((v4(9), v4(2)), (peer, port), (1, None), Flags::SYN)
}

fn host(has_cookies: bool) -> Host {
    let mut host = Host::new(2, Config::default());
    host.listen(BACKLOG, has_cookies);
    assert!(host.stack.set_neighbour(0, v4(9), mac(9), NOW));
    host
}

/// 100 times the queue: without cookies, the queue is all that is held.
#[test]
fn a_syn_flood_takes_the_backlog_only() {
    let mut host = host(false);
    for peer in 0..1_600 {
        let _verdict = host.on_frame(&syn(1_000 + peer, 80), NOW);
        host.work(NOW);
    }
    assert_eq!(host.stack.len(), BACKLOG);
    assert_eq!(
        host.stack.counters().syns_dropped,
        1_600 - u64::from(BACKLOG)
    );
}

/// With cookies, the flood holds the backlog, and another host is served all the same.
#[test]
fn service_continues_in_a_syn_flood() {
    for version in [4, 6] {
        let mut world = World::new();
        world.hosts[1] = host(true);
        for peer in 0..1_600 {
            let _verdict = world.hosts[1].on_frame(&syn(1_000 + peer, 80), world.now);
            if peer % 100 == 0 {
                world.run(Micros::from_millis(1));
            }
        }
        assert_eq!(world.hosts[1].stack.len(), BACKLOG);
        let (own, peer) = match version {
            4 => (v4(1), v4(2)),
            _ => (v6(1), v6(2)),
        };
        let id = world.connect(own, peer);
        world.hosts[0].write(id, &[b'x'; 3_000], world.now);
        world.run(Micros::from_secs(3));
        let server = *world.hosts[1].accepted().last().unwrap();
        assert_eq!(world.hosts[1].conversation(server).read, [b'x'; 3_000]);
        world.hosts[1].write(server, &[b'y'; 100_000], world.now);
        world.run(Micros::from_secs(3));
        assert_eq!(world.hosts[0].conversation(id).read.len(), 100_000);
        let counters = world.hosts[1].stack.counters().tcp;
        assert_eq!(counters.sync_cookies_recv, 1);
    }
}

/// The owner decides about connections with cookies, too.
#[test]
fn a_connection_with_a_cookie_can_be_refused() {
    let mut world = World::new();
    world.hosts[1] = host(true);
    world.hosts[1].decision = Decision::Later;
    for peer in 0..BACKLOG {
        let peer = 1_000 + u16::try_from(peer).unwrap();
        let _verdict = world.hosts[1].on_frame(&syn(peer, 80), world.now);
    }
    let id = world.connect(v4(1), v4(2));
    world.run(Micros::from_millis(10));
    // The client is established, and waits.
    assert!(world.hosts[0].conversation(id).is_established());
    world.hosts[1].decision = Decision::Refuse;
    world.run(Micros::from_millis(10));
    let closed = world.hosts[0].conversation(id).closed();
    assert_eq!(closed, Some(saiga_stack::CloseReason::Reset));
    assert!(world.hosts[1].stack.is_empty());
}

/// Bytes behind the acknowledgement of a cookie wait for the owner, and a reset is heard.
#[test]
fn what_follows_a_cookie_counts_before_the_decision() {
    for is_reset in [false, true] {
        let mut world = World::new();
        world.hosts[1] = host(true);
        for peer in 0..BACKLOG {
            let peer = 1_000 + u16::try_from(peer).unwrap();
            let _verdict = world.hosts[1].on_frame(&syn(peer, 80), world.now);
        }
        world.run(Micros::from_millis(1));
        world.hosts[1].decision = Decision::Later;
        let id = world.connect(v4(1), v4(2));
        world.run(Micros::from_millis(10));
        world.hosts[0].write(id, b"request", world.now);
        if is_reset {
            let now = world.now;
            let _events = world.hosts[0].stack.abort(id, now);
        }
        world.run(Micros::from_millis(10));
        let held = world.hosts[1].stack.len() - BACKLOG;
        assert_eq!(held, u32::from(!is_reset));
        let frames = world.seen.len();
        world.hosts[1].decision = Decision::Accept;
        world.run(Micros::from_millis(10));
        let server = *world.hosts[1].accepted().last().unwrap();
        if is_reset {
            let closed = world.hosts[1].conversation(server).closed();
            assert_eq!(closed, Some(saiga_stack::CloseReason::Reset));
        } else {
            assert_eq!(world.hosts[1].conversation(server).read, b"request");
            // It was not sent again.
            assert!(world.seen[frames..].iter().all(|(from, _)| *from == 1));
        }
    }
}

/// What a host that got no cookie sends is answered as ever.
#[test]
fn acknowledgements_without_a_valid_cookie_are_dropped() {
    let mut host = host(true);
    for peer in 0..100 {
        let _verdict = host.on_frame(&syn(1_000 + peer, 80), NOW);
    }
    host.frames(NOW);
    let mut resets = |port: u16, now| {
        for ack in 0..10_u32 {
            let numbers = (2, Some(ack.wrapping_mul(0x1234_5679)));
            let forged = tcp((v4(9), v4(2)), (port, 80), numbers, Flags::NONE);
            let _verdict = host.on_frame(&forged, now);
        }
        let frames = host.frames(now);
        let resets = frames.iter().filter(|(_, frame)| {
            segment(frame).is_some_and(|one| one.header.flags.contains(Flags::RST))
        });
        let failed = host.stack.counters().tcp.sync_cookies_failed;
        (resets.count(), failed)
    };
    assert_eq!(resets(5_000, NOW), (10, 0));
    assert_eq!(resets(1_099, NOW), (0, 10));
    // When the cookie cannot come any more.
    let later = NOW + Micros::from_secs(121);
    assert_eq!(resets(1_099, later), (10, 10));
}

/// The first segment behind a handshake with a cookie is lost: the data behind it must not end the
/// connection.
#[test]
fn data_behind_a_lost_cookie_waits_for_it() {
    let mut world = World::new();
    world.hosts[1] = host(true);
    for peer in 0..100 {
        let _verdict = world.hosts[1].on_frame(&syn(1_000 + peer, 80), world.now);
    }
    let id = world.connect(v4(1), v4(2));
    world.hosts[0].write(id, &[b'x'; 3_000], world.now);
    let mut lost = 0;
    let now = world.now;
    for _ in 0..5 {
        for (_, frame) in world.hosts[0].frames(now) {
            // The acknowledgement of the SYN comes with the first data.
            let is_cookie = segment(&frame).is_some_and(|one| one.header.ack.is_some());
            if is_cookie && lost < 2 {
                lost += 1;
                continue;
            }
            let _verdict = world.hosts[1].on_frame(&frame, now);
        }
        for (_, frame) in world.hosts[1].frames(now) {
            let _verdict = world.hosts[0].on_frame(&frame, now);
        }
    }
    assert_eq!(lost, 2);
    world.run(Micros::from_secs(3));
    let server = *world.hosts[1].accepted().last().unwrap();
    assert_eq!(world.hosts[1].conversation(server).read, [b'x'; 3_000]);
}

#[test]
fn there_are_no_more_connections_than_configured() {
    let config = Config {
        most_connections: 10,
        ..Config::default()
    };
    let mut host = Host::new(2, config);
    host.listen(100, false);
    assert!(host.stack.set_neighbour(0, v4(9), mac(9), NOW));
    for peer in 0..100 {
        let _verdict = host.on_frame(&syn(1_000 + peer, 80), NOW);
    }
    assert_eq!(host.stack.len(), 10);
    assert_eq!(host.stack.counters().table_full, 90);
}

/// Resets, errors and echo replies have limits.
#[test]
fn answers_are_limited() {
    let (peer, own) = (v4(9), v4(2));
    let request = icmp4::Message::EchoRequest(Echo {
        id: 1,
        sequence: 1,
        data: b"",
    });
    for (name, frame, most) in [
        ("resets", syn(1_000, 81), 50),
        ("errors", raw(&ip(peer, own, Protocol::UDP), &[0; 8]), 50),
        ("echo replies", icmp4_to(mac(2), (peer, own), &request), 200),
    ] {
        let mut host = host(false);
        let mut count = 0;
        for _ in 0..10_000 {
            let _verdict = host.on_frame(&frame, NOW);
            count += host.frames(NOW).len();
        }
        assert_eq!(count, most, "{name}");
        let limited = host.stack.counters().answers_limited;
        assert_eq!(limited, 10_000 - most as u64, "{name}");
    }
}

/// Fragments that never become a packet.
#[test]
fn fragments_have_limits_and_end() {
    let config = Config {
        presence: Presence::Alone,
        ..Config::default()
    };
    let mut host = Host::new(2, config);
    assert!(host.stack.set_neighbour(0, v4(9), mac(9), NOW));
    for id in 0..10_000 {
        let Network::V4(header) = ip(v4(9), v4(2), Protocol::UDP) else {
            panic!()
        };
        let header = ipv4::Header {
            id,
            more_fragments: true,
            ..header
        };
        let _verdict = host.on_frame(&raw(&Network::V4(header), &[0; 1_000]), NOW);
    }
    let counters = host.stack.counters();
    assert_eq!(counters.fragments_evicted, 10_000 - 8);
    let later = NOW + Micros::from_secs(31);
    host.stack.on_timeout(later, &mut host.application);
    assert_eq!(host.stack.counters().fragments_expired, 8);
    assert_eq!(host.frames(later).len(), 8);
    assert_eq!(host.stack.next_timeout(), None);
}

/// Random frames, and good ones with damaged bytes: nothing panics, and nothing grows.
#[test]
fn garbage_is_survived() {
    let seed = 1;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut world = World::new();
    let id = world.connect(v4(1), v4(2));
    world.hosts[0].write(id, &[7; 50_000], world.now);
    world.run(Micros::from_millis(2));
    let other = world.connect(v6(1), v6(2));
    world.hosts[0].write(other, &[8; 50_000], world.now);
    world.run(Micros::from_secs(2));
    let frames: Vec<Vec<u8>> = world.seen.iter().map(|(_, frame)| frame.clone()).collect();
    for round in 0..100_000_u32 {
        let mut frame = frames[random.usize(..frames.len())].clone();
        for _ in 0..random.usize(..4) {
            let at = random.usize(..frame.len());
            frame[at] = random.u8(..);
        }
        if random.u8(..10) == 0 {
            frame.truncate(random.usize(..frame.len()));
        }
        let host = random.usize(..2);
        let _verdict = world.hosts[host].on_frame(&frame, world.now);
        if round % 64 == 0 {
            world.run(Micros::from_millis(random.u64(..50)));
        }
    }
    for host in &world.hosts {
        assert!(host.stack.len() <= 40, "{}", host.stack.len());
    }
}
