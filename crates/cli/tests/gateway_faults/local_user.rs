//! A user without rights on the server's host. The adversary knows the ports of the servers, and
//! reads the abstract names of the library and the gateway in /proc/net/unix; every user may
//! connect to such a name.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};
use rustix::process::Uid;
use rustix::thread::set_thread_uid;

use crate::bystander::Bystander;
use crate::world::SERVER;

const NOBODY: u32 = 65_534;
/// How often every name is visited.
const ROUNDS: usize = 20;
/// Visits that stay open at a time, so that queues of the listeners fill.
const MOST_OPEN: usize = 500;
/// Exchanges of the bystander after each round.
const SERVED: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(20);

/// Connects to the servers and to every name, and sends garbage to the names.
pub(crate) fn attack(ports: &'static [u16], bystander: &Bystander) {
    let mut known = BTreeSet::new();
    for round in 0..ROUNDS {
        let names = names();
        known.extend(names.iter().map(|(name, _)| name.clone()));
        // Credentials belong to a thread for the kernel, and threads begin in this namespace.
        let user = thread::spawn(move || {
            set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            let open: Vec<OwnedFd> = visit(&names, round);
            ports.iter().for_each(|port| ping(*port));
            open
        });
        let open = user.join().unwrap();
        bystander.progress(SERVED);
        drop(open);
    }
    println!("names: {known:?}");
    assert!(!known.is_empty(), "the library has names");
}

/// Abstract names in this network namespace, with the types of their sockets.
fn names() -> Vec<(String, SocketType)> {
    // `/proc/net` is that of the process's first thread.
    let table = fs::read_to_string("/proc/thread-self/net/unix").unwrap();
    let sockets = table.lines().skip(1).filter_map(|line| {
        // Num RefCount Protocol Flags Type St Inode Path
        let mut fields = line.split_whitespace();
        let kind = match fields.nth(4)? {
            "0001" => SocketType::STREAM,
            "0002" => SocketType::DGRAM,
            "0005" => SocketType::SEQPACKET,
            _ => return None,
        };
        let name = fields.nth(2)?.strip_prefix('@')?;
        Some((name.to_owned(), kind))
    });
    sockets.collect()
}

/// Connects to every name; returns the open connections. Refusals are what the attacker expects.
fn visit(names: &[(String, SocketType)], round: usize) -> Vec<OwnedFd> {
    let garbage = [u8::try_from(round).unwrap(); 512];
    let mut open = Vec::new();
    for (name, kind) in names.iter().cycle().take(MOST_OPEN.min(names.len() * 16)) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, *kind, flags, None).unwrap();
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        if connect(&socket, &address).is_ok() {
            let _sent = send(&socket, &garbage, SendFlags::NOSIGNAL);
            open.push(socket);
        }
    }
    open
}

/// The user may use the server as every local client may.
fn ping(port: u16) {
    let mut stream = TcpStream::connect((SERVER, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}
