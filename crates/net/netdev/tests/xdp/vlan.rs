//! VLAN tags: the client is an AF_XDP queue, too, which sends and gets frames as they are.

use saiga_netdev::Device as _;
use saiga_netdev::xdp::{Interface, Options, Queue};
use saiga_wire::checksum::Sum;
use saiga_wire::ethernet::{Header, Mac, Tag, Tags};
use saiga_wire::frame::{Content, Frame, Transport};
use saiga_wire::offload::ChecksumState;
use saiga_wire::tcp::Flags;
use saiga_wire::{SeqNum, virtio};

use crate::service::start;
use crate::world::{World, wait};

/// A SYN from port 5000 of the client to port 7 of the host, in VLAN 5.
fn syn(from: Mac, to: Mac) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0];
    ip.extend([10, 77, 0, 2, 10, 77, 0, 1]);
    let checksum = Sum::of(&ip).checksum();
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut tcp = vec![
        0x13, 0x88, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 4, 0, 0, 0, 0, 0,
    ];
    let sum = Sum::of(&ip[12..]).u16(6).u16(20).bytes(&tcp);
    tcp[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
    let link = [&to.0[..], &from.0, &[0x81, 0, 0, 5, 8, 0]].concat();
    [link, ip, tcp].concat()
}

/// The next frame of a queue.
fn next(queue: &mut Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.is_empty() {
        wait(queue);
        let keep = &mut |frame: saiga_netdev::Frame<'_>| bytes = frame.bytes.to_vec();
        queue.receive(1, keep).unwrap();
    }
    bytes
}

#[test]
fn frames_of_a_vlan_come_and_go_with_their_tag() {
    let world = World::new();
    let options = Options {
        vlan: Some(5),
        ..Options::default()
    };
    let (client, mut queue) = world.client.within(|| {
        let interface = Interface::open("vc", &options).unwrap();
        let queue = interface.open_queue(0).unwrap();
        (interface, queue)
    });
    client.serve("10.77.0.2:5000".parse().unwrap()).unwrap();
    let host = world
        .host
        .within(|| Interface::open("vs", &Options::default()));
    let host = host.unwrap();
    let to = world.queue(&host, 0).unwrap().info().mac.unwrap();
    drop(host);

    let _service = start(&world, &["--vlan", "5"], "Native 1");
    let frame = syn(queue.info().mac.unwrap(), to);
    queue.room().unwrap()[..frame.len()].copy_from_slice(&frame);
    queue.send(frame.len(), &virtio::Header::NONE);
    queue.flush().unwrap();
    let answer = next(&mut queue);
    let answer = Frame::parse(&answer, ChecksumState::Verify).unwrap();
    let Header {
        destination,
        source,
        tags,
        ..
    } = answer.link;
    assert_eq!((destination, source), (queue.info().mac.unwrap(), to));
    assert_eq!(tags, Tags::One(Tag::vlan(5)));
    let Content::Ip(packet) = answer.content else {
        panic!("not an IP packet");
    };
    let Transport::Tcp(segment) = packet.transport else {
        panic!("not a segment");
    };
    assert!(segment.header.flags.contains(Flags::SYN));
    assert_eq!(segment.header.ack, Some(SeqNum(2)));
}
