//! Strategies of property tests: valid packets of every kind, and damage to them.

use proptest::prelude::*;
use saiga_wire::ethernet::{self, EtherType, Mac, Tag, Tags};
use saiga_wire::frame::{Network, Writer};
use saiga_wire::icmp::{Echo, Other};
use saiga_wire::ip::{Ports, Protocol, TrafficClass};
use saiga_wire::offload::Fill;
use saiga_wire::tcp::{Flags, Header, Options, SackBlock, Timestamps};
use saiga_wire::{SeqNum, arp, icmp4, icmp6, ipv4, ipv6, ndp};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) fn mac() -> impl Strategy<Value = Mac> {
    any::<[u8; 6]>().prop_map(|[first, rest @ ..]| {
        let [b, c, d, e, f] = rest;
        Mac([first & !1, b, c, d, e, f])
    })
}

fn tag() -> impl Strategy<Value = Tag> {
    let kinds = prop_oneof![Just(EtherType::VLAN), Just(EtherType::PROVIDER_VLAN)];
    (kinds, any::<u16>()).prop_map(|(kind, control)| Tag { kind, control })
}

pub(crate) fn link() -> impl Strategy<Value = ethernet::Header> {
    let tags = prop_oneof![
        4 => Just(Tags::None),
        1 => tag().prop_map(Tags::One),
        1 => (tag(), tag()).prop_map(|(outer, inner)| Tags::Two { outer, inner }),
    ];
    (any::<[u8; 6]>(), mac(), tags).prop_map(|(destination, source, tags)| ethernet::Header {
        destination: Mac(destination),
        source,
        tags,
        ether_type: EtherType::ARP,
    })
}

fn ipv4_source() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>()
        .prop_map(Ipv4Addr::from_bits)
        .prop_filter("not a source", |ip| {
            !ip.is_multicast() && !ip.is_broadcast()
        })
}

pub(crate) fn ipv4_header() -> impl Strategy<Value = ipv4::Header> {
    let fields = (any::<u8>(), any::<u8>(), any::<u16>(), any::<bool>());
    (ipv4_source(), any::<u32>(), fields).prop_map(|(source, destination, fields)| {
        let (class, ttl, id, dont_fragment) = fields;
        ipv4::Header {
            source,
            destination: Ipv4Addr::from_bits(destination),
            protocol: Protocol::TCP,
            traffic_class: TrafficClass(class),
            ttl,
            id,
            dont_fragment,
            more_fragments: false,
            fragment_offset: 0,
        }
    })
}

fn ipv6_unicast() -> impl Strategy<Value = Ipv6Addr> {
    any::<u128>()
        .prop_map(|bits| Ipv6Addr::from_bits(bits | 1))
        .prop_filter("not a source", |ip| !ip.is_multicast())
}

pub(crate) fn ipv6_header() -> impl Strategy<Value = ipv6::Header> {
    let fields = (any::<u8>(), 0..1_u32 << 20, any::<u8>());
    (ipv6_unicast(), ipv6_unicast(), fields).prop_map(|(source, destination, fields)| {
        let (class, flow_label, hop_limit) = fields;
        ipv6::Header {
            source,
            destination,
            protocol: Protocol::TCP,
            traffic_class: TrafficClass(class),
            flow_label,
            hop_limit,
        }
    })
}

pub(crate) fn network() -> impl Strategy<Value = Network> {
    prop_oneof![
        ipv4_header().prop_map(Network::V4),
        ipv6_header().prop_map(Network::V6),
    ]
}

pub(crate) fn options() -> impl Strategy<Value = Options> {
    let times = any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo });
    let block = any::<(u32, u32)>().prop_map(|(left, right)| SackBlock {
        left: SeqNum(left),
        right: SeqNum(right),
    });
    let first = (
        any::<Option<u16>>(),
        prop::option::of(0..=14_u8),
        any::<bool>(),
    );
    let second = (prop::option::of(times), prop::collection::vec(block, 0..=4));
    (first, second).prop_map(
        |((mss, window_scale, sack_permitted), (timestamps, blocks))| Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack: blocks.into_iter().collect(),
            malformed: false,
        },
    )
}

pub(crate) fn flags() -> impl Strategy<Value = Flags> {
    let all = [
        Flags::FIN,
        Flags::SYN,
        Flags::RST,
        Flags::PSH,
        Flags::ECE,
        Flags::CWR,
    ];
    prop::sample::subsequence(all.to_vec(), 0..=all.len())
        .prop_map(|some| some.into_iter().fold(Flags::NONE, Flags::union))
}

