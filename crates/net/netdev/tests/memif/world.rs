//! Two ends of a link in one process.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use saiga_netdev::Device;
use saiga_netdev::memif::{End, Memif, Options};
use saiga_wire::ethernet::Mac;
use saiga_wire::virtio::Header;
use tempfile::TempDir;

/// How long a wake-up may take that must come.
const LIMIT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// A place for a socket.
pub(crate) struct World(TempDir);

impl World {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.path().join("memif.sock")
    }

    pub(crate) fn listener(&self) -> OwnedFd {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::SEQPACKET;
        let listener = socket_with(AddressFamily::UNIX, kind, flags, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(self.socket()).unwrap()).unwrap();
        listen(&listener, 16).unwrap();
        listener
    }

    pub(crate) fn server(&self, ring: u32) -> Memif {
        open(End::Server(Box::new(self.listener())), ring)
    }

    /// A client that has tried to connect.
    pub(crate) fn client(&self, ring: u32) -> Memif {
        let mut client = open(End::Client(self.socket()), ring);
        wait(&mut client);
        step(&mut client);
        client
    }

    /// A server and a client that are connected.
    pub(crate) fn pair(&self, ring: u32) -> [Memif; 2] {
        let mut pair = [self.server(ring), self.client(ring)];
        connect(&mut pair);
        pair
    }
}

fn open(end: End, ring: u32) -> Memif {
    let options = Options {
        name: "memif".to_owned(),
        end,
        id: 3,
        ring,
        mac: Mac([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        log: |line| eprintln!("{line}"),
    };
    Memif::open(options).unwrap()
}

/// Lets both ends handle their messages until the link is up.
pub(crate) fn connect(pair: &mut [Memif; 2]) {
    for _ in 0..20 {
        pair.iter_mut().for_each(|end| step(end));
    }
    assert!(pair.iter().all(Memif::is_up));
}

/// Handles messages, as before a wait.
pub(crate) fn step(device: &mut dyn Device) {
    device.before_wait().unwrap();
}

/// Waits as a worker does: not if frames wait.
pub(crate) fn wait(device: &mut Memif) {
    if !device.before_wait().unwrap() {
        sleep(&[device]);
    }
}

/// Sleeps until one of the devices has news.
pub(crate) fn sleep(devices: &[&Memif]) {
    let descriptors: Vec<_> = devices.iter().map(|one| one.descriptor()).collect();
    let polled = descriptors
        .iter()
        .map(|one| PollFd::new(one, PollFlags::IN));
    let mut polled: Vec<_> = polled.collect();
    assert!(poll(&mut polled, Some(&LIMIT)).unwrap() > 0, "no wake-up");
}

pub(crate) fn is_readable(device: &Memif) -> bool {
    let descriptor = device.descriptor();
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
}

/// Writes a frame; false if there is no room.
pub(crate) fn send(device: &mut dyn Device, bytes: &[u8], offload: &Header) -> bool {
    let Some(room) = device.room() else {
        return false;
    };
    room[..bytes.len()].copy_from_slice(bytes);
    device.send(bytes.len(), offload);
    true
}

/// All frames that wait.
pub(crate) fn received(device: &mut dyn Device) -> Vec<(Vec<u8>, Header)> {
    let mut frames = Vec::new();
    let each = &mut |frame: saiga_netdev::Frame<'_>| {
        frames.push((frame.bytes.to_vec(), frame.offload));
    };
    device.receive(100_000, each).unwrap();
    frames
}

/// A frame with bytes that tell its length and number.
pub(crate) fn frame(length: usize, number: usize) -> Vec<u8> {
    let bytes = (0..length).map(|at| u8::try_from((at * 7 + number * 31 + length) % 251).unwrap());
    bytes.collect()
}
