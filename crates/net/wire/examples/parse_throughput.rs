//! How long parsing and emitting one packet takes, here and in smoltcp, on one core.
//!
//! `cargo run --release -p saiga-wire --example parse_throughput` prints nanoseconds per packet:
//! the least of several rounds, because other work on the machine can only add time.

use saiga_wire::checksum::Sum;
use saiga_wire::ethernet::{self, EtherType, Mac, Tags};
use saiga_wire::frame::{Content, Frame, Network, Payload, Transport, Writer};
use saiga_wire::ip::{Ports, Protocol, TrafficClass};
use saiga_wire::offload::{ChecksumState, Fill};
use saiga_wire::tcp::{Flags, Header, Options, Timestamps};
use saiga_wire::{SeqNum, ipv4, tcp};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpAddress, IpProtocol,
    Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber, TcpTimestampRepr,
};
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

const ROUNDS: usize = 20;
const PACKETS: u32 = 200_000;

const FROM: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const TO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

const LINK: ethernet::Header = ethernet::Header {
    destination: Mac([2, 0, 0, 0, 0, 0xb]),
    source: Mac([2, 0, 0, 0, 0, 0xa]),
    tags: Tags::None,
    ether_type: EtherType::IPV4,
};

const NETWORK: Network = Network::V4(ipv4::Header {
    source: FROM,
    destination: TO,
    protocol: Protocol::TCP,
    traffic_class: TrafficClass(0),
    ttl: 64,
    id: 0,
    dont_fragment: true,
    more_fragments: false,
    fragment_offset: 0,
});

const HEADER: Header = Header {
    ports: Ports {
        source: 49_153,
        destination: 6_379,
    },
    seq: SeqNum(1_000_000),
    ack: Some(SeqNum(2_000_000)),
    flags: Flags::PSH,
    window: 502,
    urgent: None,
    options: Options {
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        ..Options::NONE
    },
};

fn main() {
    println!("TCP over IPv4 with timestamps, ns per packet");
    for payload_bytes in [0, 100, 1_448] {
        let payload = vec![0x5a; payload_bytes];
        compare_parsing(&payload);
        compare_emitting(&payload);
    }
    for length in [20, 1_500, 65_535] {
        let bytes = vec![0x5a; length];
        let each = ns(|| usize::from(Sum::of(black_box(&bytes)).value()));
        println!("{length:>6} bytes  checksum {each:.1} ns");
    }
}

fn compare_parsing(payload: &[u8]) {
    let mut buffer = [0; 2_048];
    let length = emit(&mut buffer, payload);
    let frame = &buffer[..length];
    let (ignored, verified) = (
        ChecksumCapabilities::ignored(),
        ChecksumCapabilities::default(),
    );
    row(
        payload,
        "parse, checksum verified",
        ns(|| parse(black_box(frame), ChecksumState::Verify)),
        Some(ns(|| parse_smoltcp(black_box(frame), &verified))),
    );
    row(
        payload,
        "layers, verified",
        ns(|| parse_layers(black_box(frame), ChecksumState::Verify)),
        None,
    );
    row(
        payload,
        "layers, trusted",
        ns(|| parse_layers(black_box(frame), ChecksumState::Trusted)),
        None,
    );
    row(
        payload,
        "parse, checksum trusted",
        ns(|| parse(black_box(frame), ChecksumState::Trusted)),
        Some(ns(|| parse_smoltcp(black_box(frame), &ignored))),
    );
}

fn compare_emitting(payload: &[u8]) {
    let mut buffer = [0; 2_048];
    let ours = ns(|| emit(&mut buffer, black_box(payload)));
    let theirs = ns(|| emit_smoltcp(&mut buffer, black_box(payload)));
    row(payload, "emit with payload", ours, Some(theirs));
    let offload = ns(|| emit_headers(&mut buffer, black_box(payload.len())));
    row(payload, "emit headers, offload", offload, None);
}

fn row(payload: &[u8], what: &str, ours: f64, theirs: Option<f64>) {
    let theirs = theirs.map_or_else(String::new, |theirs| format!("  smoltcp {theirs:.1}"));
    println!("{:>6} bytes  {what:<25} {ours:.1}{theirs}", payload.len());
}

