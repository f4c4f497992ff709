//! The difference of two clocks, from two captures of the same packets.

use std::cell::Cell;

use saiga_capture::{
    Traffic,
    clock::{OffsetError, offset},
};

use crate::{
    traffic,
    wire::{Side, Wire},
};

const MILLISECOND: u64 = 1_000_000;
const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.0.2:7000";

/// What a host sees of 400 exchanges. `delay` is the way to it from the client, and from the
/// server; `clock` turns true time into the host's.
fn seen(from_client: u64, from_server: u64, clock: impl Fn(u64) -> u64) -> Traffic {
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    for turn in 0..400_u64 {
        // The way takes a little longer for most packets, in no particular order.
        wire.wait(20 * MILLISECOND);
        wire.send(
            &mut connection,
            Side::Client,
            format!("ask {turn}").as_bytes(),
        );
        wire.wait(3 * MILLISECOND);
        wire.send(&mut connection, Side::Server, b"answer");
    }
    let ports = 7_000_u16.to_be_bytes();
    for (place, record) in wire.records.iter_mut().enumerate() {
        let is_from_server = record.frame[34..36] == ports;
        let way = if is_from_server {
            from_server
        } else {
            from_client
        };
        let extra = if way == 0 {
            0
        } else {
            (place as u64 * 7_919) % 400_000
        };
        record.at = clock(record.at + way + extra);
    }
    traffic(&wire.pcap())
}

#[test]
fn the_offset_lies_within_its_uncertainty() {
    let client = seen(0, 2 * MILLISECOND, |at| at);
    for difference in [0_i64, 5_000_000_000, -3_600_000_000_000] {
        let server = seen(2 * MILLISECOND, 0, |at| {
            at.saturating_add_signed(difference)
        });
        let found = offset(&client, &server).expect("an offset");
        assert!(found.uncertainty_ns >= 2 * MILLISECOND && found.uncertainty_ns < 3 * MILLISECOND);
        assert!(
            found.nanoseconds.abs_diff(difference) < 400_000,
            "{found:?}"
        );
        assert_eq!(found.packets, 802);
        assert!(found.drift_ppm.expect("a slope").abs() < 20.0, "{found:?}");
        let back = offset(&server, &client).expect("an offset");
        assert!(back.nanoseconds.abs_diff(-difference) < 400_000, "{back:?}");
    }
}

#[test]
fn a_clock_that_runs_faster_is_seen() {
    let client = seen(0, MILLISECOND, |at| at);
    let server = seen(MILLISECOND, 0, |at| {
        at + (at - crate::wire::START_NS) / 1_000
    });
    let found = offset(&client, &server).expect("an offset");
    assert!(
        (found.drift_ppm.expect("a slope") - 1_000.0).abs() < 50.0,
        "{found:?}"
    );
}

/// One packet in 37 has a time of 5 ms later, as of a capture that was preempted.
#[test]
fn late_times_of_few_packets_do_not_matter() {
    let client = seen(0, 2 * MILLISECOND, |at| at);
    let count = Cell::new(0_u32);
    let server = seen(2 * MILLISECOND, 0, |at| {
        count.set(count.get() + 1);
        let is_late = count.get().is_multiple_of(37);
        at + if is_late { 5 * MILLISECOND } else { 0 }
    });
    for (first, second) in [(&client, &server), (&server, &client)] {
        let found = offset(first, second).expect("an offset");
        assert!(found.nanoseconds.unsigned_abs() < 400_000, "{found:?}");
        assert!(found.uncertainty_ns < 3 * MILLISECOND, "{found:?}");
    }
}

#[test]
fn captures_without_common_packets_are_refused() {
    let one = seen(0, 0, |at| at);
    let empty = traffic(&Wire::new().pcap());
    assert_eq!(offset(&one, &empty), Err(OffsetError::NothingInCommon));
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    wire.records.truncate(1);
    wire.send(&mut connection, Side::Client, b"ask 0");
    let half = traffic(&wire.pcap());
    assert_eq!(
        offset(&half, &half),
        Err(OffsetError::OneDirection {
            upward: 2,
            downward: 0
        })
    );
}

#[test]
fn a_clock_that_was_set_is_refused() {
    let client = seen(0, MILLISECOND, |at| at);
    let middle = crate::wire::START_NS + 4_000 * MILLISECOND;
    let server = seen(MILLISECOND, 0, |at| {
        if at > middle {
            at + 60_000 * MILLISECOND
        } else {
            at
        }
    });
    assert_eq!(offset(&client, &server), Err(OffsetError::Uneven));
}

/// Both captures keep the same packets of many.
#[test]
fn a_small_sample_is_enough() {
    let options = |marks| {
        let limits = saiga_capture::Limits {
            marks,
            ..saiga_capture::Limits::default()
        };
        saiga_capture::Options {
            limits,
            ..saiga_capture::Options::default()
        }
    };
    let mut wire = Wire::new();
    let mut connection = wire.open(CLIENT, SERVER);
    for turn in 0..5_000_u32 {
        wire.send(&mut connection, Side::Client, &turn.to_be_bytes());
        wire.send(&mut connection, Side::Server, &turn.to_be_bytes());
    }
    let read = |marks| saiga_capture::read(&wire.pcap()[..], &options(marks)).expect("a capture");
    let found = offset(&read(100), &read(1_000)).expect("an offset");
    assert!((25..=100).contains(&found.packets), "{found:?}");
    assert_eq!((found.nanoseconds, found.uncertainty_ns), (0, 0));
}
