//! Reasons to drop a packet.

use core::fmt;

/// Declares the reasons with their names, and the tables that follow from them.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $reason:ident = $name:literal,)+) => {
        /// Reason to drop a packet: the first fault in the order of the layers.
        ///
        /// `reason as usize` is below [`Malformed::COUNT`], so that an array counts each reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Malformed {
            $($(#[doc = $doc])+ $reason,)+
        }

        impl Malformed {
            /// Number of reasons.
            pub const COUNT: usize = [$($name),+].len();
            /// All reasons; the index of each is its value as a number.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$reason),+];

            /// Name of the reason in metrics: lower case, with underscores.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)+
                }
            }
        }
    };
}

// New reasons are appended, so that the numbers of the others stay the same.
reasons! {
    /// The frame ends inside the Ethernet header or a VLAN tag.
    EthernetTruncated = "ethernet_truncated",
    /// The source MAC address is a group address.
    EthernetSource = "ethernet_source",
    /// The frame has more than two VLAN tags.
    EthernetTags = "ethernet_tags",
    /// The ARP packet is shorter than 28 bytes.
    ArpTruncated = "arp_truncated",
    /// The address types of the ARP packet are not Ethernet and IPv4.
    ArpFormat = "arp_format",
    /// The ARP operation is neither a request nor a reply.
    ArpOperation = "arp_operation",
    /// The sender's MAC address is a group address (RFC 1812 §3.3.2).
    ArpSender = "arp_sender",
    /// The version field of the IP header contradicts the EtherType, or is neither 4 nor 6.
    IpVersion = "ip_version",
    /// The packet is shorter than its IPv4 header or than its total length.
    Ipv4Truncated = "ipv4_truncated",
    /// The header length is below 20 bytes or above the total length.
    Ipv4Length = "ipv4_length",
    /// The IPv4 header checksum is wrong.
    Ipv4Checksum = "ipv4_checksum",
    /// The source is a multicast address or the limited broadcast address (RFC 1122 §3.2.1.3).
    Ipv4Source = "ipv4_source",
    /// An IPv4 option has an impossible length.
    Ipv4Option = "ipv4_option",
    /// The packet has a source route (RFC 7126 §4.3, §4.4).
    Ipv4SourceRoute = "ipv4_source_route",
    /// A fragment is empty, is not a multiple of 8 bytes, or ends past 65,535 bytes.
    Ipv4Fragment = "ipv4_fragment",
    /// The packet is shorter than its IPv6 header or its payload length.
    Ipv6Truncated = "ipv6_truncated",
    /// The source is a multicast address (RFC 4291 §2.7).
    Ipv6Source = "ipv6_source",
    /// The destination is the unspecified address (RFC 4291 §2.5.2).
    Ipv6Destination = "ipv6_destination",
    /// The packet ends inside an extension header.
    Ipv6ExtensionTruncated = "ipv6_extension_truncated",
    /// There are more extension headers, or bytes of them, than [`crate::ipv6`] accepts.
    Ipv6ExtensionLimit = "ipv6_extension_limit",
    /// Hop-by-hop options are not the first extension header (RFC 8200 §4.1).
    Ipv6HopByHop = "ipv6_hop_by_hop",
    /// An IPv6 option exceeds its header.
    Ipv6Option = "ipv6_option",
    /// An unknown option says that the packet must be discarded (RFC 8200 §4.2).
    Ipv6UnknownOption = "ipv6_unknown_option",
    /// A routing header of type 0 has segments left (RFC 5095 §3).
    Ipv6RoutingType0 = "ipv6_routing_type_0",
    /// A routing header of another type has segments left (RFC 8200 §4.4).
    Ipv6Routing = "ipv6_routing",
    /// A fragment is empty, is not a multiple of 8 bytes, or ends past 65,535 bytes.
    Ipv6Fragment = "ipv6_fragment",
    /// The packet has two fragment headers.
    Ipv6FragmentTwice = "ipv6_fragment_twice",
    /// The first fragment does not hold all headers (RFC 7112 §5).
    Ipv6FragmentHeaders = "ipv6_fragment_headers",
    /// The ICMP message is shorter than its header.
    IcmpTruncated = "icmp_truncated",
    /// The checksum of the ICMP message is wrong.
    IcmpChecksum = "icmp_checksum",
    /// The ICMPv6 message is shorter than its header.
    Icmp6Truncated = "icmp6_truncated",
    /// The checksum of the ICMPv6 message is wrong.
    Icmp6Checksum = "icmp6_checksum",
    /// The hop limit of a neighbour discovery message is not 255 (RFC 4861 §7.1).
    NdpHopLimit = "ndp_hop_limit",
    /// The neighbour discovery message came with a fragment header (RFC 6980 §5).
    NdpFragment = "ndp_fragment",
    /// The code of a neighbour discovery message is not 0.
    NdpCode = "ndp_code",
    /// The neighbour discovery message is shorter than its fixed part.
    NdpTruncated = "ndp_truncated",
    /// A neighbour discovery option has an impossible length or content.
    NdpOption = "ndp_option",
    /// The source address does not suit the neighbour discovery message.
    NdpSource = "ndp_source",
    /// The destination address does not suit the neighbour discovery message.
    NdpDestination = "ndp_destination",
    /// The target of a neighbour discovery message is a multicast address.
    NdpTarget = "ndp_target",
    /// The TCP segment is shorter than its header.
    TcpTruncated = "tcp_truncated",
    /// The data offset of the TCP header is below 20 bytes.
    TcpDataOffset = "tcp_data_offset",
    /// The checksum of the TCP segment is wrong.
    TcpChecksum = "tcp_checksum",
    /// The offload header in front of the packet is too short or contradicts the packet.
    OffloadHeader = "offload_header",
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Malformed;
    use std::{collections::BTreeSet, string::ToString};

    #[test]
    fn numbers_index_an_array_and_names_are_unique() {
        for (index, reason) in Malformed::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
        let names: BTreeSet<&str> = Malformed::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Malformed::COUNT);
        assert_eq!(Malformed::Ipv4Checksum.to_string(), "ipv4_checksum");
    }

    /// Counters of earlier versions keep their meaning.
    #[test]
    fn numbers_are_stable() {
        assert_eq!(Malformed::EthernetTruncated as usize, 0);
        assert_eq!(Malformed::Ipv4Truncated as usize, 8);
        assert_eq!(Malformed::IcmpTruncated as usize, 28);
        assert_eq!(Malformed::OffloadHeader as usize, 43);
    }
}
