//! File formats: byte orders, resolutions, interfaces, and files that are not captures.

use std::io::{self, Read};

use saiga_capture::{Interface, Mark, Options, ReadError, Timestamp, read};

use crate::{
    traffic,
    wire::{self, Ng, Order, Record, START_NS, STEP_NS, Side, Wire},
};

const SERVER: &str = "10.0.0.2:6379";

/// One PING and its reply.
fn ping() -> Wire {
    let mut wire = Wire::new();
    let mut connection = wire.open("10.0.0.1:40000", SERVER);
    wire.send(&mut connection, Side::Client, b"*1\r\n$4\r\nPING\r\n");
    wire.send(&mut connection, Side::Server, b"+PONG\r\n");
    wire.close(&mut connection, Side::Client);
    wire
}

fn assert_is_ping(file: &[u8], name: &str) {
    let traffic = traffic(file);
    assert_eq!(traffic.marks, [], "{name}");
    assert_eq!(traffic.packets, 8, "{name}");
    let (first, last) = traffic.span.expect("packets");
    assert_eq!(first, Timestamp(START_NS), "{name}");
    assert_eq!(last.0 - first.0, 7 * STEP_NS, "{name}");
    let server = &traffic.servers[&SERVER.parse().expect("an address")];
    assert_eq!(server.requests.answered, 1, "{name}");
    assert_eq!(
        server.requests.total.as_nanos(),
        u128::from(STEP_NS),
        "{name}"
    );
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for order in [Order::Little, Order::Big] {
        for unit_ns in [1, 1_000] {
            let file = wire::pcap(&ping().records, order, unit_ns, 1);
            assert_is_ping(&file, &format!("{order:?} {unit_ns}"));
        }
    }
}

#[test]
fn pcapng_with_the_resolution_of_each_interface() {
    for order in [Order::Little, Order::Big] {
        let mut ng = Ng::new(order);
        ng.block(0x0000_0bad, b"custom data of another program");
        let offset = order.u64(START_NS / 1_000_000_000);
        // Microseconds by default, nanoseconds, 2^-20 s, and seconds that begin with the capture.
        ng.interface(1, &[(2, b"eth0")]);
        ng.interface(1, &[(2, b"eth1"), (9, &[9])]);
        ng.interface(101, &[(9, &[0x80 | 20])]);
        ng.interface(1, &[(14, &offset), (9, &[6])]);
        let received = order.u64(8);
        for (place, record) in ping().records.iter().enumerate() {
            let since = record.at - START_NS;
            match place % 3 {
                0 => ng.packet(0, record.at / 1_000, record),
                1 => ng.packet(1, record.at, record),
                _ => ng.packet(3, since / 1_000, record),
            }
        }
        ng.statistics(0, &[(4, &received), (5, &order.u64(0))]);
        assert_is_ping(&ng.file, &format!("{order:?}"));
        let interfaces = traffic(&ng.file).interfaces;
        let eth0 = Interface {
            name: Some("eth0".into()),
            link_type: 1,
            packets: 3,
            received: Some(8),
            dropped: Some(0),
        };
        assert_eq!((interfaces.len(), &interfaces[0]), (4, &eth0));
    }
}

#[test]
fn a_resolution_may_be_a_power_of_two() {
    let mut ng = Ng::new(Order::Little);
    ng.interface(1, &[(9, &[0x80 | 10])]);
    let record = &ping().records[0];
    ng.packet(0, 3 * 1_024 + 512, record);
    assert_eq!(
        traffic(&ng.file).span.map(|(first, _)| first),
        Some(Timestamp(3_500_000_000))
    );
}

#[test]
fn drops_of_interfaces_are_marked() {
    let mut ng = Ng::new(Order::Big);
    ng.interface(1, &[]);
    ng.packet(0, START_NS / 1_000, &ping().records[0]);
    let (interface, system) = (Order::Big.u64(40), Order::Big.u64(2));
    ng.statistics(0, &[(5, &interface), (7, &system)]);
    assert_eq!(traffic(&ng.file).marks, [Mark::Dropped { packets: 42 }]);
}

#[test]
fn each_link_type_holds_the_same_packets() {
    let headers: [(u32, Vec<u8>); 7] = [
        (1, [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat()),
        (
            1,
            [&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]].concat(),
        ),
        (113, [&[0; 14][..], &[8, 0]].concat()),
        (276, [&[8, 0][..], &[0; 18]].concat()),
        (101, vec![]),
        (0, vec![2, 0, 0, 0]),
        (108, vec![0, 0, 0, 2]),
    ];
    for (link, header) in headers {
        let change = |record: Record| {
            let frame = [&header[..], &record.frame[14..]].concat();
            Record {
                length: frame.len(),
                frame,
                ..record
            }
        };
        let records: Vec<_> = ping().records.into_iter().map(change).collect();
        assert_is_ping(
            &wire::pcap(&records, Order::Little, 1, link),
            &format!("{link}"),
        );
    }
}

