//! Captures of devices in memory, read back block by block.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_parser::OptionCode;
use pcap_parser::pcapng::{Block, EnhancedPacketBlock, parse_block_le};
use pcap_parser::traits::PcapNGPacketBlock as _;
use saiga_wire::virtio::{ChecksumPlace, Header};

use super::{Capture, Captured, End, Settings, create};
use crate::device::Device;
use crate::filter::Filter;
use crate::memory::Memory;
use crate::memory::tests::{pair, received, send};

const SECONDS: u64 = 1_795_815_960;
const NANOS: u32 = 123_456_789;
/// What the clock of the tests tells.
const NOW: Duration = Duration::new(SECONDS, NANOS);
/// The beginning of a frame of ARP, and a frame of another type.
const ARP: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6];
const OTHER: [u8; 20] = [0x88; 20];
const RECEIVED: u32 = 1;
const SENT: u32 = 2;

/// A frame in a file.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    interface: u32,
    bytes: Vec<u8>,
    original: u32,
    flags: u32,
    comment: Option<String>,
}

impl Entry {
    fn new(flags: u32, bytes: &[u8]) -> Self {
        Self {
            interface: 0,
            bytes: bytes.to_vec(),
            original: u32::try_from(bytes.len()).unwrap(),
            flags,
            comment: None,
        }
    }

    fn of(block: &EnhancedPacketBlock<'_>) -> Self {
        let option = |code| block.options.iter().find(|option| option.code == code);
        assert_eq!(block.decode_ts(0, 1_000_000_000), (1_795_815_960, NANOS));
        // epb_flags has the code 2.
        let flags = option(OptionCode(2)).unwrap().as_u32_le().unwrap();
        let comment = option(OptionCode::Comment);
        Self {
            interface: block.if_id,
            bytes: block.packet_data().to_vec(),
            original: block.origlen,
            flags,
            comment: comment.map(|option| option.as_str().unwrap().to_owned()),
        }
    }
}

/// The frames of a file, after a section header and so many interfaces.
fn read(path: &Path, interfaces: usize) -> Vec<Entry> {
    let bytes = fs::read(path).unwrap();
    let mut rest = &bytes[..];
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let (behind, block) = parse_block_le(rest).unwrap();
        blocks.push(block);
        rest = behind;
    }
    assert!(matches!(blocks[0], Block::SectionHeader(_)));
    for block in &blocks[1..=interfaces] {
        let Block::InterfaceDescription(interface) = block else {
            panic!("{block:?}");
        };
        assert_eq!(interface.ts_resolution(), Some(1_000_000_000));
    }
    let frames = blocks[1 + interfaces..].iter().map(|block| {
        let Block::EnhancedPacket(block) = block else {
            panic!("{block:?}");
        };
        Entry::of(block)
    });
    frames.collect()
}

/// A folder for captures, and the path of one.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    (folder, path)
}

fn settings() -> Settings {
    Settings {
        bytes: 1 << 20,
        snap_bytes: 262_144,
        filter: Filter::all(),
    }
}

type Near = Captured<Memory, fn() -> Duration>;

/// A captured device, and the other end of its link.
fn captured(path: &Path, settings: &Settings) -> (Near, Memory, Capture) {
    let [near, far] = pair(1_000);
    let mut near: Near = Captured::new(near, || NOW);
    let file = create(path).unwrap();
    let capture = Capture::start(file, settings, &[near.info()]).unwrap();
    near.start(capture.clone(), 0);
    (near, far, capture)
}

#[test]
fn both_directions_are_recorded_while_they_pass() {
    let (_folder, path) = folder();
    let (mut near, mut far, _capture) = captured(&path, &settings());
    send(&mut far, b"one");
    send(&mut far, b"two!");
    far.flush().unwrap();
    let mut verdicts = [Some("ours"), None].into_iter();
    let passed = near.receive_with_comments(8, &mut |_| verdicts.next().unwrap());
    assert_eq!(passed.unwrap(), 2);
    let mut expected = vec![Entry::new(RECEIVED, b"one"), Entry::new(RECEIVED, b"two!")];
    expected[0].comment = Some("ours".to_owned());
    assert_eq!(read(&path, 1), expected);
    send(&mut near, b"three");
    near.flush().unwrap();
    expected.push(Entry::new(SENT, b"three"));
    assert_eq!(read(&path, 1), expected);
    assert_eq!(received(&mut far), [b"three"]);
}

