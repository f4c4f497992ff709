//! Two hosts in network namespaces: the server's, which the thread of a test is in, and a remote
//! one with a thread of its own. A veth connects them.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use saiga_anchor::{Anchors, Config, Opening, Routes, proceed};
use saiga_trials::snapshot::ip;
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
        leave_descriptors();
        leave_network();
        // Otherwise the kernel gives the TUN device an address, some time after it is up.
        std::fs::write("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1").unwrap();
        let remote = build();
        test(&remote);
    };
    if let Err(failure) = thread::spawn(run).join() {
        std::panic::resume_unwind(failure);
    }
}

/// Gives the calling thread, and those that it starts, descriptors of their own. Processes that
/// other tests start would keep a closed listener or device open until they execute their program.
#[expect(unsafe_code, reason = "close_range(2) closes descriptors of others")]
fn leave_descriptors() {
    let flags = libc::CLOSE_RANGE_UNSHARE.cast_signed();
    // SAFETY: with the flag, the descriptors of other threads stay open. This thread has opened
    // none, and gets none from them.
    let done = unsafe { libc::close_range(3, libc::c_uint::MAX, flags) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
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
    // Without detection of duplicates, addresses are usable at once.
    ip_batch(&format!(
        "link set lo up
         link add vs type veth peer name vc
         link set vc netns {namespace}
         link set vs addrgenmode none
         address add 10.77.0.1/24 dev vs
         address add fd77::1/64 dev vs nodad
         address add fe80::1/64 dev vs nodad"
    ));
    remote.run(|| {
        ip_batch(
            "link set lo up
             link set vc addrgenmode none
             address add 10.77.0.2/24 dev vc
             address add 10.77.0.3/24 dev vc
             address add fd77::2/64 dev vc nodad
             address add fd77::3/64 dev vc nodad
             address add fe80::2/64 dev vc nodad
             link set vc up",
        );
    });
    ip("link set vs up");
    // Both ends carry packets when an answer has come.
    remote.run(|| command("ping", "-n -c 1 -i 0.01 -w 20 10.77.0.1"));
    remote
}

/// Runs the lines with ip(8) in the network namespace of the calling thread.
fn ip_batch(lines: &str) {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success(), "{lines}");
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
    routes: Routes,
    pub(crate) anchors: Anchors,
}

impl Gateway {
    pub(crate) fn new(served: SocketAddr) -> Self {
        Self {
            served,
            listener: TcpListener::bind(served).unwrap(),
            routes: up(&[served]),
            anchors: Anchors::new().unwrap(),
        }
    }

    /// Removes listener, rules and routes.
    pub(crate) fn close(self) {
        self.routes.down().unwrap();
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

/// The anchor when it is established, now or when the kernel has sent another SYN.
#[track_caller]
pub(crate) fn settled(mut opening: Opening) -> TcpStream {
    if let Opening::Waiting(anchor) = opening {
        poll(&mut [PollFd::new(&anchor, PollFlags::OUT)], None).unwrap();
        opening = proceed(anchor).unwrap();
    }
    established(opening)
}

/// Passes a byte in each direction.
#[track_caller]
pub(crate) fn talk(mut one: &TcpStream, mut other: &TcpStream) {
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