fn parse(frame: &[u8], state: ChecksumState) -> usize {
    let frame = Frame::parse(frame, state).expect("a valid frame");
    let Content::Ip(packet) = &black_box(&frame).content else {
        unreachable!("not IP")
    };
    let Transport::Tcp(segment) = &packet.transport else {
        unreachable!("not TCP")
    };
    segment.payload.len()
}

fn parse_layers(frame: &[u8], state: ChecksumState) -> usize {
    let (link, packet) = ethernet::Header::parse(frame).expect("a valid frame");
    black_box(link.source);
    let packet = ipv4::Packet::parse(packet).expect("a valid packet");
    let addresses = packet.header.addresses();
    if state == ChecksumState::Verify {
        assert!(tcp::is_intact(&addresses, packet.payload));
    }
    let segment = tcp::Segment::parse(packet.payload).expect("a valid segment");
    black_box(&addresses);
    black_box(&segment).payload.len()
}

fn parse_smoltcp(frame: &[u8], checksums: &ChecksumCapabilities) -> usize {
    let frame = EthernetFrame::new_checked(frame).expect("a frame");
    black_box(&EthernetRepr::parse(&frame).expect("an Ethernet header"));
    let packet = Ipv4Packet::new_checked(frame.payload()).expect("a packet");
    let ip = Ipv4Repr::parse(&packet, checksums).expect("an IPv4 header");
    let ip = black_box(&ip);
    let segment = TcpPacket::new_checked(packet.payload()).expect("a segment");
    let (from, to) = (IpAddress::Ipv4(ip.src_addr), IpAddress::Ipv4(ip.dst_addr));
    let tcp = TcpRepr::parse(&segment, &from, &to, checksums).expect("a TCP header");
    black_box(&tcp).payload.len()
}

fn emit(buffer: &mut [u8], payload: &[u8]) -> usize {
    let mut writer = Writer {
        link: Some(&LINK),
        buffer,
    };
    let (network, header) = (black_box(&NETWORK), black_box(&HEADER));
    writer
        .tcp(network, header, &[payload], Fill::Checksum)
        .expect("room for the frame")
}

fn emit_headers(buffer: &mut [u8], payload_bytes: usize) -> usize {
    let payload = Payload::Summed {
        length: payload_bytes,
        sum: Sum::ZERO,
    };
    let mut writer = Writer {
        link: Some(&LINK),
        buffer,
    };
    let (network, header) = (black_box(&NETWORK), black_box(&HEADER));
    writer
        .tcp_headers(network, header, payload, Fill::PseudoHeader)
        .expect("room for the headers")
        .payload_at
}

fn emit_smoltcp(buffer: &mut [u8], payload: &[u8]) -> usize {
    let checksums = ChecksumCapabilities::default();
    let tcp = black_box(TcpRepr {
        src_port: HEADER.ports.source,
        dst_port: HEADER.ports.destination,
        control: TcpControl::Psh,
        seq_number: TcpSeqNumber(1_000_000),
        ack_number: Some(TcpSeqNumber(2_000_000)),
        window_len: HEADER.window,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: Some(TcpTimestampRepr::new(1, 2)),
        payload,
    });
    let ip = black_box(Ipv4Repr {
        src_addr: FROM,
        dst_addr: TO,
        next_header: IpProtocol::Tcp,
        payload_len: tcp.buffer_len(),
        hop_limit: 64,
    });
    let link = EthernetRepr {
        src_addr: EthernetAddress(LINK.source.0),
        dst_addr: EthernetAddress(LINK.destination.0),
        ethertype: EthernetProtocol::Ipv4,
    };
    let length = link.buffer_len() + ip.buffer_len() + tcp.buffer_len();
    let mut frame = EthernetFrame::new_unchecked(&mut buffer[..length]);
    link.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &checksums);
    let mut segment = TcpPacket::new_unchecked(packet.payload_mut());
    tcp.emit(&mut segment, &FROM.into(), &TO.into(), &checksums);
    length
}

/// Nanoseconds that one call of `run` takes; its result keeps the compiler from leaving it out.
fn ns(mut run: impl FnMut() -> usize) -> f64 {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..PACKETS {
            black_box(run());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}
