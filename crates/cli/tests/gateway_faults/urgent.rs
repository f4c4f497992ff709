//! Urgent bytes across a gateway whose system calls are limited, and a client that does nothing
//! after the server's close(2).

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use saiga_trials::witness::await_true;

use crate::world::{Link, PORT, SERVER, Wire, in_world, sockets};

const PATIENCE: Duration = Duration::from_secs(20);

/// Sends three bytes, of which the last is urgent, and three more.
fn write(mut stream: &TcpStream, bytes: &[u8; 6]) {
    send(stream, &bytes[..3], SendFlags::OOB).unwrap();
    stream.write_all(&bytes[3..]).unwrap();
}

/// Receives them: the urgent byte is not in the stream (`man 7 tcp`).
fn read(mut stream: &TcpStream, bytes: &[u8; 6]) {
    poll(&mut [PollFd::new(stream, PollFlags::PRI)], None).unwrap();
    let (mut urgent, mut others) = ([0], [0; 5]);
    recv(stream, &mut urgent, RecvFlags::OOB).unwrap();
    stream.read_exact(&mut others).unwrap();
    assert_eq!(urgent, bytes[2..3]);
    assert_eq!(others, [bytes[0], bytes[1], bytes[3], bytes[4], bytes[5]]);
}

#[test]
fn urgent_bytes_arrive_and_a_closed_server_leaves_no_socket() {
    for wire in [Wire::Tap, Wire::Xdp] {
        in_world(wire, Link::Veth, |world| {
            let listener = TcpListener::bind((SERVER, PORT)).unwrap();
            world.close_kernel_side();
            let gateway = world.gateway();
            let before = sockets();
            let server = thread::spawn(move || {
                let (stream, _) = listener.accept().unwrap();
                write(&stream, b"abcxyz");
                read(&stream, b"defghi");
            });
            let mut client = world.connect(PORT, PATIENCE).unwrap();
            read(&client, b"abcxyz");
            write(&client, b"defghi");
            server.join().unwrap();
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            await_true(|| sockets() == before, || "the anchor stays".to_owned());
            drop(client);
            world.stop(gateway);
        });
    }
}
