//! Any bytes as frames, calls and time for a host. The fuzzer uses this file, too.
//!
//! The first byte of a step says what happens; a frame follows with a length of two bytes. In some
//! frames, the sequence numbers are those that the host expects, because they cannot be guessed.
//! Nothing may panic, every table keeps its limit, each frame that leaves is well-formed, and the
//! host comes to rest.

use saiga_stack::{
    Config, ConnectionId, Events, Incoming, Instant, Interface, Link, Listen, Micros, Network,
    Owner, Presence, Secrets, Stack,
};
use saiga_wire::ethernet::{Mac, Tags};
use saiga_wire::frame::{Content, Frame, Packet, Transport};
use saiga_wire::offload::ChecksumState;
use saiga_wire::tcp::Flags;

const BUFFER: u32 = 4_096;
const MOST_CONNECTIONS: u32 = 16;

/// Connections with the bytes that can be read and that are in the send buffer.
#[derive(Default)]
struct Application {
    incoming: Vec<ConnectionId>,
    connections: Vec<(ConnectionId, u32, u32)>,
}

impl Application {
    fn get(&mut self, id: ConnectionId) -> Option<&mut (ConnectionId, u32, u32)> {
        self.connections.iter_mut().find(|(known, ..)| *known == id)
    }
}

impl Owner for Application {
    fn on_incoming(&mut self, id: ConnectionId, _incoming: &Incoming) {
        self.incoming.push(id);
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        if let Some((_, readable, sent)) = self.get(id) {
            *readable += events.readable;
            *sent = sent.checked_sub(events.acked).expect("what was sent");
        }
        if events.closed.is_some() {
            self.incoming.retain(|known| *known != id);
            self.connections.retain(|(known, ..)| *known != id);
        }
    }

    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]) {
        assert!(
            self.get(id).is_some(),
            "bytes for a connection without a buffer"
        );
        assert!(at as usize + bytes.len() <= BUFFER as usize);
    }

    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]) {
        let (_, _, sent) = self.get(id).expect("a connection with a buffer");
        assert!(at as usize + into.len() <= *sent as usize);
        into.fill(7);
    }
}

struct Host {
    stack: Stack,
    application: Application,
    now: Instant,
    /// The numbers of a segment that answers the last one of the host.
    expected: Expected,
}

#[derive(Default)]
struct Expected {
    seq: u32,
    ack: u32,
}

impl Expected {
    /// Puts the numbers into a TCP segment without IP options, as the bits of `which` say.
    fn patch(&self, frame: &mut [u8], which: u8) {
        let tcp = match frame.get(12..14) {
            Some([0x08, 0x00]) => 34,
            Some([0x86, 0xdd]) => 54,
            Some(_) | None => return,
        };
        for (bit, at, number) in [(1, tcp + 4, self.seq), (2, tcp + 8, self.ack)] {
            if which & bit != 0
                && let Some(field) = frame.get_mut(at..at + 4)
            {
                field.copy_from_slice(&number.to_be_bytes());
            }
        }
    }
}

/// Runs the steps of `bytes`.
pub(crate) fn frames(bytes: &[u8]) {
    let presence = match bytes.first() {
        Some(0..128) | None => Presence::Alone,
        Some(_) => Presence::BesideKernel,
    };
    let mut host = Host::new(presence);
    let mut rest = bytes.get(1..).unwrap_or_default();
    while let Some((step, after)) = rest.split_first() {
        rest = host.step(*step, after);
        host.flush();
        assert!(host.stack.len() <= MOST_CONNECTIONS);
    }
    // All connections end, or wait for nothing.
    for _ in 0..10_000 {
        let Some(next) = host.stack.next_timeout() else {
            return;
        };
        host.now = host.now.max(next);
        host.stack.on_timeout(host.now, &mut host.application);
        host.flush();
    }
    panic!("the host does not come to rest");
}

