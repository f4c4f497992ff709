//! Peers that come, go and are foreign.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use saiga_netdev::Device as _;
use saiga_wire::checksum::Sum;
use saiga_wire::virtio::{ChecksumPlace, Header, Segmentation, Version};

use crate::raw::{BUFFER, Raw, Shared, buffer};
use crate::world::{World, connect, frame, is_readable, received, send, sleep, step};

#[test]
fn a_peer_that_has_ended_is_replaced() {
    let world = World::new();
    let [mut server, client] = world.pair(64);
    drop(client);
    step(&mut server);
    assert!(!server.is_up());
    assert!(send(&mut server, &frame(60, 0), &Header::NONE));
    server.flush().unwrap();
    assert_eq!(server.counters().drops.down, 1);
    let mut pair = [server, world.client(128)];
    connect(&mut pair);
    let [server, mut client] = pair;
    drop(server);
    std::fs::remove_file(world.socket()).unwrap();
    step(&mut client);
    assert!(!client.is_up());
    let mut server = world.server(64);
    // The client's timer, and the messages.
    loop {
        step(&mut client);
        step(&mut server);
        if client.is_up() && server.is_up() {
            break;
        }
        sleep(&[&client, &server]);
    }
    assert!(send(&mut client, &frame(60, 1), &Header::NONE));
    client.flush().unwrap();
    assert_eq!(received(&mut server), [(frame(60, 1), Header::NONE)]);
}

#[test]
fn a_silent_peer_does_not_block_others_and_a_link_has_one_peer() {
    let world = World::new();
    let mut server = world.server(64);
    let silent = Raw::connect(&world.socket());
    step(&mut server);
    assert_eq!(silent.hear().unwrap().0[0], 2, "hello");
    let mut pair = [server, world.client(64)];
    connect(&mut pair);
    let late = Raw::connect(&world.socket());
    step(&mut pair[0]);
    assert!(late.told().unwrap().contains("another peer is connected"));
    assert!(pair[0].is_up());
}

/// Needs root: a thread becomes another user, and may reach the socket.
#[test]
fn a_peer_of_another_user_is_refused() {
    let world = World::new();
    let mut server = world.server(64);
    let path = world.socket();
    for (place, mode) in [(path.parent().unwrap(), 0o755), (&*path, 0o666)] {
        std::fs::set_permissions(place, Permissions::from_mode(mode)).unwrap();
    }
    let late = thread::spawn(move || {
        let other = Uid::from_raw(4711);
        set_thread_res_uid(other, other, other).unwrap();
        Raw::connect(&path)
    });
    let late = late.join().unwrap();
    step(&mut server);
    assert_eq!(late.told(), None);
    late.negotiate(&mut server, &Shared::new().messages());
    assert!(!server.is_up());
}

