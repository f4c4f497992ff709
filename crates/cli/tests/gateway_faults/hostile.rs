//! Remote attackers and slow ends beside a client that must be served all the time.
//!
//! The adversary is a remote host on the server's own network: it sends any frame to the gateway,
//! and sees no frame of others. The test asserts service and bytes, and bounds of memory; speed is
//! measured elsewhere.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::io::ioctl_fionread;
use saiga_netdev::Device as _;
use saiga_netdev::tap::Tap;
use saiga_trials::scale::{by_scale, seed};
use saiga_trials::{Signal, sys};

use crate::bystander::{Bystander, bulk, command};
use crate::device::{assert_answer, assert_served, ping};
use crate::frames::{ACK, RST, SYN, Segment, garbage, handshake};
use crate::kernel_side::KernelSide;
use crate::link::send;
use crate::local_user;
use crate::world::{CLIENT, Gateway, Link, OTHER_PORT, PORT, SERVER, Wire, World, in_world};

/// SYNs of a flood, each from another host or port: half-open connections that never go on.
const SYNS: u32 = 200_000;
/// SYNs in ten milliseconds: 100,000 in a second.
const SYNS_OF_A_SLICE: u32 = 1000;
const SLICE: Duration = Duration::from_millis(10);
/// How long the bystander's rate without a flood is measured.
const MEASURED: Duration = Duration::from_secs(1);
/// Exchanges that show that the bystander is served.
const SERVED: u64 = 10;
/// New clients in a flood, and how long each of their attempts waits.
const VISITS: u32 = 3;
const ATTEMPT: Duration = Duration::from_millis(500);
/// Frames of the other attacks, and how many of them follow each other without a pause.
const FRAMES: u32 = 20_000;
const FRAMES_OF_A_PAUSE: u32 = 100;
/// Bursts of handshakes that are reset, and the number of the first one, which no flood has.
const BURSTS: u32 = 200;
const FIRST_RESET: u32 = 1 << 30;
/// Handshakes of hosts without proof that may reach the server: at once, and in a second; some more
/// than the limits of a listener.
const AT_ONCE: u64 = 1_100;
const IN_A_SECOND: u64 = 1_000;
/// Handshakes that reach the server at least: without them, the attack proves nothing.
const REACHING: u64 = 50;
/// A value that is larger than all buffers between client and server.
const VALUE: usize = 48 << 20;
/// Both buffers of a connection at their largest, and the library's rings, in KiB.
const MEMORY_KIB: u64 = 32 << 10;
/// A write that moves nothing for so long has met a closed window.
const CLOSED: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn attackers_do_not_stop_the_service_of_others() {
    for wire in Wire::ALL {
        in_world(wire, Link::Veth, |world| {
            let mut rng = Rng::with_seed(seed(63));
            let _other = world.redis(OTHER_PORT, &[]);
            let server = world.redis(PORT, &[]);
            let gateway = world.gateway();
            let bystander = world.bystander(SERVER, rng.u64(..));
            let kernel_side = KernelSide::start(world);
            let mut attacker = world.tap_of_switch("attack0");
            world.add_port("attack0");
            do_not_read(world, server.pid(), &gateway, &bystander);
            inject(&mut attacker, &bystander, &mut rng);
            send_garbage(&mut attacker, &bystander, &mut rng);
            reset_handshakes(world, &mut attacker, &bystander);
            for number in 0..by_scale(1, 10) {
                flood_with_syns(world, &mut attacker, &bystander, number * SYNS);
            }
            local_user::attack(&[PORT, OTHER_PORT], &bystander);
            assert_served(world);
            kernel_side.end();
            assert_eq!(bystander.end(), 0, "connections of the bystander");
            world.stop(gateway);
        });
    }
}

/// 100,000 SYNs in a second, from hosts that do not exist. The flooded listener and the other one
/// go on, though the backlog is full. Prints what the flood takes from the other one's client.
fn flood_with_syns(world: &World, attacker: &mut Tap, bystander: &Bystander, first: u32) {
    let quiet = bystander.rate(MEASURED);
    let before = bystander.exchanges();
    let wanted = before + SERVED;
    let visitor = world.thread_on_client(visit);
    let began = Instant::now();
    let mut sent = 0;
    while sent < SYNS || bystander.exchanges() < wanted || !visitor.is_finished() {
        assert!(began.elapsed() < PATIENCE, "no service during a flood");
        let slice = Instant::now();
        for _ in 0..SYNS_OF_A_SLICE {
            send(attacker, &handshake(first + sent % SYNS, SYN, PORT));
            sent += 1;
        }
        attacker.flush().unwrap();
        while slice.elapsed() < SLICE {
            sys::pause_1ms();
        }
    }
    let elapsed = began.elapsed();
    let flooded = (bystander.exchanges() - before) as f64 / elapsed.as_secs_f64();
    println!("{sent} SYNs in {elapsed:?}; exchanges in a second: {flooded:.0}, before {quiet:.0}");
    visitor.join().unwrap();
    bystander.progress(SERVED);
    assert_served(world);
}

