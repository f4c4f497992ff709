//! Filters beside libpcap's: the same frames match.

use std::path::Path;
use std::time::Duration;

use etherparse::PacketBuilder;
use saiga_netdev::capture::{Capture, Captured, Settings, create};
use saiga_netdev::filter::Filter;
use saiga_netdev::memory::Memory;
use saiga_netdev::{Device, Info, Link, Offload};
use saiga_wire::ethernet::Mac;
use saiga_wire::virtio::Header;

use crate::namespace::run;

const FRAMES: usize = 400;
const FILTERS: [&str; 24] = [
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "arp host 10.0.0.2",
    "ip dst host 10.0.0.2",
    "src or dst host fd00::1",
    "src and dst net 10.0.0.0/24",
    "net fd00::/64",
    "port 6379",
    "tcp src port 6379",
    "udp dst portrange 5000-6000",
    "src and dst port 5432",
    "tcp port 6379 and host 10.0.0.2",
    "not arp and not ip6",
    "tcp or udp and port 6379",
    "udp and port 6379 or tcp",
    "!(ip or arp) && (port 6379 || icmp6)",
    "not port 6379 or arp",
];

#[test]
fn filters_match_what_tcpdump_matches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    let mut random = fastrand::Rng::with_seed(1);
    let frames: Vec<Vec<u8>> = (0..FRAMES).map(|_| frame(&mut random)).collect();
    write(&path, &frames);
    for text in FILTERS {
        let filter: Filter = text.parse().unwrap();
        let matching = frames
            .iter()
            .filter(|frame| filter.matches(frame, Link::Ethernet));
        let count = matching.count();
        assert!((1..FRAMES).contains(&count), "{text} tells nothing");
        assert_eq!(count, tcpdump(&path, text), "{text}");
    }
}

/// How many frames libpcap finds.
fn tcpdump(path: &Path, filter: &str) -> usize {
    let arguments = [
        "-Z",
        "root",
        "-n",
        "--count",
        "-r",
        path.to_str().unwrap(),
        filter,
    ];
    let text = run("tcpdump", &arguments);
    let (count, _unit) = text.split_once(' ').unwrap();
    count.parse().unwrap()
}

/// A frame with addresses and ports of which there are few.
fn frame(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut frame = Vec::new();
    let mut last = || random.u8(1..=3);
    let (source, destination) = (last(), last());
    let v4 = |last| [10, 0, 0, last];
    let v6 = |last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let ports = [5432, 5999, 6379];
    let [from, to] = [0; 2].map(|_| *random.choice(&ports).unwrap());
    let kind = random.u8(..7);
    let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
    if kind == 0 {
        frame.extend_from_slice(&[4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2, 8, 6]);
        frame.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2]);
        frame.extend_from_slice(&v4(source));
        frame.extend_from_slice(&[0; 6]);
        frame.extend_from_slice(&v4(destination));
        return frame;
    }
    let packet = if kind.is_multiple_of(2) {
        link.ipv4(v4(source), v4(destination), 64)
    } else {
        link.ipv6(v6(source), v6(destination), 64)
    };
    let payload = b"payload";
    let written = match kind {
        1 | 2 => packet.tcp(from, to, 1, 1_000).write(&mut frame, payload),
        3 | 4 => packet.udp(from, to).write(&mut frame, payload),
        5 => packet.icmpv6_echo_request(1, 1).write(&mut frame, payload),
        _ => packet.icmpv4_echo_request(1, 1).write(&mut frame, payload),
    };
    written.unwrap();
    frame
}

/// Writes all frames to a file.
fn write(path: &Path, frames: &[Vec<u8>]) {
    let info = Info {
        name: "memory".to_owned(),
        queue: 0,
        mac: Some(Mac([2; 6])),
        mtu: 1_500,
        offload: Offload::NONE,
    };
    let [near, _far] = Memory::pair([info.clone(), info], FRAMES).unwrap();
    let mut near = Captured::new(near, || Duration::from_secs(1));
    let settings = Settings {
        bytes: 1 << 20,
        snap_bytes: 262_144,
        filter: Filter::all(),
    };
    let capture = Capture::start(create(path).unwrap(), &settings, &[near.info()]).unwrap();
    near.start(capture, 0);
    for frame in frames {
        near.room().unwrap()[..frame.len()].copy_from_slice(frame);
        near.send(frame.len(), &Header::NONE);
    }
    near.stop();
}
