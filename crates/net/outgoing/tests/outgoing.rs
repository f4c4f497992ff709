//! Connections of programs in a network namespace, with a test in the place of the gateway: the
//! kernel's TCP is the program's end, and no packet leaves the host.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use saiga_anchor::{Config, Routes};
use saiga_outgoing::{Accepted, Attempt, Destinations, Outgoing};
use socket2::{Domain, Socket, Type};

/// Addresses of this host, and of others that do not exist.
const OWN: [&str; 2] = ["10.77.0.1", "fd77::1"];
const REMOTE: [&str; 2] = ["10.77.1.5:6379", "[fd77:1::5]:6379"];

/// Runs ip(8); returns what it prints.
#[track_caller]
fn ip(arguments: &str) -> String {
    let done = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments}: {errors}");
    String::from_utf8(done.stdout).unwrap()
}

/// Runs a test on a host of its own.
fn in_world(test: impl FnOnce() + Send + 'static) {
    let run = || {
        leave_network();
        ip("link set lo up");
        ip("link add vs type veth peer name vc");
        // The kernel adds link-local addresses at a time of its own.
        ip("link set vs addrgenmode none");
        ip("link set vc addrgenmode none");
        for own in ["10.77.0.1/16", "fd77::1/16"] {
            ip(&format!("address add {own} dev vs nodad"));
        }
        ip("link set vs up");
        ip("link set vc up");
        test();
    };
    if let Err(failure) = thread::spawn(run).join() {
        std::panic::resume_unwind(failure);
    }
}

#[expect(unsafe_code, reason = "unshare(2) is unsafe for files alone")]
fn leave_network() {
    // SAFETY: the flag is not CLONE_FILES, which could close descriptors of others.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("this test needs root");
}

fn up() -> (Routes, Outgoing) {
    let mut routes = Routes::up(&Config::default(), &[]).unwrap();
    let own = OWN.map(|own| own.parse::<IpAddr>().unwrap());
    let networks = ["10.77.0.0/16", "fd77::/16"].map(|one| one.parse().unwrap());
    let destinations = Destinations {
        networks: networks.into_iter().zip(own).collect(),
        own: BTreeSet::from(own),
        user: 1,
    };
    let outgoing = Outgoing::up(&mut routes, &destinations).unwrap();
    (routes, outgoing)
}

/// A program that connects, in a thread of its own.
fn connecting(to: &str) -> JoinHandle<io::Result<TcpStream>> {
    let to: SocketAddr = to.parse().unwrap();
    thread::spawn(move || TcpStream::connect(to))
}

/// Waits for the next attempt.
fn attempt(outgoing: &mut Outgoing) -> Attempt {
    loop {
        if let Some(attempt) = outgoing.next_attempt().unwrap() {
            return attempt;
        }
        await_descriptors(outgoing);
    }
}

fn accepted(outgoing: &Outgoing) -> Accepted {
    loop {
        if let Some(accepted) = outgoing.accept().unwrap() {
            return accepted;
        }
        await_descriptors(outgoing);
    }
}

fn await_descriptors(outgoing: &Outgoing) {
    let descriptors: Vec<_> = outgoing.descriptors().collect();
    let mut waits: Vec<_> = descriptors
        .iter()
        .map(|one| PollFd::new(one, PollFlags::IN))
        .collect();
    poll(&mut waits, None).unwrap();
}

/// The error of a connect(2) of which `answer` decides.
fn error_of(outgoing: &mut Outgoing, to: &str, answer: fn(&Outgoing, &Attempt)) -> Option<i32> {
    let program = connecting(to);
    let attempt = attempt(outgoing);
    answer(outgoing, &attempt);
    program.join().unwrap().unwrap_err().raw_os_error()
}

