//! What an anchor is for the server, and what follows when it cannot be opened.

use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener};

use saiga_anchor::{Anchors, ConnectError, Opening, existing};
use saiga_trials::snapshot::ip;
use saiga_trials::witness::await_true;
use socket2::{Domain, Socket, Type};

use crate::world::{
    Gateway, OTHER, REMOTE, SERVER, address, established, in_world, settled, talk, up,
};

/// Clients on the link, behind a router and of documentation, which no route leads to.
const CLIENTS: [[&str; 2]; 2] = [[REMOTE[0], REMOTE[1]], ["203.0.113.9", "2001:db8::9"]];

#[test]
fn the_server_sees_the_client() {
    in_world(|_| {
        let cases = [
            (SERVER[0], SERVER[0]),
            (SERVER[0], "0.0.0.0"),
            (SERVER[0], "::"),
            (SERVER[1], SERVER[1]),
            (SERVER[1], "::"),
        ];
        let numbered = || (6000..).zip(cases);
        let served: Vec<_> = numbered()
            .map(|(port, case)| address(case.0, port))
            .collect();
        let _routes = up(&served);
        let mut anchors = Anchors::new().unwrap();
        for (port, (server, bound)) in numbered() {
            let listener = TcpListener::bind(address(bound, port)).unwrap();
            for clients in CLIENTS {
                let client = if server == SERVER[0] {
                    clients[0]
                } else {
                    clients[1]
                };
                // One port of the ephemeral range, and one below.
                for client in [address(client, 40_001), address(client, 1_234)] {
                    let server = address(server, port);
                    let anchor = established(anchors.connect(client, server).unwrap());
                    let (accepted, peer) = listener.accept().unwrap();
                    // A dual-stack listener sees IPv4 in its mapped form.
                    let form = |end: SocketAddr| match end {
                        SocketAddr::V4(v4) if bound == "::" => {
                            SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
                        }
                        SocketAddr::V4(_) | SocketAddr::V6(_) => end,
                    };
                    assert_eq!(peer, form(client));
                    assert_eq!(accepted.peer_addr().unwrap(), form(client));
                    assert_eq!(accepted.local_addr().unwrap(), form(server));
                    assert_eq!(anchor.local_addr().unwrap(), client);
                    assert_eq!(anchor.peer_addr().unwrap(), server);
                    talk(&anchor, &accepted);
                }
            }
        }
    });
}

#[test]
fn mapped_addresses_are_ipv4() {
    in_world(|_| {
        let mut gateway = Gateway::new(address(SERVER[0], 6000));
        let mapped = |text: &str, port| address(&format!("::ffff:{text}"), port);
        let opening = gateway
            .anchors
            .connect(mapped(REMOTE[0], 40_001), mapped(SERVER[0], 6000));
        let _anchor = established(opening.unwrap());
        let (_accepted, peer) = gateway.listener.accept().unwrap();
        assert_eq!(peer, address(REMOTE[0], 40_001));
    });
}

#[test]
fn a_server_that_does_not_listen_there_refuses() {
    in_world(|_| {
        let served = SERVER.map(|server| address(server, 6000));
        let _routes = up(&served);
        let mut anchors = Anchors::new().unwrap();
        // The gateway connects to the destination of the SYN, and to no other address.
        let _elsewhere = [
            TcpListener::bind("127.0.0.1:6000").unwrap(),
            TcpListener::bind("[::1]:6000").unwrap(),
        ];
        for (client, server) in REMOTE.into_iter().zip(served) {
            for port in [40_001, 1_234] {
                let opening = anchors.connect(address(client, port), server).unwrap();
                assert!(matches!(opening, Opening::Refused), "{opening:?}");
            }
        }
    });
}

#[test]
fn a_full_backlog_keeps_the_anchor_waiting() {
    in_world(|_| {
        for server in SERVER {
            let served = address(server, 6000);
            let listener = Socket::new(Domain::for_address(served), Type::STREAM, None).unwrap();
            listener.bind(&served.into()).unwrap();
            listener.listen(1).unwrap();
            let listener = TcpListener::from(listener);
            let _routes = up(&[served]);
            let mut anchors = Anchors::new().unwrap();
            let remote = REMOTE[usize::from(served.is_ipv6())];
            let mut clients = (40_001..).map(|port| address(remote, port));
            let mut open = |client| anchors.connect(client, served).unwrap();
            let mut kept = Vec::new();
            let (last, waiting) = loop {
                let client = clients.next().unwrap();
                match open(client) {
                    Opening::Established(anchor) => kept.push(anchor),
                    Opening::Waiting(anchor) => break (client, anchor),
                    other @ (Opening::Refused | Opening::Conflict) => panic!("{other:?}"),
                }
                assert!(kept.len() < 8, "the backlog is never full");
            };
            // Room for one: the client's next SYN gets it at once.
            drop(listener.accept().unwrap());
            drop(waiting);
            let anchor = established(open(last));
            assert_eq!(anchor.local_addr().unwrap(), last);
            // Or the kernel's own next SYN does, after a second.
            let client = clients.next().unwrap();
            let opening = open(client);
            assert!(matches!(opening, Opening::Waiting(_)), "{opening:?}");
            drop(listener.accept().unwrap());
            let anchor = settled(opening);
            assert_eq!(anchor.local_addr().unwrap(), client);
        }
    });
}

