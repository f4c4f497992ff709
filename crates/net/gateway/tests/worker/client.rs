//! A client with a stack of its own, and a worker on the other end of its link.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use saiga_gateway::{Clock, Handle, Memory as RingMemory, Parts, Worker, WorkerError};
use saiga_netdev::memory::Memory;
use saiga_netdev::{Device as _, Info, Offload};
use saiga_stack::{
    CloseReason, Config, ConnectionId, Events, Incoming, Interface, Link, Listen, Network, Owner,
    Secrets, Settings, Stack,
};
use saiga_wire::ethernet::{EtherType, Mac, Tags};

use crate::Loopback;

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const RING: u32 = 256 << 10;
/// A client is silent when it has had nothing to do for this long.
const SILENCE: Duration = Duration::from_millis(300);

/// Workers in threads of their own, and their client.
pub(crate) struct World {
    pub(crate) client: Client,
    workers: Vec<(Handle, JoinHandle<Result<(), WorkerError>>)>,
}

/// A client, its connections and their bytes.
pub(crate) struct Client {
    device: Memory,
    /// The other end of a second queue, which ARP goes to.
    second: Option<Memory>,
    stack: Stack,
    clock: Clock,
    server: SocketAddr,
    streams: Streams,
    /// The connection that most tests have.
    only: Option<ConnectionId>,
}

#[derive(Default)]
struct Streams(BTreeMap<ConnectionId, Stream>);

#[derive(Default)]
struct Stream {
    /// Bytes that are not acknowledged, and how many of them the stack knows.
    outbound: VecDeque<u8>,
    written: u32,
    unread: Vec<u8>,
    readable: u32,
    received: Vec<u8>,
    /// Number of bytes of which the last one is urgent.
    urgent: Option<usize>,
    has_ended: bool,
    closed: Option<CloseReason>,
}

impl Owner for Streams {
    fn on_incoming(&mut self, _id: ConnectionId, _incoming: &Incoming) {
        panic!("the client has no listeners");
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        let stream = self.0.entry(id).or_default();
        stream.outbound.drain(..events.acked as usize);
        stream.written -= events.acked;
        stream.readable += events.readable;
        stream.has_ended |= events.is_finished;
        stream.closed = stream.closed.or(events.closed);
    }

    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]) {
        let unread = &mut self.0.entry(id).or_default().unread;
        let end = at as usize + bytes.len();
        if unread.len() < end {
            unread.resize(end, 0);
        }
        unread[at as usize..end].copy_from_slice(bytes);
    }

    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]) {
        let outbound = &self.0[&id].outbound;
        for (to, from) in into.iter_mut().zip(outbound.range(at as usize..)) {
            *to = *from;
        }
    }
}

fn stack(host: u8, address: IpAddr, clock: Clock) -> Stack {
    let key = [u64::from(host), 9];
    let secrets = Secrets {
        flows: key,
        sequence_numbers: key,
        cookies: key,
    };
    let mut stack = Stack::new(Config::default(), secrets, clock.now());
    let interface = Interface {
        link: Link::Ethernet {
            mac: mac(host),
            tags: Tags::None,
        },
        mtu: 1500,
        addresses: vec![format!("{address}/24").parse().unwrap()],
    };
    let network = Network {
        interfaces: vec![interface],
        routes: Vec::new(),
    };
    stack.configure(network, clock.now()).unwrap();
    stack
}

fn mac(host: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, host])
}

fn info(host: u8) -> Info {
    Info {
        name: format!("memory{host}"),
        queue: 0,
        mac: Some(mac(host)),
        mtu: 1500,
        offload: Offload::NONE,
    }
}

impl World {
    /// A worker that serves `port`.
    pub(crate) fn new(port: u16) -> Self {
        Self::with_memory(port, 1 << 30)
    }

    /// A worker that serves `port`, with so many bytes for its rings.
    pub(crate) fn with_memory(port: u16, bytes: u64) -> Self {
        let clock = Clock::start();
        let (near, worker) = worker(port, bytes, clock);
        Self::of(Client::new(port, near, clock), vec![worker])
    }

    /// Two workers that serve `port`: ARP reaches the second one alone, and all else the first. The
    /// client knows their MAC address.
    pub(crate) fn of_two_workers(port: u16) -> Self {
        let clock = Clock::start();
        let (near, first) = worker(port, 1 << 30, clock);
        let (second, mut other) = worker(port, 1 << 30, clock);
        other.share_with(vec![first.handle()]);
        let mut client = Client::new(port, near, clock);
        client.second = Some(second);
        let now = clock.now();
        assert!(client.stack.set_neighbour(0, SERVER, mac(1), now));
        Self::of(client, vec![first, other])
    }

    fn of(client: Client, workers: Vec<Worker<Memory, Loopback>>) -> Self {
        let start = |mut worker: Worker<Memory, Loopback>| {
            let handle = worker.handle();
            (handle, std::thread::spawn(move || worker.run()))
        };
        Self {
            client,
            workers: workers.into_iter().map(start).collect(),
        }
    }

