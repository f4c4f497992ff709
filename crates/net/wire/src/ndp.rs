//! Neighbour discovery for IPv6.
//!
//! Spec: RFC 4861 §4 (layouts), §6.1 and §7.1 (validity), RFC 6980 (no fragments). A message that
//! breaks a rule of validity is [`Malformed`]. Redirects are left to
//! [`crate::icmp6::Message::Other`]: hosts may ignore them.

mod options;
#[cfg(test)]
mod tests;

pub use options::{Options, Prefix};

use crate::bytes::{get_ipv6, get_u16, get_u32};
use crate::ethernet::Mac;
use crate::icmp::Layout;
use crate::{Malformed, ipv6};
use core::net::Ipv6Addr;
use options::{SOURCE_LINK, TARGET_LINK, link_option};

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Hop limit of every message; a lower value shows that a router forwarded the message.
pub const HOP_LIMIT: u8 = 255;

/// A neighbour discovery message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks routers for advertisements.
    RouterSolicitation {
        /// MAC address of the sender.
        source_mac: Option<Mac>,
    },
    /// A router describes itself and its link.
    RouterAdvertisement(RouterAdvertisement<'a>),
    /// Asks for the MAC address of a neighbour.
    NeighbourSolicitation {
        /// Address of the neighbour.
        target: Ipv6Addr,
        /// MAC address of the sender.
        source_mac: Option<Mac>,
    },
    /// Answers a solicitation, or announces a change.
    NeighbourAdvertisement(NeighbourAdvertisement),
}

/// A router's description of itself and its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterAdvertisement<'a> {
    /// Default hop limit for the host's packets; 0 if not specified.
    pub hop_limit: u8,
    /// Addresses are available from DHCPv6.
    pub managed: bool,
    /// Other settings are available from DHCPv6.
    pub other_config: bool,
    /// Time for which the router is a default router; 0 if the router is not a default router.
    pub lifetime_s: u16,
    /// Time for which a confirmed neighbour is reachable; 0 if not specified.
    pub reachable_ms: u32,
    /// Time between retransmitted solicitations; 0 if not specified.
    pub retransmit_ms: u32,
    /// MAC address of the router, MTU and prefixes of the link.
    pub options: Options<'a>,
}

/// A neighbour's MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourAdvertisement {
    /// The neighbour is a router.
    pub router: bool,
    /// The message answers a solicitation.
    pub solicited: bool,
    /// The message overrides a cached MAC address.
    pub overrides: bool,
    /// Address of the neighbour.
    pub target: Ipv6Addr,
    /// MAC address of the neighbour.
    pub target_mac: Option<Mac>,
}

/// Whether [`Message::parse`] reads ICMPv6 messages of this type.
pub(crate) const fn is_ndp(kind: u8) -> bool {
    matches!(kind, ROUTER_SOLICITATION..=NEIGHBOUR_ADVERTISEMENT)
}

/// The solicited-node multicast address of `target` (RFC 4291 §2.7.1).
#[must_use]
pub const fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    let [.., low, last] = target.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | low & 0xff, last)
}

impl<'a> Message<'a> {
    /// Reads the message of `packet`; `body` is the part after the checksum.
    pub(crate) fn parse(
        packet: &ipv6::Packet<'a>,
        kind: u8,
        code: u8,
        body: &'a [u8],
    ) -> Result<Self, Malformed> {
        if packet.header.hop_limit != HOP_LIMIT {
            return Err(Malformed::NdpHopLimit);
        }
        if packet.fragment_header {
            return Err(Malformed::NdpFragment);
        }
        if code != 0 {
            return Err(Malformed::NdpCode);
        }
        match kind {
            ROUTER_SOLICITATION => router_solicitation(packet, body),
            ROUTER_ADVERTISEMENT => router_advertisement(packet, body),
            NEIGHBOUR_SOLICITATION => neighbour_solicitation(packet, body),
            _ => neighbour_advertisement(packet, body),
        }
    }

    pub(crate) fn layout(&self) -> Layout<'a> {
        match *self {
            Self::RouterSolicitation { source_mac } => {
                let head = Layout::new(ROUTER_SOLICITATION, 0, &[]).field([0; 4]);
                with_link(head, SOURCE_LINK, source_mac)
            }
            Self::RouterAdvertisement(advertisement) => advertisement.layout(),
            Self::NeighbourSolicitation { target, source_mac } => {
                let head = Layout::new(NEIGHBOUR_SOLICITATION, 0, &[])
                    .field([0; 4])
                    .field(target.octets());
                with_link(head, SOURCE_LINK, source_mac)
            }
            Self::NeighbourAdvertisement(advertisement) => advertisement.layout(),
        }
    }
}