#[test]
fn an_address_that_no_remote_client_has_is_refused() {
    in_world(|_| {
        let mut gateway = Gateway::new(address(SERVER[0], 6000));
        let served = gateway.served;
        // Another interface of this host: a server may trust clients with its address.
        ip("address add 10.88.0.1/24 broadcast 10.88.0.255 dev lo");
        for nonlocal_bind in ["0", "1"] {
            std::fs::write("/proc/sys/net/ipv4/ip_nonlocal_bind", nonlocal_bind).unwrap();
            for client in [
                "127.0.0.1",
                "0.0.0.0",
                "224.0.0.1",
                "255.255.255.255",
                SERVER[0],
                REMOTE[1],
                "10.88.0.1",
                "10.88.0.255",
            ] {
                for port in [40_001, 1_234] {
                    let refused = gateway.anchors.connect(address(client, port), served);
                    let refused = refused.unwrap_err();
                    assert!(
                        matches!(refused, ConnectError::Unfit { .. }),
                        "{client}: {refused}"
                    );
                }
            }
        }
        let local = gateway
            .anchors
            .connect(address(REMOTE[0], 40_001), address("127.0.0.1", 6000));
        assert!(matches!(local.unwrap_err(), ConnectError::Unfit { .. }));
        let link_local = gateway.anchors.connect(address("fe80::2", 40_001), served);
        assert!(matches!(
            link_local.unwrap_err(),
            ConnectError::LinkLocal { .. }
        ));
        gateway.listener.set_nonblocking(true).unwrap();
        assert!(gateway.listener.accept().is_err(), "no connection was made");
    });
}

#[test]
fn a_second_anchor_of_the_same_ends_is_an_error() {
    in_world(|_| {
        let mut gateway = Gateway::new(address(SERVER[0], 6000));
        let served = gateway.served;
        for port in [40_001, 1_234] {
            let client = address(REMOTE[0], port);
            let (anchor, accepted) = gateway.open(client);
            let again = gateway.anchors.connect(client, served).unwrap_err();
            assert!(matches!(again, ConnectError::Exists { .. }), "{again}");
            talk(&anchor, &accepted);
        }
    });
}

/// When a gateway is killed, the kernel keeps the ends of its anchors for a while.
#[test]
fn an_anchor_that_no_process_has_does_not_keep_its_client_away() {
    in_world(|_| {
        for (client, server) in REMOTE.into_iter().zip(SERVER) {
            for port in [40_001, 1_234] {
                let client = address(client, port);
                let mut gateway = Gateway::new(address(server, 6000));
                let (anchor, mut stale) = gateway.open(client);
                // Without the rule, the server's acknowledgement of the FIN does not come by lo.
                gateway.close();
                drop(anchor);
                // A child of another test can have a copy of the descriptor until it executes.
                let has_gone = || existing::is_orphaned(client, address(server, 6000)).unwrap();
                await_true(has_gone, || "the anchor has a process".to_owned());
                let mut gateway = Gateway::new(address(server, 6000));
                // If the first SYN comes to the server's end from before, that end is reset, and
                // the second SYN opens the connection.
                let anchor = settled(gateway.anchors.connect(client, gateway.served).unwrap());
                let (accepted, peer) = gateway.listener.accept().unwrap();
                assert_eq!(peer, client);
                talk(&anchor, &accepted);
                let ended = stale.read(&mut [0]).map_err(|error| error.kind());
                assert!(
                    matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)),
                    "{ended:?}"
                );
            }
        }
    });
}

#[test]
fn a_live_connection_of_the_kernel_is_a_conflict_and_lives_on() {
    in_world(|remote| {
        for (remote_address, server) in REMOTE.into_iter().zip(SERVER) {
            let served = address(server, 6000);
            let listener = TcpListener::bind(served).unwrap();
            let client = remote.connect(remote_address, served);
            let (accepted, peer) = listener.accept().unwrap();
            let _routes = up(&[served]);
            let mut anchors = Anchors::new().unwrap();
            let opening = anchors.connect(peer, served).unwrap();
            assert!(matches!(opening, Opening::Conflict), "{opening:?}");
            talk(&client, &accepted);
            // A host without such connections is served.
            let other = address(OTHER[usize::from(served.is_ipv6())], peer.port());
            let _anchor = established(anchors.connect(other, served).unwrap());
            assert_eq!(listener.accept().unwrap().1, other);
        }
    });
}
