//! What the stack answers to packets without a connection, and what it hands back.

use saiga_stack::{Config, Instant, Presence, Verdict};
use saiga_wire::ethernet::Mac;
use saiga_wire::frame::{Content, Network, Transport};
use saiga_wire::icmp::Echo;
use saiga_wire::ip::Protocol;
use saiga_wire::tcp::Flags;
use saiga_wire::{SeqNum, arp, icmp4, icmp6, ndp};

use crate::frames::{arp_frame, fragments, icmp4_to, icmp6_to, ip, raw, tcp};
use crate::world::{Host, mac, packet, read, segment, v4, v6};

const NOW: Instant = Instant(2_000_000);

/// Host 2, which knows the MAC address of host 9, alone or beside the kernel.
fn host(presence: Presence) -> Host {
    let config = Config {
        presence,
        ..Config::default()
    };
    let mut host = Host::new(2, config);
    host.listen(4, false);
    for address in [v4(9), v6(9)] {
        assert!(host.stack.set_neighbour(0, address, mac(9), NOW));
    }
    host
}

/// The frames that answer a frame.
fn answers(host: &mut Host, frame: &[u8]) -> Vec<Vec<u8>> {
    let _verdict = host.on_frame(frame, NOW);
    host.frames(NOW)
        .into_iter()
        .map(|(_, frame)| frame)
        .collect()
}

fn udp(network_of: Network) -> Vec<u8> {
    raw(&network_of, &[0x12, 0x34, 0, 53, 0, 8, 0, 0])
}

fn echo(data: &[u8]) -> Echo<'_> {
    Echo {
        id: 1,
        sequence: 2,
        data,
    }
}

#[test]
fn echo_requests_are_answered() {
    let mut host = host(Presence::Alone);
    let request = icmp4::Message::EchoRequest(echo(b"data"));
    let answers4 = answers(&mut host, &icmp4_to(mac(2), (v4(9), v4(2)), &request));
    assert_eq!(
        packet(&answers4[0]).transport,
        Transport::Icmp4(icmp4::Message::EchoReply(echo(b"data")))
    );
    assert_eq!(read(&answers4[0]).link.destination, mac(9));
    let request = icmp6::Message::EchoRequest(echo(b"data"));
    let answers6 = answers(&mut host, &icmp6_to(mac(2), (v6(9), v6(2)), &request));
    assert_eq!(
        packet(&answers6[0]).transport,
        Transport::Icmp6(icmp6::Message::EchoReply(echo(b"data")))
    );
}

#[test]
fn a_fragmented_echo_request_is_answered() {
    let mut host = host(Presence::Alone);
    let request = icmp4::Message::EchoRequest(echo(&[7; 1_000]));
    let mut whole = vec![0; 1_008];
    request.emit(&mut whole).unwrap();
    let Network::V4(header) = ip(v4(9), v4(2), Protocol::ICMP) else {
        panic!()
    };
    let [first, rest] = fragments(header, &whole, 512);
    assert!(answers(&mut host, &rest).is_empty());
    let answer = answers(&mut host, &first);
    assert_eq!(
        packet(&answer[0]).transport,
        Transport::Icmp4(icmp4::Message::EchoReply(echo(&[7; 1_000])))
    );
}

/// RFC 1122 §3.2.2: no answer to what many hosts get, or what cannot have a source.
#[test]
fn what_is_not_answered() {
    let request = icmp4::Message::EchoRequest(echo(b""));
    let unreachable = icmp4::Message::Unreachable {
        code: 3,
        quote: &[0x45; 28],
    };
    let broadcast = Mac::BROADCAST;
    for (name, frame) in [
        (
            "an echo request by broadcast",
            icmp4_to(broadcast, (v4(9), v4(2)), &request),
        ),
        (
            "to the address of all hosts",
            icmp4_to(broadcast, (v4(9), v4(255)), &request),
        ),
        (
            "to another host",
            icmp4_to(mac(2), (v4(9), v4(3)), &request),
        ),
        (
            "to another MAC address",
            icmp4_to(mac(3), (v4(9), v4(2)), &request),
        ),
        ("an error", icmp4_to(mac(2), (v4(9), v4(2)), &unreachable)),
        (
            "UDP from the broadcast address",
            udp(ip(v4(255), v4(2), Protocol::UDP)),
        ),
        (
            "UDP from an own address",
            udp(ip(v4(2), v4(2), Protocol::UDP)),
        ),
        (
            "a SYN from an own address",
            tcp((v4(2), v4(2)), (80, 80), (1, None), Flags::SYN),
        ),
        (
            "a SYN from the broadcast address",
            tcp((v4(255), v4(2)), (9, 80), (1, None), Flags::SYN),
        ),
        (
            "a reset",
            tcp((v4(9), v4(2)), (9, 81), (1, None), Flags::RST),
        ),
    ] {
        let mut host = host(Presence::Alone);
        assert_eq!(answers(&mut host, &frame), [[]; 0], "{name}");
        assert!(host.stack.is_empty(), "{name}");
    }
}

