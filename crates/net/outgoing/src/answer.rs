//! Answers to a program's SYN: a reset of the remote host, or an error of a router.
//!
//! Source: RFC 9293 §3.5.2 (a reset acknowledges the SYN), RFC 1122 §4.2.3.9 and `tcp_v4_err` in
//! net/ipv4/tcp_ipv4.c (an error ends a connection that is not established).

use std::net::{IpAddr, SocketAddr};

use saiga_wire::frame::{Network, Writer};
use saiga_wire::ip::{Ports, Protocol, TrafficClass};
use saiga_wire::offload::Fill;
use saiga_wire::tcp::{self, Flags, Options};
use saiga_wire::{SeqNum, icmp4, icmp6, ipv4, ipv6};

use crate::attempt::Attempt;

/// Codes of "destination unreachable" for which Linux returns EHOSTUNREACH: no path to the host
/// (RFC 792), and an address that does not answer (RFC 4443 §3.1).
const HOST_UNREACHABLE: u8 = 1;
const ADDRESS_UNREACHABLE: u8 = 3;
/// As of other packets of this host.
const HOPS: u8 = 64;
/// Bytes of the longest answer: an IPv6 header, one of ICMP, and the quoted SYN.
const BYTES: usize = 256;

/// The reset of a remote host that has no listener.
pub(crate) fn reset(attempt: &Attempt) -> Option<Vec<u8>> {
    let Attempt { local, remote, .. } = *attempt;
    let header = tcp::Header {
        ports: Ports {
            source: remote.port(),
            destination: local.port(),
        },
        seq: SeqNum(0),
        ack: Some(attempt.seq + 1),
        flags: Flags::RST,
        window: 0,
        urgent: None,
        options: Options::default(),
    };
    let network = network(remote, local)?;
    written(|writer| writer.tcp(&network, &header, &[], Fill::Checksum).ok())
}

/// The error of a router that knows no path.
pub(crate) fn unreachable(attempt: &Attempt) -> Option<Vec<u8>> {
    let quote = attempt.packet();
    // The host itself is the router.
    match network(attempt.local, attempt.local)? {
        Network::V4(header) => {
            let message = icmp4::Message::Unreachable {
                code: HOST_UNREACHABLE,
                quote: icmp4::quotable(quote),
            };
            written(|writer| writer.icmp4(&header, &message).ok())
        }
        Network::V6(header) => {
            let message = icmp6::Message::Unreachable {
                code: ADDRESS_UNREACHABLE,
                quote: icmp6::quotable(quote),
            };
            written(|writer| writer.icmp6(&header, &message).ok())
        }
    }
}

fn network(from: SocketAddr, to: SocketAddr) -> Option<Network> {
    match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Network::V4(ipv4::Header {
            source,
            destination,
            protocol: Protocol::TCP,
            traffic_class: TrafficClass::default(),
            ttl: HOPS,
            id: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
        })),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Network::V6(ipv6::Header {
            source,
            destination,
            protocol: Protocol::TCP,
            traffic_class: TrafficClass::default(),
            flow_label: 0,
            hop_limit: HOPS,
        })),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
    }
}

fn written(write: impl FnOnce(&mut Writer<'_>) -> Option<usize>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; BYTES];
    let mut writer = Writer {
        link: None,
        buffer: &mut buffer,
    };
    let length = write(&mut writer)?;
    buffer.truncate(length);
    Some(buffer)
}
