//! SIGKILL during a run: to the client, and to the server.

use std::time::{Duration, Instant};

use saiga_tpcc::latency::Gap;
use saiga_trials::scale::{Rng, by_scale, seed};

use crate::bench::{Bench, TERMINALS};
use crate::books::{Books, total};
use crate::system::{System, wait_out};

/// Minimum length of a gap in the record.
const LEAST: Duration = Duration::from_secs(1);
const OUTAGE: Duration = Duration::from_millis(1200);

pub(crate) fn a_killed_client_leaves_consistent_tables(bench: &Bench) {
    let mut rng = Rng::new(seed(41));
    for _ in 0..by_scale(1, 40) {
        let orders = i64::try_from(rng.below(40)).unwrap();
        bench.under_way(orders).kill();
        bench.must_hold();
    }
}

pub(crate) fn a_killed_server_is_a_gap_without_double_counts(bench: &mut Bench) {
    is_killed(bench, 20, OUTAGE, System::resume);
    let mut rng = Rng::new(seed(42));
    for _ in 0..by_scale(0, 40) {
        let orders = i64::try_from(rng.below(60)).unwrap();
        let outage = Duration::from_millis(rng.below(3000));
        is_killed(bench, orders, outage, System::resume);
    }
}

/// A synchronous standby takes over the address.
pub(crate) fn a_fail_over_is_a_gap_and_loses_nothing(bench: &mut Bench) {
    let standby = bench.system.standby();
    is_killed(bench, 20, OUTAGE, |system| system.fail_over(standby));
}

/// Kills the server after this many orders; it comes back after the outage.
fn is_killed(
    bench: &mut Bench,
    orders: i64,
    outage: Duration,
    comes_back: impl FnOnce(&mut System),
) {
    let before = Books::of(bench);
    let run = bench.under_way(orders);
    bench.system.kill();
    let down = Instant::now();
    wait_out(outage);
    let down = down.elapsed();
    comes_back(&mut bench.system);
    bench.await_orders(bench.orders());
    let (said, record) = run.interrupt();
    // Each terminal lost one connection, with one unanswered transaction.
    assert_eq!(record.lost_connections, u64::from(TERMINALS), "{said}");
    assert_eq!(
        total(&record, |track| track.unknown),
        i64::from(TERMINALS),
        "{said}"
    );
    if down >= LEAST {
        is_shown(&record.gaps, &said, down);
    }
    before.assert_agreement(bench, &record);
    bench.must_hold();
}

/// Checks that the record has the gap with its length.
fn is_shown(gaps: &[Gap], said: &str, down: Duration) {
    let [gap] = gaps else {
        panic!("not one gap: {gaps:?}\n{said}")
    };
    // The processes die one after the other: connections lost before the last commit count, too.
    assert_eq!(gap.lost, TERMINALS, "{gap:?}");
    let length = Duration::from_micros(gap.to_us - gap.from_us);
    assert!(length >= down, "{length:?} of {down:?}");
    let wanted = format!("no service for {:.1} s, from ", length.as_secs_f64());
    assert!(said.contains(&wanted), "{said}");
    let unknown = format!(
        "{TERMINALS} connections were lost; whether {TERMINALS} transactions were committed is \
         unknown"
    );
    assert!(said.contains(&unknown), "{said}");
}