/// Peers that reset their own handshakes never fill the backlog. The server sees no more of them
/// than their rate allows, because none has proven its address.
fn reset_handshakes(world: &World, attacker: &mut Tap, bystander: &Bystander) {
    let (began, before) = (Instant::now(), connections_received(world));
    for burst in 0..BURSTS {
        for flags in [SYN, RST] {
            for nth in 0..FRAMES_OF_A_PAUSE {
                let number = FIRST_RESET + burst * FRAMES_OF_A_PAUSE + nth;
                send(attacker, &handshake(number, flags, PORT));
            }
            attacker.flush().unwrap();
            sys::pause_1ms();
        }
    }
    bystander.progress(SERVED);
    let seen = connections_received(world) - before;
    let seconds = began.elapsed().as_secs() + 1;
    println!("{seen} handshakes reached the server in {seconds} s");
    assert!(seen > REACHING, "the attack does not reach the server");
    assert!(
        seen <= AT_ONCE + seconds * IN_A_SECOND,
        "{seen} in {seconds} s"
    );
}

/// Connections that the server has accepted so far.
fn connections_received(world: &World) -> u64 {
    let mut stream = assert_served(world);
    stream.write_all(b"INFO stats\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    let count = lines.find_map(|line| {
        let line = line.unwrap();
        line.strip_prefix("total_connections_received:")?
            .parse()
            .ok()
    });
    count.unwrap()
}

/// New clients of the flooded listener, one after the other.
fn visit() {
    let server = SocketAddr::new(SERVER.into(), PORT);
    for _ in 0..VISITS {
        let began = Instant::now();
        let mut stream = loop {
            match TcpStream::connect_timeout(&server, ATTEMPT) {
                Ok(stream) => break stream,
                Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
            }
        };
        ping(&mut stream);
    }
}

/// Sends frames of an attack no faster than the gateway takes them, so that its queue loses few.
fn send_paced(attacker: &mut Tap, mut next: impl FnMut() -> Vec<u8>) {
    for number in 0..FRAMES {
        send(attacker, &next());
        if number % FRAMES_OF_A_PAUSE == 0 {
            attacker.flush().unwrap();
            sys::pause_1ms();
        }
    }
    attacker.flush().unwrap();
}

/// Resets and SYNs with the addresses and ports of the bystander, but wrong sequence numbers
/// (RFC 5961 §3 and §4).
fn inject(attacker: &mut Tap, bystander: &Bystander, rng: &mut Rng) {
    let from = SocketAddrV4::new(CLIENT, bystander.local().port());
    send_paced(attacker, || {
        let segment = Segment {
            from,
            to: SocketAddrV4::new(SERVER, OTHER_PORT),
            sequence: rng.u32(..),
            acknowledgement: rng.u32(..),
            flags: [RST, RST | ACK, SYN, SYN | ACK][rng.usize(..4)],
        };
        segment.frame().to_vec()
    });
    bystander.progress(SERVED);
}

fn send_garbage(attacker: &mut Tap, bystander: &Bystander, rng: &mut Rng) {
    send_paced(attacker, || garbage(rng));
    bystander.progress(SERVED);
}

/// A server that does not read closes the client's window. A client that does not read stops the
/// server's output. Neither takes more memory of the gateway than its buffers, and afterwards each
/// byte arrives.
fn do_not_read(world: &World, server: u32, gateway: &Gateway, bystander: &Bystander) {
    let mut stream = assert_served(world);
    let before = gateway.census();
    let check = |what: &str| {
        bystander.progress(SERVED);
        let now = gateway.census();
        let grown_kib = now.resident_kib.saturating_sub(before.resident_kib);
        assert!(grown_kib < MEMORY_KIB, "{what}: {grown_kib} KiB more");
    };
    let value: Vec<u8> = (0..VALUE)
        .map(|place| (place % 251).to_le_bytes()[0])
        .collect();
    let mut request = Vec::new();
    command(&mut request, &[b"SET", b"large", &value]);

    sys::signal(server, Signal::STOP).unwrap();
    sys::wait_stopped(server).unwrap();
    let sent = write_until_closed(&mut stream, &request);
    assert!(sent < request.len(), "the window did not close");
    check("a server that does not read");
    sys::signal(server, Signal::CONT).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&request[sent..]).unwrap();
    assert_answer(&mut stream, b"+OK\r\n");

    let mut request = Vec::new();
    command(&mut request, &[b"GET", b"large"]);
    stream.write_all(&request.repeat(2)).unwrap();
    await_full(&stream, bystander);
    check("a client that does not read");
    let mut answer = Vec::new();
    bulk(&mut answer, &value);
    assert_answer(&mut stream, &answer);
    assert_answer(&mut stream, &answer);
}

/// Waits until no more bytes arrive at a client that does not read.
fn await_full(stream: &TcpStream, bystander: &Bystander) {
    let (began, mut arrived) = (Instant::now(), 0);
    loop {
        bystander.progress(SERVED);
        let now = ioctl_fionread(stream).unwrap();
        if now > 0 && now == arrived {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{now} bytes, and more arrive");
        arrived = now;
    }
}

/// Writes until no byte moves any more; returns how many did.
fn write_until_closed(stream: &mut TcpStream, request: &[u8]) -> usize {
    stream.set_write_timeout(Some(CLOSED)).unwrap();
    let mut sent = 0;
    while sent < request.len() {
        match stream.write(&request[sent..]) {
            Ok(count) => sent += count,
            // A call with a time-out is not restarted after a stop (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                break;
            }
        }
    }
    sent
}
