//! Two stacks of Saiga.

use std::net::{IpAddr, SocketAddr};

use saiga_stack::{
    Config, ConnectionId, Events, Incoming, Instant, Interface, Link, Listen, Micros, Network,
    Offload, Owner, Secrets, Segmentation, Stack,
};
use saiga_wire::ethernet::{Mac, Tags};
use saiga_wire::offload::{ChecksumState, Fill};

use crate::pair::{Kind, Pair, REQUEST_BYTES};

/// Receive buffers for requests and for bulk data.
const SMALL: u32 = 16 << 10;
const LARGE: u32 = 1 << 20;
/// Connections that are open at a time when they are opened and closed.
const CHURN: u64 = 20_000;

/// An owner that copies all bytes from and to one place.
struct Scratch {
    bytes: Vec<u8>,
    incoming: Vec<ConnectionId>,
    events: Vec<(ConnectionId, Events)>,
}

impl Owner for Scratch {
    fn on_incoming(&mut self, id: ConnectionId, _incoming: &Incoming) {
        self.incoming.push(id);
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        self.events.push((id, *events));
    }

    fn place(&mut self, _id: ConnectionId, _at: u32, bytes: &[u8]) {
        self.bytes[..bytes.len()].copy_from_slice(bytes);
    }

    fn fetch(&mut self, _id: ConnectionId, _at: u32, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes[..into.len()]);
    }
}

struct Host {
    stack: Stack,
    owner: Scratch,
    /// The memory of events that were handled.
    handled: Vec<(ConnectionId, Events)>,
}

pub(crate) struct Ours {
    client: Host,
    server: Host,
    now: Instant,
    connections: Vec<ConnectionId>,
    buffer: Vec<u8>,
    segments: u64,
    state: ChecksumState,
    receive_buffer: u32,
    /// Bytes of bulk data that the server has read, and room in the client's send buffer.
    read: usize,
    room: u32,
    opened: u64,
}

fn address(host: u8) -> IpAddr {
    IpAddr::from([10, 0, host, host])
}

fn host(number: u8, kind: Kind, most_connections: u32, now: Instant) -> Host {
    let offload = match kind {
        Kind::Segments => Config::default().offload,
        Kind::SuperSegments => Offload {
            checksum: Fill::PseudoHeader,
            segmentation: Some(Segmentation {
                checksum: Fill::PseudoHeader,
                most_bytes: 64 << 10,
            }),
        },
    };
    let config = Config {
        most_connections,
        offload,
        ..Config::default()
    };
    let key = [number.into(), 1];
    let secrets = Secrets {
        flows: key,
        sequence_numbers: key,
        cookies: key,
    };
    let mut stack = Stack::new(config, secrets, now);
    // The client has many addresses, because one has only 28,232 ports.
    let addresses = match number {
        1 => (0..64).map(|last| format!("10.0.1.{last}/16")).collect(),
        _ => vec![format!("{}/16", address(number))],
    };
    let interface = Interface {
        link: Link::Ethernet {
            mac: Mac([2, 0, 0, 0, 0, number]),
            tags: Tags::None,
        },
        mtu: 1500,
        addresses: addresses.iter().map(|one| one.parse().unwrap()).collect(),
    };
    let network = Network {
        interfaces: vec![interface],
        routes: Vec::new(),
    };
    stack.configure(network, now).unwrap();
    Host {
        stack,
        owner: Scratch {
            bytes: vec![0; 70_000],
            incoming: Vec::new(),
            events: Vec::new(),
        },
        handled: Vec::new(),
    }
}

impl Ours {
    /// Two hosts with room for so many connections each.
    pub(crate) fn new(kind: Kind, most_connections: u32) -> Self {
        let now = Instant(1_000_000);
        let receive_buffer = match kind {
            Kind::Segments => SMALL,
            Kind::SuperSegments => LARGE,
        };
        let mut server = host(2, kind, most_connections, now);
        let listen = Listen {
            address: None,
            port: 80,
            backlog: 1 << 16,
            has_cookies: false,
            buffer: receive_buffer,
        };
        server.stack.listen(listen).unwrap();
        Self {
            client: host(1, kind, most_connections, now),
            server,
            now,
            connections: Vec::new(),
            buffer: vec![0; 70_000],
            segments: 0,
            state: match kind {
                Kind::Segments => ChecksumState::Verify,
                Kind::SuperSegments => ChecksumState::Partial,
            },
            receive_buffer,
            read: 0,
            room: 0,
            opened: 0,
        }
    }

