//! ICMP, ICMPv6 and neighbour discovery.

use super::{assert_stricter, checksums, smoltcp_verifies};
use saiga_wire::ethernet::Mac;
use saiga_wire::ip::Addresses;
use saiga_wire::quote::Quoted;
use saiga_wire::{Malformed, icmp4, icmp6, ipv6, ndp};
use smoltcp::wire::{
    Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, Ipv4Packet, Ipv4Repr, Ipv6Repr,
    NdiscNeighborFlags, NdiscRepr, NdiscRouterFlags, RawHardwareAddress,
};
use std::time::Duration;

pub(super) fn v4(bytes: &[u8]) {
    let theirs = Icmpv4Packet::new_checked(bytes)
        .and_then(|packet| Ok((Icmpv4Repr::parse(&packet, &checksums())?, packet)));
    match (icmp4::Message::parse(bytes), theirs) {
        (Ok(ours), Ok((theirs, packet))) => {
            assert!(packet.verify_checksum());
            same_v4(&ours, &theirs);
        }
        (Err(Malformed::IcmpChecksum), Ok((_, packet))) => {
            assert!(!smoltcp_verifies() || !packet.verify_checksum());
        }
        (Err(reason), Ok((accepted, _))) => assert_stricter(reason, &accepted),
        (Ok(ours), Err(_)) => assert!(is_looser_v4(&ours), "{ours:?}"),
        (Err(_), Err(_)) => {}
    }
}

/// smoltcp reads four kinds of messages, and quotes that hold what the quoted header announces.
fn is_looser_v4(ours: &icmp4::Message<'_>) -> bool {
    use icmp4::Message;
    match ours {
        Message::Other(_) | Message::ParameterProblem { .. } => true,
        Message::EchoRequest(_) | Message::EchoReply(_) => false,
        Message::Unreachable { quote, .. }
        | Message::FragmentationNeeded { quote, .. }
        | Message::TimeExceeded { quote, .. } => Ipv4Packet::new_checked(*quote)
            .is_ok_and(|packet| quote.len() >= usize::from(packet.header_len()) + 8)
            .eq(&false),
    }
}

fn same_v4(ours: &icmp4::Message<'_>, theirs: &Icmpv4Repr<'_>) {
    use icmp4::Message;
    let (same_code, header, quote) = match (*ours, *theirs) {
        (
            Message::EchoRequest(echo),
            Icmpv4Repr::EchoRequest {
                ident,
                seq_no,
                data,
            },
        )
        | (
            Message::EchoReply(echo),
            Icmpv4Repr::EchoReply {
                ident,
                seq_no,
                data,
            },
        ) => {
            assert_eq!((echo.id, echo.sequence, echo.data), (ident, seq_no, data));
            return;
        }
        (
            Message::Unreachable { code, quote },
            Icmpv4Repr::DstUnreachable { reason, header, .. },
        ) => (code == u8::from(reason), header, quote),
        (
            Message::FragmentationNeeded { quote, .. },
            Icmpv4Repr::DstUnreachable { reason, header, .. },
        ) => (u8::from(reason) == 4, header, quote),
        (
            Message::TimeExceeded { code, quote },
            Icmpv4Repr::TimeExceeded { reason, header, .. },
        ) => (code == u8::from(reason), header, quote),
        _ => panic!("{ours:?}, but {theirs:?}"),
    };
    assert!(same_code, "{ours:?}, but {theirs:?}");
    same_quote_v4(quote, &header);
}

fn same_quote_v4(quote: &[u8], header: &Ipv4Repr) {
    let Some(ours) = Quoted::of_ipv4(quote) else {
        // smoltcp checks neither the version of a quote nor that it has 20 bytes of header.
        assert!(quote[0] >> 4 != 4 || quote[0] & 15 < 5);
        return;
    };
    let addresses = Addresses::V4 {
        source: header.src_addr,
        destination: header.dst_addr,
    };
    assert_eq!(ours.addresses, addresses);
    assert_eq!(ours.protocol.0, u8::from(header.next_header));
}

