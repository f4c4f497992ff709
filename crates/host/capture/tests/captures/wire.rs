//! A network of the tests: TCP exchanges written packet by packet, and the files that hold them.

use std::net::{IpAddr, SocketAddr};

/// Time between two packets unless a test says otherwise.
pub(crate) const STEP_NS: u64 = 100_000;
/// Time of the first packet: 2026-01-01, a full second.
pub(crate) const START_NS: u64 = 1_767_225_600_000_000_000;

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A frame and the time at which it was captured.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) at: u64,
    pub(crate) frame: Vec<u8>,
    /// Length before the snap length cut it.
    pub(crate) length: usize,
}

/// A connection as its endpoints see it.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) client_seq: u32,
    pub(crate) server_seq: u32,
}

/// A segment to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) bytes: &'a [u8],
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Wire {
    pub(crate) records: Vec<Record>,
    pub(crate) now: u64,
    id: u16,
}

impl Connection {
    pub(crate) fn new(client: &str, server: &str) -> Self {
        let [client, server] = [client, server].map(|text| text.parse().expect("an address"));
        Self {
            client,
            server,
            client_seq: 1_000,
            server_seq: u32::MAX - 50,
        }
    }
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self {
            now: START_NS,
            ..Self::default()
        }
    }

    pub(crate) fn wait(&mut self, ns: u64) {
        self.now += ns;
    }

    /// Sends SYN, SYN-ACK and ACK.
    pub(crate) fn open(&mut self, client: &str, server: &str) -> Connection {
        let mut connection = Connection::new(client, server);
        self.flags(&connection, Side::Client, SYN);
        connection.client_seq += 1;
        self.flags(&connection, Side::Server, SYN | ACK);
        connection.server_seq = connection.server_seq.wrapping_add(1);
        self.flags(&connection, Side::Client, ACK);
        connection
    }

    /// Sends a segment without payload.
    pub(crate) fn flags(&mut self, connection: &Connection, side: Side, flags: u8) {
        let (seq, ack) = connection.numbers(side);
        self.segment(
            connection,
            side,
            Segment {
                seq,
                ack,
                flags,
                window: 500,
                bytes: &[],
            },
        );
    }

    /// Sends payload in one segment.
    pub(crate) fn send(&mut self, connection: &mut Connection, side: Side, bytes: &[u8]) {
        let (seq, ack) = connection.numbers(side);
        let flags = ACK | PSH;
        self.segment(
            connection,
            side,
            Segment {
                seq,
                ack,
                flags,
                window: 500,
                bytes,
            },
        );
        connection.advance(side, bytes.len());
    }

    /// Sends FIN of both sides, `side` first, and the last ACK.
    pub(crate) fn close(&mut self, connection: &mut Connection, side: Side) {
        for side in [side, side.other()] {
            self.flags(connection, side, FIN | ACK);
            connection.advance(side, 1);
        }
        self.flags(connection, side, ACK);
    }

    pub(crate) fn segment(&mut self, connection: &Connection, side: Side, segment: Segment<'_>) {
        let (from, to) = match side {
            Side::Client => (connection.client, connection.server),
            Side::Server => (connection.server, connection.client),
        };
        self.id = self.id.wrapping_add(1).max(1);
        let ip = ip(
            from.ip(),
            to.ip(),
            self.id,
            &tcp(from.port(), to.port(), &segment),
        );
        let kind = if from.is_ipv4() { [8, 0] } else { [0x86, 0xdd] };
        let frame = [&[2; 12][..], &kind, &ip].concat();
        self.push(frame);
    }

    pub(crate) fn push(&mut self, frame: Vec<u8>) {
        let length = frame.len();
        self.records.push(Record {
            at: self.now,
            frame,
            length,
        });
        self.now += STEP_NS;
    }

    /// Cuts all frames, as `tcpdump -s` does.
    pub(crate) fn snap(&mut self, length: usize) {
        self.records
            .iter_mut()
            .for_each(|record| record.frame.truncate(length));
    }

    pub(crate) fn pcap(&self) -> Vec<u8> {
        pcap(&self.records, Order::Little, 1, 1)
    }
}

impl Connection {
    pub(crate) fn numbers(&self, side: Side) -> (u32, u32) {
        match side {
            Side::Client => (self.client_seq, self.server_seq),
            Side::Server => (self.server_seq, self.client_seq),
        }
    }