    fn connect(&mut self) -> ConnectionId {
        let from = u8::try_from(self.opened / 28_000 % 64).unwrap();
        self.opened += 1;
        let from = SocketAddr::new(IpAddr::from([10, 0, 1, from]), 0);
        let to = SocketAddr::new(address(2), 80);
        let stack = &mut self.client.stack;
        stack
            .connect(from, to, self.receive_buffer, self.now)
            .unwrap()
    }

    /// Passes frames until there are none.
    fn pump(&mut self) {
        loop {
            let before = self.segments;
            self.pass_both();
            if self.segments == before {
                return;
            }
        }
    }

    /// Passes frames to the server and back; returns the responses that were read.
    fn pass_both(&mut self) -> usize {
        let sent = pass(
            &mut self.client,
            &mut self.server,
            (self.state, self.now),
            &mut self.buffer,
        );
        self.serve();
        let answered = pass(
            &mut self.server,
            &mut self.client,
            (self.state, self.now),
            &mut self.buffer,
        );
        self.segments += 2 * (sent + answered);
        self.collect()
    }

    /// The server accepts, answers requests, and closes after its client.
    fn serve(&mut self) {
        let Host {
            stack,
            owner,
            handled,
        } = &mut self.server;
        while let Some(id) = owner.incoming.pop() {
            stack.accept(id, self.receive_buffer, self.now, owner);
        }
        std::mem::swap(&mut owner.events, handled);
        for (id, events) in handled.drain(..) {
            if events.readable > 0 {
                stack.read(id, events.readable, self.now);
                self.read += events.readable as usize;
                if events.readable == REQUEST_BYTES {
                    stack.write(id, events.readable, self.now);
                }
            }
            if events.is_finished {
                let _closed = stack.close(id, self.now);
            }
        }
    }

    /// The client reads responses.
    fn collect(&mut self) -> usize {
        let Host {
            stack,
            owner,
            handled,
        } = &mut self.client;
        let mut responses = 0;
        std::mem::swap(&mut owner.events, handled);
        for (id, events) in handled.drain(..) {
            self.room += events.acked;
            if events.readable > 0 {
                stack.read(id, events.readable, self.now);
                responses += 1;
            }
        }
        responses
    }

    fn pass_time(&mut self, span: Micros) {
        self.now = self.now + span;
        for host in [&mut self.client, &mut self.server] {
            if host.stack.next_timeout().is_some_and(|at| at <= self.now) {
                host.stack.on_timeout(self.now, &mut host.owner);
            }
        }
    }
}

/// Passes all frames of a host to the other one.
fn pass(
    from: &mut Host,
    to: &mut Host,
    (state, now): (ChecksumState, Instant),
    buffer: &mut [u8],
) -> u64 {
    let mut count = 0;
    while let Some(outgoing) = from.stack.poll_transmit(buffer, now, &mut from.owner) {
        let frame = &buffer[..outgoing.length];
        let _verdict = to.stack.on_frame(frame, state, now, &mut to.owner);
        count += 1;
    }
    count
}

impl Pair for Ours {
    fn open(&mut self, count: usize) {
        while self.connections.len() < count {
            let id = self.connect();
            self.connections.push(id);
            self.pump();
            self.pass_time(Micros(1));
        }
    }

    fn exchange(&mut self, connections: &[usize]) {
        for connection in connections {
            let id = self.connections[*connection];
            self.client.stack.write(id, REQUEST_BYTES, self.now);
        }
        let mut responses = 0;
        while responses < connections.len() {
            responses += self.pass_both();
        }
        self.pass_time(Micros(connections.len() as u64));
    }

    fn stream(&mut self, bytes: usize) {
        let id = self.connections[0];
        self.read = 0;
        let mut unwritten = u32::try_from(bytes).unwrap();
        self.room = LARGE;
        while self.read < bytes {
            let some = self.room.min(unwritten);
            self.room -= some;
            unwritten -= some;
            self.client.stack.write(id, some, self.now);
            self.pump();
            self.pass_time(Micros(10));
        }
    }

    fn churn(&mut self, count: usize) -> u64 {
        for _ in 0..count {
            let id = self.connect();
            self.pump();
            let _closed = self.client.stack.close(id, self.now);
            self.pump();
            self.pass_time(Micros(1));
        }
        // TIME-WAIT ends before the ports do.
        if u64::from(self.client.stack.len()) > CHURN {
            self.pass_time(Micros::from_secs(61));
            self.pump();
            assert!(self.client.stack.is_empty());
            self.client.owner.events.clear();
        }
        count as u64
    }

    fn segments(&self) -> u64 {
        self.segments
    }
}