#[test]
fn a_connection_that_is_admitted_has_the_names_of_both_ends() {
    in_world(|| {
        let (_routes, mut outgoing) = up();
        for (own, remote) in OWN.into_iter().zip(REMOTE) {
            let program = connecting(remote);
            let attempt = attempt(&mut outgoing);
            assert_eq!(attempt.remote.to_string(), remote);
            assert_eq!(attempt.local.ip().to_string(), own);
            outgoing.admit(&attempt).unwrap();
            let Accepted {
                stream: mut gateway,
                local,
                remote: seen,
            } = accepted(&outgoing);
            let mut program = program.join().unwrap().unwrap();
            assert_eq!((local, seen), (attempt.local, attempt.remote));
            assert_eq!(program.local_addr().unwrap(), local);
            assert_eq!(program.peer_addr().unwrap(), seen);
            outgoing.forget(local, seen).unwrap();
            gateway.set_nonblocking(false).unwrap();
            let mut byte = [0];
            gateway.write_all(b"a").unwrap();
            program.read_exact(&mut byte).unwrap();
            program.write_all(b"b").unwrap();
            gateway.read_exact(&mut byte).unwrap();
            assert_eq!(&byte, b"b");
        }
    });
}

#[test]
fn an_answer_decides_how_the_program_s_call_fails() {
    in_world(|| {
        let (_routes, mut outgoing) = up();
        for remote in REMOTE {
            check_refusal(&mut outgoing, remote);
            let unreachable = error_of(&mut outgoing, remote, |outgoing, attempt| {
                outgoing.report_unreachable(attempt).unwrap();
            });
            assert_eq!(unreachable, Some(libc::EHOSTUNREACH), "{remote}");
        }
    });
}

#[test]
fn a_connection_is_held_again_when_it_was_forgotten() {
    in_world(|| {
        let (_routes, mut outgoing) = up();
        let program = connecting(REMOTE[0]);
        let first = attempt(&mut outgoing);
        outgoing.admit(&first).unwrap();
        let gateway = accepted(&outgoing);
        drop(program.join().unwrap().unwrap());
        outgoing.forget(gateway.local, gateway.remote).unwrap();
        drop(gateway);
        // The same connection: the SYN is a copy of the first one.
        let program = connecting(REMOTE[0]);
        let second = attempt(&mut outgoing);
        assert_eq!(second.remote, first.remote);
        outgoing.refuse(&second).unwrap();
        program.join().unwrap().unwrap_err();
    });
}

/// Bytes reach the listener if the kernel looks for their connection while it exchanges it for the
/// request. It does not do that at will, so here there is neither.
#[test]
fn the_listener_resets_nobody_until_the_connection_is_forgotten() {
    in_world(|| {
        let (_routes, mut outgoing) = up();
        for remote in REMOTE {
            let remote: SocketAddr = remote.parse().unwrap();
            let asks = socket(remote);
            asks.connect(&remote.into()).unwrap_err();
            let attempt = attempt(&mut outgoing);
            drop(asks);
            outgoing.admit(&attempt).unwrap();
            let program = established(attempt.local, remote);
            for bytes in [b"a", b"b"] {
                program.send(bytes).unwrap();
            }
            outgoing.forget(attempt.local, remote).unwrap();
            program.send(b"c").unwrap();
            poll(&mut [PollFd::new(&program, PollFlags::ERR)], None).unwrap();
            let error = program.take_error().unwrap().unwrap();
            assert_eq!(error.raw_os_error(), Some(libc::ECONNRESET));
        }
    });
}

fn socket(to: SocketAddr) -> Socket {
    Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None).unwrap()
}

/// A connection of which the other end knows nothing (TCP_REPAIR in net/ipv4/tcp.c).
#[expect(unsafe_code, reason = "no crate has this option")]
fn established(local: SocketAddr, remote: SocketAddr) -> Socket {
    let program = socket(remote);
    program.bind(&local.into()).unwrap();
    let repair = |is_on: libc::c_int| {
        let (fd, value) = (program.as_raw_fd(), (&raw const is_on).cast());
        // SAFETY: the option reads four bytes, which live that long.
        let set = unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR, value, 4) };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
    };
    repair(1);
    program.connect(&remote.into()).unwrap();
    repair(0);
    program
}

/// The programs of all gateways see every connect(2) of the machine.
#[test]
fn gateways_of_two_namespaces_do_not_disturb_each_other() {
    in_world(|| {
        let (_routes, mut outgoing) = up();
        in_world(move || {
            // The routes end with the value.
            let (_routes, mut outgoing) = up();
            check_refusal(&mut outgoing, REMOTE[0]);
        });
        check_refusal(&mut outgoing, REMOTE[0]);
    });
}