    pub(crate) fn advance(&mut self, side: Side, bytes: usize) {
        let bytes = u32::try_from(bytes).expect("a segment");
        let seq = match side {
            Side::Client => &mut self.client_seq,
            Side::Server => &mut self.server_seq,
        };
        *seq = seq.wrapping_add(bytes);
    }
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

fn tcp(from: u16, to: u16, segment: &Segment<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20 + segment.bytes.len());
    bytes.extend(from.to_be_bytes());
    bytes.extend(to.to_be_bytes());
    bytes.extend(segment.seq.to_be_bytes());
    bytes.extend(segment.ack.to_be_bytes());
    bytes.extend([5 << 4, segment.flags]);
    bytes.extend(segment.window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(segment.bytes);
    bytes
}

/// An IP packet without checksum.
pub(crate) fn ip(from: IpAddr, to: IpAddr, id: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("an IP packet");
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut bytes = vec![0x45, 0];
            bytes.extend((length + 20).to_be_bytes());
            bytes.extend(id.to_be_bytes());
            bytes.extend([0x40, 0, 64, 6, 0, 0]);
            bytes.extend(from.octets());
            bytes.extend(to.octets());
            bytes.extend(payload);
            bytes
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut bytes = vec![0x60, 0, 0, 0];
            bytes.extend(length.to_be_bytes());
            bytes.extend([6, 64]);
            bytes.extend(from.octets());
            bytes.extend(to.octets());
            bytes.extend(payload);
            bytes
        }
        _ => panic!("addresses of one family"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self == Self::Big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self == Self::Big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    pub(crate) fn u64(self, value: u64) -> [u8; 8] {
        if self == Self::Big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
}

/// A pcap file. `unit_ns` is 1 or 1000: nanoseconds or microseconds.
pub(crate) fn pcap(records: &[Record], order: Order, unit_ns: u64, link: u32) -> Vec<u8> {
    let magic = if unit_ns == 1 {
        0xa1b2_3c4d
    } else {
        0xa1b2_c3d4
    };
    let mut file = Vec::new();
    file.extend(order.u32(magic));
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    [0, 0, 262_144, link]
        .iter()
        .for_each(|word| file.extend(order.u32(*word)));
    for record in records {
        let word = |value: u64| order.u32(u32::try_from(value).expect("32 bits"));
        file.extend(word(record.at / 1_000_000_000));
        file.extend(word(record.at % 1_000_000_000 / unit_ns));
        file.extend(word(record.frame.len() as u64));
        file.extend(word(record.length as u64));
        file.extend(&record.frame);
    }
    file
}

/// Writes blocks of a pcapng file.
pub(crate) struct Ng {
    pub(crate) order: Order,
    pub(crate) file: Vec<u8>,
}

impl Ng {
    pub(crate) fn new(order: Order) -> Self {
        let mut ng = Self {
            order,
            file: Vec::new(),
        };
        let body = [
            &order.u32(0x1a2b_3c4d)[..],
            &order.u16(1),
            &order.u16(0),
            &[0xff; 8],
        ]
        .concat();
        ng.block(0x0a0d_0d0a, &body);
        ng
    }

    pub(crate) fn block(&mut self, kind: u32, body: &[u8]) {
        let padding = body.len().next_multiple_of(4) - body.len();
        let length = u32::try_from(12 + body.len() + padding).expect("a block");
        self.file.extend(self.order.u32(kind));
        self.file.extend(self.order.u32(length));
        self.file.extend(body);
        self.file.extend(vec![0; padding]);
        self.file.extend(self.order.u32(length));
    }

    pub(crate) fn options(&self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (code, value) in options.iter().copied().chain([(0, &[][..])]) {
            bytes.extend(self.order.u16(code));
            bytes.extend(
                self.order
                    .u16(u16::try_from(value.len()).expect("an option")),
            );
            bytes.extend(value);
            bytes.extend(vec![0; value.len().next_multiple_of(4) - value.len()]);
        }
        bytes
    }

    pub(crate) fn interface(&mut self, link: u16, options: &[(u16, &[u8])]) {
        let mut body = [self.order.u16(link), self.order.u16(0)].concat();
        body.extend(self.order.u32(262_144));
        body.extend(self.options(options));
        self.block(1, &body);
    }

    pub(crate) fn packet(&mut self, interface: u32, units: u64, record: &Record) {
        let low = u32::try_from(units & 0xffff_ffff).expect("32 bits");
        let high = u32::try_from(units >> 32).expect("32 bits");
        let captured = u32::try_from(record.frame.len()).expect("a packet");
        let length = u32::try_from(record.length).expect("a packet");
        let mut body = Vec::new();
        for word in [interface, high, low, captured, length] {
            body.extend(self.order.u32(word));
        }
        body.extend(&record.frame);
        self.block(6, &body);
    }

    pub(crate) fn statistics(&mut self, interface: u32, options: &[(u16, &[u8])]) {
        let mut body = Vec::new();
        [interface, 0, 0]
            .iter()
            .for_each(|word| body.extend(self.order.u32(*word)));
        body.extend(self.options(options));
        self.block(5, &body);
    }
}
