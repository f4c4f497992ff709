//! Peers that break the protocol: the device ends the connection, and serves the next peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use saiga_netdev::Device as _;
use saiga_netdev::memif::Memif;
use saiga_wire::virtio::Header;

use crate::raw::{REGION, Raw, Said, Shared, buffer, connected, init, message, region, ring};
use crate::world::{World, frame, received, send, step};

/// A message replaced, and what the peer is told.
type Change = (usize, Vec<Said>, &'static str);

/// What a client may not say, in place of the message with this number.
fn changes(shared: &Shared) -> Vec<Change> {
    let file = || shared.0.try_clone().unwrap();
    let many = |count: u8| {
        (0..count)
            .map(|n| region(n, 64, file()))
            .collect::<Vec<_>>()
    };
    vec![
        (
            0,
            vec![Said(message(&[(0, &[99])]), None)],
            "what is not a message",
        ),
        (0, vec![Said(vec![3; 64], None)], "what is not a message"),
        (0, vec![Said(vec![3; 200], None)], "what is not a message"),
        (0, vec![connected()], "without a ring in each"),
        (0, vec![region(0, REGION, file())], "too early"),
        (0, vec![init(0x300, 3, 0)], "version"),
        (0, vec![init(0x200, 4, 0)], "another id"),
        (0, vec![init(0x200, 3, 1)], "not Ethernet"),
        (1, vec![init(0x200, 3, 0)], "too early"),
        (
            1,
            vec![Said(region(0, REGION, file()).0, None)],
            "lacks its descriptor",
        ),
        (1, vec![region(1, REGION, file())], "in their order"),
        (1, vec![region(0, 0, file())], "have no bytes"),
        (1, vec![region(0, (1 << 30) + 1, file())], "more than 1 GiB"),
        (
            1,
            vec![region(0, REGION + 1, file())],
            "larger than its memfd",
        ),
        (
            1,
            vec![region(0, REGION, Shared::unsealed().0)],
            "F_SEAL_SHRINK",
        ),
        (
            1,
            vec![region(0, 64, std::io::pipe().unwrap().0)],
            "not a memfd of ordinary pages",
        ),
        (
            1,
            vec![region(0, 64, tempfile::tempfile().unwrap())],
            "a region is not",
        ),
        (1, many(17), "more than 16 regions"),
    ]
}

/// The same for rings.
fn changes_of_rings() -> Vec<Change> {
    let to_server = |numbers, at, shift, header| ring(1, numbers, at, shift, header);
    let with = |other| Said(to_server([0, 0], 0, 3, 0).0, other);
    let pipe = Arc::new(std::io::pipe().unwrap().1.into());
    let set = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC);
    let set = Arc::new(set.unwrap());
    vec![
        (2, vec![with(None)], "lacks its descriptor"),
        (2, vec![with(Some(pipe))], "not an eventfd"),
        (2, vec![with(Some(set))], "not an eventfd"),
        (2, vec![to_server([1, 0], 0, 3, 0)], "more than one ring"),
        (2, vec![to_server([0, 0], 0, 0, 0)], "descriptors"),
        (2, vec![to_server([0, 0], 0, 15, 0)], "descriptors"),
        (2, vec![to_server([0, 0], 0, 3, 12)], "not those of virtio"),
        (2, vec![to_server([0, 0], 0, 3, 10)], "one direction alone"),
        (2, vec![to_server([0, 5], 0, 3, 0)], "not in its region"),
        (
            2,
            vec![to_server([0, 0], REGION - 128, 3, 0)],
            "not in its region",
        ),
        (
            2,
            vec![to_server([0, 0], u64::from(u32::MAX - 7), 3, 0)],
            "not in its region",
        ),
        (2, vec![to_server([0, 0], 4, 3, 0)], "not aligned"),
        (2, vec![to_server([0, 0], 64, 3, 0)], "cookie"),
        (3, vec![to_server([0, 0], 0, 3, 0)], "more than one ring"),
        (5, vec![connected()], "over a connected link"),
    ]
}

#[test]
fn a_client_that_breaks_a_rule_is_told_and_the_next_one_is_served() {
    let world = World::new();
    let mut server = world.server(64);
    let shared = Shared::new();
    let mut changes = changes(&shared);
    changes.extend(changes_of_rings());
    let count = u64::try_from(changes.len()).unwrap();
    for (number, change, expected) in changes {
        let peer = Raw::connect(&world.socket());
        step(&mut server);
        let mut all = shared.messages();
        all.splice(number..(number + 1).min(all.len()), change);
        peer.negotiate(&mut server, &all);
        let told = peer.told().unwrap_or_default();
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(!server.is_up(), "{expected}");
    }
    assert_eq!(server.counters().drops.malformed, count);
    let mut pair = [server, world.client(64)];
    crate::world::connect(&mut pair);
}

