//! Many queues: every queue needs its socket.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use saiga_netdev::Device as _;
use saiga_netdev::xdp::{Interface, Options, Queue};

use crate::world::World;

const QUEUES: u16 = 4;
const CLIENTS: usize = 64;

fn world() -> (World, Interface) {
    let world = World::with_queues(QUEUES.into());
    let options = Options {
        slots: 256,
        ..Options::default()
    };
    let interface = world
        .host
        .within(|| Interface::open("vs", &options))
        .unwrap();
    assert_eq!(interface.queues(), u32::from(QUEUES));
    interface.serve("10.77.0.1:7".parse().unwrap()).unwrap();
    (world, interface)
}

fn port(client: &OwnedFd) -> u16 {
    let name = rustix::net::getsockname(client).unwrap();
    std::net::SocketAddr::try_from(name).unwrap().port()
}

/// Notes the ports of the SYNs that have come to a queue.
fn collect(queue: &mut Queue, ports: &mut HashSet<u16>) {
    let note = &mut |frame: saiga_netdev::Frame<'_>| {
        ports.insert(u16::from_be_bytes([frame.bytes[34], frame.bytes[35]]));
    };
    queue.receive(256, note).unwrap();
}

/// Whether the client's socket was refused by now.
fn is_refused(client: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(client, PollFlags::OUT)];
    let now = rustix::event::Timespec::default();
    rustix::event::poll(&mut polled, Some(&now)).unwrap() > 0
}

#[test]
fn flows_are_spread_over_the_sockets() {
    let (world, interface) = world();
    let mut queues: Vec<_> = (0..QUEUES)
        .map(|queue| world.queue(&interface, queue).unwrap())
        .collect();
    let clients: Vec<_> = (0..CLIENTS).map(|_| world.syn("10.77.0.1:7")).collect();
    let mut ports = vec![HashSet::new(); queues.len()];
    let union = |ports: &[HashSet<u16>]| ports.iter().flatten().copied().collect();
    let mut all: HashSet<u16> = HashSet::new();
    while all.len() < CLIENTS {
        std::thread::yield_now();
        for (queue, ports) in queues.iter_mut().zip(&mut ports) {
            collect(queue, ports);
        }
        all = union(&ports);
    }
    for (number, ports) in ports.iter().enumerate() {
        assert!(!ports.is_empty(), "no flow came to queue {number}");
        assert_eq!(usize::from(queues[number].info().queue), number);
    }
    assert_eq!(all, clients.iter().map(port).collect());
}

/// Nothing listens in the kernel, which so shows that it got the SYN.
#[test]
fn a_queue_without_a_socket_is_the_kernels() {
    let (world, interface) = world();
    let mut queue = world.queue(&interface, 1).unwrap();
    let clients: Vec<_> = (0..CLIENTS).map(|_| world.syn("10.77.0.1:7")).collect();
    let mut ports = HashSet::new();
    let mut refused = HashSet::new();
    // A SYN that is sent again may take another queue, so a port can be in both sets.
    while ports.union(&refused).count() < CLIENTS {
        std::thread::yield_now();
        collect(&mut queue, &mut ports);
        refused.extend(clients.iter().filter(|client| is_refused(client)).map(port));
    }
    assert!(!ports.is_empty() && !refused.is_empty());
    // The kernel gets the flows of the socket when the queue is closed.
    drop(queue);
    let again = world.syn("10.77.0.1:7");
    while !is_refused(&again) {
        std::thread::yield_now();
    }
    let connected = world
        .client
        .within(|| std::net::TcpStream::connect("10.77.0.1:7"));
    assert_eq!(connected.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
