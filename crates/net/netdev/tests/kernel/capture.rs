//! Captures as other programs read them, and a disk that is full.

use std::fs::OpenOptions;
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use saiga_netdev::capture::{Capture, Captured, End, Settings, create};
use saiga_netdev::filter::Filter;
use saiga_netdev::memory::Memory;
use saiga_netdev::{Device, Link, tap};
use saiga_wire::virtio::Header;

use crate::host::{Host, converse};
use crate::namespace::{in_namespaces, ping, run, set_up, succeeds};
use crate::tap::{MADE, open};

fn settings() -> Settings {
    Settings {
        bytes: 256 << 20,
        snap_bytes: 262_144,
        filter: Filter::all(),
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// The number of frames that capinfos(1) finds. It fails if the file is not whole.
fn frames(path: &Path) -> u64 {
    let table = run("capinfos", &["-T", "-r", "-c", text(path)]);
    let (_name, count) = table.trim().rsplit_once('\t').unwrap();
    count.parse().unwrap()
}

/// What tshark(1) prints of the frames that match, with all checksums verified.
fn tshark(path: &Path, filter: &str, options: &[&str]) -> String {
    let mut arguments = vec!["-n", "-r", text(path), "-Y", filter];
    arguments.extend([
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "ip.check_checksum:TRUE",
    ]);
    arguments.extend(options);
    run("tshark", &arguments)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// With offloads, most checksums are open on the device, and many frames are super-segments.
#[test]
fn tshark_finds_no_fault_in_a_capture() {
    in_namespaces(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tap.pcapng");
        let mut device = Captured::new(open(&MADE), now);
        let capture =
            Capture::start(create(&path).unwrap(), &settings(), &[device.info()]).unwrap();
        device.start(capture.clone(), 0);
        set_up(MADE.name);
        let mut host = Host::new(device);
        host.serve_during(|| {
            ping();
            converse(300_000);
        });
        host.device.stop();
        let counters = host.device.counters();
        let summary = capture.summary();
        assert_eq!(summary.end, None);
        assert_eq!(
            summary.frames,
            counters.received.frames + counters.sent.frames
        );
        assert_eq!(frames(&path), summary.frames);
        let faults = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 \
                      || icmp.checksum.status == 0 || icmpv6.checksum.status == 0";
        assert_eq!(tshark(&path, faults, &[]), "");
        // The filters find what they look for: checked super-segments of both hosts.
        for port in ["srcport", "dstport"] {
            let large = format!("tcp.{port} == 7 && tcp.len > 3000 && tcp.checksum.status == 1");
            assert!(tshark(&path, &large, &[]).lines().count() > 2, "{port}");
        }
    });
}

#[test]
fn tshark_shows_name_direction_and_comment() {
    in_namespaces(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tun.pcapng");
        let tun = open(&tap::Settings {
            link: Link::Ip,
            ..MADE
        });
        let mut device = Captured::new(tun, now);
        set_up(MADE.name);
        let filter = "udp dst port 9".parse().unwrap();
        let filtered = Settings {
            filter,
            ..settings()
        };
        let capture = Capture::start(create(&path).unwrap(), &filtered, &[device.info()]).unwrap();
        device.start(capture, 0);
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(b"there", "10.9.0.2:9").unwrap();
        let mut datagram = Vec::new();
        while datagram.is_empty() {
            let mut each = |frame: saiga_netdev::Frame<'_>| {
                if frame.bytes[0] >> 4 == 4 {
                    datagram.extend_from_slice(frame.bytes);
                }
                Some("not ours")
            };
            device.receive_with_comments(8, &mut each).unwrap();
        }
        // The same packet is sent, whatever the kernel makes of it.
        device.room().unwrap()[..datagram.len()].copy_from_slice(&datagram);
        device.send(datagram.len(), &Header::NONE);
        device.flush().unwrap();
        let fields = [
            "-Tfields",
            "-eframe.interface_name",
            "-eframe.packet_flags_direction",
            "-eframe.comment",
        ];
        let lines = tshark(&path, "udp.dstport == 9", &fields);
        let expected = "saiga-test\t0x00000001\tnot ours\nsaiga-test\t0x00000002\t\n";
        assert_eq!(lines, expected);
    });
}

#[test]
fn a_full_disk_ends_the_capture_with_a_whole_file() {
    in_namespaces(|| {
        let folder = tempfile::tempdir().unwrap();
        run("mount", &["--make-rprivate", "/"]);
        let options = ["-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs"];
        run("mount", &[&options[..], &[text(folder.path())]].concat());
        let path = folder.path().join("x.pcapng");
        let info = open(&MADE).info().clone();
        let [near, mut far] = Memory::pair([info.clone(), info], 100).unwrap();
        let mut near = Captured::new(near, now);
        let capture = Capture::start(create(&path).unwrap(), &settings(), &[near.info()]).unwrap();
        near.start(capture.clone(), 0);
        for _ in 0..20 {
            near.room().unwrap()[..60_000].fill(7);
            near.send(60_000, &Header::NONE);
            near.flush().unwrap();
        }
        let summary = capture.summary();
        assert!(matches!(summary.end, Some(End::Failed(_))), "{summary:?}");
        assert!((1..9).contains(&summary.frames), "{summary:?}");
        assert_eq!(frames(&path), summary.frames);
        assert_eq!(far.receive(100, &mut |_| {}).unwrap(), 20);
        // A file that ends inside a block would have been noticed.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(summary.bytes - 1).unwrap();
        assert!(!succeeds("capinfos", &["-c", text(&path)]));
        // Each holds the directory.
        drop((near, capture, file));
        run("umount", &[text(folder.path())]);
    });
}
