//! Two hosts with a wire between them: `v0` in the namespace of the test, `v1` in another one.
#![expect(unsafe_code, reason = "no crate of the project wraps unshare(2)")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Command, Stdio};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use saiga_interface::{Changes, Follower, RouteKind, Snapshot};

/// How long a test waits for an announcement before it fails.
const PATIENCE: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// Runs a test in a thread with a network namespace of its own, which the processes and sockets of
/// the thread are in.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let run = move || {
        unshare();
        test();
    };
    if let Err(failure) = thread::spawn(run).join() {
        std::panic::resume_unwind(failure);
    }
}

/// Moves the calling thread into a network namespace of its own.
fn unshare() {
    // SAFETY: no memory is passed.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(done, 0, "needs root: {}", std::io::Error::last_os_error());
}

/// Runs ip(8) with words that are separated by spaces.
pub(crate) fn ip(words: &str) {
    run(Command::new("ip").args(words.split(' ')));
}

/// Runs ip(8) with one command in each line.
pub(crate) fn ip_batch(lines: &str) {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
}

pub(crate) fn run(command: &mut Command) {
    let done = command.output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {errors}");
}

/// Sets a value below `/proc/sys/net` of the namespace of the thread.
pub(crate) fn sysctl(name: &str, value: &str) {
    // The kernel shows the namespace of the thread that opens the file.
    std::fs::write(format!("/proc/sys/net/{name}"), value).unwrap();
}

/// Makes `v0` and `v1` in one namespace, both up.
pub(crate) fn pair() {
    ip("link add v0 address 02:00:00:00:00:01 type veth peer name v1 address 02:00:00:00:00:02");
    ip("link set v0 up");
    ip("link set v1 up");
}

/// Makes a pair whose addresses do not change their state later. The kernel goes on after `up`;
/// this waits for the end, and returns a follower of `v0` that has nothing to tell.
pub(crate) fn settled_pair() -> Follower {
    sysctl("ipv6/conf/default/accept_dad", "0");
    pair();
    settle("v0")
}

/// Waits until the kernel has given an interface its link-local address and the local route for it,
/// which is the last thing that it does after `up`.
fn settle(name: &str) -> Follower {
    let (mut follower, mut snapshot) = follow(name);
    let is_settled = |snapshot: &Snapshot| {
        let mut routes = snapshot.device.routes.iter();
        routes.any(|route| {
            route.kind == RouteKind::Local && route.destination.to_string().starts_with("fe80")
        })
    };
    while !is_settled(&snapshot) {
        until(&mut follower, |changes| changes.cause.is_some());
        snapshot = follower.renew().unwrap();
    }
    while follower.read().unwrap() != Changes::default() {}
    follower
}

/// The other host: a namespace that ends with the value.
pub(crate) struct Peer(File);

impl Peer {
    /// Makes `v0` here, and `v1` on another host with the addresses 10.0.0.2/24 and fd00::2/64.
    /// Both are settled.
    pub(crate) fn start() -> Self {
        let open = || {
            unshare();
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        let peer = Self(thread::spawn(open).join().unwrap());
        sysctl("ipv6/conf/default/accept_dad", "0");
        pair();
        let (process, descriptor) = (std::process::id(), peer.0.as_raw_fd());
        ip(&format!(
            "link set v1 netns /proc/{process}/fd/{descriptor}"
        ));
        peer.inside(|| {
            sysctl("ipv6/conf/v1/accept_dad", "0");
            ip("address add 10.0.0.2/24 dev v1");
            ip("address add fd00::2/64 dev v1");
            ip("link set v1 up");
            settle("v1");
        });
        settle("v0");
        peer
    }

    /// Runs something on the other host.
    pub(crate) fn inside(&self, work: impl FnOnce() + Send) {
        let run = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.0.as_fd(), network).unwrap();
            work();
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap());
    }
}

pub(crate) fn follow(name: &str) -> (Follower, Snapshot) {
    Follower::start(OsStr::new(name)).unwrap()
}

/// Reads changes until some are as wanted; returns all of them together.
#[track_caller]
pub(crate) fn until(follower: &mut Follower, wanted: impl Fn(&Changes) -> bool) -> Changes {
    let mut all = Changes::default();
    loop {
        let Changes { cause, neighbours } = follower.read().unwrap();
        all.cause = all.cause.max(cause);
        all.neighbours.extend(neighbours);
        if wanted(&all) {
            return all;
        }
        let mut descriptors = [PollFd::new(&*follower, PollFlags::IN)];
        let ready = poll(&mut descriptors, Some(&PATIENCE)).unwrap();
        assert_eq!(ready, 1, "nothing more is announced after {all:?}");
    }
}
