//! A worker between a client's stack and real servers of this host, over a link in memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, recv};
use saiga_gateway::{Anchor, Anchors, Opened};
use saiga_stack::{CloseReason, StateName};
use socket2::SockRef;

use client::{Client, World};

/// Anchors without the client's address: the tests here are about what follows.
#[derive(Debug)]
pub(crate) struct Loopback;

impl Anchors for Loopback {
    fn open(&mut self, _client: SocketAddr, server: SocketAddr) -> Opened {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())) {
            Ok(anchor) => {
                anchor.set_nonblocking(true).unwrap();
                Opened::Established(Anchor {
                    stream: anchor,
                    seat: None,
                    path_mtu: None,
                })
            }
            Err(_) => Opened::Refused,
        }
    }
}

/// A listener, and a thread that serves one connection of it.
fn serve<T: Send + 'static>(
    run: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (u16, thread::JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || run(listener.accept().unwrap().0));
    (port, server)
}

fn pattern(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(length as u64);
    (0..length).map(|_| random.u8(..)).collect()
}

#[test]
fn bytes_arrive_in_both_directions_and_so_do_their_ends() {
    let (port, server) = serve(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
        all.len()
    });
    let mut world = World::new(port);
    let sent = pattern(5_000_000);
    let client: &mut Client = &mut world.client;
    client.connect();
    client.send(&sent);
    client.shutdown();
    client.run_until(|client| client.has_ended());
    assert!(client.received() == sent, "other bytes came back");
    assert_eq!(server.join().unwrap(), sent.len());
}

#[test]
fn a_port_without_a_server_refuses() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut world = World::new(port);
    world.client.connect();
    world
        .client
        .run_until(|client| client.closed() == Some(CloseReason::Refused));
}

#[test]
fn a_server_that_resets_resets_the_client() {
    let (port, server) = serve(|mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        SockRef::from(&stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    });
    let mut world = World::new(port);
    world.client.connect();
    world.client.send(b"hello");
    world
        .client
        .run_until(|client| client.closed() == Some(CloseReason::Reset));
    server.join().unwrap();
}

#[test]
fn a_client_that_resets_resets_the_server() {
    let (port, server) = serve(|mut stream| {
        let mut first = [0; 5];
        stream.read_exact(&mut first).unwrap();
        stream.write_all(&first).unwrap();
        stream.read_exact(&mut first).unwrap_err().kind()
    });
    let mut world = World::new(port);
    world.client.connect();
    world.client.send(b"hello");
    world
        .client
        .run_until(|client| client.received() == b"hello");
    world.client.abort();
    world.client.run_until(|_| true);
    assert_eq!(server.join().unwrap(), std::io::ErrorKind::ConnectionReset);
}

/// No byte is lost, and each side learns which one is urgent (RFC 6093).
#[test]
fn urgent_bytes_stay_urgent_in_both_directions() {
    let (port, server) = serve(|mut stream| {
        let socket = SockRef::from(&stream);
        socket.send_out_of_band(b"abc").unwrap();
        socket.send(b"xyz").unwrap();
        poll(&mut [PollFd::new(&stream, PollFlags::PRI)], None).unwrap();
        let mut urgent = [0];
        let (_, count) = recv(&stream, &mut urgent, RecvFlags::OOB).unwrap();
        assert_eq!((&urgent, count), (b"f", 1));
        // As for every server that does not ask for it, the urgent byte is not in the stream.
        let mut others = [0; 5];
        stream.read_exact(&mut others).unwrap();
        assert_eq!(&others, b"deghi");
    });
    let mut world = World::new(port);
    let client = &mut world.client;
    client.connect();
    client.run_until(|client| client.received() == b"abcxyz");
    assert_eq!(client.urgent(), Some(3));
    client.send_urgent(b"def");
    client.send(b"ghi");
    client.run_until(|client| client.unsent() == 0);
    server.join().unwrap();
}

/// A server that closes its half first still gets what the client sends.
#[test]
fn a_half_closed_connection_goes_on() {
    let (port, server) = serve(|mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    let mut world = World::new(port);
    world.client.connect();
    world.client.run_until(|client| client.has_ended());
    world.client.send(b"still here");
    world.client.shutdown();
    world
        .client
        .run_until(|client| client.closed() == Some(CloseReason::Finished));
    assert_eq!(server.join().unwrap(), b"still here");
}

/// A client that stays away after the server's close does not hold an anchor.
#[test]
fn a_conversation_ends_when_its_server_has_closed() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut world = World::new(listener.local_addr().unwrap().port());
    let handle = world.handle().clone();
    let conversations = || handle.report().unwrap().conversations;
    let half = world.client.connect();
    world.client.run_until(|_| conversations() == 1);
    let (mut server, _) = listener.accept().unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    world.client.run_until(|client| client.has_ended());
    world.client.connect();
    world.client.run_until(|_| conversations() == 2);
    drop(listener.accept().unwrap());
    // The kernel was asked about the first one before.
    world.client.run_until(|_| conversations() == 1);
    assert_eq!(handle.report().unwrap().connections, 2);
    world.client.send(b"too late");
    world
        .client
        .run_until(|client| client.closed() == Some(CloseReason::Reset));
    world.client.choose(half);
    world.client.send(b"still here");
    world.client.run_until(|client| client.unsent() == 0);
    let mut bytes = [0; 10];
    server.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"still here");
}

