//! Each primitive and operator on frames of every protocol, and what is refused.

use etherparse::{PacketBuilder, VlanId};

use super::{Filter, FilterError};
use crate::device::Link;

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const B6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// Frames from A to B, by name: TCP and UDP from port 4000 to 6379.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let ethernet = || PacketBuilder::ethernet2(MACS[0], MACS[1]);
    let v4 = || ethernet().ipv4(A, B, 64);
    let v6 = || ethernet().ipv6(A6, B6, 64);
    let mut frames = Vec::new();
    let mut add = |name, write: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = Vec::new();
        write(&mut frame);
        frames.push((name, frame));
    };
    add("tcp4", &|frame| {
        v4().tcp(4000, 6379, 1, 1000).write(frame, b"x").unwrap();
    });
    add("tcp6", &|frame| {
        v6().tcp(4000, 6379, 1, 1000).write(frame, b"x").unwrap();
    });
    add("udp4", &|frame| {
        v4().udp(4000, 6379).write(frame, b"x").unwrap()
    });
    add("ping4", &|frame| {
        v4().icmpv4_echo_request(1, 1).write(frame, b"x").unwrap();
    });
    add("ping6", &|frame| {
        v6().icmpv6_echo_request(1, 1).write(frame, b"x").unwrap();
    });
    add("tagged", &|frame| {
        let tagged = ethernet().single_vlan(VlanId::try_new(7).unwrap());
        let segment = tagged.ipv4(A, B, 64).tcp(4000, 6379, 1, 1000);
        segment.write(frame, b"x").unwrap();
    });
    add("arp", &|frame| frame.extend_from_slice(&arp()));
    add("other", &|frame| frame.extend_from_slice(&[0x88; 60]));
    frames
}

/// A asks for the address of B.
fn arp() -> Vec<u8> {
    [
        &[0xff; 6][..],
        &MACS[0],
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
        &MACS[0],
        &A,
        &[0; 6],
        &B,
    ]
    .concat()
}

/// Names of the frames that match.
fn matching(filter: &str) -> Vec<&'static str> {
    let filter: Filter = filter.parse().unwrap();
    let all = frames();
    let matching = all
        .iter()
        .filter(|(_, frame)| filter.matches(frame, Link::Ethernet));
    matching.map(|(name, _)| *name).collect()
}

const ALL: &str = "tcp4 tcp6 udp4 ping4 ping6 tagged arp other";

#[test]
fn filters_match_as_in_pcap_filter() {
    for (filter, names) in [
        ("", ALL),
        ("  ", ALL),
        ("ip", "tcp4 udp4 ping4 tagged"),
        ("ip6", "tcp6 ping6"),
        ("arp", "arp"),
        ("tcp", "tcp4 tcp6 tagged"),
        ("udp", "udp4"),
        ("icmp", "ping4"),
        ("icmp6", "ping6"),
        ("host 10.0.0.2", "tcp4 udp4 ping4 tagged arp"),
        ("10.0.0.2", "tcp4 udp4 ping4 tagged arp"),
        ("ip host 10.0.0.2", "tcp4 udp4 ping4 tagged"),
        ("arp host 10.0.0.1", "arp"),
        ("host fd00::2", "tcp6 ping6"),
        ("src host 10.0.0.2", ""),
        ("src 10.0.0.1", "tcp4 udp4 ping4 tagged arp"),
        ("dst fd00::2", "tcp6 ping6"),
        ("src and dst host 10.0.0.2", ""),
        ("src or dst host fd00::1", "tcp6 ping6"),
        ("dst || src host fd00::1", "tcp6 ping6"),
        ("net 10.0.0.0/24", "tcp4 udp4 ping4 tagged arp"),
        ("src and dst net 10.0.0.0/24", "tcp4 udp4 ping4 tagged arp"),
        ("src net 10.0.0.2/31", ""),
        ("net fd00::/8", "tcp6 ping6"),
        ("port 6379", "tcp4 tcp6 udp4 tagged"),
        ("tcp port 6379", "tcp4 tcp6 tagged"),
        ("udp dst port 6379", "udp4"),
        ("src port 6379", ""),
        ("portrange 6000-6378", ""),
        ("portrange 6000-6379", "tcp4 tcp6 udp4 tagged"),
        ("host 10.0.0.2 and tcp port 6379", "tcp4 tagged"),
        ("not ip", "tcp6 ping6 arp other"),
        ("! ip && !arp", "tcp6 ping6 other"),
        ("not (ip or ip6)", "arp other"),
        ("not ip or ip6", "tcp6 ping6 arp other"),
        ("icmp||icmp6", "ping4 ping6"),
        // Both operators associate from the left with the same precedence.
        ("arp or ip and tcp", "tcp4 tagged"),
        ("arp or (ip and tcp)", "tcp4 tagged arp"),
        ("ip and tcp or arp", "tcp4 tagged arp"),
    ] {
        assert_eq!(matching(filter).join(" "), names, "{filter}");
    }
}

#[test]
fn packets_without_a_link_layer_match() {
    let all = frames();
    let (_, frame) = &all[1];
    let filter: Filter = "ip6 and tcp port 6379".parse().unwrap();
    assert!(filter.matches(&frame[14..], Link::Ip));
    assert!(!filter.matches(&frame[14..], Link::Ethernet));
}