#[test]
fn what_is_not_a_capture_is_named() {
    let radio = wire::pcap(&ping().records, Order::Little, 1, 127);
    let mut radio_ng = Ng::new(Order::Little);
    radio_ng.interface(127, &[]);
    radio_ng.packet(0, 0, &ping().records[0]);
    for (name, file, text) in [
        ("empty", &b""[..], "the capture is empty"),
        ("gzip", &[0x1f, 0x8b, 8, 0, 0, 0], "compressed with gzip"),
        (
            "zstd",
            &[0x28, 0xb5, 0x2f, 0xfd, 0, 0],
            "compressed with zstd",
        ),
        ("text", b"time,N,X,R\n1,2,3,4\n", "not a capture"),
        ("one byte", &[0xd4], "not a capture"),
        ("radio", &radio, "link type 127 is not supported"),
        (
            "radio in pcapng",
            &radio_ng.file,
            "link type 127 is not supported",
        ),
    ] {
        let error = read(file, &Options::default()).expect_err(name);
        assert!(error.to_string().contains(text), "{name}: {error}");
    }
}

#[test]
fn an_interface_of_another_link_type_is_left_out() {
    let mut ng = Ng::new(Order::Little);
    ng.interface(127, &[]);
    ng.interface(1, &[]);
    let wire = ping();
    ng.packet(0, 0, &wire.records[0]);
    ng.packet(7, 0, &wire.records[0]);
    wire.records
        .iter()
        .for_each(|record| ng.packet(1, record.at / 1_000, record));
    // A Simple Packet Block has no time.
    ng.block(3, &[&60_u32.to_le_bytes()[..], &[0; 60]].concat());
    let traffic = traffic(&ng.file);
    let marks = [
        Mark::UnknownInterface { packets: 1 },
        Mark::WithoutTime { packets: 1 },
        Mark::OtherLink {
            number: 127,
            packets: 1,
        },
    ];
    assert_eq!(traffic.marks, marks);
    assert_eq!(traffic.packets, 8);
}

#[test]
fn a_file_that_ends_anywhere_gives_what_it_has() {
    let mut ng = Ng::new(Order::Little);
    ng.interface(1, &[]);
    ping()
        .records
        .iter()
        .for_each(|record| ng.packet(0, record.at / 1_000, record));
    for file in [ping().pcap(), ng.file] {
        let whole = traffic(&file).packets;
        let mut cut_short = 0;
        for length in 4..file.len() {
            let traffic = traffic(&file[..length]);
            assert!(traffic.packets < whole, "cut at {length}");
            let packets = traffic.packets;
            if traffic.marks.contains(&Mark::CutShort { packets }) {
                cut_short += 1;
            }
        }
        // All places but those between two records.
        assert!(cut_short > file.len() - 20, "{cut_short} of {}", file.len());
    }
}

#[test]
fn a_damaged_record_ends_the_file() {
    let wire = ping();
    let mut file = wire.pcap();
    let third: usize = 24
        + wire.records[..2]
            .iter()
            .map(|r| 16 + r.frame.len())
            .sum::<usize>();
    file[third + 8..third + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let traffic = traffic(&file);
    assert_eq!(
        (traffic.packets, &traffic.marks[..]),
        (2, &[Mark::Damaged { packets: 2 }][..])
    );
}

#[test]
fn a_capture_without_packets_says_so() {
    let traffic = traffic(&Wire::new().pcap());
    assert_eq!(traffic.marks, [Mark::NoPackets]);
    assert!(traffic.servers.is_empty() && traffic.span.is_none());
}

/// Gives one byte at a time, then fails.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (first, rest) = self.0.split_first().ok_or(io::ErrorKind::ConnectionReset)?;
        buffer[0] = *first;
        self.0 = rest;
        Ok(1)
    }
}

#[test]
fn a_reader_that_fails_is_an_error() {
    let error = read(Broken(&ping().pcap()), &Options::default()).expect_err("it fails");
    assert!(matches!(error, ReadError::Io(_)), "{error}");
}

#[test]
fn clocks_that_run_backwards_are_marked() {
    let mut wire = ping();
    wire.records[4].at -= 3_000_000_000;
    let traffic = traffic(&wire.pcap());
    let [Mark::ClockBackwards { steps: 1, largest }] = traffic.marks[..] else {
        panic!("{:?}", traffic.marks);
    };
    assert_eq!(largest.as_nanos(), u128::from(3_000_000_000 - STEP_NS));
    assert_eq!(
        traffic
            .servers
            .values()
            .next()
            .expect("a server")
            .requests
            .answered,
        1
    );
}
