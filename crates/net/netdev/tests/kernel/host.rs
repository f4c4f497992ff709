//! A host on a device: the stack of this project with the echo service (RFC 862) at port 7.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use std::{iter, mem, thread};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use saiga_netdev::{Device, Info};
use saiga_stack::{
    Config, ConnectionId, Events, Incoming, Interface, Link, Listen, Network, Offload, Owner,
    Secrets, Segmentation, Stack,
};
use saiga_wire::ethernet::Tags;

use crate::namespace::STACK;

/// Bytes of a connection's ring. A byte stays where it came until its echo is acknowledged.
const BUFFER: u32 = 256 << 10;
const PORT: u16 = 7;
/// Frames of a batch.
const MOST: usize = 64;
/// Longer waits mean that the connection does not work.
const LONG: Duration = Duration::from_secs(60);

/// The stack, its service and its device.
pub(crate) struct Host<D> {
    pub(crate) device: D,
    stack: Stack,
    echo: Echo,
    begin: Instant,
    pub(crate) seen: Seen,
}

/// What has passed the device.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) largest_received: usize,
    pub(crate) largest_sent: usize,
    /// Received frames with an open checksum.
    pub(crate) open: u64,
}

impl<D: Device + Send> Host<D> {
    pub(crate) fn new(device: D) -> Self {
        let info = device.info();
        let config = Config {
            offload: offload(info),
            ..Config::default()
        };
        let secrets = Secrets {
            flows: [1, 2],
            sequence_numbers: [3, 4],
            cookies: [5, 6],
        };
        let mut stack = Stack::new(config, secrets, saiga_stack::Instant(0));
        stack
            .configure(network(info), saiga_stack::Instant(0))
            .unwrap();
        let listen = Listen {
            address: None,
            port: PORT,
            backlog: 256,
            has_cookies: true,
            buffer: BUFFER,
        };
        stack.listen(listen).unwrap();
        Self {
            device,
            stack,
            echo: Echo::default(),
            begin: Instant::now(),
            seen: Seen::default(),
        }
    }

    /// Serves in another thread while `test` runs.
    pub(crate) fn serve_during(&mut self, test: impl FnOnce()) {
        let end = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        thread::scope(|scope| {
            // Dropped when the test returns, and when it panics: the scope waits for the thread.
            let _ends = Ends(&end);
            scope.spawn(|| self.serve(&end));
            test();
        });
    }

    fn serve(&mut self, end: &OwnedFd) {
        while !self.wait(end) {
            self.receive();
            let now = self.now();
            self.stack.on_timeout(now, &mut self.echo);
            self.echo.work(&mut self.stack, now);
            self.transmit(now);
        }
    }

    /// Waits for frames or the next time-out; returns whether the service ends.
    fn wait(&self, end: &OwnedFd) -> bool {
        let timeout = self.stack.next_timeout().map(|at| {
            let wait = Duration::from_micros(at.since(self.now()).0);
            Timespec::try_from(wait).unwrap()
        });
        let device = self.device.descriptor();
        let mut descriptors = [
            PollFd::new(&device, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        match poll(&mut descriptors, timeout.as_ref()) {
            // DPDK's driver of TAP devices sends signals.
            Err(Errno::INTR) => false,
            polled => polled.unwrap() > 0 && !descriptors[1].revents().is_empty(),
        }
    }

    fn receive(&mut self) {
        let now = self.now();
        let Self {
            device,
            stack,
            echo,
            seen,
            ..
        } = self;
        let mut each = |frame: saiga_netdev::Frame<'_>| {
            seen.largest_received = seen.largest_received.max(frame.bytes.len());
            seen.open += u64::from(frame.offload.checksum.is_some());
            let state = frame.offload.checksum_state();
            let _verdict = stack.on_frame(frame.bytes, state, now, echo);
        };
        device.receive(MOST, &mut each).unwrap();
    }

    fn transmit(&mut self, now: saiga_stack::Instant) {
        while let Some(room) = self.device.room() {
            let Some(outgoing) = self.stack.poll_transmit(room, now, &mut self.echo) else {
                break;
            };
            self.seen.largest_sent = self.seen.largest_sent.max(outgoing.length);
            self.device.send(outgoing.length, &outgoing.offload);
        }
        self.device.flush().unwrap();
    }

    fn now(&self) -> saiga_stack::Instant {
        saiga_stack::Instant(u64::try_from(self.begin.elapsed().as_micros()).unwrap())
    }
}

/// Writes to an eventfd when it is dropped.
struct Ends<'a>(&'a OwnedFd);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let _written = rustix::io::write(self.0, &1_u64.to_ne_bytes());
    }
}

