//! Several queues: flows are divided among them, and follow the queue that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::num::NonZeroU16;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use saiga_netdev::tap::{Settings, Tap};
use saiga_netdev::{Device, Link};
use saiga_wire::virtio::Header;

use crate::namespace::{in_namespaces, set_up};
use crate::tap::MADE;

const QUEUES: NonZeroU16 = NonZeroU16::new(4).unwrap();
const FLOWS: usize = 32;
/// The port at the end of the test (discard, RFC 863).
const PORT: u16 = 9;
const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_flow_follows_the_queue_that_answers() {
    in_namespaces(|| {
        let mut queues = Tap::open(&Settings {
            link: Link::Ip,
            queues: QUEUES,
            ..MADE
        })
        .unwrap();
        set_up(MADE.name);
        let numbers: Vec<u16> = queues.iter().map(|queue| queue.info().queue).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        let sockets: Vec<UdpSocket> = (0..FLOWS).map(|_| socket()).collect();
        send(&sockets);
        let first = arrivals(&mut queues);
        let used: BTreeSet<_> = first.values().collect();
        assert!(used.len() > 1, "{first:?}");
        let next = |queue| (queue + 1) % queues.len();
        let expected: BTreeMap<_, _> = first.iter().map(|(port, at)| (*port, next(*at))).collect();
        for (port, queue) in &expected {
            answer(&mut queues[*queue], *port);
        }
        for socket in &sockets {
            assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 4);
        }
        send(&sockets);
        assert_eq!(arrivals(&mut queues), expected);
    });
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.connect(("10.9.0.2", PORT)).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

fn send(sockets: &[UdpSocket]) {
    for socket in sockets {
        assert_eq!(socket.send(b"there").unwrap(), 5);
    }
}

/// The queue at which the datagram of each flow arrives, by the port of the kernel's socket.
fn arrivals(queues: &mut [Tap]) -> BTreeMap<u16, usize> {
    let mut found = BTreeMap::new();
    while found.len() < FLOWS {
        wait(queues);
        for (number, queue) in queues.iter_mut().enumerate() {
            let mut each = |frame: saiga_netdev::Frame<'_>| {
                if let Some(port) = source_port(frame.bytes) {
                    assert_eq!(found.insert(port, number), None);
                }
            };
            queue.receive(FLOWS, &mut each).unwrap();
        }
    }
    found
}

/// Waits until a frame is in one of the queues.
fn wait(queues: &[Tap]) {
    let descriptors: Vec<BorrowedFd<'_>> = queues.iter().map(Device::descriptor).collect();
    let polled = descriptors.iter();
    let mut polled: Vec<_> = polled.map(|one| PollFd::new(one, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(LONG).unwrap();
    let count = poll(&mut polled, Some(&timeout)).unwrap();
    assert!(count > 0, "no frame within {LONG:?}");
}

/// The source port of a datagram of this test; the kernel sends other packets, too.
fn source_port(packet: &[u8]) -> Option<u16> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let Some(TransportSlice::Udp(datagram)) = sliced.transport else {
        return None;
    };
    (datagram.destination_port() == PORT).then_some(datagram.source_port())
}

fn answer(queue: &mut Tap, port: u16) {
    let builder = PacketBuilder::ipv4([10, 9, 0, 2], [10, 9, 0, 1], 64).udp(PORT, port);
    let mut packet = Vec::new();
    builder.write(&mut packet, b"back").unwrap();
    queue.room().unwrap()[..packet.len()].copy_from_slice(&packet);
    queue.send(packet.len(), &Header::NONE);
    queue.flush().unwrap();
}