/// Changes of the rings, with what the peer is told.
type Break = (&'static str, fn(&Shared));

const BREAKS: &[Break] = &[
    ("beyond the end", |shared| shared.publish(0, 9)),
    ("beyond the end", |shared| shared.publish(0, u16::MAX)),
    ("beyond the end", |shared| shared.publish(1, 9)),
    ("not in a region", |shared| {
        shared.describe(0, 0, [0, 9], 60, 0)
    }),
    ("not in a region", |shared| {
        shared.describe(0, 0, [0, 0], 60, REGION - 59);
    }),
    ("not in a region", |shared| {
        shared.describe(0, 0, [0, 0], 60, u64::from(u32::MAX));
    }),
    ("longer than the largest", |shared| {
        shared.describe(0, 0, [0, 0], u32::MAX, 0);
    }),
    ("no last buffer", |shared| {
        (0..8).for_each(|slot| shared.describe(0, slot, [1, 0], 60, 0));
    }),
    ("no bytes", |shared| shared.describe(1, 0, [0, 0], 0, 0)),
    ("lent buffer is not", |shared| {
        shared.describe(1, 0, [0, 9], 256, 0)
    }),
    ("lent buffer is not", |shared| {
        shared.describe(1, 0, [0, 0], 256, REGION - 59);
    }),
];

#[test]
fn a_ring_that_breaks_a_rule_ends_the_link() {
    let world = World::new();
    let mut server = world.server(64);
    for (number, (expected, change)) in (1..).zip(BREAKS) {
        let shared = Shared::new();
        let peer = Raw::up(&world, &mut server, &shared);
        shared.publish(0, 8);
        change(&shared);
        assert!(send(&mut server, &frame(60, 0), &Header::NONE));
        server.flush().unwrap();
        received(&mut server);
        let told = peer.told().unwrap_or_default();
        assert!(told.contains(expected), "{number}: {expected}: {told}");
        assert!(!server.is_up());
        assert_eq!(server.counters().drops.malformed, number);
    }
}

/// The memory changes at any moment, and each byte can have any value. Goes on until there were
/// frames and broken rules.
#[test]
fn memory_that_changes_all_the_time_does_no_harm() {
    let world = World::new();
    let mut server = world.server(64);
    let has_seen_both = |server: &Memif| {
        let counters = server.counters();
        counters.received.frames > 0 && counters.drops.malformed > 0
    };
    for seed in 0.. {
        if seed >= 40 && has_seen_both(&server) {
            return;
        }
        assert!(seed < 10_000, "{:?}", server.counters());
        let shared = Arc::new(Shared::new());
        let peer = Raw::up(&world, &mut server, &shared);
        let is_done = Arc::new(AtomicBool::new(false));
        let writer = thread::spawn({
            let (shared, is_done) = (Arc::clone(&shared), Arc::clone(&is_done));
            move || scribble(seed, &shared, &is_done)
        });
        for number in 0..2_000 {
            received(&mut server);
            send(&mut server, &frame(60, number), &Header::NONE);
            server.flush().unwrap();
            if !server.is_up() {
                break;
            }
        }
        is_done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        // Ends the connection if no rule was broken.
        drop(peer);
        step(&mut server);
    }
}

/// Writes plausible descriptors and positions, and now and then any.
fn scribble(seed: u64, shared: &Shared, is_done: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !is_done.load(Ordering::Relaxed) {
        let (direction, slot) = (random.usize(..2), random.u64(..8));
        let length = if random.u8(..) == 0 {
            random.u32(..)
        } else {
            random.u32(1..=256)
        };
        let flags = [random.u16(..2) & random.u16(..2), random.u16(..300) / 299];
        shared.describe(direction, slot, flags, length, buffer(direction, slot));
        let ahead = if random.u8(..) == 0 {
            random.u16(..)
        } else {
            random.u16(..8)
        };
        shared.publish(direction, shared.tail(direction).wrapping_add(ahead));
    }
}

/// What a server may not say to a client, after its messages so far.
#[test]
fn a_server_that_breaks_a_rule_is_left() {
    let world = World::new();
    let listener = world.listener();
    let hello = |versions: [u8; 4]| {
        let bytes = message(&[(0, &[2]), (34, &versions), (44, &[10])]);
        Said(bytes, None)
    };
    let good = || hello([0, 2, 0, 2]);
    let ack = || Said(message(&[(0, &[1])]), None);
    let connected = || Said(message(&[(0, &[7])]), None);
    for (said, expected) in [
        (vec![hello([0, 3, 0, 3])], "version"),
        (vec![ack()], "too early"),
        (vec![connected()], "too early"),
        (vec![good(), connected()], "too early"),
        (vec![good(), good()], "too early"),
        (vec![good(), ack(), ack(), ack(), ack(), ack()], "too early"),
        (
            vec![good(), Said(vec![0; 5], None)],
            "what is not a message",
        ),
    ] {
        let mut client = world.client(64);
        let server = Raw::accept(&listener);
        server.negotiate(&mut client, &said);
        let told = server.told().unwrap_or_default();
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(!client.is_up());
    }
    // The ring to the client, behind that to the server.
    const RING: u64 = 128 + 16 * 64;
    let changes: [Break; 2] = [
        ("beyond the end", |shared| shared.put(RING + 64, &[65, 0])),
        ("more bytes than it was lent", |shared| {
            shared.put(RING + 128 + 4, &[1, 8, 0, 0]);
            shared.put(RING + 64, &[1, 0]);
        }),
    ];
    for (expected, change) in changes {
        let mut client = world.client(64);
        let server = Raw::accept(&listener);
        server.say(&good());
        let mut file = None;
        for number in 0..5 {
            step(&mut client);
            file = file.or(server.hear().unwrap().1);
            server.say(&if number < 4 { ack() } else { connected() });
        }
        step(&mut client);
        assert!(client.is_up());
        change(&Shared(file.unwrap().try_clone().unwrap().into()));
        received(&mut client);
        let told = server.told().unwrap_or_default();
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(!client.is_up());
    }
}