    /// Reaches the first worker.
    pub(crate) fn handle(&self) -> &Handle {
        &self.workers[0].0
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (handle, worker) in self.workers.drain(..) {
            handle.stop().unwrap();
            let ended = worker.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// A worker that serves `port`, and the other end of its link.
fn worker(port: u16, bytes: u64, clock: Clock) -> (Memory, Worker<Memory, Loopback>) {
    let [near, far] = Memory::pair([info(2), info(1)], 256).unwrap();
    let mut served = stack(1, SERVER, clock);
    let listen = Listen {
        address: None,
        port,
        backlog: 1024,
        has_cookies: false,
        buffer: RING,
    };
    served.listen(listen).unwrap();
    let parts = Parts {
        devices: vec![far],
        stack: served,
        clock,
        anchors: Loopback,
        settings: Settings::default(),
        ring_bytes: RING,
        memory: RingMemory::new(bytes, RING),
        spin: Duration::ZERO,
        on_unresolved: Box::new(|_, _| panic!("the stack resolves")),
        kernel: None,
        opener: None,
    };
    (near, Worker::new(parts).unwrap())
}

impl Client {
    fn new(port: u16, device: Memory, clock: Clock) -> Self {
        Self {
            device,
            second: None,
            stack: stack(2, CLIENT, clock),
            clock,
            server: SocketAddr::new(SERVER, port),
            streams: Streams::default(),
            only: None,
        }
    }

    pub(crate) fn connect(&mut self) -> ConnectionId {
        let local = SocketAddr::new(CLIENT, 0);
        let now = self.clock.now();
        let id = self.stack.connect(local, self.server, RING, now).unwrap();
        self.streams.0.insert(id, Stream::default());
        self.only = Some(id);
        id
    }

    /// The next calls are about this connection.
    pub(crate) fn choose(&mut self, id: ConnectionId) {
        self.only = Some(id);
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let id = self.only.unwrap();
        self.streams.0.get_mut(&id).unwrap().outbound.extend(bytes);
    }

    /// The last byte is urgent.
    pub(crate) fn send_urgent(&mut self, bytes: &[u8]) {
        self.write();
        self.send(bytes);
        let (id, length) = (self.only.unwrap(), u32::try_from(bytes.len()).unwrap());
        self.stack.write_urgent(id, length, self.clock.now());
        self.streams.0.get_mut(&id).unwrap().written += length;
    }

    /// Number of bytes of which the last one is urgent.
    pub(crate) fn urgent(&self) -> Option<usize> {
        self.stream().urgent
    }

    pub(crate) fn shutdown(&mut self) {
        self.write();
        self.stack.shutdown(self.only.unwrap(), self.clock.now());
    }

    pub(crate) fn abort(&mut self) {
        let _closed = self.stack.abort(self.only.unwrap(), self.clock.now());
    }

    pub(crate) fn received(&self) -> &[u8] {
        &self.stream().received
    }

    /// Whether the server has closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream().has_ended
    }

    pub(crate) fn closed(&self) -> Option<CloseReason> {
        self.stream().closed
    }

    /// Bytes that the server's side has not acknowledged.
    pub(crate) fn unsent(&self) -> usize {
        self.stream().outbound.len()
    }

    /// Whether nothing comes for a while.
    pub(crate) fn is_silent(&self) -> bool {
        !self.wait(SILENCE)
    }

    fn stream(&self) -> &Stream {
        &self.streams.0[&self.only.unwrap()]
    }

    /// Works until `is_over`.
    pub(crate) fn run_until(&mut self, mut is_over: impl FnMut(&Self) -> bool) {
        loop {
            self.turn();
            if is_over(self) {
                return;
            }
            let timeout = self
                .stack
                .next_timeout()
                .map(|at| at.since(self.clock.now()));
            let timeout = timeout.map_or(1_000_000, |span| span.0.min(1_000_000));
            self.wait(Duration::from_micros(timeout));
        }
    }

    /// Whether frames wait, now or after at most `timeout`.
    fn wait(&self, timeout: Duration) -> bool {
        let device = self.device.descriptor();
        let mut fds = [PollFd::new(&device, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).unwrap();
        poll(&mut fds, Some(&timeout)).unwrap() > 0
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        self.write();
        let Self {
            device,
            second,
            stack,
            streams,
            ..
        } = self;
        device
            .receive(64, &mut |frame| {
                let state = frame.offload.checksum_state();
                let _taken = stack.on_frame(frame.bytes, state, now, streams);
            })
            .unwrap();
        stack.on_timeout(now, streams);
        for (id, stream) in &mut streams.0 {
            if let Some(ahead) = stack.urgent_ahead(*id) {
                stream.urgent = Some(stream.received.len() + ahead as usize);
            }
            if stream.readable > 0 {
                let read = stream.unread.drain(..stream.readable as usize);
                stream.received.extend(read);
                stack.read(*id, std::mem::take(&mut stream.readable), now);
            }
        }
        while let Some(room) = device.room() {
            let Some(frame) = stack.poll_transmit(room, now, streams) else {
                break;
            };
            if let Some(second) = second
                && room[12..14] == EtherType::ARP.0.to_be_bytes()
            {
                let bytes = room[..frame.length].to_vec();
                second.room().unwrap()[..bytes.len()].copy_from_slice(&bytes);
                second.send(bytes.len(), &frame.offload);
                second.flush().unwrap();
                continue;
            }
            device.send(frame.length, &frame.offload);
        }
        device.flush().unwrap();
    }

    /// Tells the stack of bytes that were written.
    fn write(&mut self) {
        let now = self.clock.now();
        for (id, stream) in &mut self.streams.0 {
            let all = u32::try_from(stream.outbound.len()).unwrap();
            if all > stream.written {
                self.stack.write(*id, all - stream.written, now);
                stream.written = all;
            }
        }
    }

    /// Echoes other bytes on each of `count` connections.
    pub(crate) fn check_many(&mut self, count: usize, length: usize) {
        let sent: Vec<(ConnectionId, Vec<u8>)> = (0..count)
            .map(|number| (self.connect(), crate::pattern(length + number)))
            .collect();
        for (id, bytes) in &sent {
            self.only = Some(*id);
            self.send(bytes);
            self.shutdown();
        }
        self.run_until(|client| client.streams.0.values().all(|stream| stream.has_ended));
        for (id, bytes) in &sent {
            assert!(
                self.streams.0[id].received == *bytes,
                "other bytes came back"
            );
        }
    }
}
