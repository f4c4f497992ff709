//! Frames of one queue: which come, what is in them, and what is sent.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use saiga_netdev::xdp::{FrameSize, Options, Queue, XdpMode};
use saiga_netdev::{Device as _, DeviceError, Drops};
use saiga_wire::checksum::Sum;
use saiga_wire::ethernet;
use saiga_wire::frame::{Content, Frame};
use saiga_wire::offload::{self, ChecksumState};
use saiga_wire::virtio::{ChecksumPlace, Header, Segmentation, Version};

use crate::settings;
use crate::world::{HOST_V4, HOST_V6, Received, World, assert_refused, run, syn_of};

/// The destination of a segment whose checksum is right; `None` if the checksum is not.
fn destination(bytes: &[u8], state: ChecksumState) -> Option<IpAddr> {
    let Content::Ip(packet) = Frame::parse(bytes, state).ok()?.content else {
        return None;
    };
    Some(packet.network.addresses().destination())
}

fn is_intact(bytes: &[u8]) -> bool {
    destination(bytes, ChecksumState::Verify).is_some()
}

/// Traffic that the kernel serves while the interface is open: ping with and without fragments, ARP
/// and neighbour discovery before them, another port, and UDP at the same port.
fn converse_with_the_kernel(world: &World) {
    let listeners = world.host.within(|| {
        let [v4, v6] = [HOST_V4, HOST_V6].map(|host| TcpListener::bind((host, 8)).unwrap());
        (v4, v6, UdpSocket::bind((HOST_V4, 7)).unwrap())
    });
    world.client.within(|| {
        for host in [HOST_V4, HOST_V6] {
            run("ip", &["neighbour", "flush", "dev", "vc"]);
            run("ping", &["-c", "2", "-i", "0.01", "-w", "20", host]);
            run("ping", &["-c", "1", "-s", "5000", "-w", "20", host]);
            let mut stream = TcpStream::connect((host, 8)).unwrap();
            stream.write_all(b"to the kernel").unwrap();
        }
        let socket = UdpSocket::bind("10.77.0.2:0").unwrap();
        socket.send_to(b"datagram", (HOST_V4, 7)).unwrap();
    });
    let (v4, v6, udp) = listeners;
    for listener in [v4, v6] {
        let mut text = String::new();
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "to the kernel");
    }
    udp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut datagram = [0; 16];
    assert_eq!(udp.recv(&mut datagram).unwrap(), 8);
}

fn in_mode(mode: XdpMode) -> Options {
    Options {
        mode: Some(mode),
        slots: 64,
        ..Options::default()
    }
}

#[test]
fn served_segments_come_here_and_all_else_stays_with_the_kernel() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let world = World::new();
        let (interface, mut queue) = world.open(&in_mode(mode));
        assert_eq!(interface.mode(), mode);
        converse_with_the_kernel(&world);
        assert_eq!(queue.receive(64, &mut |_| ()).unwrap(), 0);
        for (to, host) in [("10.77.0.1:7", HOST_V4), ("[fd77::1]:7", HOST_V6)] {
            let client = world.syn(to);
            let frame = syn_of(&mut queue, &client);
            let found = destination(&frame.bytes, ChecksumState::Trusted);
            assert_eq!(found, host.parse().ok());
            let mac = ethernet::Header::parse(&frame.bytes).unwrap().0.destination;
            assert_eq!(Some(mac), queue.info().mac);
        }
        assert_eq!(queue.counters().drops, Drops::default());
    }
}

/// A kernel does not form the checksums of what it sends over a veth pair, and XDP does not show
/// that. With `ethtool -K vc tx off` it does form them.
#[test]
fn open_checksums_of_a_veth_pair_are_recognised() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        for (to, start) in [("10.77.0.1:7", 34), ("[fd77::1]:7", 54)] {
            let world = World::new();
            let (_interface, mut queue) = world.open(&in_mode(mode));
            let client = world.syn(to);
            let Received {
                mut bytes, offload, ..
            } = syn_of(&mut queue, &client);
            let place = ChecksumPlace { start, offset: 16 };
            assert_eq!(offload.checksum, Some(place));
            assert_eq!(offload.checksum_state(), ChecksumState::Partial);
            assert!(!is_intact(&bytes), "the checksum is not formed");
            offload::complete(&mut bytes, start.into(), 16).unwrap();
            assert!(is_intact(&bytes));
            drop(client);

            world
                .client
                .within(|| settings::set("vc", settings::TX_CHECKSUM, 0));
            let client = world.syn(to);
            let frame = syn_of(&mut queue, &client);
            assert_eq!(frame.offload, Header::NONE);
            assert!(
                is_intact(&frame.bytes),
                "the kernel has formed the checksum"
            );
        }
    }
}

/// The answer of a host that refuses the connection of a SYN over IPv4, with an open checksum.
fn reset(syn: &[u8], into: &mut [u8]) -> (usize, Header) {
    let frame = &mut into[..54];
    frame.copy_from_slice(&syn[..54]);
    for (first, second, bytes) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
        let (front, back) = frame.split_at_mut(second);
        front[first..first + bytes].swap_with_slice(&mut back[..bytes]);
    }
    frame[16..18].copy_from_slice(&40_u16.to_be_bytes());
    let acknowledged = u32::from_be_bytes(frame[38..42].try_into().unwrap()).wrapping_add(1);
    frame[38..42].fill(0);
    frame[42..46].copy_from_slice(&acknowledged.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, 0x14]);
    frame[24..26].fill(0);
    let checksum = Sum::of(&frame[14..34]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let pseudo = Sum::of(&frame[26..34]).u16(6).u16(20).value();
    frame[50..52].copy_from_slice(&pseudo.to_be_bytes());
    let place = ChecksumPlace {
        start: 34,
        offset: 16,
    };
    let offload = Header {
        checksum: Some(place),
        ..Header::NONE
    };
    (54, offload)
}

