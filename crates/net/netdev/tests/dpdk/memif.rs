//! Our memif beside DPDK's: the protocol is theirs.

use saiga_netdev::Device as _;
use saiga_netdev::dpdk::Queue;
use saiga_netdev::memif::Memif;

use crate::shared::{World, sleep, step};
use crate::world::{frame, open, receive, send, wait};

/// A port of DPDK at the socket, with buffers that are smaller than a frame.
fn port(world: &World, name: &str, role: &str) -> Queue {
    let socket = world.socket();
    open(&format!(
        "net_memif_{name},id=3,role={role},socket={},socket-abstract=no,bsize=512",
        socket.display()
    ))
}

/// Waits until both ends are up: a port drops what it sends before.
fn connect(memif: &mut Memif, port: &mut Queue) {
    loop {
        step(memif);
        if memif.is_up() {
            break;
        }
        sleep(&[memif]);
    }
    while port.counters().sent.frames == 0 {
        assert!(send(port, &frame(60, 0)));
        port.flush().unwrap();
        wait(port);
        port.receive(1, &mut |_| {}).unwrap();
    }
    assert_eq!(receive_ours(memif, 1), [frame(60, 0)]);
}

/// As `receive`, for our device.
fn receive_ours(memif: &mut Memif, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count {
        if !memif.before_wait().unwrap() {
            sleep(&[memif]);
        }
        let each = &mut |frame: saiga_netdev::Frame<'_>| frames.push(frame.bytes.to_vec());
        memif.receive(count, each).unwrap();
    }
    frames
}

/// Frames of one buffer and of several, and more than a ring has room for at a time.
fn exchange(memif: &mut Memif, port: &mut Queue) {
    let lengths = [60, 512, 513, 1_024, 1_514];
    for round in 0..100 {
        let sent = (round..).zip(lengths).map(|(n, bytes)| frame(bytes, n));
        let sent: Vec<_> = sent.collect();
        for frame in &sent {
            assert!(send(port, frame) && send(memif, frame));
        }
        port.flush().unwrap();
        memif.flush().unwrap();
        assert_eq!(receive_ours(memif, sent.len()), sent);
        assert_eq!(receive(port, sent.len()), sent);
    }
    assert!(memif.is_up());
    let drops = memif.counters().drops;
    assert!(
        drops.named().iter().all(|(_, count)| *count == 0),
        "{drops:?}"
    );
}

#[test]
fn a_server_of_ours_has_a_client_of_dpdk() {
    let world = World::new();
    let mut memif = world.server(256);
    let mut port = port(&world, "client", "client");
    connect(&mut memif, &mut port);
    exchange(&mut memif, &mut port);
    drop(port);
    while memif.is_up() {
        sleep(&[&memif]);
        step(&mut memif);
    }
}

#[test]
fn a_client_of_ours_has_a_server_of_dpdk() {
    let world = World::new();
    let mut port = port(&world, "server", "server");
    let mut memif = world.client(256);
    connect(&mut memif, &mut port);
    exchange(&mut memif, &mut port);
}
