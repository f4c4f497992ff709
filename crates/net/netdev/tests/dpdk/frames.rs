//! Frames between two ports, the descriptor, a full queue, and a port whose link goes down.

use std::num::NonZeroU16;

use saiga_netdev::dpdk::Options;
use saiga_netdev::{Device as _, LARGEST_FRAME_BYTES};
use saiga_wire::virtio::{ChecksumPlace, Header};

use crate::world::{dpdk, frame, open, options, receive, send, wait};

/// Two ports of shared memory, connected. Their buffers are smaller than a frame, so that longer
/// frames arrive as chains.
fn pair(name: &str) -> [saiga_netdev::dpdk::Queue; 2] {
    let common = format!("socket=@saiga-{}-{name},bsize=512", std::process::id());
    let server = open(&format!("net_memif_{name}_s,role=server,{common}"));
    let client = open(&format!("net_memif_{name}_c,role=client,{common}"));
    let mut pair = [server, client];
    // Frames before the connection are dropped.
    while pair[1].counters().sent.frames == 0 {
        assert!(send(&mut pair[1], &frame(60, 0)));
        pair[1].flush().unwrap();
        wait(&pair[1]);
        pair[1].receive(1, &mut |_| {}).unwrap();
    }
    assert_eq!(receive(&mut pair[0], 1), [frame(60, 0)]);
    pair
}

#[test]
fn what_a_port_sends_its_peer_receives() {
    let [mut near, mut far] = pair("one");
    let before = near.counters().sent;
    // One buffer of the link, several, and an exact number.
    let lengths = [60, 512, 513, 1_024, 1_514];
    let sent: Vec<_> = (1..)
        .zip(lengths)
        .map(|(n, bytes)| frame(bytes, n))
        .collect();
    for frame in &sent {
        assert!(send(&mut near, frame));
    }
    assert_eq!(near.counters().sent, before, "nothing before the flush");
    near.flush().unwrap();
    assert_eq!(receive(&mut far, 5), sent);
    let counters = near.counters();
    assert_eq!(counters.sent.frames, before.frames + 5);
    assert_eq!(counters.sent.bytes, before.bytes + 3_623);
    assert_eq!(counters.sent.batches, before.batches + 1);
    let counters = far.counters();
    assert!(counters.received.bytes >= 3_623, "{counters:?}");
    assert!(far.is_polled());
}

/// The checksum of a frame is formed here where the port does not do it.
#[test]
fn an_open_checksum_is_completed() {
    let [mut near, mut far] = pair("sum");
    let mut bytes = vec![0; 60];
    bytes[12] = 8;
    bytes[50] = 0x12;
    near.room().unwrap()[..60].copy_from_slice(&bytes);
    let place = ChecksumPlace {
        start: 34,
        offset: 16,
    };
    near.send(
        60,
        &Header {
            checksum: Some(place),
            ..Header::NONE
        },
    );
    near.flush().unwrap();
    bytes[50..52].copy_from_slice(&[0xed, 0xff]);
    assert_eq!(receive(&mut far, 1), [bytes]);
}

#[test]
fn a_full_queue_has_no_room_until_its_peer_receives() {
    let [mut near, mut far] = pair("full");
    let mut sent = 0;
    while send(&mut near, &frame(60, 1)) {
        near.flush().unwrap();
        sent += 1;
        assert!(sent < 10_000);
    }
    assert!(near.room().is_none());
    let most = 64;
    assert_eq!(receive(&mut far, most).len(), most);
    near.flush().unwrap();
    assert!(near.room().is_some());
    assert_eq!(receive(&mut far, sent - most).len(), sent - most);
    assert_eq!(near.counters().drops.refused, 0);
}

#[test]
fn frames_are_dropped_while_the_peer_is_away() {
    let [mut near, far] = pair("away");
    drop(far);
    while near.counters().drops.down == 0 {
        assert!(send(&mut near, &frame(60, 1)));
        near.flush().unwrap();
        wait(&near);
        near.receive(64, &mut |_| {}).unwrap();
    }
}

#[test]
fn lengths_that_no_frame_has_are_refused() {
    let mut port = open("net_ring_lengths");
    for length in [13, port.room().unwrap().len() + 1, LARGEST_FRAME_BYTES + 1] {
        port.send(length, &Header::NONE);
    }
    port.flush().unwrap();
    let counters = port.counters();
    assert_eq!((counters.sent.frames, counters.drops.refused), (0, 3));
}

/// Cards with several queues need hardware; here, each queue makes its frames itself.
#[test]
fn each_queue_is_a_device() {
    let two = Options {
        queues: NonZeroU16::new(2).unwrap(),
        ..options("net_null_queues")
    };
    let mut queues = dpdk().open(&two).unwrap();
    let numbers: Vec<u16> = queues.iter().map(|queue| queue.info().queue).collect();
    assert_eq!(numbers, [0, 1]);
    for queue in &mut queues {
        let mut bytes = 0;
        let taken = queue.receive(100, &mut |frame| bytes += frame.bytes.len());
        assert_eq!((taken.unwrap(), bytes), (100, 6_400));
    }
}

/// With confined threads, a gateway gives up the rights of this one, too.
#[test]
fn work_runs_on_the_thread_of_dpdk() {
    let name = || std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    let own = name();
    let other = dpdk().on_thread(name).unwrap();
    assert_ne!(other, own);
    assert!(other.starts_with("eal-intr"), "{other}");
}
