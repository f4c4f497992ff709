//! Headers and frames of the tests.

use super::Transport;
use crate::SeqNum;
use crate::ethernet::{EtherType, Mac, Tag, Tags};
use crate::ip::{Ports, Protocol, TrafficClass};
use crate::tcp::{self, Flags, Options, Timestamps};
use crate::{ethernet, ipv4, ipv6};
use core::net::{Ipv4Addr, Ipv6Addr};

pub(super) const LINK: ethernet::Header = ethernet::Header {
    destination: Mac([2, 0, 0, 0, 0, 0xb]),
    source: Mac([2, 0, 0, 0, 0, 0xa]),
    tags: Tags::None,
    ether_type: EtherType::IPV4,
};

pub(super) const V4: ipv4::Header = ipv4::Header {
    source: Ipv4Addr::new(192, 0, 2, 1),
    destination: Ipv4Addr::new(198, 51, 100, 2),
    protocol: Protocol::TCP,
    traffic_class: TrafficClass(2),
    ttl: 64,
    id: 0xbeef,
    dont_fragment: true,
    more_fragments: false,
    fragment_offset: 0,
};

pub(super) const V6: ipv6::Header = ipv6::Header {
    source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    protocol: Protocol::TCP,
    traffic_class: TrafficClass(2),
    flow_label: 0x1_2345,
    hop_limit: 64,
};

pub(super) const TCP: tcp::Header = tcp::Header {
    ports: Ports {
        source: 0xc001,
        destination: 6379,
    },
    seq: SeqNum(0x1122_3344),
    ack: Some(SeqNum(0x5566_7788)),
    flags: Flags::PSH,
    window: 502,
    urgent: None,
    options: Options {
        timestamps: Some(Timestamps {
            value: 0x0102_0304,
            echo: 0x0506_0708,
        }),
        ..Options::NONE
    },
};

/// A TCP segment with timestamps and `PING` as payload, and 4 bytes of padding.
pub(super) const V4_FRAME: [u8; 74] = [
    2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 0x08, 0x00, // Ethernet
    0x45, 0x02, 0x00, 0x38, 0xbe, 0xef, 0x40, 0x00, 0x40, 0x06, 0x8f, 0x97, // IPv4
    192, 0, 2, 1, 198, 51, 100, 2, //
    0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // TCP
    0x80, 0x18, 0x01, 0xf6, 0xef, 0x9d, 0x00, 0x00, //
    1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, b'P', b'I', b'N', b'G', 9, 9, 9, 9,
];

/// The same segment in an IPv6 packet with a VLAN tag.
pub(super) const V6_FRAME: [u8; 94] = [
    2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 0x81, 0x00, 0x00, 0x07, 0x86, 0xdd, // Ethernet
    0x60, 0x21, 0x23, 0x45, 0x00, 0x24, 6, 64, // IPv6
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
    0xc0, 0x01, 0x18, 0xeb, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // TCP
    0x80, 0x18, 0x01, 0xf6, 0x80, 0x60, 0x00, 0x00, //
    1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, b'P', b'I', b'N', b'G',
];

pub(super) const fn tagged() -> ethernet::Header {
    ethernet::Header {
        tags: Tags::One(Tag::vlan(7)),
        ether_type: EtherType::IPV6,
        ..LINK
    }
}

pub(super) const SEGMENT: Transport<'_> = Transport::Tcp(tcp::Segment {
    header: TCP,
    payload: b"PING",
});
