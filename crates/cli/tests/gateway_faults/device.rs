//! Faults of the device and of the hosts at its ends: a link that goes down, another MTU, another
//! MAC address, a removed address, a stopped server, and a gateway without descriptors.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use saiga_trials::scale::seed;
use saiga_trials::{Signal, sys};

use crate::bystander::{Bystander, bulk, command};
use crate::kernel_side::KernelSide;
use crate::support::said;
use crate::world::{Gateway, Link, OTHER_PORT, PORT, SERVER, Wire, World, in_world};

/// A client without an answer for so long is one that gets none.
const SILENCE: Duration = Duration::from_millis(200);
/// A client that the gateway serves gets its answer in this time, after retransmissions.
const PATIENCE: Duration = Duration::from_secs(20);
/// Exchanges that show that the bystander is served.
const SERVED: u64 = 10;
/// Connections that wait for the stopped server, at most: one more than this number.
const ACCEPT_QUEUE: usize = 4;

#[test]
fn faults_of_the_device_and_its_hosts_pass() {
    for wire in Wire::ALL {
        in_world(wire, Link::Veth, |world| {
            let _other = world.redis(OTHER_PORT, &[]);
            let server = world.redis(PORT, &["--tcp-backlog", &ACCEPT_QUEUE.to_string()]);
            let gateway = world.gateway();
            let bystander = world.bystander(SERVER, seed(62));
            let kernel_side = KernelSide::start(world);
            flap(world, &bystander);
            change_mtu(world, &bystander);
            change_mac(world, &bystander);
            remove_address(world, &bystander);
            stop_server(world, server.pid(), &bystander);
            exhaust_descriptors(world, &gateway, &bystander);
            kernel_side.end();
            assert_eq!(bystander.end(), 0, "connections of the bystander");
            world.stop(gateway);
        });
    }
}

/// The device goes down and up: connections outlive it.
fn flap(world: &World, bystander: &Bystander) {
    for _ in 0..10 {
        world.set_wire("down");
        world.set_wire("up");
    }
    bystander.progress(SERVED);
    world.set_wire("down");
    assert!(world.connect(PORT, SILENCE).is_err(), "the device is down");
    world.set_wire("up");
    bystander.progress(SERVED);
    assert_served(world);
}

/// A client's link with a smaller MTU: new connections follow it, and older ones go on when it is
/// as before.
fn change_mtu(world: &World, bystander: &Bystander) {
    for mtu in [1280, 1500] {
        world.on_client(&format!("link set client0 mtu {mtu}"));
        let mut stream = assert_served(world);
        let value = vec![b'x'; 200_000];
        let (mut request, mut answer) = (Vec::new(), b"+OK\r\n".to_vec());
        command(&mut request, &[b"SET", b"mtu", &value]);
        command(&mut request, &[b"GET", b"mtu"]);
        bulk(&mut answer, &value);
        stream.write_all(&request).unwrap();
        assert_answer(&mut stream, &answer);
    }
    bystander.progress(SERVED);
}

/// The client's host gets another network card.
fn change_mac(world: &World, bystander: &Bystander) {
    world.on_client("link set client0 address 02:00:00:00:09:77");
    bystander.progress(SERVED);
    assert_served(world);
}

/// The server's host loses its address: no new client is served until the address is back.
fn remove_address(world: &World, bystander: &Bystander) {
    world.change_address("del");
    assert!(world.connect(PORT, SILENCE).is_err(), "there is no address");
    world.change_address("add");
    assert_served(world);
    bystander.progress(SERVED);
}

/// A stopped server: clients wait in its backlog, further ones get no answer, and all go on
/// afterwards.
fn stop_server(world: &World, server: u32, bystander: &Bystander) {
    sys::signal(server, Signal::STOP).unwrap();
    sys::wait_stopped(server).unwrap();
    let mut waiting = Vec::new();
    let mut silent = 0;
    for _ in 0..ACCEPT_QUEUE + 4 {
        match world.connect(PORT, SILENCE) {
            Ok(stream) => waiting.push(stream),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
                silent += 1;
            }
        }
    }
    assert!(!waiting.is_empty(), "the backlog has room");
    assert!(silent > 0, "the backlog has a limit");
    bystander.progress(SERVED);
    sys::signal(server, Signal::CONT).unwrap();
    for stream in &mut waiting {
        ping(stream);
    }
    assert_served(world);
}

/// A gateway without descriptors leaves new clients without an answer; those that it has go on.
fn exhaust_descriptors(world: &World, gateway: &Gateway, bystander: &Bystander) {
    let highest = highest_descriptor(gateway);
    // As the gateway's own user: root may lack the right.
    let limit = |most: u64| {
        let user = ["--reuid", "daemon", "--regid", "daemon", "--clear-groups"];
        let mut command = Command::new("setpriv");
        command.args(user).args(["prlimit", "--pid"]);
        command.arg(gateway.pid().to_string());
        let out = said(command.arg(format!("--nofile={most}:")));
        assert_eq!(out.code, Some(0), "{}", out.stderr);
    };
    let before = soft_limit(gateway);
    limit(highest + 3);
    let (mut served, mut refused) = (Vec::new(), 0);
    // More clients than numbers up to the limit.
    for _ in 0..highest + 8 {
        match world.connect(PORT, SILENCE) {
            Ok(stream) => served.push(stream),
            Err(_) => refused += 1,
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3, "the gateway has a limit");
    served.iter_mut().for_each(ping);
    bystander.progress(SERVED);
    limit(before);
    assert_served(world);
}

/// The highest descriptor of a gateway. Those of the library are beyond all of them.
fn highest_descriptor(gateway: &Gateway) -> u64 {
    let held = fs::read_dir(format!("/proc/{}/fd", gateway.pid())).unwrap();
    let numbers = held.map(|entry| -> u64 {
        let name = entry.unwrap().file_name();
        name.to_str().unwrap().parse().unwrap()
    });
    numbers.filter(|number| *number < 1000).max().unwrap()
}

/// The soft limit of descriptors of a gateway.
fn soft_limit(gateway: &Gateway) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/limits", gateway.pid())).unwrap();
    let line = text.lines().find(|line| line.starts_with("Max open files"));
    let word = line.unwrap().split_whitespace().nth(3);
    word.unwrap().parse().unwrap()
}

/// A new client is served; returns its connection.
pub(crate) fn assert_served(world: &World) -> TcpStream {
    let mut stream = world.connect(PORT, PATIENCE).unwrap();
    ping(&mut stream);
    stream
}

pub(crate) fn ping(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    assert_answer(stream, b"+PONG\r\n");
}

pub(crate) fn assert_answer(stream: &mut TcpStream, expected: &[u8]) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer == expected, "an answer has other bytes");
}
