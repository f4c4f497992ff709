//! Frames between two ends of Saiga: sizes, full rings, offloads.

use std::collections::VecDeque;

use saiga_netdev::{Device as _, LARGEST_FRAME_BYTES};
use saiga_wire::virtio::{ChecksumPlace, Header, Segmentation, Version};

use crate::world::{World, frame, received, send};

/// Thousands of frames of random lengths, so that positions wrap, rings fill up, and most frames
/// take several buffers.
#[test]
fn frames_arrive_whole_and_in_order_in_both_directions() {
    let world = World::new();
    let mut pair = world.pair(64);
    let mut random = fastrand::Rng::with_seed(7);
    let mut on_way: [VecDeque<Vec<u8>>; 2] = Default::default();
    let mut full = 0;
    for number in 0..20_000 {
        let from = usize::from(random.bool());
        let longest = if random.u8(..) < 8 {
            LARGEST_FRAME_BYTES
        } else {
            5_000
        };
        let bytes = frame(random.usize(14..=longest), number);
        if send(&mut pair[from], &bytes, &Header::NONE) {
            on_way[from].push_back(bytes);
        } else {
            full += 1;
            pair[from].flush().unwrap();
        }
        if random.u8(..) < 40 {
            pair[from].flush().unwrap();
            for (bytes, offload) in received(&mut pair[1 - from]) {
                assert_eq!(Some(bytes), on_way[from].pop_front());
                assert_eq!(offload, Header::NONE);
            }
        }
    }
    for from in [0, 1] {
        // The first flush may have room for all but the frame that waits for room.
        while !on_way[from].is_empty() {
            pair[from].flush().unwrap();
            for (bytes, _) in received(&mut pair[1 - from]) {
                assert_eq!(Some(bytes), on_way[from].pop_front());
            }
        }
        let drops = pair[from].counters().drops;
        assert!(
            drops.named().iter().all(|(_, count)| *count == 0),
            "{drops:?}"
        );
    }
    let [near, far] = [&pair[0], &pair[1]].map(|end| end.counters());
    assert_eq!(near.sent.frames, far.received.frames);
    assert_eq!(near.sent.bytes, far.received.bytes);
    assert!(full > 50 && near.sent.frames > 5_000, "{full}: {near:?}");
}

#[test]
fn nothing_is_seen_before_the_flush_and_offloads_pass_as_they_are() {
    let world = World::new();
    let [mut near, mut far] = world.pair(256);
    let header = Header {
        checksum: Some(ChecksumPlace {
            start: 34,
            offset: 16,
        }),
        verified: false,
        segmentation: Some(Segmentation {
            version: Version::V4,
            ecn: false,
            headers_bytes: 66,
            segment_bytes: 1_448,
        }),
    };
    let bytes = frame(65_000, 1);
    assert!(send(&mut near, &bytes, &header));
    assert!(received(&mut far).is_empty());
    near.flush().unwrap();
    assert_eq!(received(&mut far), [(bytes, header)]);
    assert_eq!(near.counters().sent.batches, 1);
    assert_eq!(far.counters().received.batches, 1);
}

#[test]
fn lengths_that_no_frame_has_are_refused_and_headers_checked() {
    let world = World::new();
    let [mut near, mut far] = world.pair(64);
    for length in [13, LARGEST_FRAME_BYTES + 1] {
        near.send(length, &Header::NONE);
    }
    assert_eq!(near.counters().drops.refused, 2);
    let outside = Header {
        checksum: Some(ChecksumPlace {
            start: 50,
            offset: 16,
        }),
        ..Header::NONE
    };
    assert!(send(&mut near, &frame(60, 0), &outside));
    near.flush().unwrap();
    assert!(received(&mut far).is_empty());
    assert_eq!(far.counters().drops.malformed, 1);
    assert!(far.is_up(), "the frame is dropped, and the link stays");
}
