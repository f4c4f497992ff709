//! From an IP packet to its TCP segment.

use std::net::SocketAddr;

use etherparse::{IpNumber, Ipv4HeaderSlice, Ipv6ExtensionsSlice, Ipv6HeaderSlice, TcpHeaderSlice};

/// Length of an IPv6 header without extensions.
const IPV6_HEADER: usize = 40;

/// A TCP segment. `bytes` holds as much of the payload as was captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: u32,
    /// The acknowledgement number, if the ACK flag is set.
    pub(crate) ack: Option<u32>,
    pub(crate) window: u16,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    /// Length of the payload according to the IP header.
    pub(crate) length: u32,
    pub(crate) bytes: &'a [u8],
    /// The IPv4 identification, which tells a copy of a packet from a retransmission.
    pub(crate) id: Option<u16>,
}

/// What an IP packet holds.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    Segment(Segment<'a>),
    /// One of the fragments of a packet.
    Fragment,
    /// The capture ends inside the headers.
    CutHeaders,
    /// Another protocol than TCP, or not an IP packet.
    Other,
}

impl<'a> Content<'a> {
    pub(crate) fn of_ip(packet: &'a [u8]) -> Self {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => Self::of_ipv4(packet),
            Some(6) => Self::of_ipv6(packet),
            Some(_) => Self::Other,
            None => Self::CutHeaders,
        }
    }

    fn of_ipv4(packet: &'a [u8]) -> Self {
        let Ok(header) = Ipv4HeaderSlice::from_slice(packet) else {
            return Self::CutHeaders;
        };
        if header.protocol() != IpNumber::TCP {
            return Self::Other;
        }
        if header.is_fragmenting_payload() {
            return Self::Fragment;
        }
        let length = usize::from(header.total_len());
        // The kernel leaves 0 in packets of more than 64 KiB that a network card will divide.
        let length = if length == 0 { packet.len() } else { length };
        let headers = header.slice().len();
        let ips = (
            header.source_addr().into(),
            header.destination_addr().into(),
        );
        let id = Some(header.identification()).filter(|id| *id != 0);
        Self::of_tcp(ips, id, &packet[headers..], length.checked_sub(headers))
    }

    fn of_ipv6(packet: &'a [u8]) -> Self {
        let Ok(header) = Ipv6HeaderSlice::from_slice(packet) else {
            return Self::CutHeaders;
        };
        let behind = &packet[IPV6_HEADER..];
        let length = usize::from(header.payload_length());
        // As above; a jumbogram has its length in an option.
        let length = if length == 0 { behind.len() } else { length };
        let (extensions, protocol, rest, error) =
            Ipv6ExtensionsSlice::from_slice_lax(header.next_header(), behind);
        if extensions.is_fragmenting_payload() {
            return Self::Fragment;
        }
        if error.is_some() {
            return Self::CutHeaders;
        }
        if protocol != IpNumber::TCP {
            return Self::Other;
        }
        let ips = (
            header.source_addr().into(),
            header.destination_addr().into(),
        );
        Self::of_tcp(
            ips,
            None,
            rest,
            length.checked_sub(behind.len() - rest.len()),
        )
    }

    /// `length` is that of the TCP header and payload; `rest` may be shorter (snap length), or
    /// longer (padding of small Ethernet frames).
    fn of_tcp(
        (from, to): (std::net::IpAddr, std::net::IpAddr),
        id: Option<u16>,
        rest: &'a [u8],
        length: Option<usize>,
    ) -> Self {
        let Ok(header) = TcpHeaderSlice::from_slice(rest) else {
            return Self::CutHeaders;
        };
        let headers = header.slice().len();
        let Some(length) = length.and_then(|length| length.checked_sub(headers)) else {
            return Self::Other;
        };
        let captured = &rest[headers..];
        Self::Segment(Segment {
            from: SocketAddr::new(from, header.source_port()),
            to: SocketAddr::new(to, header.destination_port()),
            seq: header.sequence_number(),
            ack: header.ack().then(|| header.acknowledgment_number()),
            window: header.window_size(),
            syn: header.syn(),
            fin: header.fin(),
            rst: header.rst(),
            length: u32::try_from(length).unwrap_or(u32::MAX),
            bytes: &captured[..captured.len().min(length)],
            id,
        })
    }
}
