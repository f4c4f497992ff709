//! What the program does with every kind of frame: test runs in the kernel, without a device.
//!
//! Needs root.

use saiga_bpf::Program;

use super::*;
use crate::xdp::program::PASS;
use crate::xdp::socket::Socket;
use crate::xdp::umem::Umem;
use std::os::fd::AsFd as _;

/// `XDP_REDIRECT`
const REDIRECT: u32 = 4;

/// A steering whose only queue has a socket, which is not bound to a device.
struct World {
    steering: Steering,
    _socket: Socket,
    _umem: Umem,
}

fn world(vlan: Option<u16>) -> World {
    world_of(&Options {
        vlan,
        ..Options::default()
    })
}

fn world_of(options: &Options) -> World {
    let steering = Steering::load("lo", 1, options).unwrap();
    let umem = Umem::new(128, 2048, false).unwrap();
    let socket = Socket::open(&umem, 64).unwrap();
    steering.connect(0, socket.as_fd()).unwrap();
    World {
        steering,
        _socket: socket,
        _umem: umem,
    }
}

impl World {
    fn serve(&self, endpoint: &str) {
        self.steering.serve(endpoint.parse().unwrap()).unwrap();
    }

    fn redirects(&self, frame: &[u8]) -> bool {
        redirects(&self.steering.program, frame)
    }
}

fn redirects(program: &Program, frame: &[u8]) -> bool {
    match program.run(frame, 1).unwrap().result {
        REDIRECT => true,
        PASS => false,
        other => panic!("the program returned {other} for {frame:02x?}"),
    }
}

/// A SYN from 10.0.0.9 to port 7 of 10.0.0.2.
fn v4() -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0]);
    frame.extend([10, 0, 0, 9, 10, 0, 0, 2]);
    frame.extend([
        0x12, 0x34, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 64, 0, 0, 0, 0,
    ]);
    frame
}

/// The same from fd00::9 to fd00::2.
fn v6() -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
    for last in [9, 2] {
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    frame.extend([
        0x12, 0x34, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 64, 0, 0, 0, 0,
    ]);
    frame
}

/// Errors of a router about the size of an answer to that SYN: 28 and 48 bytes before the packet.
fn too_big_v4() -> Vec<u8> {
    let answer = with(v4(), 26, &[10, 0, 0, 2, 10, 0, 0, 9]);
    let answer = with(answer, 34, &[0, 7, 0x12, 0x34]);
    let mut frame = with(v4()[..34].to_vec(), 23, &[1]);
    frame.extend([3, 4, 0, 0, 0, 0, 5, 0x78]);
    frame.extend(&answer[14..42]);
    frame
}

fn too_big_v6() -> Vec<u8> {
    let mut answer = v6();
    answer[22..54].rotate_left(16);
    let answer = with(answer, 54, &[0, 7, 0x12, 0x34]);
    let mut frame = with(v6()[..54].to_vec(), 20, &[58]);
    frame.extend([2, 0, 0, 0, 0, 0, 5, 0x78]);
    frame.extend(&answer[14..]);
    frame
}

fn tagged(mut frame: Vec<u8>, tag: [u8; 4]) -> Vec<u8> {
    drop(frame.splice(12..12, tag));
    frame
}

