//! Port numbers: those of clients are also those of local programs.

use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};

use saiga_anchor::{Anchors, end};

use crate::world::{Gateway, OTHER, REMOTE, SERVER, address, command, established, in_world, up};

/// The ports that the kernel chooses, in the namespace of the calling thread.
const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

#[test]
fn local_connections_keep_the_ports_that_clients_have() {
    in_world(|remote| {
        fs::write(RANGE, "40000 40009").unwrap();
        for (client, server) in REMOTE.into_iter().zip(SERVER) {
            let mut gateway = Gateway::new(address(server, 6000));
            let kept: Vec<_> = (40_000..40_010)
                .map(|port| gateway.open(address(client, port)))
                .collect();
            let elsewhere = address(client, 7000);
            let listener = remote.run(move || TcpListener::bind(elsewhere).unwrap());
            let local: Vec<_> = (0..kept.len())
                .map(|_| TcpStream::connect(elsewhere).unwrap())
                .collect();
            for stream in &local {
                assert!((40_000..40_010).contains(&stream.local_addr().unwrap().port()));
            }
            drop(listener);
        }
    });
}

#[test]
fn many_clients_have_the_same_port() {
    in_world(|_| {
        let served = [6000, 6001].map(|port| address(SERVER[0], port));
        let listeners = served.map(|served| TcpListener::bind(served).unwrap());
        let _routes = up(&served);
        let mut anchors = Anchors::new().unwrap();
        let mut kept = Vec::new();
        // One port of the ephemeral range, and one below.
        for port in [40_001, 1_234] {
            for client in [REMOTE[0], OTHER[0], "203.0.113.9"] {
                for (served, listener) in served.into_iter().zip(&listeners) {
                    let client = address(client, port);
                    let anchor = established(anchors.connect(client, served).unwrap());
                    let (accepted, peer) = listener.accept().unwrap();
                    assert_eq!(peer, client);
                    kept.push((anchor, accepted));
                }
            }
        }
    });
}

#[test]
fn a_client_may_have_the_port_of_a_listener() {
    in_world(|_| {
        let cases = [
            (REMOTE[0], SERVER[0], "0.0.0.0"),
            (REMOTE[1], SERVER[1], "::"),
        ];
        for (client, server, any) in cases {
            let mut gateway = Gateway::new(address(server, 6000));
            // Ports outside and inside the ephemeral range.
            for port in [8_090, 40_001] {
                let bystander = TcpListener::bind(address(any, port)).unwrap();
                let _both = gateway.open(address(client, port));
                bystander.set_nonblocking(true).unwrap();
                assert!(bystander.accept().is_err());
                // The listener can start again.
                drop(bystander);
                TcpListener::bind(address(any, port)).unwrap();
            }
            // The server's own port, too.
            let _both = gateway.open(address(client, 6000));
        }
    });
}

#[test]
fn a_range_that_has_changed_does_not_change_the_client_s_port() {
    in_world(|_| {
        let mut gateway = Gateway::new(address(SERVER[0], 6000));
        fs::write(RANGE, "50000 50009").unwrap();
        let client = address(REMOTE[0], 40_001);
        let served = gateway.served;
        let anchor = established(gateway.anchors.connect(client, served).unwrap());
        assert_eq!(anchor.local_addr().unwrap(), client);
        let seen = std::iter::repeat_with(|| gateway.listener.accept().unwrap());
        // A connection from another port was reset before.
        let (_accepted, _) = seen.take(2).find(|(_, peer)| *peer == client).unwrap();
        let _both = gateway.open(address(REMOTE[0], 50_001));
    });
}

#[test]
fn the_end_that_closes_first_does_not_keep_the_port() {
    in_world(|_| {
        for (client, server) in REMOTE.into_iter().zip(SERVER) {
            let mut gateway = Gateway::new(address(server, 6000));
            let served = gateway.served;
            for port in [40_001, 1_234] {
                let client = address(client, port);
                let (anchor, mut accepted) = gateway.open(client);
                end::finish(&anchor).unwrap();
                assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
                drop(accepted);
                drop(anchor);
                assert_eq!(time_wait(client, served), 1, "of the gateway");
                let (mut anchor, accepted) = gateway.open(client);
                drop(accepted);
                assert_eq!(anchor.read(&mut [0]).unwrap(), 0);
                drop(anchor);
                assert_eq!(time_wait(served, client), 1, "of the server");
                let _both = gateway.open(client);
            }
        }
    });
}

/// The number of sockets in TIME-WAIT with these ends.
fn time_wait(local: SocketAddr, remote: SocketAddr) -> usize {
    let filter = format!("-Htan state time-wait src {local} dst {remote}");
    command("ss", &filter).lines().count()
}
