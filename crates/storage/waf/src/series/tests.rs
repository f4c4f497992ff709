//! Segments and intervals of made-up samples.

use super::*;
use crate::source::{Counters, Steps};

/// Creates a sample of the drive `serial` at an hour.
fn sample(hour: i64, serial: &str, host: u128, media: u128) -> Sample {
    Sample {
        taken: Moment {
            unix_ms: hour * 3_600_000,
            boot: "boot".to_owned(),
            since_boot_ms: hour * 3_600_000,
        },
        path: "/dev/nvme0".to_owned(),
        drive: DriveId {
            model: "M".to_owned(),
            serial: serial.to_owned(),
            group: None,
        },
        firmware: "1".to_owned(),
        source: Source::Huawei,
        steps: Steps {
            host: 4096,
            media: 8192,
        },
        counters: Counters { host, media },
        wear: None,
    }
}

fn starts(series: &Series) -> Vec<Start> {
    let segments = series.segments.iter();
    segments.map(|segment| segment.start.clone()).collect()
}

#[test]
fn counters_that_grow_are_one_segment() {
    let all = series(&[
        sample(1, "a", 100, 100),
        sample(2, "a", 150, 200),
        sample(3, "a", 150, 210),
    ]);
    assert_eq!(all.len(), 1);
    assert_eq!(starts(&all[0]), [Start::First]);
    let written: Vec<_> = all[0].intervals().map(|one| one.written).collect();
    assert_eq!((written[0].host, written[0].media), (50, 100));
    assert_eq!((written[1].host, written[1].media), (0, 10));
    assert_eq!(written[1].waf(), None);
    let whole = all[0].written();
    assert_eq!((whole.host, whole.media), (50, 110));
    assert_eq!((whole.host_error, whole.media_error), (4096, 8192));
    assert_eq!(all[0].samples(), 3);
    assert_eq!(all[0].intervals().next().unwrap().seconds(), Some(3600.0));
}

/// Samples are an hour apart, in which four lanes of PCIe 7.0 carry 230 TB.
#[test]
fn a_counter_grows_no_faster_than_a_link_carries() {
    const TB: u128 = 1_000_000_000_000;
    for (grown, segments) in [(229 * TB, 1), (231 * TB, 2)] {
        let all = series(&[sample(1, "a", 0, 0), sample(2, "a", grown, grown)]);
        assert_eq!(starts(&all[0]).len(), segments, "{grown}");
    }
}

#[test]
fn each_segment_has_the_reason_of_its_start() {
    let mut firmware = sample(5, "a", 30, 40);
    firmware.firmware = "2".to_owned();
    let mut source = sample(6, "a", 40, 50);
    source.firmware = "2".to_owned();
    source.source = Source::Endurance;
    let mut leap = sample(7, "a", 1 << 80, 60);
    leap.firmware = "2".to_owned();
    leap.source = Source::Endurance;
    let all = series(&[
        sample(1, "a", 100, 100),
        sample(2, "a", 90, 110),
        sample(3, "a", 95, 120),
        sample(4, "a", 96, 119),
        firmware,
        source,
        leap,
    ]);
    let fallen = |counter, from, to| Start::Fallen { counter, from, to };
    assert_eq!(
        starts(&all[0]),
        [
            Start::First,
            fallen("host", 100, 90),
            fallen("flash", 120, 119),
            Start::Firmware {
                before: "1".to_owned()
            },
            Start::Source {
                before: Source::Huawei
            },
            Start::Jumped {
                counter: "host",
                by: (1 << 80) - 40
            },
        ]
    );
    // Seven samples have only one interval inside a segment.
    let whole = all[0].written();
    assert_eq!((whole.host, whole.media), (5, 10));
    assert_eq!(all[0].samples(), 7);
}

#[test]
fn an_exchanged_drive_is_a_series_of_its_own_and_a_renamed_one_is_not() {
    let mut renamed = sample(3, "a", 120, 150);
    renamed.path = "/dev/nvme1".to_owned();
    let all = series(&[
        sample(1, "a", 100, 100),
        sample(2, "b", 5, 6),
        renamed,
        sample(4, "b", 6, 8),
    ]);
    assert_eq!(all.len(), 2);
    assert_eq!(starts(&all[0]), [Start::First]);
    assert_eq!(all[0].written().host, 20);
    assert!(
        matches!(&starts(&all[1])[..], [Start::Exchanged { before, .. }] if before.serial == "a")
    );
    assert_eq!(all[1].written().media, 2);
}

#[test]
fn a_reboot_does_not_end_a_segment() {
    let mut after = sample(2, "a", 200, 300);
    after.taken.boot = "other".to_owned();
    after.taken.since_boot_ms = 5;
    let all = series(&[sample(1, "a", 100, 100), after]);
    let interval = all[0].intervals().next().unwrap();
    assert!(interval.has_reboot());
    assert_eq!(interval.seconds(), Some(3600.0));
    assert_eq!(interval.written.host, 100);
}

#[test]
fn without_samples_there_is_no_series() {
    assert!(series(&[]).is_empty());
}