impl<'a> RouterAdvertisement<'a> {
    fn layout(&self) -> Layout<'a> {
        let flags = u8::from(self.managed) << 7 | u8::from(self.other_config) << 6;
        Layout::new(ROUTER_ADVERTISEMENT, 0, self.options.bytes())
            .field([self.hop_limit, flags])
            .field(self.lifetime_s.to_be_bytes())
            .field(self.reachable_ms.to_be_bytes())
            .field(self.retransmit_ms.to_be_bytes())
    }
}

impl NeighbourAdvertisement {
    fn layout<'a>(&self) -> Layout<'a> {
        let flags = u8::from(self.router) << 7
            | u8::from(self.solicited) << 6
            | u8::from(self.overrides) << 5;
        let head = Layout::new(NEIGHBOUR_ADVERTISEMENT, 0, &[])
            .field([flags, 0, 0, 0])
            .field(self.target.octets());
        with_link(head, TARGET_LINK, self.target_mac)
    }
}

fn with_link<'a>(head: Layout<'a>, kind: u8, mac: Option<Mac>) -> Layout<'a> {
    match mac {
        Some(mac) => head.field(link_option(kind, mac)),
        None => head,
    }
}

/// The fixed part of a message after the checksum, and the options.
fn split<const N: usize>(body: &[u8]) -> Result<(&[u8; N], Options<'_>), Malformed> {
    let (fixed, options) = body.split_first_chunk().ok_or(Malformed::NdpTruncated)?;
    Ok((fixed, Options::parse(options)?))
}

/// RFC 4861 §6.1.1.
fn router_solicitation<'a>(
    packet: &ipv6::Packet<'a>,
    body: &'a [u8],
) -> Result<Message<'a>, Malformed> {
    let (_, options) = split::<4>(body)?;
    let source_mac = options.source_mac();
    if packet.header.source.is_unspecified() && source_mac.is_some() {
        return Err(Malformed::NdpSource);
    }
    Ok(Message::RouterSolicitation { source_mac })
}

/// RFC 4861 §6.1.2.
fn router_advertisement<'a>(
    packet: &ipv6::Packet<'a>,
    body: &'a [u8],
) -> Result<Message<'a>, Malformed> {
    let (fixed, options) = split::<12>(body)?;
    if !packet.header.source.is_unicast_link_local() {
        return Err(Malformed::NdpSource);
    }
    Ok(Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: fixed[0],
        managed: fixed[1] & 0x80 != 0,
        other_config: fixed[1] & 0x40 != 0,
        lifetime_s: get_u16(fixed, 2),
        reachable_ms: get_u32(fixed, 4),
        retransmit_ms: get_u32(fixed, 8),
        options,
    }))
}

/// RFC 4861 §7.1.1.
fn neighbour_solicitation<'a>(
    packet: &ipv6::Packet<'a>,
    body: &'a [u8],
) -> Result<Message<'a>, Malformed> {
    let (fixed, options) = split::<20>(body)?;
    let (target, source_mac) = (unicast_target(fixed)?, options.source_mac());
    let header = &packet.header;
    if header.source.is_unspecified() {
        if source_mac.is_some() {
            return Err(Malformed::NdpSource);
        }
        if header.destination != solicited_node(header.destination) {
            return Err(Malformed::NdpDestination);
        }
    }
    Ok(Message::NeighbourSolicitation { target, source_mac })
}

/// RFC 4861 §7.1.2.
fn neighbour_advertisement<'a>(
    packet: &ipv6::Packet<'a>,
    body: &'a [u8],
) -> Result<Message<'a>, Malformed> {
    let (fixed, options) = split::<20>(body)?;
    let advertisement = NeighbourAdvertisement {
        router: fixed[0] & 0x80 != 0,
        solicited: fixed[0] & 0x40 != 0,
        overrides: fixed[0] & 0x20 != 0,
        target: unicast_target(fixed)?,
        target_mac: options.target_mac(),
    };
    if packet.header.destination.is_multicast() && advertisement.solicited {
        return Err(Malformed::NdpDestination);
    }
    Ok(Message::NeighbourAdvertisement(advertisement))
}

fn unicast_target(fixed: &[u8; 20]) -> Result<Ipv6Addr, Malformed> {
    let target = get_ipv6(fixed, 4);
    if target.is_multicast() {
        return Err(Malformed::NdpTarget);
    }
    Ok(target)
}
