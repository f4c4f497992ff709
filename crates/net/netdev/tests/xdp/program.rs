//! The program over time: older connections, and what is left when the interface is closed.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use saiga_netdev::Device as _;
use saiga_netdev::xdp::Options;

use crate::world::{HOST_V4, World, syn_of};

fn small() -> Options {
    Options {
        slots: 64,
        ..Options::default()
    }
}

/// Sends bytes both ways.
fn converse(client: &mut TcpStream, server: &mut TcpStream) {
    let mut word = [0; 4];
    client.write_all(b"ping").unwrap();
    server.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"ping");
    server.write_all(b"pong").unwrap();
    client.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"pong");
}

/// A pair of connected sockets between client and host.
fn connect(world: &World, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = world
        .client
        .within(|| TcpStream::connect((HOST_V4, 7)).unwrap());
    (client, listener.accept().unwrap().0)
}

/// In the order that the module's description gives.
#[test]
fn connections_from_before_live_on() {
    let world = World::new();
    let listener = world
        .host
        .within(|| TcpListener::bind((HOST_V4, 7)).unwrap());
    let (mut client, mut server) = connect(&world, &listener);
    let (interface, mut queue) = world.open(&small());
    interface.pass("10.77.0.2".parse().unwrap()).unwrap();
    converse(&mut client, &mut server);
    // A new connection of that host goes to the kernel, too.
    let (mut second, mut accepted) = connect(&world, &listener);
    converse(&mut second, &mut accepted);
    assert_eq!(queue.receive(64, &mut |_| ()).unwrap(), 0);
    for (client, mut server) in [(client, server), (second, accepted)] {
        // A reset is the last segment, and the kernel has it before the host is taken.
        set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop(client);
        let error = server.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    interface.take("10.77.0.2".parse().unwrap()).unwrap();
    let client = world.syn("10.77.0.1:7");
    syn_of(&mut queue, &client);
}

#[test]
fn the_kernel_serves_again_when_the_interface_is_closed() {
    let world = World::new();
    let listener = world
        .host
        .within(|| TcpListener::bind((HOST_V4, 7)).unwrap());
    for _ in 0..10 {
        // At once: nothing waits for the end of the last socket.
        let (interface, mut queue) = world.open(&small());
        let client = world.syn("10.77.0.1:7");
        syn_of(&mut queue, &client);
        drop(client);
        drop(interface);
        // The queue still has its socket, but the program is gone.
        let (mut client, mut server) = connect(&world, &listener);
        converse(&mut client, &mut server);
    }
}

#[test]
fn an_endpoint_that_is_stopped_is_the_kernels() {
    let world = World::new();
    let listener = world
        .host
        .within(|| TcpListener::bind((HOST_V4, 7)).unwrap());
    let (interface, mut queue) = world.open(&small());
    let client = world.syn("10.77.0.1:7");
    syn_of(&mut queue, &client);
    drop(client);
    interface.stop("0.0.0.0:7".parse().unwrap()).unwrap();
    let (mut client, mut server) = connect(&world, &listener);
    converse(&mut client, &mut server);
}