pub(crate) fn tcp_header() -> impl Strategy<Value = Header> {
    let numbers = (any::<(u16, u16)>(), any::<u32>(), any::<Option<u32>>());
    let others = (flags(), any::<u16>(), any::<Option<u16>>(), options());
    (numbers, others).prop_map(
        |((ports, seq, ack), (flags, window, urgent, options))| Header {
            ports: Ports {
                source: ports.0,
                destination: ports.1,
            },
            seq: SeqNum(seq),
            ack: ack.map(SeqNum),
            flags,
            window,
            urgent,
            options,
        },
    )
}

pub(crate) fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=longest)
}

/// Numbers and bytes for [`icmp4_message`], [`icmp6_message`] and [`ndp_message`].
pub(crate) type Ingredients = (u8, u8, u32, Vec<u8>);

pub(crate) fn ingredients() -> impl Strategy<Value = Ingredients> {
    let quote = prop_oneof![bytes(80), quote()];
    (0..8_u8, any::<u8>(), any::<u32>(), quote)
}

/// The first bytes of a packet.
fn quote() -> impl Strategy<Value = Vec<u8>> {
    (network(), bytes(40), 0..20_usize).prop_map(|(network, payload, missing)| {
        let mut bytes = vec![0; 40];
        let length = network
            .emit(payload.len(), &mut bytes)
            .expect("room for the header");
        bytes.truncate(length);
        bytes.extend(payload);
        bytes.truncate(bytes.len().saturating_sub(missing / 2));
        bytes
    })
}

pub(crate) fn icmp4_message(ingredients: &Ingredients) -> icmp4::Message<'_> {
    use icmp4::Message;
    let &(kind, code, number, ref quote) = ingredients;
    let [pointer, low, a, b] = number.to_be_bytes();
    let echo = Echo {
        id: u16::from_be_bytes([pointer, low]),
        sequence: u16::from_be_bytes([a, b]),
        data: quote,
    };
    match kind {
        0 => Message::EchoRequest(echo),
        1 => Message::EchoReply(echo),
        2 if code != icmp4::FRAGMENTATION_NEEDED => Message::Unreachable { code, quote },
        2 | 3 => Message::FragmentationNeeded {
            mtu: echo.id,
            quote,
        },
        4 => Message::TimeExceeded { code, quote },
        5 => Message::ParameterProblem {
            pointer,
            code,
            quote,
        },
        _ => Message::Other(Other {
            kind: code | 16,
            code: low,
            body: quote,
        }),
    }
}

pub(crate) fn icmp6_message(ingredients: &Ingredients) -> icmp6::Message<'_> {
    use icmp6::Message;
    let &(kind, code, number, ref quote) = ingredients;
    let [high, low, a, b] = number.to_be_bytes();
    let echo = Echo {
        id: u16::from_be_bytes([high, low]),
        sequence: u16::from_be_bytes([a, b]),
        data: quote,
    };
    let problem = ipv6::ParameterProblem {
        code,
        pointer: number,
    };
    match kind {
        0 => Message::EchoRequest(echo),
        1 => Message::EchoReply(echo),
        2 => Message::Unreachable { code, quote },
        3 => Message::PacketTooBig { mtu: number, quote },
        4 => Message::TimeExceeded { code, quote },
        5 => Message::ParameterProblem { problem, quote },
        _ => Message::Other(Other {
            kind: code | 80,
            code: low,
            body: quote,
        }),
    }
}

/// A message from a link-local address.
pub(crate) fn ndp_message(ingredients: &Ingredients) -> ndp::Message<'_> {
    let (kind, code, number, _) = *ingredients;
    let [high, low, a, b] = number.to_be_bytes();
    let mac = (code % 2 == 0).then_some(Mac([2, high, low, a, b, code]));
    let target = Ipv6Addr::from_bits(u128::from(number) + 1);
    match kind % 4 {
        0 => ndp::Message::RouterSolicitation { source_mac: mac },
        1 => ndp::Message::RouterAdvertisement(ndp::RouterAdvertisement {
            hop_limit: high,
            managed: code & 1 != 0,
            other_config: code & 2 != 0,
            lifetime_s: u16::from_be_bytes([a, b]),
            reachable_ms: number,
            retransmit_ms: !number,
            options: ndp::Options::parse(&ROUTER_OPTIONS).expect("valid options"),
        }),
        2 => ndp::Message::NeighbourSolicitation {
            target,
            source_mac: mac,
        },
        _ => ndp::Message::NeighbourAdvertisement(ndp::NeighbourAdvertisement {
            router: code & 1 != 0,
            solicited: code & 2 != 0,
            overrides: code & 4 != 0,
            target,
            target_mac: mac,
        }),
    }
}