impl Host {
    fn new(presence: Presence) -> Self {
        let now = Instant(1_000_000);
        let config = Config {
            most_connections: MOST_CONNECTIONS,
            most_time_wait: 4,
            most_neighbours: 4,
            presence,
            ..Config::default()
        };
        let key = [1, 2];
        let secrets = Secrets {
            flows: key,
            sequence_numbers: key,
            cookies: key,
        };
        let mut stack = Stack::new(config, secrets, now);
        let interface = Interface {
            link: Link::Ethernet {
                mac: Mac([2, 0, 0, 0, 0, 2]),
                tags: Tags::None,
            },
            mtu: 1500,
            addresses: vec![
                "10.0.0.2/24".parse().expect("an address"),
                "2001:db8::2/64".parse().expect("an address"),
            ],
        };
        let network = Network {
            interfaces: vec![interface],
            routes: Vec::new(),
        };
        stack.configure(network, now).expect("a sound network");
        let listen = Listen {
            address: None,
            port: 80,
            backlog: 2,
            has_cookies: true,
            buffer: BUFFER,
        };
        stack.listen(listen).expect("a free port");
        Self {
            stack,
            application: Application::default(),
            now,
            expected: Expected::default(),
        }
    }

    /// One step; returns the bytes after it.
    fn step<'a>(&mut self, step: u8, after: &'a [u8]) -> &'a [u8] {
        match step % 8 {
            which @ 0..=3 => return self.frame(which, after),
            4 => self.decide(step),
            5 => self.talk(step),
            6 => self.end(step),
            _ => {
                self.now = self.now + Micros(1 << (step / 8));
                self.stack.on_timeout(self.now, &mut self.application);
            }
        }
        after
    }

    fn frame<'a>(&mut self, which: u8, after: &'a [u8]) -> &'a [u8] {
        let Some(([high, low], after)) = after.split_first_chunk() else {
            return &[];
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (frame, after) = after.split_at(length.min(after.len()));
        let mut frame = frame.to_vec();
        self.expected.patch(&mut frame, which);
        let state = ChecksumState::Trusted;
        let application = &mut self.application;
        let _verdict = self.stack.on_frame(&frame, state, self.now, application);
        after
    }

    fn decide(&mut self, step: u8) {
        let Some(id) = self.application.incoming.pop() else {
            return;
        };
        match step / 8 % 4 {
            0 => self.stack.refuse(id, self.now),
            1 => self.stack.ignore(id),
            _ => {
                self.application.connections.push((id, 0, 0));
                self.stack
                    .accept(id, BUFFER, self.now, &mut self.application);
            }
        }
    }

    /// An application reads all and writes a few bytes.
    fn talk(&mut self, step: u8) {
        let bytes = u32::from(step / 8) * 64;
        let Some((id, readable, sent)) = self.application.connections.first_mut() else {
            return;
        };
        let id = *id;
        let read = std::mem::take(readable);
        *sent += bytes;
        self.stack.read(id, read, self.now);
        self.stack.write(id, bytes, self.now);
    }

    fn end(&mut self, step: u8) {
        let Some((id, ..)) = self.application.connections.first().copied() else {
            return;
        };
        let events = match step / 8 % 4 {
            0 => self.stack.abort(id, self.now),
            1 => {
                self.stack.shutdown(id, self.now);
                Events::default()
            }
            _ => self.stack.close(id, self.now),
        };
        if events.closed.is_some() {
            self.application
                .connections
                .retain(|(known, ..)| *known != id);
        }
        // Another connection is the next one to talk.
        let count = self.application.connections.len();
        self.application.connections.rotate_left(1.min(count));
    }

    /// Sends all frames.
    fn flush(&mut self) {
        let mut buffer = [0; 2_000];
        for _ in 0..1_000 {
            let sent = self
                .stack
                .poll_transmit(&mut buffer, self.now, &mut self.application);
            let Some(outgoing) = sent else {
                return;
            };
            let frame = &buffer[..outgoing.length];
            let parsed = Frame::parse(frame, ChecksumState::Verify).expect("a well-formed frame");
            if let Content::Ip(Packet {
                transport: Transport::Tcp(segment),
                ..
            }) = parsed.content
            {
                let header = segment.header;
                let is_syn = header.flags.contains(Flags::SYN);
                let payload = u32::try_from(segment.payload.len()).expect("a short payload");
                self.expected = Expected {
                    seq: header.ack.map_or(0, |ack| ack.0),
                    ack: (header.seq + payload + u32::from(is_syn)).0,
                };
            }
        }
        panic!("the host sends without end");
    }
}
