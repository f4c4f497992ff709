//! A server that neither answers nor ends.

use std::path::Path;
use std::time::Duration;

use saiga_tpcc::latency::{Phase, TrackName};
use saiga_tpcc::spec::deck::Kind;

use crate::bench::{Bench, record};
use crate::books::{Books, total};

/// How long it stands still.
const STALL: Duration = Duration::from_secs(2);
/// Intended starts each second, at equal distances.
const PER_SECOND: u64 = 20;
/// How long transactions begin.
const LENGTH_S: u64 = 6;

/// An open loop counts the stall for all that were due in it, not for the few that were under way.
pub(crate) fn a_server_that_stands_still_shows_in_the_latency(bench: &Bench) {
    let (books, orders, out) = (Books::of(bench), bench.orders(), bench.fresh_out());
    let (rate, length) = (format!("{}/min", PER_SECOND * 60), format!("{LENGTH_S}s"));
    let open = ["--rate", &rate, "--arrivals", "fixed", "--for", &length];
    let run = bench.spawn("run", &[&open[..], &["--no-check", "--out", &out]].concat());
    bench.await_orders(orders);
    bench.system.stand_still(STALL);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = record(Path::new(&out));
    assert_eq!(record.errors, []);
    assert_eq!((record.lost_connections, &record.gaps[..]), (0, &[][..]));
    let done = total(&record, |track| track.committed + track.rolled_back);
    assert_eq!(total(&record, |track| track.failed + track.unknown), 0);
    let due = i64::try_from(PER_SECOND * LENGTH_S).unwrap();
    assert_eq!(done + i64::try_from(record.backlog).unwrap(), due);
    // Who was due in the first half waited for the second one at least.
    let half_us = u64::try_from(STALL.as_micros()).unwrap() / 2;
    let waited: u64 = Kind::ALL
        .iter()
        .flat_map(|kind| Phase::ALL.map(|phase| record.tracks.of(phase, TrackName::Of(*kind))))
        .map(|track| track.latency.between(half_us, u64::MAX))
        .sum();
    let due = PER_SECOND * half_us / 1_000_000 - 1;
    assert!(waited + record.backlog >= due, "{waited} of {due}");
    books.agree(bench, &record);
    bench.must_hold();
}
