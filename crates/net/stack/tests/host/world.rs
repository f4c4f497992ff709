//! Two hosts on a wire, with an application on each that keeps all bytes.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use saiga_stack::{
    Config, ConnectionId, Events, Incoming, Instant, Interface, Link, Listen, Micros, Network,
    Outgoing, Owner, Secrets, Stack, Verdict,
};
use saiga_wire::ethernet::{Mac, Tags};
use saiga_wire::frame::{Content, Frame, Packet, Transport};
use saiga_wire::offload::ChecksumState;
use saiga_wire::tcp::Segment;

/// Receive buffer of each connection.
pub(crate) const BUFFER: u32 = 65_536;
/// Time that a frame takes from one host to the other.
pub(crate) const DELAY: Micros = Micros(50);

/// MAC address of a host.
pub(crate) fn mac(host: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, host])
}

/// The IPv4 and the IPv6 address of a host.
pub(crate) fn v4(host: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, host])
}

/// See [`v4`].
pub(crate) fn v6(host: u8) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)])
}

/// A network with one interface.
pub(crate) fn network(host: u8, tags: Tags, mtu: u16) -> Network {
    Network {
        interfaces: vec![Interface {
            link: Link::Ethernet {
                mac: mac(host),
                tags,
            },
            mtu,
            addresses: vec![
                format!("{}/24", v4(host)).parse().unwrap(),
                format!("{}/64", v6(host)).parse().unwrap(),
            ],
        }],
        routes: Vec::new(),
    }
}

/// The keys of a host; tests need no secrets.
pub(crate) fn secrets(host: u8) -> Secrets {
    let key = [u64::from(host), 7];
    Secrets {
        flows: key,
        sequence_numbers: key,
        cookies: key,
    }
}

/// What an application does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Accept,
    Refuse,
    Ignore,
    /// The test decides.
    Later,
}

/// The bytes of a connection.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) events: Vec<Events>,
    pub(crate) sent: VecDeque<u8>,
    /// Bytes in the receive buffer by their place; the first ones are readable.
    placed: BTreeMap<u32, u8>,
    readable: u32,
    pub(crate) read: Vec<u8>,
}

/// An application that reads at once.
#[derive(Debug, Default)]
pub(crate) struct Application {
    pub(crate) conversations: BTreeMap<ConnectionId, Conversation>,
    pub(crate) incoming: Vec<(ConnectionId, Incoming)>,
}

impl Owner for Application {
    fn on_incoming(&mut self, id: ConnectionId, incoming: &Incoming) {
        self.incoming.push((id, *incoming));
        self.conversations.entry(id).or_default();
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        let conversation = self.conversations.entry(id).or_default();
        conversation.events.push(*events);
        conversation.sent.drain(..events.acked as usize);
        conversation.readable += events.readable;
    }

    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]) {
        let conversation = self.conversations.entry(id).or_default();
        assert!(at as usize + bytes.len() <= BUFFER as usize);
        conversation
            .placed
            .extend((at..).zip(bytes.iter().copied()));
    }

    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]) {
        let sent = &self.conversations[&id].sent;
        for (offset, byte) in into.iter_mut().enumerate() {
            *byte = sent[at as usize + offset];
        }
    }
}

impl Conversation {
    /// Takes the readable bytes out of the buffer.
    fn read(&mut self) -> u32 {
        let readable = std::mem::take(&mut self.readable);
        let taken: Vec<u8> = (0..readable).map(|at| self.placed[&at]).collect();
        self.read.extend(taken);
        let rest = self.placed.split_off(&readable);
        self.placed = rest
            .into_iter()
            .map(|(at, byte)| (at - readable, byte))
            .collect();
        readable
    }

    /// Why the connection ended.
    pub(crate) fn closed(&self) -> Option<saiga_stack::CloseReason> {
        self.events.iter().find_map(|events| events.closed)
    }

    /// Whether the connection was established.
    pub(crate) fn is_established(&self) -> bool {
        self.events.iter().any(|events| events.is_established)
    }
}

/// A stack and its application.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) stack: Stack,
    pub(crate) application: Application,
    pub(crate) decision: Decision,
    decided: usize,
}

impl Host {
    pub(crate) fn new(host: u8, config: Config) -> Self {
        let start = Instant(1_000_000);
        let mut stack = Stack::new(config, secrets(host), start);
        stack
            .configure(network(host, Tags::None, 1500), start)
            .unwrap();
        Self {
            stack,
            application: Application::default(),
            decision: Decision::Accept,
            decided: 0,
        }
    }

    /// Accepts connections at port 80.
    pub(crate) fn listen(&mut self, backlog: u32, has_cookies: bool) {
        let listen = Listen {
            address: None,
            port: 80,
            backlog,
            has_cookies,
            buffer: BUFFER,
        };
        self.stack.listen(listen).unwrap();
    }

