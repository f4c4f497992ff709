//! Devices that form checksums and divide super-segments.

use saiga_stack::{Config, Micros, Offload, Segmentation};
use saiga_wire::frame::{Content, Frame, Packet, Transport};
use saiga_wire::offload::{ChecksumState, Fill, complete};
use saiga_wire::virtio;

use crate::world::{World, v4, v6};

fn with_tso() -> Config {
    Config {
        offload: Offload {
            checksum: Fill::PseudoHeader,
            segmentation: Some(Segmentation {
                checksum: Fill::PseudoHeader,
                most_bytes: 64_000,
            }),
        },
        ..Config::default()
    }
}

/// The virtio header says where the checksum is, and how the device divides.
#[test]
fn super_segments_leave_with_what_the_device_needs() {
    for (own, peer, headers) in [(v4(1), v4(2), 66), (v6(1), v6(2), 86)] {
        // Neighbours are found first, by a host without offloads.
        let mut world = World::of(with_tso(), Config::default());
        let id = world.connect(own, peer);
        let mut to_server = Vec::new();
        for _ in 0..6 {
            pump(&mut world, &mut to_server);
        }
        assert!(world.hosts[0].conversation(id).is_established());
        to_server.clear();
        world.hosts[0].write(id, &[7; 14_000], world.now);
        pump(&mut world, &mut to_server);
        let (offload, frame) = to_server
            .iter()
            .max_by_key(|(_, frame)| frame.len())
            .unwrap();
        assert!(frame.len() > 10_000, "{}", frame.len());
        let segmentation = offload.segmentation.unwrap();
        assert_eq!(usize::from(segmentation.headers_bytes), headers);
        assert_eq!(usize::from(segmentation.segment_bytes), 1514 - headers);
        let place = offload.checksum.unwrap();
        let mut whole = frame.clone();
        complete(&mut whole, place.start.into(), place.offset.into()).unwrap();
        let parsed = Frame::parse(&whole, ChecksumState::Verify).unwrap();
        assert!(matches!(
            parsed.content,
            Content::Ip(Packet {
                transport: Transport::Tcp(_),
                ..
            })
        ));
    }
}

/// The options of a segment count: one of 1,452 bytes of payload would be four bytes too long.
#[test]
fn without_offloads_no_frame_exceeds_the_mtu() {
    for (own, peer, most) in [(v4(1), v4(2), 1_448), (v6(1), v6(2), 1_428)] {
        for more in 1..=12 {
            let mut world = World::new();
            let id = world.connect(own, peer);
            let mut to_server = Vec::new();
            for _ in 0..6 {
                pump(&mut world, &mut to_server);
            }
            to_server.clear();
            world.hosts[0].write(id, &vec![7; most + more], world.now);
            pump(&mut world, &mut to_server);
            let largest = to_server.iter().map(|(_, frame)| frame.len()).max();
            assert_eq!(largest, Some(1_514), "{more} bytes more");
        }
    }
}

/// Lets one batch of frames pass in each direction; those of the first host are kept.
fn pump(world: &mut World, to_server: &mut Vec<(virtio::Header, Vec<u8>)>) {
    for (outgoing, frame) in world.hosts[0].frames(world.now) {
        let state = outgoing.offload.checksum_state();
        let server = &mut world.hosts[1];
        let _verdict = server
            .stack
            .on_frame(&frame, state, world.now, &mut server.application);
        to_server.push((outgoing.offload, frame));
    }
    for (_, frame) in world.hosts[1].frames(world.now) {
        let _verdict = world.hosts[0].on_frame(&frame, world.now);
    }
    world.now = world.now + Micros(100);
}