fn offload(info: &Info) -> Offload {
    Offload {
        checksum: info.offload.checksum,
        segmentation: info.offload.segmentation.map(|one| Segmentation {
            checksum: one.checksum,
            most_bytes: one.most_bytes,
        }),
    }
}

fn network(info: &Info) -> Network {
    let link = info.mac.map_or(Link::None, |mac| Link::Ethernet {
        mac,
        tags: Tags::None,
    });
    Network {
        interfaces: vec![Interface {
            link,
            mtu: info.mtu,
            addresses: STACK.map(|address| address.parse().unwrap()).to_vec(),
        }],
        routes: Vec::new(),
    }
}

/// Sends bytes to the echo service at each address, and reads to the end.
pub(crate) fn converse(bytes: usize) {
    STACK
        .iter()
        .for_each(|address| converse_with(address, bytes));
}

/// As [`converse`], at one address with the length of its network.
pub(crate) fn converse_with(address: &str, bytes: usize) {
    let (host, _length) = address.split_once('/').unwrap();
    let to = SocketAddr::new(host.parse().unwrap(), PORT);
    let mut random = fastrand::Rng::with_seed(3);
    let sent: Vec<u8> = iter::repeat_with(|| random.u8(..)).take(bytes).collect();
    let stream = TcpStream::connect_timeout(&to, LONG).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    let mut received = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            (&stream).write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        (&stream).read_to_end(&mut received).unwrap();
    });
    assert!(received == sent, "{to}: {} of {bytes}", received.len());
}

/// The connections of the service.
#[derive(Default)]
struct Echo {
    connections: HashMap<ConnectionId, Ring>,
    incoming: Vec<ConnectionId>,
    /// Connections about which something has changed.
    changed: Vec<ConnectionId>,
}

/// The bytes of a connection. Counts are positions in its stream, which is the same both ways.
struct Ring {
    bytes: Box<[u8]>,
    received: u64,
    echoed: u64,
    acked: u64,
    /// Bytes whose room the stack may use again.
    freed: u64,
    is_finished: bool,
}

impl Ring {
    fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER as usize].into(),
            received: 0,
            echoed: 0,
            acked: 0,
            freed: 0,
            is_finished: false,
        }
    }

    /// The places of `length` bytes from a position on: up to the end of the ring, and behind its
    /// beginning.
    fn places(&mut self, position: u64, length: usize) -> [&mut [u8]; 2] {
        let begin = usize::try_from(position % u64::from(BUFFER)).unwrap();
        let (head, tail) = self.bytes.split_at_mut(begin);
        let first = length.min(tail.len());
        [&mut tail[..first], &mut head[..length - first]]
    }
}

impl Echo {
    fn work(&mut self, stack: &mut Stack, now: saiga_stack::Instant) {
        for id in mem::take(&mut self.incoming) {
            self.connections.insert(id, Ring::new());
            stack.accept(id, BUFFER, now, self);
        }
        let count = |bytes: u64| u32::try_from(bytes).unwrap();
        for id in mem::take(&mut self.changed) {
            let Some(ring) = self.connections.get_mut(&id) else {
                continue;
            };
            stack.read(id, count(ring.acked - ring.freed), now);
            stack.write(id, count(ring.received - ring.echoed), now);
            (ring.freed, ring.echoed) = (ring.acked, ring.received);
            if mem::take(&mut ring.is_finished) {
                stack.shutdown(id, now);
            }
        }
    }
}

impl Owner for Echo {
    fn on_incoming(&mut self, id: ConnectionId, _incoming: &Incoming) {
        self.incoming.push(id);
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        if events.closed.is_some() {
            self.connections.remove(&id);
        }
        if let Some(ring) = self.connections.get_mut(&id) {
            ring.received += u64::from(events.readable);
            ring.acked += u64::from(events.acked);
            ring.is_finished |= events.is_finished;
            self.changed.push(id);
        }
    }

    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]) {
        if let Some(ring) = self.connections.get_mut(&id) {
            let position = ring.freed + u64::from(at);
            let [first, second] = ring.places(position, bytes.len());
            let (head, tail) = bytes.split_at(first.len());
            first.copy_from_slice(head);
            second.copy_from_slice(tail);
        }
    }

    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]) {
        if let Some(ring) = self.connections.get_mut(&id) {
            let position = ring.acked + u64::from(at);
            let [first, second] = ring.places(position, into.len());
            let (head, tail) = into.split_at_mut(first.len());
            head.copy_from_slice(first);
            tail.copy_from_slice(second);
        }
    }
}
