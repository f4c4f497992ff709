//! From a captured frame to its IP packet.

use crate::Timestamp;

const ETHERNET_HEADER: usize = 14;
const COOKED_HEADER: usize = 16;
const COOKED_V2_HEADER: usize = 20;
const NULL_HEADER: usize = 4;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the tag that older switches used for the outer one.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags that are removed: a frame with more is not from a network of servers.
const MOST_TAGS: usize = 4;

/// The header in front of the IP packets of a capture (`LINKTYPE_*` of tcpdump.org/linktypes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// `LINKTYPE_ETHERNET`, with VLAN tags.
    Ethernet,
    /// `LINKTYPE_LINUX_SLL`, which `tcpdump -i any` wrote before libpcap 1.10.
    Cooked,
    /// `LINKTYPE_LINUX_SLL2`.
    CookedV2,
    /// `LINKTYPE_RAW`, `LINKTYPE_IPV4` and `LINKTYPE_IPV6`: none.
    RawIp,
    /// `LINKTYPE_NULL` and `LINKTYPE_LOOP`: an address family, whose value the IP header repeats.
    Null,
}

impl Link {
    /// The link of a file's number, if it is supported. Only the lower 16 bits of the field in a
    /// pcap header are the link type.
    #[must_use]
    pub fn of_number(number: u16) -> Option<Self> {
        match number {
            0 | 108 => Some(Self::Null),
            1 => Some(Self::Ethernet),
            // 12 and 14 are DLT_RAW on systems that wrote it into files.
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            113 => Some(Self::Cooked),
            276 => Some(Self::CookedV2),
            _ => None,
        }
    }

    /// The IP packet of a frame; `None` for other frames (ARP, LLDP) and those cut before it.
    pub(crate) fn ip(self, frame: &[u8]) -> Option<&[u8]> {
        match self {
            Self::RawIp => Some(frame),
            Self::Null => frame.get(NULL_HEADER..),
            Self::Ethernet => behind_tags(word(frame, 12)?, frame.get(ETHERNET_HEADER..)?),
            Self::Cooked => behind_tags(word(frame, 14)?, frame.get(COOKED_HEADER..)?),
            Self::CookedV2 => behind_tags(word(frame, 0)?, frame.get(COOKED_V2_HEADER..)?),
        }
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u16> {
    let two = bytes.get(offset..offset + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

fn behind_tags(mut ethertype: u16, mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..MOST_TAGS {
        if !ETHERTYPES_VLAN.contains(&ethertype) {
            break;
        }
        ethertype = word(rest, 2)?;
        rest = rest.get(4..)?;
    }
    [ETHERTYPE_IPV4, ETHERTYPE_IPV6]
        .contains(&ethertype)
        .then_some(rest)
}

/// A frame as a capture holds it.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub at: Timestamp,
    pub link: Link,
    /// The captured bytes; a snap length cuts the end off.
    pub bytes: &'a [u8],
    /// Length of the frame on the network.
    pub length: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(header: &[u8]) -> Vec<u8> {
        [header, b"ip"].concat()
    }

    #[test]
    fn headers_are_removed() {
        let macs = [0u8; 12];
        let ethernet = |types: &[u8]| framed(&[&macs[..], types].concat());
        for (name, link, frame, expected) in [
            ("IPv4", Link::Ethernet, ethernet(&[8, 0]), true),
            ("IPv6", Link::Ethernet, ethernet(&[0x86, 0xdd]), true),
            ("ARP", Link::Ethernet, ethernet(&[8, 6]), false),
            (
                "VLAN",
                Link::Ethernet,
                ethernet(&[0x81, 0, 0, 7, 8, 0]),
                true,
            ),
            (
                "QinQ",
                Link::Ethernet,
                ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]),
                true,
            ),
            (
                "cut in a tag",
                Link::Ethernet,
                [&macs[..], &[0x81, 0, 0]].concat(),
                false,
            ),
            (
                "cooked",
                Link::Cooked,
                framed(&[&[0u8; 14][..], &[8, 0]].concat()),
                true,
            ),
            (
                "cooked v2",
                Link::CookedV2,
                framed(&[&[8, 0][..], &[0; 18]].concat()),
                true,
            ),
            ("raw", Link::RawIp, framed(&[]), true),
            ("null", Link::Null, framed(&[2, 0, 0, 0]), true),
            ("too short", Link::Null, vec![2, 0], false),
        ] {
            assert_eq!(link.ip(&frame), expected.then_some(&b"ip"[..]), "{name}");
        }
    }
}
