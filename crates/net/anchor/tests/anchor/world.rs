//! Two hosts in network namespaces: the server's, which the thread of a test is in, and a remote
//! one with a thread of its own. A veth connects them.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use saiga_anchor::{Anchors, Config, Opening, Routes};
use socket2::{Domain, Socket, Type};

/// Addresses of the server's host.
pub(crate) const SERVER: [&str; 2] = ["10.77.0.1", "fd77::1"];
/// Addresses of the remote host.
pub(crate) const REMOTE: [&str; 2] = ["10.77.0.2", "fd77::2"];
/// More addresses of the remote host.
pub(crate) const OTHER: [&str; 2] = ["10.77.0.3", "fd77::3"];

type Job = Box<dyn FnOnce() + Send>;

/// The remote host.
pub(crate) struct Remote {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Remote {
    /// Runs `job` on the remote host.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::channel();
        let job = move || answer.send(job()).unwrap();
        self.jobs.as_ref().unwrap().send(Box::new(job)).unwrap();
        answered
            .recv()
            .expect("the job on the remote host panicked")
    }

    /// A connection from `local` of the remote host, any port, to `to`.
    pub(crate) fn connect(&self, local: &str, to: SocketAddr) -> TcpStream {
        let local = address(local, 0);
        self.run(move || connect_from(local, to).unwrap())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let _ended = self.thread.take().unwrap().join();
    }
}

/// Runs `test` on the server's host.
pub(crate) fn in_world(test: impl FnOnce(&Remote) + Send + 'static) {
    let run = move || {
        leave_network();
        let remote = build();
        test(&remote);
    };
    if let Err(failure) = thread::spawn(run).join() {
        std::panic::resume_unwind(failure);
    }
}

/// Gives the calling thread a network namespace of its own.
#[expect(unsafe_code, reason = "unshare(2) is unsafe for files alone")]
fn leave_network() {
    // SAFETY: the flag is not CLONE_FILES, which could close descriptors of others.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("tests of anchors need root");
}

fn build() -> Remote {
    let (started, start) = mpsc::channel();
    let (jobs, queue) = mpsc::channel::<Job>();
    let thread = thread::spawn(move || {
        leave_network();
        started.send(gettid()).unwrap();
        queue.into_iter().for_each(|job| job());
    });
    let remote = Remote {
        jobs: Some(jobs),
        thread: Some(thread),
    };
    let namespace = start.recv().unwrap().as_raw_nonzero().to_string();
    ip("link set lo up");
    ip("link add vs type veth peer name vc");
    ip(&format!("link set vc netns {namespace}"));
    // Without detection of duplicates, addresses are usable at once.
    ip("link set vs addrgenmode none");
    ip("address add 10.77.0.1/24 dev vs");
    ip("address add fd77::1/64 dev vs nodad");
    ip("address add fe80::1/64 dev vs nodad");
    remote.run(|| {
        ip("link set lo up");
        ip("link set vc addrgenmode none");
        for host in 2..=3 {
            ip(&format!("address add 10.77.0.{host}/24 dev vc"));
            ip(&format!("address add fd77::{host}/64 dev vc nodad"));
        }
        ip("address add fe80::2/64 dev vc nodad");
        ip("link set vc up");
    });
    ip("link set vs up");
    // Both ends carry packets when an answer has come.
    remote.run(|| command("ping", "-n -c 1 -i 0.01 -w 20 10.77.0.1"));
    remote
}

/// Runs ip(8) in the network namespace of the calling thread; returns what it prints.
#[track_caller]
pub(crate) fn ip(arguments: &str) -> String {
    command("ip", arguments)
}

/// Runs a program in the network namespace of the calling thread; returns what it prints.
#[track_caller]
pub(crate) fn command(program: &str, arguments: &str) -> String {
    let done = Command::new(program).args(arguments.split(' ')).output();
    let done = done.unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{program} {arguments}: {text}{errors}"
    );
    text
}

pub(crate) fn address(text: &str, port: u16) -> SocketAddr {
    SocketAddr::new(text.parse::<IpAddr>().unwrap(), port)
}

/// A connection from `local`, whose port may be 0.
pub(crate) fn connect_from(local: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&local.into())?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

/// Rules and routes for `served`, with the numbers that are the default.
pub(crate) fn up(served: &[SocketAddr]) -> Routes {
    Routes::up(&Config::default(), served).unwrap()
}

/// A listener at `served` with rules and routes, and anchors to it.
pub(crate) struct Gateway {
    pub(crate) served: SocketAddr,
    pub(crate) listener: TcpListener,
    _routes: Routes,
    pub(crate) anchors: Anchors,
}

impl Gateway {
    pub(crate) fn new(served: SocketAddr) -> Self {
        Self {
            served,
            listener: TcpListener::bind(served).unwrap(),
            _routes: up(&[served]),
            anchors: Anchors::new().unwrap(),
        }
    }

    /// An anchor of `client`, and the server's end.
    #[track_caller]
    pub(crate) fn open(&mut self, client: SocketAddr) -> (TcpStream, TcpStream) {
        let anchor = established(self.anchors.connect(client, self.served).unwrap());
        let (accepted, peer) = self.listener.accept().unwrap();
        assert_eq!(peer, client);
        (anchor, accepted)
    }
}

#[track_caller]
pub(crate) fn established(opening: Opening) -> TcpStream {
    let Opening::Established(anchor) = opening else {
        panic!("{opening:?}");
    };
    anchor.set_nonblocking(false).unwrap();
    anchor
}

/// Passes a byte in each direction.
#[track_caller]
pub(crate) fn talk(mut one: &TcpStream, mut other: &TcpStream) {
    use std::io::{Read, Write};
    for (text, ends) in [(b'a', 0), (b'b', 1)] {
        let mut byte = [0];
        if ends == 0 {
            one.write_all(&[text]).unwrap();
            other.read_exact(&mut byte).unwrap();
        } else {
            other.write_all(&[text]).unwrap();
            one.read_exact(&mut byte).unwrap();
        }
        assert_eq!(byte, [text]);
    }
}
