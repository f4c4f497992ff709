//! Two network namespaces with a veth pair between them: `vs` of the host, `vc` of the client.
#![expect(unsafe_code, reason = "no crate of the project wraps unshare(2)")]

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::process::Command;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::LinkNameSpaceType;
use saiga_netdev::Device as _;
use saiga_netdev::xdp::{Interface, OpenError, Options, Queue};
use saiga_wire::virtio::Header;

pub(crate) const HOST_V4: &str = "10.77.0.1";
pub(crate) const HOST_V6: &str = "fd77::1";

/// How long a frame may take that must come.
const LIMIT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// A network namespace, which ends with this value and its processes.
pub(crate) struct Namespace(File);

impl Namespace {
    fn new() -> Self {
        let made = thread::spawn(|| {
            // SAFETY: no memory is passed.
            let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(done, 0, "needs root: {}", std::io::Error::last_os_error());
            run("ip", &["link", "set", "lo", "up"]);
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        Self(made.join().unwrap())
    }

    /// Runs `work` in a thread in the namespace. Its sockets and processes stay there.
    pub(crate) fn within<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let enter = || {
            let kind = Some(LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(self.0.as_fd(), kind).unwrap();
            work()
        };
        let done = thread::scope(|scope| scope.spawn(enter).join());
        done.unwrap_or_else(|failure| std::panic::resume_unwind(failure))
    }

    /// A path by which ip(8) finds the namespace.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Both hosts.
pub(crate) struct World {
    pub(crate) host: Namespace,
    pub(crate) client: Namespace,
}

impl World {
    /// A pair of one queue.
    pub(crate) fn new() -> Self {
        Self::with_queues(1)
    }

    /// A pair of `queues` queues in each direction.
    pub(crate) fn with_queues(queues: u32) -> Self {
        let world = Self {
            host: Namespace::new(),
            client: Namespace::new(),
        };
        let count = queues.to_string();
        let own = ["numrxqueues", &count, "numtxqueues", &count];
        let (link, peer) = (
            ["link", "add", "vs"],
            ["type", "veth", "peer", "name", "vc"],
        );
        world.host.within(|| {
            run("ip", &[&link[..], &own, &peer, &own].concat());
            run("ip", &["link", "set", "vc", "netns", &world.client.path()]);
            set_up("vs", ["10.77.0.1/24", "fd77::1/64"]);
        });
        world
            .client
            .within(|| set_up("vc", ["10.77.0.2/24", "fd77::2/64"]));
        world
    }

    /// Opens `vs` and its first queue, and serves port 7 of all its addresses.
    pub(crate) fn open(&self, options: &Options) -> (Interface, Queue) {
        let interface = self.host.within(|| Interface::open("vs", options)).unwrap();
        let queue = self.queue(&interface, 0).unwrap();
        interface.serve("0.0.0.0:7".parse().unwrap()).unwrap();
        interface.serve("[::]:7".parse().unwrap()).unwrap();
        (interface, queue)
    }

    pub(crate) fn queue(&self, interface: &Interface, queue: u16) -> Result<Queue, OpenError> {
        self.host.within(|| interface.open_queue(queue))
    }

    /// Lets the client send a SYN; the socket keeps trying until it is dropped.
    pub(crate) fn syn(&self, to: &str) -> OwnedFd {
        let to: SocketAddr = to.parse().unwrap();
        self.client.within(|| {
            let family = if to.is_ipv4() {
                AddressFamily::INET
            } else {
                AddressFamily::INET6
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None).unwrap();
            let connected = rustix::net::connect(&socket, &to);
            assert_eq!(connected, Err(rustix::io::Errno::INPROGRESS));
            socket
        })
    }
}

/// Gives an interface its addresses and sets it up.
fn set_up(name: &str, addresses: [&str; 2]) {
    // Without detection of duplicates, addresses are usable at once.
    for address in addresses {
        let option: &[&str] = if address.contains(':') {
            &["nodad"]
        } else {
            &[]
        };
        let add = ["address", "add", address, "dev", name];
        run("ip", &[&add[..], option].concat());
    }
    run("ip", &["link", "set", name, "up"]);
}

/// Runs a program in the namespace of the thread.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {text}{errors}"
    );
    text
}

/// A frame that has come.
pub(crate) struct Received {
    /// Port of the sender.
    pub(crate) port: u16,
    pub(crate) bytes: Vec<u8>,
    pub(crate) offload: Header,
}

/// Waits until the descriptor of a queue is readable.
pub(crate) fn wait(queue: &Queue) {
    let descriptor = queue.descriptor();
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    let ready = rustix::event::poll(&mut polled, Some(&LIMIT)).unwrap();
    assert_eq!(ready, 1, "no frame came");
}

/// The next frame of a queue, which must be a SYN to port 7.
pub(crate) fn next(queue: &mut Queue) -> Received {
    let mut received = None;
    while received.is_none() {
        wait(queue);
        let keep = &mut |frame: saiga_netdev::Frame<'_>| {
            received = Some(Received {
                port: 0,
                bytes: frame.bytes.to_vec(),
                offload: frame.offload,
            });
        };
        queue.receive(1, keep).unwrap();
    }
    let received = received.unwrap();
    let link = if received.bytes[12..14] == [0x81, 0] {
        18
    } else {
        14
    };
    let ip = if received.bytes[link] >> 4 == 6 {
        40
    } else {
        20
    };
    let tcp = &received.bytes[link + ip..];
    assert_eq!(tcp[2..4], [0, 7], "another port: {:02x?}", received.bytes);
    assert_eq!(tcp[13] & 0x3f, 2, "not a SYN: {:02x?}", received.bytes);
    Received {
        port: u16::from_be_bytes([tcp[0], tcp[1]]),
        ..received
    }
}

/// The SYN of a client's socket. Those of sockets before may come first, again.
pub(crate) fn syn_of(queue: &mut Queue, client: &OwnedFd) -> Received {
    let name = rustix::net::getsockname(client).unwrap();
    let port = SocketAddr::try_from(name).unwrap().port();
    loop {
        let received = next(queue);
        if received.port == port {
            return received;
        }
    }
}

/// Waits until a client's socket was refused.
pub(crate) fn assert_refused(client: &OwnedFd) {
    let mut polled = [PollFd::new(client, PollFlags::OUT)];
    let ready = rustix::event::poll(&mut polled, Some(&LIMIT)).unwrap();
    assert_eq!(ready, 1, "no answer came");
    let error = rustix::net::sockopt::socket_error(client).unwrap();
    assert_eq!(error, Err(rustix::io::Errno::CONNREFUSED));
}