fn with(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

/// Priority 1, VLAN 5.
const TAG: [u8; 4] = [0x81, 0, 0x20, 5];
/// Priority 7, no VLAN.
const PRIORITY: [u8; 4] = [0x81, 0, 0xe0, 0];

/// A world that serves port 7 of one address of each version, in a VLAN or without one.
fn serving(vlan: Option<u16>) -> World {
    let world = world(vlan);
    world.serve("10.0.0.2:7");
    world.serve("[fd00::2]:7");
    world
}

#[test]
fn segments_to_served_endpoints_are_redirected() {
    let world = serving(None);
    for (name, frame) in [
        ("IPv4", v4()),
        ("IPv6", v6()),
        ("IPv4 with a priority", tagged(v4(), PRIORITY)),
        ("IPv6 with a priority", tagged(v6(), PRIORITY)),
        ("with data", [v4(), vec![1; 1000]].concat()),
        ("class and flow label", with(v6(), 14, &[0x6f, 0xff])),
        ("may be fragmented", with(v4(), 20, &[0, 0])),
        ("beyond link-local addresses", with(v6(), 22, &[0xfe, 0xc0])),
        ("fragmentation needed", too_big_v4()),
        ("packet too big", too_big_v6()),
        (
            "too big, in a frame with a priority",
            tagged(too_big_v6(), PRIORITY),
        ),
        (
            "too big, from a link-local router",
            with(too_big_v6(), 22, &[0xfe, 0x80]),
        ),
    ] {
        assert!(world.redirects(&frame), "{name}");
    }
}

#[test]
fn all_else_is_passed() {
    let world = serving(None);
    let to_client = [10, 0, 0, 2, 10, 0, 0, 9];
    for (name, frame) in [
        ("another port", with(v4(), 36, &[0, 8])),
        ("another port, bytes swapped", with(v4(), 36, &[7, 0])),
        ("another port, IPv6", with(v6(), 56, &[1, 7])),
        ("another address", with(v4(), 30, &[10, 0, 0, 3])),
        ("another address, IPv6", with(v6(), 38, &[0xfe])),
        ("from the endpoint", with(v4(), 26, &to_client)),
        ("UDP", with(v4(), 23, &[17])),
        ("ICMP", with(v4(), 23, &[1])),
        ("UDP over IPv6", with(v6(), 20, &[17])),
        ("ICMPv6, as neighbour discovery", with(v6(), 20, &[58])),
        ("hop-by-hop options", with(v6(), 20, &[0])),
        ("fragment header", with(v6(), 20, &[44])),
        ("first fragment", with(v4(), 20, &[0x20, 0])),
        ("middle fragment", with(v4(), 20, &[0x20, 0xb9])),
        ("last fragment", with(v4(), 20, &[0, 0xb9])),
        ("fragment with a high offset", with(v4(), 20, &[0x1f, 0])),
        ("IPv4 options", with(v4(), 14, &[0x46])),
        ("wrong version", with(v4(), 14, &[0x65])),
        ("wrong version, IPv6", with(v6(), 14, &[0x45])),
        ("from a link-local address", with(v6(), 22, &[0xfe, 0x80])),
        ("the last link-local prefix", with(v6(), 22, &[0xfe, 0xbf])),
        ("port unreachable", with(too_big_v4(), 35, &[3])),
        ("time exceeded", with(too_big_v6(), 54, &[3])),
        (
            "about a client's port",
            with(too_big_v4(), 62, &[0x12, 0x34, 0, 7]),
        ),
        ("about another address", with(too_big_v6(), 71, &[9])),
        ("about UDP", with(too_big_v4(), 51, &[17])),
        ("about UDP over IPv6", with(too_big_v6(), 68, &[17])),
        ("about a fragment", with(too_big_v4(), 48, &[0, 0xb9])),
        (
            "about a packet with options",
            with(too_big_v4(), 42, &[0x46]),
        ),
        (
            "about a link-local client",
            with(too_big_v6(), 86, &[0xfe, 0x80]),
        ),
        ("about less than the ports", too_big_v4()[..64].to_vec()),
        ("ARP", with(v4(), 12, &[8, 6])),
        ("802.3 length", with(v4(), 12, &[0, 40])),
        ("a VLAN", tagged(v4(), TAG)),
        ("two tags", tagged(tagged(v4(), PRIORITY), PRIORITY)),
        ("provider's tag", tagged(v4(), [0x88, 0xa8, 0, 0])),
    ] {
        assert!(!world.redirects(&frame), "{name}");
    }
}

/// The program for a VLAN leaves all other VLANs, and the frames without one, to the kernel.
#[test]
fn frames_of_the_vlan_alone_are_redirected() {
    let world = serving(Some(5));
    for (name, frame, expected) in [
        ("the VLAN, IPv4", tagged(v4(), TAG), true),
        ("the VLAN, IPv6", tagged(v6(), TAG), true),
        ("no priority", tagged(v4(), [0x81, 0, 0, 5]), true),
        ("another VLAN", tagged(v4(), [0x81, 0, 0x20, 6]), false),
        ("the same low byte", tagged(v4(), [0x81, 0, 1, 5]), false),
        ("priority alone", tagged(v4(), PRIORITY), false),
        ("no tag, IPv4", v4(), false),
        ("no tag, IPv6", v6(), false),
        ("two tags", tagged(tagged(v4(), TAG), TAG), false),
        ("provider's tag", tagged(v4(), [0x88, 0xa8, 0, 5]), false),
        ("another port", tagged(with(v4(), 36, &[0, 8]), TAG), false),
    ] {
        assert_eq!(world.redirects(&frame), expected, "{name}");
    }
}

#[test]
fn frames_that_end_within_the_headers_are_passed() {
    for (vlan, frames) in [
        (None, [v4(), v6()]),
        (Some(5), [tagged(v4(), TAG), tagged(v6(), TAG)]),
    ] {
        let world = serving(vlan);
        for whole in frames {
            assert!(world.redirects(&whole));
            for length in 14..whole.len() {
                assert!(!world.redirects(&whole[..length]), "{length}");
            }
        }
    }
}

#[test]
fn an_unspecified_address_stands_for_its_version() {
    let world = world(None);
    for (endpoint, v4_expected, v6_expected) in [
        ("0.0.0.0:7", true, false),
        ("[::]:7", false, true),
        ("[::ffff:0.0.0.0]:7", true, false),
    ] {
        assert!(
            !world.redirects(&v4()) && !world.redirects(&v6()),
            "{endpoint}"
        );
        world.serve(endpoint);
        for frame in [v4(), with(v4(), 30, &[192, 0, 2, 1])] {
            assert_eq!(world.redirects(&frame), v4_expected, "{endpoint}");
        }
        for frame in [v6(), with(v6(), 38, &[0x20, 1])] {
            assert_eq!(world.redirects(&frame), v6_expected, "{endpoint}");
        }
        assert!(!world.redirects(&with(v4(), 36, &[0, 8])));
        world.steering.stop(endpoint.parse().unwrap()).unwrap();
    }
}

#[test]
fn hosts_with_older_connections_are_left_to_the_kernel() {
    let world = world(None);
    world.serve("10.0.0.2:7");
    world.serve("[::]:7");
    for (host, frame) in [("10.0.0.9", v4()), ("fd00::9", v6())] {
        let host = host.parse().unwrap();
        let neighbour = if frame == v4() {
            with(v4(), 29, &[8])
        } else {
            with(v6(), 37, &[8])
        };
        world.steering.pass(host).unwrap();
        assert!(!world.redirects(&frame));
        assert!(world.redirects(&neighbour));
        world.steering.take(host).unwrap();
        assert!(world.redirects(&frame));
        world.steering.pass(host).unwrap();
        assert!(!world.redirects(&too_big_v4()) || !world.redirects(&too_big_v6()));
        world.steering.take(host).unwrap();
        assert!(world.redirects(&too_big_v4()) && world.redirects(&too_big_v6()));
        // Neither is an error.
        world.steering.take(host).unwrap();
    }
}

#[test]
fn connections_are_redirected_one_by_one() {
    let world = world_of(&Options {
        flows: 2,
        ..Options::default()
    });
    world.serve("0.0.0.0:80");
    let flows = world.steering.flows().unwrap();
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let ends = |own, other| (address(own), address(other));
    for (frame, (own, other)) in [
        (v4(), ends("10.0.0.2:7", "10.0.0.9:4660")),
        (v6(), ends("[fd00::2]:7", "[fd00::9]:4660")),
    ] {
        let is_v4 = own.is_ipv4();
        let (ports, source) = if is_v4 { (34, 26) } else { (54, 22) };
        assert!(!world.redirects(&frame));
        flows.add(own, other).unwrap();
        assert!(world.redirects(&frame));
        assert!(!world.redirects(&with(frame.clone(), ports, &[0x12, 0x35])));
        assert!(!world.redirects(&with(frame.clone(), ports + 2, &[0, 8])));
        assert!(!world.redirects(&with(frame.clone(), source, &[11])));
        flows.remove(own, other).unwrap();
        assert!(!world.redirects(&frame));
    }
    // Endpoints are found as before.
    assert!(world.redirects(&with(v4(), 36, &[0, 80])));
}

#[test]
fn a_queue_without_a_socket_passes_all() {
    let steering = Steering::load("lo", 1, &Options::default()).unwrap();
    steering.serve("10.0.0.2:7".parse().unwrap()).unwrap();
    assert!(!redirects(&steering.program, &v4()));
    let umem = Umem::new(128, 2048, false).unwrap();
    let socket = Socket::open(&umem, 64).unwrap();
    steering.connect(0, socket.as_fd()).unwrap();
    assert!(redirects(&steering.program, &v4()));
    drop(socket);
    assert!(
        !redirects(&steering.program, &v4()),
        "the kernel removed the socket"
    );
}

#[test]
fn limits_are_errors_by_name() {
    let steering = Steering::load("lo", 1, &Options::default()).unwrap();
    let endpoint = |port| SocketAddr::from(([10, 0, 0, 2], port));
    let mut ports = 1..;
    for port in ports.by_ref().take(MAX_ENDPOINTS as usize) {
        steering.serve(endpoint(port)).unwrap();
    }
    steering.serve(endpoint(1)).unwrap();
    let refused = steering.serve(endpoint(ports.next().unwrap()));
    assert!(matches!(
        refused,
        Err(SteerError::TooManyEndpoints {
            limit: MAX_ENDPOINTS,
            ..
        })
    ));
    let host = |number: u32| IpAddr::from(number.to_be_bytes());
    for number in 0..MAX_HOSTS {
        steering.pass(host(number)).unwrap();
    }
    let refused = steering.pass(host(MAX_HOSTS));
    assert!(matches!(
        refused,
        Err(SteerError::TooManyHosts {
            limit: MAX_HOSTS,
            ..
        })
    ));
}