fn refuse(queue: &mut Queue, syn: &[u8]) {
    let (length, offload) = reset(syn, queue.room().unwrap());
    queue.send(length, &offload);
    queue.flush().unwrap();
}

/// Frames leave, checksums are formed, and memory comes back: more frames than there are chunks.
#[test]
fn answers_reach_the_client() {
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let world = World::new();
        let (_interface, mut queue) = world.open(&in_mode(mode));
        for _ in 0..300 {
            let client = world.syn("10.77.0.1:7");
            let frame = syn_of(&mut queue, &client);
            refuse(&mut queue, &frame.bytes);
            assert_refused(&client);
        }
        let counters = queue.counters();
        assert_eq!((counters.sent.frames, counters.sent.batches), (300, 300));
        assert_eq!(counters.sent.bytes, 300 * 54);
        assert_eq!(counters.drops, Drops::default());
    }
}

#[test]
fn what_the_device_cannot_send_is_refused() {
    let world = World::new();
    let (_interface, mut queue) = world.open(&in_mode(XdpMode::Native));
    queue.send(60, &Header::NONE);
    let room = queue.room().unwrap();
    assert_eq!(room.len(), 2048);
    room.fill(2);
    queue.send(2049, &Header::NONE);
    queue.send(13, &Header::NONE);
    let beyond = ChecksumPlace {
        start: 50,
        offset: 16,
    };
    let offload = Header {
        checksum: Some(beyond),
        ..Header::NONE
    };
    queue.send(60, &offload);
    let segmentation = Segmentation {
        version: Version::V4,
        ecn: false,
        headers_bytes: 54,
        segment_bytes: 1_000,
    };
    let offload = Header {
        segmentation: Some(segmentation),
        ..Header::NONE
    };
    queue.send(60, &offload);
    queue.flush().unwrap();
    let counters = queue.counters();
    assert_eq!((counters.drops.refused, counters.sent.frames), (5, 0));
    assert!(
        queue.room().unwrap().iter().all(|byte| *byte == 2),
        "the same place"
    );
}

/// A worker that is late loses frames, which are counted, and no memory.
#[test]
fn a_full_queue_drops_and_goes_on() {
    let world = World::new();
    let (_interface, mut queue) = world.open(&in_mode(XdpMode::Native));
    let clients: Vec<_> = (0..200).map(|_| world.syn("10.77.0.1:7")).collect();
    // SYNs that get lost elsewhere are sent again.
    while queue.counters().drops.overflowed < 136 {
        std::thread::yield_now();
    }
    assert_eq!(queue.receive(1000, &mut |_| ()).unwrap(), 64);
    drop(clients);
    for _ in 0..200 {
        let client = world.syn("10.77.0.1:7");
        syn_of(&mut queue, &client);
    }
}

#[test]
fn large_frames_need_large_chunks() {
    let world = World::new();
    for (namespace, name) in [(&world.host, "vs"), (&world.client, "vc")] {
        namespace.within(|| run("ip", &["link", "set", name, "mtu", "3000"]));
    }
    let options = Options {
        frames: FrameSize::Bytes4096,
        wants_huge_pages: true,
        ..in_mode(XdpMode::Native)
    };
    let (_interface, mut queue) = world.open(&options);
    assert_eq!(queue.info().mtu, 3000);
    assert_eq!(queue.room().unwrap().len(), 4096);
    let client = world.syn("10.77.0.1:7");
    syn_of(&mut queue, &client);
}

#[test]
fn an_interface_that_is_down_drops_and_comes_back() {
    let world = World::new();
    let (_interface, mut queue) = world.open(&in_mode(XdpMode::Native));
    let set = |state| {
        world
            .host
            .within(|| run("ip", &["link", "set", "vs", state]));
    };
    let client = world.syn("10.77.0.1:7");
    let syn = syn_of(&mut queue, &client);
    drop(client);
    set("down");
    for _ in 0..3 {
        refuse(&mut queue, &syn.bytes);
        assert_eq!(queue.receive(64, &mut |_| ()).unwrap(), 0);
    }
    let counters = queue.counters();
    assert_eq!(
        counters.drops.down, 2,
        "the first frame waits: {counters:?}"
    );
    set("up");
    queue.flush().unwrap();
    let client = world.syn("10.77.0.1:7");
    let frame = syn_of(&mut queue, &client);
    refuse(&mut queue, &frame.bytes);
    assert_refused(&client);
}

#[test]
fn a_removed_interface_is_gone() {
    let world = World::new();
    let (_interface, mut queue) = world.open(&in_mode(XdpMode::Native));
    world.host.within(|| run("ip", &["link", "del", "vs"]));
    let error = (0..64).find_map(|_| queue.receive(64, &mut |_| ()).err());
    assert!(matches!(error, Some(DeviceError::Gone { name }) if name == "vs"));
}