#[test]
fn what_nothing_serves_is_refused() {
    let mut host = host(Presence::Alone);
    let sent = udp(ip(v4(9), v4(2), Protocol::UDP));
    let answer = answers(&mut host, &sent);
    let expected = icmp4::Message::Unreachable {
        code: icmp4::PORT_UNREACHABLE,
        quote: &sent[14..],
    };
    assert_eq!(packet(&answer[0]).transport, Transport::Icmp4(expected));
    let sent = raw(&ip(v4(9), v4(2), Protocol(132)), &[0; 12]);
    let answer = answers(&mut host, &sent);
    let expected = icmp4::Message::Unreachable {
        code: icmp4::PROTOCOL_UNREACHABLE,
        quote: &sent[14..],
    };
    assert_eq!(packet(&answer[0]).transport, Transport::Icmp4(expected));
    let sent = udp(ip(v6(9), v6(2), Protocol::UDP));
    let answer = answers(&mut host, &sent);
    let expected = icmp6::Message::Unreachable {
        code: icmp6::PORT_UNREACHABLE,
        quote: &sent[14..],
    };
    assert_eq!(packet(&answer[0]).transport, Transport::Icmp6(expected));
    // The next header field of an IPv6 header is at offset 6.
    let sent = raw(&ip(v6(9), v6(2), Protocol(132)), &[0; 12]);
    let answer = answers(&mut host, &sent);
    let Transport::Icmp6(icmp6::Message::ParameterProblem { problem, .. }) =
        packet(&answer[0]).transport
    else {
        panic!("{answer:?}")
    };
    assert_eq!((problem.code, problem.pointer), (1, 6));
    // Linux gives a connection up when the answer to its SYN is a Parameter Problem.
    let mut damaged = tcp((v6(9), v6(2)), (9, 80), (100, None), Flags::SYN);
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(answers(&mut host, &damaged), [[0_u8; 0]; 0]);
}

/// RFC 9293 §3.10.7.1.
#[test]
fn a_segment_without_a_connection_is_reset() {
    for (name, port, numbers, flags, expected) in [
        (
            "a SYN to a closed port",
            81,
            (100, None),
            Flags::SYN,
            (0, Some(101)),
        ),
        ("data", 80, (100, Some(7)), Flags::NONE, (7, None)),
        ("a FIN", 80, (100, Some(7)), Flags::FIN, (7, None)),
        (
            "nothing acknowledged",
            81,
            (100, None),
            Flags::FIN,
            (0, Some(101)),
        ),
    ] {
        let mut host = host(Presence::Alone);
        let answer = answers(&mut host, &tcp((v4(9), v4(2)), (9, port), numbers, flags));
        let reset = segment(&answer[0]).unwrap().header;
        assert!(reset.flags.contains(Flags::RST), "{name}");
        let found = (reset.seq, reset.ack);
        let (seq, ack) = expected;
        assert_eq!(found, (SeqNum(seq), ack.map(SeqNum)), "{name}");
        assert_eq!((reset.ports.source, reset.ports.destination), (port, 9));
    }
}

/// RFC 9293 §3.10.7.2, fourth.
#[test]
fn a_listener_is_silent_about_what_is_neither_a_syn_nor_an_acknowledgement() {
    let all = Flags::FIN | Flags::PSH;
    for flags in [Flags::NONE, Flags::FIN, all, Flags::SYN | Flags::FIN] {
        let mut host = host(Presence::Alone);
        let frame = tcp((v4(9), v4(2)), (9, 80), (100, None), flags);
        assert_eq!(
            answers(&mut host, &frame),
            Vec::<Vec<u8>>::new(),
            "{flags:?}"
        );
    }
}

/// Beside the kernel, only listeners and connections of the stack take frames.
#[test]
fn what_is_not_ours_is_handed_back() {
    let request = icmp4::Message::EchoRequest(echo(b""));
    let (own, peer) = (v4(2), v4(9));
    let solicitation = icmp6::Message::Ndp(ndp::Message::NeighbourSolicitation {
        target: "2001:db8::2".parse().unwrap(),
        source_mac: Some(mac(9)),
    });
    for (name, frame, verdict) in [
        (
            "a SYN to the listener",
            tcp((peer, own), (9, 80), (1, None), Flags::SYN),
            Verdict::Taken,
        ),
        (
            "a SYN to another port",
            tcp((peer, own), (9, 22), (1, None), Flags::SYN),
            Verdict::NotOurs,
        ),
        (
            "data of another connection",
            tcp((peer, own), (9, 80), (1, Some(1)), Flags::PSH),
            Verdict::NotOurs,
        ),
        (
            "a SYN to another host",
            tcp((peer, v4(3)), (9, 80), (1, None), Flags::SYN),
            Verdict::NotOurs,
        ),
        (
            "an echo request",
            icmp4_to(mac(2), (peer, own), &request),
            Verdict::NotOurs,
        ),
        ("UDP", udp(ip(peer, own, Protocol::UDP)), Verdict::NotOurs),
        (
            "ARP",
            arp_frame(
                mac(2),
                arp::Operation::Request,
                [10, 0, 0, 9],
                [10, 0, 0, 2],
            ),
            Verdict::Shared,
        ),
        (
            "a solicitation",
            icmp6_to(mac(2), (v6(9), v6(2)), &solicitation),
            Verdict::Shared,
        ),
        (
            "another type of frame",
            [
                &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 9, 0x88, 0xcc][..],
                &[0; 50],
            ]
            .concat(),
            Verdict::NotOurs,
        ),
        ("a frame that is too short", vec![0; 13], Verdict::NotOurs),
    ] {
        let mut host = host(Presence::BesideKernel);
        host.decision = crate::world::Decision::Ignore;
        assert_eq!(host.on_frame(&frame, NOW), verdict, "{name}");
        assert!(host.frames(NOW).is_empty(), "{name}");
        let counters = host.stack.counters();
        assert_eq!(
            counters.handed_back,
            u64::from(verdict != Verdict::Taken),
            "{name}"
        );
    }
}