/// A segment of TCP in IPv4 with 100 bytes of payload, its header, and what its parts become.
fn super_segment() -> (Vec<u8>, Header) {
    let mut bytes = vec![0; 154];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14..34].copy_from_slice(&[
        0x45, 0, 0, 140, 0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    // From sequence number 0xffff_fff0 on, with CWR, PSH, ACK and FIN.
    bytes[38..42].copy_from_slice(&[0xff, 0xff, 0xff, 0xf0]);
    bytes[46..48].copy_from_slice(&[0x50, 0x99]);
    (0..100_u8)
        .zip(&mut bytes[54..])
        .for_each(|(n, byte)| *byte = n);
    let header = Header {
        checksum: Some(ChecksumPlace {
            start: 34,
            offset: 16,
        }),
        verified: false,
        segmentation: Some(Segmentation {
            version: Version::V4,
            ecn: true,
            headers_bytes: 54,
            segment_bytes: 40,
        }),
    };
    (bytes, header)
}

/// The frames that a raw client has got.
fn frames(shared: &Shared) -> Vec<Vec<u8>> {
    let mut frames = vec![Vec::new()];
    for slot in 0..u64::from(shared.tail(1)) {
        let descriptor: [u8; 16] = shared.get(crate::raw::RINGS[1] + 128 + slot * 16);
        let length = usize::from(u16::from_ne_bytes([descriptor[4], descriptor[5]]));
        let bytes: [u8; 256] = shared.get(buffer(1, slot));
        frames.last_mut().unwrap().extend(&bytes[..length]);
        if descriptor[0] & 1 == 0 {
            frames.push(Vec::new());
        }
    }
    frames.pop();
    frames
}

#[test]
fn a_foreign_peer_gets_whole_segments_with_checksums_in_its_buffers() {
    let world = World::new();
    let mut server = world.server(64);
    let shared = Shared::new();
    let _peer = Raw::up(&world, &mut server, &shared);
    let (bytes, header) = super_segment();
    assert!(send(&mut server, &bytes, &header));
    let long = frame(700, 5);
    assert!(send(&mut server, &long, &Header::NONE));
    server.flush().unwrap();
    let got = frames(&shared);
    assert_eq!(got.len(), 4);
    assert_eq!(got[3], long);
    let fields = got[..3].iter().map(|one| {
        let field = |at: usize| u16::from_be_bytes([one[at], one[at + 1]]);
        (
            one.len(),
            field(16),
            field(18),
            [field(38), field(40)],
            one[47],
        )
    });
    let expected = [
        (94, 80, 0xffff, [0xffff, 0xfff0], 0x90),
        (94, 80, 0, [0, 24], 0x10),
        (74, 60, 1, [0, 64], 0x19),
    ];
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    for (one, payload) in got.iter().zip(bytes[54..].chunks(40)) {
        assert_eq!(&one[54..], payload);
        assert!(Sum::of(&one[14..34]).is_valid());
        let length = u16::try_from(one.len() - 34).unwrap();
        let pseudo = Sum::of(&one[26..34]).u16(6).u16(length);
        assert!(pseudo.bytes(&one[34..]).is_valid());
    }
    // In the other direction, a frame in three buffers.
    let long = frame(700, 6);
    for (slot, part) in (0..).zip(long.chunks(BUFFER as usize)) {
        shared.put(buffer(0, slot), part);
        let length = u32::try_from(part.len()).unwrap();
        shared.describe(0, slot, [u16::from(slot < 2), 0], length, buffer(0, slot));
    }
    shared.publish(0, 3);
    assert_eq!(received(&mut server), [(long, Header::NONE)]);
    assert_eq!(shared.tail(0), 3);
}

/// Segments that find no room wait in the device.
#[test]
fn a_super_segment_goes_on_when_the_peer_has_room() {
    let world = World::new();
    let mut server = world.server(64);
    let shared = Shared::new();
    let _peer = Raw::up(&world, &mut server, &shared);
    let (bytes, mut header) = super_segment();
    if let Some(one) = &mut header.segmentation {
        one.segment_bytes = 10;
    }
    assert!(send(&mut server, &bytes, &header));
    server.flush().unwrap();
    assert_eq!(frames(&shared).len(), 8);
    assert!(server.room().is_none());
    for slot in 0..2 {
        shared.describe(1, slot, [0, 0], 256, buffer(1, slot));
    }
    shared.publish(1, 10);
    server.flush().unwrap();
    assert_eq!(shared.tail(1), 10);
    assert!(server.room().is_some());
    assert_eq!(server.counters().sent.frames, 1);
    // A checksum is formed once, however often there is no room.
    let (bytes, mut header) = super_segment();
    header.segmentation = None;
    assert!(send(&mut server, &bytes, &header));
    // With the flush, an even number of attempts: a sum that is formed twice is wrong.
    (0..2).for_each(|_| assert!(server.room().is_none()));
    shared.describe(1, 2, [0, 0], 256, buffer(1, 2));
    shared.publish(1, 11);
    server.flush().unwrap();
    let got: [u8; 154] = shared.get(buffer(1, 2));
    assert!(Sum::of(&got[34..]).is_valid());
    assert_ne!(got[50..52], [0, 0]);
}

/// The eventfd of a link that has ended wakes nobody, although its peer still has it.
#[test]
fn the_eventfd_of_a_former_peer_is_without_effect() {
    let world = World::new();
    let mut server = world.server(64);
    let all = Shared::new().messages();
    let peer = Raw::connect(&world.socket());
    step(&mut server);
    peer.negotiate(&mut server, &all);
    assert!(server.is_up());
    let bell = all[2].1.as_ref().unwrap();
    let ring = || rustix::io::write(bell, &1_u64.to_ne_bytes()).unwrap();
    ring();
    assert!(is_readable(&server));
    drop(peer);
    step(&mut server);
    ring();
    assert!(!server.is_up() && !is_readable(&server));
}