/// An anchor takes a descriptor; it does not wait until TIME-WAIT is over.
#[test]
fn a_conversation_ends_although_its_connection_is_in_time_wait() {
    let (port, server) = serve(|mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap()
    });
    let mut world = World::new(port);
    let handle = world.handle().clone();
    world.client.connect();
    world.client.run_until(|client| client.has_ended());
    world.client.shutdown();
    world
        .client
        .run_until(|_| handle.report().unwrap().conversations == 0);
    assert_eq!(server.join().unwrap(), 0);
    let page = handle.page(0).unwrap();
    let states = page.connections.iter().map(|shown| shown.view.state);
    assert_eq!(states.collect::<Vec<_>>(), [Some(StateName::TimeWait)]);
}

/// A server that does not read closes the client's window; nothing is lost.
#[test]
fn a_slow_server_holds_the_client_back() {
    let (may_read, reads) = std::sync::mpsc::channel();
    let (port, server) = serve(move |mut stream| {
        reads.recv().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    let mut world = World::new(port);
    let sent = pattern(20_000_000);
    world.client.connect();
    world.client.send(&sent);
    world.client.run_until(|client| client.is_silent());
    let unsent = world.client.unsent();
    // The anchor's two buffers and the ring hold less.
    assert!(unsent > 5_000_000, "only {unsent} bytes were held back");
    may_read.send(()).unwrap();
    world.client.shutdown();
    world
        .client
        .run_until(|client| client.has_ended() && client.unsent() == 0);
    assert!(server.join().unwrap() == sent, "other bytes arrived");
}

/// Echoes what each of `count` connections sends, after its end.
fn serve_echoes(count: usize) -> (u16, thread::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let echoes: Vec<_> = (0..count)
            .map(|_| {
                let (mut stream, _) = listener.accept().unwrap();
                thread::spawn(move || {
                    let mut all = Vec::new();
                    stream.read_to_end(&mut all).unwrap();
                    stream.write_all(&all).unwrap();
                })
            })
            .collect();
        for echo in echoes {
            echo.join().unwrap();
        }
    });
    (port, server)
}

#[test]
fn many_connections_at_once_do_not_mix_their_bytes() {
    let (port, server) = serve_echoes(200);
    let mut world = World::new(port);
    world.client.check_many(200, 20_000);
    server.join().unwrap();
}

/// The connection, its anchor and both rings, while the server holds its bytes back.
#[test]
fn an_operator_sees_a_connection() {
    let (may_end, ends) = std::sync::mpsc::channel();
    let (port, server) = serve(move |mut stream| {
        stream.write_all(b"hello").unwrap();
        ends.recv().unwrap();
    });
    let mut world = World::new(port);
    assert!(world.handle().page(0).unwrap().connections.is_empty());
    world.client.connect();
    world
        .client
        .run_until(|client| client.received() == b"hello");
    let page = world.handle().page(0).unwrap();
    let [shown] = page.connections[..] else {
        panic!("{page:?}");
    };
    assert_eq!(page.next, None);
    assert_eq!(shown.view.flow.local().port(), port);
    assert_eq!(shown.view.state, Some(StateName::Established));
    let info = shown.view.info.unwrap();
    // 1500 bytes without the headers of IPv4 and TCP, and without timestamps.
    assert_eq!(info.mss, 1448);
    assert!(
        info.snd_wnd > 0 && info.rcv_wnd > 0 && info.cwnd > 0,
        "{info:?}"
    );
    let rings = shown.rings.unwrap();
    assert!(rings.is_accepted && rings.inbound == 0, "{rings:?}");
    let report = world.handle().report().unwrap();
    assert_eq!((report.connections, report.conversations), (1, 1));
    assert!(
        report.busy_turns > 0 && report.busy <= report.uptime,
        "{report:?}"
    );
    assert!(report.devices[0].received.frames > 0);
    may_end.send(()).unwrap();
    server.join().unwrap();
}

/// The client's answer to the ARP request of one worker comes to the other one.
#[test]
fn workers_share_what_they_learn_of_neighbours() {
    let (port, server) = serve(|mut stream| stream.write_all(b"hello").unwrap());
    let mut world = World::of_two_workers(port);
    world.client.connect();
    world
        .client
        .run_until(|client| client.received() == b"hello" || client.closed().is_some());
    assert_eq!(world.client.closed(), None);
    server.join().unwrap();
}

/// Each direction has memory for 16 connections at a time. The others wait, and none for ever.
#[test]
fn connections_that_wait_for_memory_get_it() {
    let (port, server) = serve_echoes(24);
    let mut world = World::with_memory(port, 512 << 10);
    world.client.check_many(24, 20_000);
    server.join().unwrap();
}