/// A SYN to a port of host 2 in two fragments, and the packet that they make.
fn fragmented(port: u16) -> ([Vec<u8>; 2], Vec<u8>) {
    let frame = tcp((v4(9), v4(2)), (9, port), (1, None), Flags::SYN);
    let bytes = frame[14..].to_vec();
    let Network::V4(header) = packet(&frame).network else {
        panic!()
    };
    (fragments(header, &bytes[20..], 8), bytes)
}

/// The kernel has connections, too: what is not for the stack comes back as one packet.
#[test]
fn fragments_of_a_connection_of_the_kernel_are_handed_back_whole() {
    let mut host = host(Presence::BesideKernel);
    let ([first, rest], whole) = fragmented(22);
    for frame in [rest, first] {
        assert_eq!(host.stack.poll_handed_back(), None);
        assert_eq!(host.on_frame(&frame, NOW), Verdict::Taken);
    }
    assert_eq!(host.stack.poll_handed_back(), Some(whole));
    assert_eq!(host.stack.poll_handed_back(), None);
    assert_eq!(host.stack.counters().handed_back, 1);
}

#[test]
fn fragments_for_a_listener_are_not_handed_back() {
    let mut host = host(Presence::BesideKernel);
    let ([first, rest], _) = fragmented(80);
    let taken = [first, rest].map(|frame| host.on_frame(&frame, NOW));
    assert_eq!(taken, [Verdict::Taken; 2]);
    assert_eq!(host.application.incoming.len(), 1);
    assert_eq!(host.stack.poll_handed_back(), None);
}

/// A caller that does not ask for them loses packets, not memory.
#[test]
fn packets_to_hand_back_have_a_limit() {
    let mut host = host(Presence::BesideKernel);
    let ([first, rest], _) = fragmented(22);
    for _ in 0..100 {
        let _taken = host.on_frame(&first, NOW);
        let _taken = host.on_frame(&rest, NOW);
    }
    assert_eq!(
        std::iter::from_fn(|| host.stack.poll_handed_back()).count(),
        64
    );
    assert_eq!(host.stack.counters().hand_backs_dropped, 36);
}

/// A host asks for the own address by ARP and by neighbour discovery.
#[test]
fn solicitations_are_answered() {
    let mut host = host(Presence::Alone);
    let request = arp_frame(
        Mac::BROADCAST,
        arp::Operation::Request,
        [10, 0, 0, 8],
        [10, 0, 0, 2],
    );
    let answer = answers(&mut host, &request);
    let Content::Arp(reply) = read(&answer[0]).content else {
        panic!()
    };
    assert_eq!(
        (reply.operation, reply.sender_mac),
        (arp::Operation::Reply, mac(2))
    );
    assert_eq!(read(&answer[0]).link.destination, mac(9));
    let solicitation = ndp::Message::NeighbourSolicitation {
        target: "2001:db8::2".parse().unwrap(),
        source_mac: Some(mac(9)),
    };
    let group = ndp::solicited_node("2001:db8::2".parse().unwrap());
    let request = icmp6_to(
        Mac::of_ipv6_multicast(group),
        (v6(9), group.into()),
        &icmp6::Message::Ndp(solicitation),
    );
    let answer = answers(&mut host, &request);
    let Transport::Icmp6(icmp6::Message::Ndp(ndp::Message::NeighbourAdvertisement(one))) =
        packet(&answer[0]).transport
    else {
        panic!("{answer:?}")
    };
    assert_eq!((one.target_mac, one.solicited), (Some(mac(2)), true));
    // Another address is another host's.
    let request = arp_frame(
        Mac::BROADCAST,
        arp::Operation::Request,
        [10, 0, 0, 8],
        [10, 0, 0, 3],
    );
    assert!(answers(&mut host, &request).is_empty());
}

/// An ARP probe asks whether the address is free (RFC 5227 §2.1.1).
#[test]
fn a_probe_of_the_own_address_is_answered() {
    let mut host = host(Presence::Alone);
    let probe = arp_frame(
        Mac::BROADCAST,
        arp::Operation::Request,
        [0; 4],
        [10, 0, 0, 2],
    );
    assert_eq!(answers(&mut host, &probe).len(), 1);
}
