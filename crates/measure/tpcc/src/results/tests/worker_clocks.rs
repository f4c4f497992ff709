//! Merged records of workers with different clocks.

use saiga_document::text::{self, Style};

use super::*;
use crate::results::clocks::WorkerClock;
use crate::server_clock::Offset;

/// The merged record of two workers that measured for 30 s. `clocks` has the offset of the server's
/// clock from the clock of each worker, and the error of the offset, in microseconds.
fn sum(clocks: [Option<(i64, u64)>; 2]) -> Record {
    let with_clock = |index: u32, clock: Option<(i64, u64)>| {
        let (path, record) = part(index, 2);
        let clock = clock.map(|(server_ahead_us, within_us)| Offset {
            server_ahead_us,
            within_us,
        });
        // Written as JSON and read again.
        let record = files::json(&Record { clock, ..record });
        (path, serde_json::from_str(&record).unwrap())
    };
    let [one, two] = clocks;
    merge(vec![with_clock(2, two), with_clock(1, one)]).unwrap()
}

fn windows(sum: &Record) -> validity::Check {
    let mut all = sum.validity.iter();
    let check = all.find(|check| check.name == "windows of the workers coincide");
    check.unwrap().clone()
}

/// The limit is a hundredth of thirty seconds.
#[test]
fn windows_that_are_apart_fail_and_uncertainty_is_reported() {
    let outcome = |clocks| {
        let check = windows(&sum(clocks));
        assert_eq!(check.allowed, "at most 300.0 ms apart");
        (check.verdict, check.found)
    };
    for (clocks, verdict, found) in [
        (
            [Some((-1500, 100)), Some((500, 200))],
            Verdict::Holds,
            "1.7 to 2.3 ms apart",
        ),
        (
            [Some((-1_500_000, 100)), Some((500_000, 200))],
            Verdict::Fails,
            "1999.7 to 2000.3 ms apart",
        ),
        (
            [Some((0, 100)), Some((0, 400_000))],
            Verdict::CannotTell,
            "at most 400.1 ms apart",
        ),
        (
            [Some((0, 100)), None],
            Verdict::CannotTell,
            "not known for worker 2",
        ),
        (
            [None, None],
            Verdict::CannotTell,
            "not known for workers 1, 2",
        ),
    ] {
        assert_eq!(outcome(clocks), (verdict, found.to_owned()));
    }
}

#[test]
fn a_sum_keeps_the_clocks_of_its_workers_and_fails_if_they_differ() {
    let mut sum = sum([Some((-1_500_000, 100)), Some((500_000, 200))]);
    let offset = Offset {
        server_ahead_us: 500_000,
        within_us: 200,
    };
    let of_second = WorkerClock {
        worker: 2,
        offset: Some(offset),
    };
    assert_eq!((sum.clock, sum.clocks.len()), (None, 2));
    assert_eq!(sum.clocks[1], of_second);
    let text = text::render(&page::page(&sum), Style::plain());
    for expected in [
        "the measured windows of the workers are not the same: 1999.7 to 2000.3 ms apart",
        "1500.0 ms behind the worker's, known to 0.1 ms",
        "2000.0 ms after the first",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    sum.validity
        .retain(|check| check.name == "windows of the workers coincide");
    assert!(!sum.all_checks_hold());
}

/// In a short interval, as with few transactions per terminal, the limit is a tenth of a second.
#[test]
fn a_short_interval_does_not_require_better_clocks() {
    let mut sum = sum([Some((0, 100)), Some((99_000, 200))]);
    sum.interval_us = (10 * S, 10 * S + 1);
    sum.conclude();
    let check = windows(&sum);
    assert_eq!(check.allowed, "at most 100.0 ms apart");
    assert_eq!(check.verdict, Verdict::Holds);
}

/// A hundredth of twelve hours would be seven minutes; the limit is one second.
#[test]
fn windows_more_than_a_second_apart_always_fail() {
    let mut sum = sum([Some((0, 100)), Some((1_100_000, 200))]);
    sum.interval_us = (0, 12 * 3600 * S);
    sum.conclude();
    let check = windows(&sum);
    assert_eq!(check.allowed, "at most 1000.0 ms apart");
    assert_eq!(check.verdict, Verdict::Fails);
}