fn check_refusal(outgoing: &mut Outgoing, remote: &str) {
    let refused = error_of(outgoing, remote, |outgoing, attempt| {
        outgoing.refuse(attempt).unwrap();
    });
    assert_eq!(refused, Some(libc::ECONNREFUSED), "{remote}");
}

#[test]
fn other_connections_are_the_kernel_s() {
    in_world(|| {
        let (_routes, mut outgoing) = up();
        for own in OWN {
            // In the networks, and on this host.
            let listener = TcpListener::bind((own.parse::<IpAddr>().unwrap(), 0)).unwrap();
            let to = listener.local_addr().unwrap();
            let program = TcpStream::connect(to).unwrap();
            assert_eq!(listener.accept().unwrap().1, program.local_addr().unwrap());
        }
        // No route leads there.
        let other = TcpStream::connect("192.0.2.1:80").unwrap_err();
        assert_eq!(other.raw_os_error(), Some(libc::ENETUNREACH));
        // Another host, which has no network.
        let elsewhere = thread::spawn(|| {
            leave_network();
            TcpStream::connect(REMOTE[0]).unwrap_err().raw_os_error()
        });
        assert_eq!(elsewhere.join().unwrap(), Some(libc::ENETUNREACH));
        assert_eq!(outgoing.next_attempt().unwrap(), None);
    });
}

/// The host gets an address after the start.
#[test]
fn a_connection_to_this_host_is_passed() {
    in_world(|| {
        let (_routes, mut outgoing) = up();
        ip("address add 10.77.1.5/32 dev vs");
        let listener = TcpListener::bind("10.77.1.5:6379").unwrap();
        let program = connecting(REMOTE[0]);
        let attempt = attempt(&mut outgoing);
        outgoing.pass(&attempt).unwrap();
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(program.join().unwrap().unwrap().local_addr().unwrap(), peer);
        // The next one is not held.
        TcpStream::connect(REMOTE[0]).unwrap();
        assert_eq!(outgoing.next_attempt().unwrap(), None);
    });
}

/// The gateway's own connections to servers of this host.
#[test]
fn connections_of_the_gateway_s_user_are_not_held() {
    in_world(|| {
        let (_routes, outgoing) = up();
        let connected = Command::new("setpriv")
            .args([
                "--reuid=1",
                "--clear-groups",
                "bash",
                "-c",
                "exec 3<>/dev/tcp/10.77.1.5/7",
            ])
            .output()
            .unwrap();
        let text = String::from_utf8(connected.stderr).unwrap();
        // The kernel asks for the neighbour by itself.
        assert!(text.contains("No route to host"), "{text}");
        drop(outgoing);
    });
}

#[test]
fn nobody_reaches_the_listeners_at_their_own_addresses() {
    in_world(|| {
        let (_routes, outgoing) = up();
        let listening = Command::new("ss").args(["-Hltn"]).output().unwrap();
        let listening = String::from_utf8(listening.stdout).unwrap();
        let addresses: Vec<SocketAddr> = listening
            .lines()
            .filter_map(|line| line.split_whitespace().nth(3)?.parse().ok())
            .collect();
        assert_eq!(addresses.len(), 2, "{listening}");
        for address in addresses {
            let error = TcpStream::connect(address).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED), "{address}");
        }
        assert!(outgoing.accept().unwrap().is_none());
    });
}

#[test]
fn nothing_is_left_at_the_end() {
    in_world(|| {
        let state = || {
            [
                "rule",
                "-6 rule",
                "route show table all",
                "-6 route show table all",
            ]
            .map(ip)
        };
        let before = state();
        let (routes, outgoing) = up();
        assert_ne!(state(), before);
        drop(outgoing);
        routes.down().unwrap();
        assert_eq!(state(), before);
        let listener = TcpListener::bind(("0.0.0.0", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        ip("address add 10.77.1.5/32 dev vs");
        TcpStream::connect(("10.77.1.5", port)).unwrap();
    });
}