pub(super) fn v6(packet: &ipv6::Packet<'_>) {
    let ipv6::Header {
        source,
        destination,
        ..
    } = packet.header;
    let theirs = Icmpv6Packet::new_checked(packet.payload).and_then(|icmp| {
        let repr = Icmpv6Repr::parse(&source, &destination, &icmp, &checksums())?;
        Ok((repr, icmp))
    });
    match (icmp6::Message::parse(packet), theirs) {
        (Ok(ours), Ok((theirs, icmp))) => {
            assert!(icmp.verify_checksum(&source, &destination));
            same_v6(&ours, &theirs, packet.payload);
        }
        (Err(Malformed::Icmp6Checksum), Ok((_, icmp))) => {
            assert!(!smoltcp_verifies() || !icmp.verify_checksum(&source, &destination));
        }
        (Err(reason), Ok((accepted, _))) => assert_stricter(reason, &accepted),
        (Ok(ours), Err(_)) => assert!(is_looser_v6(&ours, packet.payload), "{ours:?}"),
        (Err(_), Err(_)) => {}
    }
}

/// smoltcp refuses unknown messages, quotes without a whole header, packets too big with a code,
/// and two kinds of neighbour discovery options that are of no use to it.
fn is_looser_v6(ours: &icmp6::Message<'_>, bytes: &[u8]) -> bool {
    use icmp6::Message;
    match ours {
        Message::Other(_) => true,
        Message::EchoRequest(_) | Message::EchoReply(_) => false,
        Message::PacketTooBig { quote, .. } => quote.len() < 40 || bytes[1] != 0,
        Message::Unreachable { quote, .. }
        | Message::TimeExceeded { quote, .. }
        | Message::ParameterProblem { quote, .. } => quote.len() < 40,
        // A redirected header of less than 48 bytes.
        Message::Ndp(_) => bytes.chunks(8).any(|unit| unit[0] == 4),
    }
}

fn same_v6(ours: &icmp6::Message<'_>, theirs: &Icmpv6Repr<'_>, bytes: &[u8]) {
    use icmp6::Message;
    let (agrees, header, quote) = match (*ours, *theirs) {
        (
            Message::EchoRequest(echo),
            Icmpv6Repr::EchoRequest {
                ident,
                seq_no,
                data,
            },
        )
        | (
            Message::EchoReply(echo),
            Icmpv6Repr::EchoReply {
                ident,
                seq_no,
                data,
            },
        ) => {
            assert_eq!((echo.id, echo.sequence, echo.data), (ident, seq_no, data));
            return;
        }
        (Message::Ndp(ours), Icmpv6Repr::Ndisc(theirs)) => {
            // Of two equal options, smoltcp takes the last one, and this crate the first one, as
            // Linux does.
            if !has_option_twice(bytes) {
                same_ndp(&ours, &theirs);
            }
            return;
        }
        // Redirects and listener discovery are not read here.
        (Message::Other(_), Icmpv6Repr::Ndisc(NdiscRepr::Redirect { .. }) | Icmpv6Repr::Mld(_)) => {
            return;
        }
        (
            Message::Unreachable { code, quote },
            Icmpv6Repr::DstUnreachable { reason, header, .. },
        ) => (code == u8::from(reason), header, quote),
        (
            Message::PacketTooBig { mtu, quote },
            Icmpv6Repr::PktTooBig {
                mtu: theirs,
                header,
                ..
            },
        ) => (mtu == theirs, header, quote),
        (
            Message::TimeExceeded { code, quote },
            Icmpv6Repr::TimeExceeded { reason, header, .. },
        ) => (code == u8::from(reason), header, quote),
        (
            Message::ParameterProblem { problem, quote },
            Icmpv6Repr::ParamProblem {
                reason,
                pointer,
                header,
                ..
            },
        ) => {
            let same = problem.code == u8::from(reason) && problem.pointer == pointer;
            (same, header, quote)
        }
        _ => panic!("{ours:?}, but {theirs:?}"),
    };
    assert!(agrees, "{ours:?}, but {theirs:?}");
    same_quote_v6(quote, &header);
}