#[test]
fn a_malformed_frame_matches_by_what_can_be_read() {
    let all = frames();
    let (_, frame) = &all[0];
    let matches = |filter: &str, bytes: &[u8]| {
        let filter: Filter = filter.parse().unwrap();
        filter.matches(bytes, Link::Ethernet)
    };
    // The frame ends behind the ports.
    assert!(matches("tcp port 6379", &frame[..38]));
    assert!(!matches("tcp port 6379", &frame[..37]));
    assert!(matches("tcp and host 10.0.0.1", &frame[..37]));
    assert!(matches("ip", &frame[..14]) && !matches("ip", &frame[..13]));
    assert!(!matches("host 10.0.0.1", &frame[..33]));
    assert!(!matches("ip", &[]) && matches("not ip", &[]));
    // More fragments follow: the port may not be one.
    let mut fragment = frame.clone();
    fragment[20] |= 0x20;
    assert!(matches("tcp", &fragment) && !matches("tcp port 6379", &fragment));
}

/// Frames of random bytes, and frames with random faults.
#[test]
fn any_bytes_match_or_do_not() {
    let mut random = fastrand::Rng::with_seed(1);
    let filter: Filter = "(tcp or udp) and src port 4000 and net 10.0.0.0/8"
        .parse()
        .unwrap();
    let inverse: Filter = "not ((tcp or udp) and src port 4000 and net 10.0.0.0/8)"
        .parse()
        .unwrap();
    let all = frames();
    for _ in 0..20_000 {
        let (_, frame) = random.choice(&all).unwrap();
        let mut bytes = frame[..random.usize(..=frame.len())].to_vec();
        for _ in 0..random.usize(..4) {
            if let Some(byte) = random.choice(&mut bytes) {
                *byte = random.u8(..);
            }
        }
        for link in [Link::Ethernet, Link::Ip] {
            let matches = filter.matches(&bytes, link);
            assert_ne!(matches, inverse.matches(&bytes, link), "{bytes:?}");
        }
    }
}

#[test]
fn what_is_not_a_filter_is_refused_with_its_position() {
    for (filter, message) in [
        ("vlan 7", "unknown word `vlan` at character 1 of"),
        (
            "tcp port 80 and frob 3",
            "unknown word `frob` at character 17 of",
        ),
        ("tcp  &", "needs `and`, `or` or its end at character 6"),
        (
            "tcp and",
            "needs a condition such as `tcp port 6379` at character 8",
        ),
        (
            "and tcp",
            "needs a condition such as `tcp port 6379` at character 1",
        ),
        (
            "()",
            "needs a condition such as `tcp port 6379` at character 2",
        ),
        ("(tcp", "needs `and`, `or` or `)` at character 5"),
        ("tcp)", "needs `and`, `or` or its end at character 4"),
        ("tcp udp", "needs `and`, `or` or its end at character 5"),
        ("port", "needs a port, 0 to 65535 at character 5"),
        (
            "port redis",
            "`redis` at character 6 of the filter is not a port, 0 to 65535",
        ),
        ("port 65536", "`65536` at character 6"),
        (
            "portrange 9-8",
            "`9-8` at character 11 of the filter is not a range of ports",
        ),
        (
            "host db1",
            "`db1` at character 6 of the filter is not an IP address",
        ),
        (
            "host 10.0.0.0/8",
            "`10.0.0.0/8` at character 6 of the filter is not an IP address",
        ),
        (
            "net 10.0.0.0",
            "`10.0.0.0` at character 5 of the filter is not a network such as",
        ),
        (
            "net 10.0.0.1/8",
            "`10.0.0.1/8` at character 5 of the filter is not a network: use 10.0.0.0/8",
        ),
        (
            "icmp port 5",
            "`icmp` at character 1 of the filter has no ports",
        ),
        (
            "tcp host 10.0.0.1",
            "`tcp` at character 1 of the filter has no such addresses",
        ),
        (
            "ip6 src 10.0.0.1",
            "`ip6` at character 1 of the filter has no such addresses",
        ),
        ("é and frob", "unknown word `é` at character 1 of"),
        ("(10.0.0.1)and é", "unknown word `é` at character 15 of"),
    ] {
        let error = filter.parse::<Filter>().unwrap_err().to_string();
        assert!(error.contains(message), "{filter}: {error}");
    }
}

#[test]
fn a_filter_is_bounded() {
    let nested = |depth| "(".repeat(depth) + "arp" + &")".repeat(depth);
    assert!(nested(50).parse::<Filter>().is_ok());
    assert_eq!(
        nested(51).parse::<Filter>(),
        Err(FilterError::TooDeep { most: 50 })
    );
    let too_deep = "!".repeat(51) + "arp";
    assert_eq!(
        too_deep.parse::<Filter>(),
        Err(FilterError::TooDeep { most: 50 })
    );
    let long = " ".repeat(4_094) + "arp";
    let error = FilterError::TooLong {
        bytes: 4_097,
        most: 4_096,
    };
    assert_eq!(long.parse::<Filter>(), Err(error));
    let chain = "arp or ".repeat(584) + "arp";
    assert_eq!(matching(&chain), ["arp"]);
}

#[test]
fn the_text_is_kept() {
    assert_eq!(" tcp ".parse::<Filter>().unwrap().text(), "tcp");
    assert_eq!("".parse::<Filter>().unwrap(), Filter::all());
}