/// MAC address, MTU, a prefix and an unknown option.
const ROUTER_OPTIONS: [u8; 56] = [
    1, 1, 2, 0, 0, 0, 0, 1, 5, 1, 0, 0, 0, 0, 5, 220, //
    3, 4, 64, 0xc0, 0, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0, //
    0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
    25, 1, 0, 0, 0, 0, 0, 0,
];

/// The frame that `write` writes.
fn written(write: impl Fn(&mut Writer<'_>) -> usize, link: &ethernet::Header) -> Vec<u8> {
    let mut buffer = vec![0; 4_096];
    let mut writer = Writer {
        link: Some(link),
        buffer: &mut buffer,
    };
    let length = write(&mut writer);
    buffer.truncate(length);
    buffer
}

/// A valid frame of any kind.
pub(crate) fn frame() -> impl Strategy<Value = Vec<u8>> {
    let tcp = (link(), network(), tcp_header(), bytes(100)).prop_map(|(link, ip, tcp, payload)| {
        let write = |writer: &mut Writer<'_>| {
            writer
                .tcp(&ip, &tcp, &[&payload], Fill::Checksum)
                .expect("room for the frame")
        };
        written(write, &link)
    });
    let v4 = (link(), ipv4_header(), ingredients()).prop_map(|(link, ip, of)| {
        written(
            |writer| {
                writer
                    .icmp4(&ip, &icmp4_message(&of))
                    .expect("room for the frame")
            },
            &link,
        )
    });
    let v6 = (link(), ipv6_header(), ingredients()).prop_map(|(link, ip, of)| {
        written(
            |writer| {
                writer
                    .icmp6(&ip, &icmp6_message(&of))
                    .expect("room for the frame")
            },
            &link,
        )
    });
    let ndp = (link(), ipv6_header(), ingredients()).prop_map(|(link, ip, of)| {
        let source = Ipv6Addr::from_bits(0xfe80 << 112 | ip.source.to_bits() >> 64 | 1);
        let header = ipv6::Header {
            source,
            hop_limit: 255,
            ..ip
        };
        let message = icmp6::Message::Ndp(ndp_message(&of));
        written(
            |writer| writer.icmp6(&header, &message).expect("room for the frame"),
            &link,
        )
    });
    let arp = (link(), arp_packet()).prop_map(|(link, packet)| {
        written(
            |writer| writer.arp(&packet).expect("room for the frame"),
            &link,
        )
    });
    prop_oneof![4 => tcp, 2 => v4, 2 => v6, 2 => ndp, 1 => arp]
}

pub(crate) fn arp_packet() -> impl Strategy<Value = arp::Packet> {
    let addresses = (mac(), any::<u32>(), any::<[u8; 6]>(), any::<u32>());
    (any::<bool>(), addresses).prop_map(|(request, (sender_mac, sender, target_mac, target))| {
        arp::Packet {
            operation: if request {
                arp::Operation::Request
            } else {
                arp::Operation::Reply
            },
            sender_mac,
            sender: Ipv4Addr::from_bits(sender),
            target_mac: Mac(target_mac),
            target: Ipv4Addr::from_bits(target),
        }
    })
}

/// Damage to a frame: replaced bytes, inserted bytes, and a missing end. Bytes of the headers are
/// affected more often.
#[derive(Debug, Clone)]
pub(crate) struct Damage {
    replaced: Vec<(usize, u8)>,
    inserted: Option<(usize, Vec<u8>)>,
    cut: Option<usize>,
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let at = || prop_oneof![12..90_usize, 0..200_usize];
    let byte = || prop_oneof![any::<u8>(), 0..64_u8, (0..8_u8).prop_map(|bit| 1 << bit)];
    (
        prop::collection::vec((at(), byte()), 0..4),
        prop::option::weighted(0.3, (at(), prop::collection::vec(byte(), 0..17))),
        prop::option::weighted(0.2, at()),
    )
        .prop_map(|(replaced, inserted, cut)| Damage {
            replaced,
            inserted,
            cut,
        })
}

impl Damage {
    pub(crate) fn apply(&self, frame: &mut Vec<u8>) {
        if let Some((at, bytes)) = &self.inserted
            && *at <= frame.len()
        {
            frame.splice(at..at, bytes.iter().copied());
        }
        for (at, byte) in &self.replaced {
            if let Some(place) = frame.get_mut(*at) {
                *place = *byte;
            }
        }
        if let Some(length) = self.cut {
            frame.truncate(length);
        }
    }
}