fn same_quote_v6(quote: &[u8], header: &Ipv6Repr) {
    let Some(ours) = Quoted::of_ipv6(quote) else {
        // smoltcp does not check the version of a quote.
        assert_ne!(quote[0] >> 4, 6);
        return;
    };
    let addresses = Addresses::V6 {
        source: header.src_addr,
        destination: header.dst_addr,
    };
    assert_eq!(ours.addresses, addresses);
}

/// Whether two options of a neighbour discovery message have the same type.
fn has_option_twice(message: &[u8]) -> bool {
    let mut at = match message[0] {
        133 => 8,
        134 => 16,
        _ => 24,
    };
    let mut kinds = [false; 256];
    while at < message.len() {
        let (kind, units) = (message[at], message[at + 1]);
        if std::mem::replace(&mut kinds[usize::from(kind)], true) {
            return true;
        }
        at += usize::from(units) * 8;
    }
    false
}

fn same_ndp(ours: &ndp::Message<'_>, theirs: &NdiscRepr<'_>) {
    match (*ours, *theirs) {
        (ndp::Message::RouterSolicitation { source_mac }, NdiscRepr::RouterSolicit { lladdr }) => {
            same_mac(source_mac, lladdr);
        }
        (
            ndp::Message::NeighbourSolicitation { target, source_mac },
            NdiscRepr::NeighborSolicit {
                target_addr,
                lladdr,
            },
        ) => {
            assert_eq!(target, target_addr);
            same_mac(source_mac, lladdr);
        }
        (
            ndp::Message::NeighbourAdvertisement(ours),
            NdiscRepr::NeighborAdvert {
                flags,
                target_addr,
                lladdr,
            },
        ) => {
            assert_eq!(ours.target, target_addr);
            assert_eq!(ours.router, flags.contains(NdiscNeighborFlags::ROUTER));
            assert_eq!(
                ours.solicited,
                flags.contains(NdiscNeighborFlags::SOLICITED)
            );
            assert_eq!(ours.overrides, flags.contains(NdiscNeighborFlags::OVERRIDE));
            same_mac(ours.target_mac, lladdr);
        }
        (ndp::Message::RouterAdvertisement(ours), theirs) => same_router(&ours, &theirs),
        _ => panic!("{ours:?}, but {theirs:?}"),
    }
}

fn same_router(ours: &ndp::RouterAdvertisement<'_>, theirs: &NdiscRepr<'_>) {
    let NdiscRepr::RouterAdvert {
        hop_limit,
        flags,
        router_lifetime,
        reachable_time,
        retrans_time,
        lladdr,
        mtu,
        prefix_info,
    } = *theirs
    else {
        panic!("{ours:?}, but {theirs:?}");
    };
    let millis = |ms: u32| smoltcp::time::Duration::from_millis(ms.into());
    assert_eq!(ours.hop_limit, hop_limit);
    assert_eq!(ours.managed, flags.contains(NdiscRouterFlags::MANAGED));
    assert_eq!(ours.other_config, flags.contains(NdiscRouterFlags::OTHER));
    let lifetime = Duration::from_secs(ours.lifetime_s.into());
    assert_eq!(lifetime, router_lifetime.into());
    assert_eq!(millis(ours.reachable_ms), reachable_time);
    assert_eq!(millis(ours.retransmit_ms), retrans_time);
    same_mac(ours.options.source_mac(), lladdr);
    assert_eq!(ours.options.mtu(), mtu);
    let prefix = ours.options.prefixes().next();
    assert_eq!(prefix.is_some(), prefix_info.is_some());
    if let (Some(ours), Some(theirs)) = (prefix, prefix_info) {
        assert_eq!(
            (ours.address, ours.length_bits),
            (theirs.prefix, theirs.prefix_len)
        );
        let seconds = |s: u32| smoltcp::time::Duration::from_secs(s.into());
        assert_eq!(seconds(ours.valid_s), theirs.valid_lifetime);
        assert_eq!(seconds(ours.preferred_s), theirs.preferred_lifetime);
    }
}

fn same_mac(ours: Option<Mac>, theirs: Option<RawHardwareAddress>) {
    let theirs = theirs.map(|address| address.as_bytes()[..6].to_vec());
    assert_eq!(ours.map(|mac| mac.0.to_vec()), theirs);
}