    /// Gives a frame to the stack.
    pub(crate) fn on_frame(&mut self, frame: &[u8], now: Instant) -> Verdict {
        self.stack
            .on_frame(frame, ChecksumState::Verify, now, &mut self.application)
    }

    /// What the application does after each event: it decides, and reads all.
    pub(crate) fn work(&mut self, now: Instant) {
        while let Some((id, _)) = self.application.incoming.get(self.decided).copied() {
            match self.decision {
                Decision::Accept => {
                    self.stack.accept(id, BUFFER, now, &mut self.application);
                }
                Decision::Refuse => self.stack.refuse(id, now),
                Decision::Ignore => self.stack.ignore(id),
                Decision::Later => return,
            }
            self.decided += 1;
        }
        for (id, conversation) in &mut self.application.conversations {
            let bytes = conversation.read();
            if bytes > 0 {
                self.stack.read(*id, bytes, now);
            }
        }
    }

    /// All frames that leave now.
    pub(crate) fn frames(&mut self, now: Instant) -> Vec<(Outgoing, Vec<u8>)> {
        self.work(now);
        let mut buffer = vec![0; 70_000];
        let mut frames = Vec::new();
        while let Some(outgoing) = self
            .stack
            .poll_transmit(&mut buffer, now, &mut self.application)
        {
            frames.push((outgoing, buffer[..outgoing.length].to_vec()));
        }
        frames
    }

    /// Writes bytes into the send buffer of a connection.
    pub(crate) fn write(&mut self, id: ConnectionId, bytes: &[u8], now: Instant) {
        let conversation = self.application.conversations.entry(id).or_default();
        conversation.sent.extend(bytes);
        let length = u32::try_from(bytes.len()).unwrap();
        self.stack.write(id, length, now);
    }

    pub(crate) fn conversation(&self, id: ConnectionId) -> &Conversation {
        &self.application.conversations[&id]
    }

    /// The conversations of connections that a peer opened.
    pub(crate) fn accepted(&self) -> Vec<ConnectionId> {
        let incoming = self.application.incoming.iter();
        incoming.map(|(id, _)| *id).collect()
    }
}

/// Two hosts, 1 and 2, and the frames between them.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) hosts: [Host; 2],
    /// Frames on the wire: when they arrive, at which host.
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    /// All frames so far, with the host that sent them.
    pub(crate) seen: Vec<(usize, Vec<u8>)>,
}

impl World {
    /// Two hosts; the second one listens at port 80.
    pub(crate) fn new() -> Self {
        Self::of(Config::default(), Config::default())
    }

    pub(crate) fn of(first: Config, second: Config) -> Self {
        let mut hosts = [Host::new(1, first), Host::new(2, second)];
        hosts[1].listen(16, false);
        Self {
            now: Instant(1_000_000),
            hosts,
            wire: VecDeque::new(),
            seen: Vec::new(),
        }
    }

    /// Opens a connection from the first host to port 80 of the second.
    pub(crate) fn connect(&mut self, own: IpAddr, peer: IpAddr) -> ConnectionId {
        let (own, peer) = (SocketAddr::new(own, 0), SocketAddr::new(peer, 80));
        self.hosts[0]
            .stack
            .connect(own, peer, BUFFER, self.now)
            .unwrap()
    }

    /// Lets frames and time-outs happen for a span of time.
    pub(crate) fn run(&mut self, span: Micros) {
        let end = self.now + span;
        loop {
            self.exchange();
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let timeouts = self.hosts.iter().map(|host| host.stack.next_timeout());
            let next = timeouts.flatten().chain(arrival).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            for host in &mut self.hosts {
                host.stack.on_timeout(self.now, &mut host.application);
            }
        }
        self.now = end;
    }

    /// Puts frames on the wire and delivers those that have arrived.
    fn exchange(&mut self) {
        while let Some((at, to, frame)) = self.wire.front() {
            if *at > self.now {
                break;
            }
            let _verdict = self.hosts[*to].on_frame(frame, self.now);
            self.wire.pop_front();
        }
        for from in 0..2 {
            for (_, frame) in self.hosts[from].frames(self.now) {
                self.seen.push((from, frame.clone()));
                self.wire.push_back((self.now + DELAY, 1 - from, frame));
            }
        }
    }
}

/// Reads a frame that a stack has sent, with its checksums.
pub(crate) fn read(frame: &[u8]) -> Frame<'_> {
    Frame::parse(frame, ChecksumState::Verify).expect("a stack sends no malformed frame")
}

/// The IP packet of a frame.
pub(crate) fn packet(frame: &[u8]) -> Packet<'_> {
    let Content::Ip(packet) = read(frame).content else {
        panic!("no IP packet: {frame:?}")
    };
    packet
}

/// The TCP segment of a frame, if it has one.
pub(crate) fn segment(frame: &[u8]) -> Option<Segment<'_>> {
    let Content::Ip(packet) = read(frame).content else {
        return None;
    };
    let Transport::Tcp(segment) = packet.transport else {
        return None;
    };
    Some(segment)
}