/// The example of RFC 1071 §3 behind a field that holds the sum of a pseudo header, 1.
#[test]
fn an_open_checksum_is_formed_in_the_copy_alone() {
    let (_folder, path) = folder();
    let (mut near, mut far, _capture) = captured(&path, &settings());
    let open = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    let closed = [0x22, 0x0d, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    let checksum = Some(ChecksumPlace {
        start: 0,
        offset: 0,
    });
    let offload = Header {
        checksum,
        ..Header::NONE
    };
    near.room().unwrap()[..8].copy_from_slice(&open);
    near.send(8, &offload);
    near.flush().unwrap();
    let mut found = Vec::new();
    far.receive(8, &mut |frame| {
        found.push((frame.bytes.to_vec(), frame.offload))
    })
    .unwrap();
    assert_eq!(found, [(open.to_vec(), offload)]);
    assert_eq!(read(&path, 1), [Entry::new(SENT, &closed)]);
}

#[test]
fn the_filter_and_the_snap_length_decide_what_is_kept() {
    let (_folder, path) = folder();
    let (mut near, mut far, capture) = captured(
        &path,
        &Settings {
            snap_bytes: 13,
            filter: "arp".parse().unwrap(),
            ..settings()
        },
    );
    for frame in [&OTHER[..], &ARP] {
        send(&mut near, frame);
        send(&mut far, frame);
    }
    near.flush().unwrap();
    far.flush().unwrap();
    assert_eq!(received(&mut near).len(), 2);
    let entry = |flags| Entry {
        original: 14,
        ..Entry::new(flags, &ARP[..13])
    };
    assert_eq!(read(&path, 1), [entry(SENT), entry(RECEIVED)]);
    assert_eq!(capture.summary().frames, 2);
}

#[test]
fn devices_share_a_capture_as_interfaces() {
    let (_folder, path) = folder();
    let [left, right] = pair(8);
    let clock: fn() -> Duration = || NOW;
    let mut ends = [left, right].map(|end| Captured::new(end, clock));
    let capture = Capture::start(
        create(&path).unwrap(),
        &settings(),
        &[ends[0].info(), ends[1].info()],
    )
    .unwrap();
    for (end, interface) in ends.iter_mut().zip(0..) {
        end.start(capture.clone(), interface);
    }
    let [left, right] = &mut ends;
    send(left, b"one");
    left.flush().unwrap();
    assert_eq!(received(right), [b"one"]);
    let expected = [
        Entry::new(SENT, b"one"),
        Entry {
            interface: 1,
            ..Entry::new(RECEIVED, b"one")
        },
    ];
    assert_eq!(read(&path, 2), expected);
}

#[test]
fn the_device_goes_on_when_the_capture_ends() {
    let (_folder, path) = folder();
    let (mut near, mut far, capture) = captured(
        &path,
        &Settings {
            bytes: 300 << 10,
            ..settings()
        },
    );
    let frame = [7; 60_000];
    for _ in 0..8 {
        assert!(send(&mut near, &frame));
        near.flush().unwrap();
    }
    assert_eq!(received(&mut far).len(), 8);
    let summary = capture.summary();
    assert_eq!((summary.frames, summary.end), (5, Some(End::Bound)));
    assert_eq!(read(&path, 1).len(), 5);
    assert_eq!(fs::metadata(&path).unwrap().len(), summary.bytes);
}

#[test]
fn a_capture_that_stops_is_complete() {
    let (_folder, path) = folder();
    let (mut near, _far, _capture) = captured(&path, &settings());
    send(&mut near, b"one");
    near.stop();
    send(&mut near, b"two");
    near.flush().unwrap();
    assert_eq!(read(&path, 1), [Entry::new(SENT, b"one")]);
    let second = path.with_file_name("y.pcapng");
    let capture = Capture::start(create(&second).unwrap(), &settings(), &[near.info()]).unwrap();
    near.start(capture, 0);
    send(&mut near, b"three");
    drop(near);
    assert_eq!(read(&second, 1), [Entry::new(SENT, b"three")]);
}
