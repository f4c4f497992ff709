//! A server that neither answers nor ends.

use std::path::Path;
use std::time::Duration;

use saiga_tpcc::latency::{Phase, TrackName};
use saiga_tpcc::spec::deck::Kind;
use saiga_trials::witness::await_true;

use crate::bench::{Bench, TERMINALS, record};
use crate::books::{Books, total};
use crate::system::wait_out;

/// Length of the stall.
const STALL: Duration = Duration::from_secs(2);
/// Scheduled starts per second, at equal intervals.
const PER_SECOND: u64 = 20;
/// Time during which transactions start, in seconds.
const LENGTH_S: u64 = 6;

/// An open loop counts the stall for all transactions that were due in it, not only for started
/// ones.
pub(crate) fn a_stalled_server_shows_in_the_latency(bench: &Bench) {
    let (books, orders, out) = (Books::of(bench), bench.orders(), bench.fresh_out());
    let (rate, length) = (format!("{}/min", PER_SECOND * 60), format!("{LENGTH_S}s"));
    let open = ["--rate", &rate, "--arrivals", "fixed", "--for", &length];
    let run = bench.spawn("run", &[&open[..], &["--no-check", "--out", &out]].concat());
    bench.await_orders(orders);
    bench.system.with_stopped_processes(|| wait_out(STALL));
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = record(Path::new(&out));
    assert_eq!(record.errors, []);
    assert_eq!((record.lost_connections, &record.gaps[..]), (0, &[][..]));
    let done = total(&record, |track| track.committed + track.rolled_back);
    assert_eq!(total(&record, |track| track.failed + track.unknown), 0);
    let due = i64::try_from(PER_SECOND * LENGTH_S).unwrap();
    assert_eq!(done + i64::try_from(record.backlog).unwrap(), due);
    // Transactions due in the first half of the stall waited at least for the second half.
    let half_us = u64::try_from(STALL.as_micros()).unwrap() / 2;
    let waited: u64 = Kind::ALL
        .iter()
        .flat_map(|kind| Phase::ALL.map(|phase| record.tracks.of(phase, TrackName::Of(*kind))))
        .map(|track| track.latency.between(half_us, u64::MAX))
        .sum();
    let due = PER_SECOND * half_us / 1_000_000 - 1;
    assert!(waited + record.backlog >= due, "{waited} of {due}");
    books.assert_agreement(bench, &record);
    bench.must_hold();
}

/// No connection is lost, so only the time limit ends the run.
pub(crate) fn a_server_stalled_for_good_ends_the_run(bench: &Bench) {
    let (orders, out) = (bench.orders(), bench.fresh_out());
    let patience = ["--give-up", "2s", "--drain", "100ms"];
    let words = [&["--for", "1h", "--no-check", "--out", &out], &patience[..]].concat();
    let run = bench.spawn("run", &words);
    bench.await_orders(orders + 20);
    let ended = bench
        .system
        .with_stopped_processes(|| run.wait_with_output());
    let output = ended.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for told in [
        "Term-00, Measured tpmC (NewOrders) = ",
        "answered no request for too long (--give-up)",
    ] {
        assert!(said.contains(told), "{said}");
    }
    let record = record(Path::new(&out));
    assert_eq!(
        (&record.end[..], record.unanswered),
        ("gave up", u64::from(TERMINALS))
    );
    assert!(total(&record, |track| track.committed) > 20, "{said}");
    let [gap] = &record.gaps[..] else {
        panic!("not one gap: {:?}", record.gaps)
    };
    assert_eq!((gap.lost, gap.to_us), (0, record.interval_us.1));
    assert!(gap.to_us - gap.from_us >= 2_000_000, "{gap:?}");
    // Unfinished transactions end with their sessions.
    let sessions = bench.system.sessions();
    let alone = || bench.number(&sessions) == 1;
    await_true(alone, || {
        "sessions of a run that is over are left".to_owned()
    });
    bench.must_hold();
}
