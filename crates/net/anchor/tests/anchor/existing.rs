//! Connections from before a gateway.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, SocketAddrV6, TcpListener, TcpStream};

use saiga_anchor::existing;
use saiga_trials::snapshot::ip;

use crate::world::{OTHER, REMOTE, SERVER, address, connect_from, in_world, talk, up};

fn hosts(texts: &[&str]) -> BTreeSet<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn connections_from_before_live_on() {
    in_world(|remote| {
        // Servers on the address itself, and on both families.
        let cases = [(0, SERVER[0]), (0, "::"), (1, SERVER[1]), (1, "::")];
        for (family, bound) in cases {
            let served = address(SERVER[family], 6000);
            let listener = TcpListener::bind(address(bound, 6000)).unwrap();
            let clients = [REMOTE[family], OTHER[family]].map(|client| {
                let client = remote.connect(client, served);
                (client, listener.accept().unwrap().0)
            });
            let routes = up(&[served]);
            let left: BTreeSet<IpAddr> = routes.left().collect();
            assert_eq!(left, hosts(&[REMOTE[family], OTHER[family]]), "{bound}");
            for (client, accepted) in &clients {
                talk(client, accepted);
            }
            // New ones of these hosts are the kernel's, too.
            let client = remote.connect(REMOTE[family], served);
            talk(&client, &listener.accept().unwrap().0);
            routes.down().unwrap();
            for (client, accepted) in &clients {
                talk(client, accepted);
            }
        }
    });
}

/// Proves that the throw routes are what keeps the connections.
#[test]
fn connections_of_a_host_that_is_taken_over_are_cut() {
    in_world(|remote| {
        let served = address(SERVER[0], 6000);
        let listener = TcpListener::bind(served).unwrap();
        let mut clients = REMOTE[..1].iter().chain(&OTHER[..1]).map(|client| {
            let client = remote.connect(client, served);
            (client, listener.accept().unwrap().0)
        });
        let (cut, kept) = (clients.next().unwrap(), clients.next().unwrap());
        let mut routes = up(&[served]);
        routes.take_over(REMOTE[0].parse().unwrap()).unwrap();
        assert_eq!(routes.left().collect::<BTreeSet<_>>(), hosts(&OTHER[..1]));
        // The bytes go to lo, where no socket has the client's address.
        (&cut.1).write_all(b"lost").unwrap();
        // Bytes to the same remote host that were sent later have arrived.
        talk(&kept.0, &kept.1);
        cut.0.set_nonblocking(true).unwrap();
        let error = (&cut.0).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_host_can_be_left_to_the_kernel_later() {
    in_world(|remote| {
        for (client, server) in REMOTE.into_iter().zip(SERVER) {
            let served = address(server, 6000);
            let listener = TcpListener::bind(served).unwrap();
            let mut routes = up(&[served]);
            assert_eq!(routes.left().count(), 0);
            let host: IpAddr = client.parse().unwrap();
            routes.leave(host).unwrap();
            routes.leave(host).unwrap();
            assert_eq!(routes.left().collect::<Vec<_>>(), [host]);
            let stream = remote.connect(client, served);
            talk(&stream, &listener.accept().unwrap().0);
            assert_eq!(existing::hosts(served).unwrap(), hosts(&[client]));
            drop(stream);
        }
    });
}

#[test]
fn connections_within_the_host_are_not_counted() {
    in_world(|_| {
        for (server, loopback) in SERVER.into_iter().zip(["127.0.0.1", "::1"]) {
            let served = address(server, 6000);
            let listener = TcpListener::bind(served).unwrap();
            let own = TcpStream::connect(served).unwrap();
            let loopback = connect_from(address(loopback, 0), served).unwrap();
            let accepted = [listener.accept().unwrap().0, listener.accept().unwrap().0];
            assert_eq!(existing::hosts(served).unwrap(), BTreeSet::new());
            let _routes = up(&[served]);
            talk(&own, &accepted[0]);
            talk(&loopback, &accepted[1]);
        }
    });
}

#[test]
fn other_ports_and_connections_that_have_ended_are_not_counted() {
    in_world(|remote| {
        let served = address(SERVER[0], 6000);
        let listener = TcpListener::bind(served).unwrap();
        let beside = TcpListener::bind(address(SERVER[0], 6001)).unwrap();
        let other = remote.connect(REMOTE[0], address(SERVER[0], 6001));
        let client = remote.connect(OTHER[0], served);
        let accepted = listener.accept().unwrap().0;
        assert_eq!(existing::hosts(served).unwrap(), hosts(&OTHER[..1]));
        // The server ends first, and its end is in TIME-WAIT.
        accepted.shutdown(Shutdown::Write).unwrap();
        assert_eq!((&client).read(&mut [0]).unwrap(), 0);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!((&accepted).read(&mut [0]).unwrap(), 0);
        drop((client, accepted));
        assert_eq!(existing::hosts(served).unwrap(), BTreeSet::new());
        let _routes = up(&[served]);
        talk(&other, &beside.accept().unwrap().0);
    });
}

/// The reply to a link-local client leaves by its interface, as without a gateway.
#[test]
fn link_local_clients_are_the_kernel_s() {
    in_world(|remote| {
        let served = address(SERVER[1], 6000);
        let listener = TcpListener::bind(served).unwrap();
        let _routes = up(&[served]);
        let client = remote.run(move || {
            let link = ip("-o link show vc");
            let index = link.split(':').next().unwrap().parse().unwrap();
            let local = SocketAddrV6::new("fe80::2".parse().unwrap(), 0, 0, index);
            connect_from(SocketAddr::V6(local), served).unwrap()
        });
        let (accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), "fe80::2".parse::<IpAddr>().unwrap());
        talk(&client, &accepted);
    });
}
