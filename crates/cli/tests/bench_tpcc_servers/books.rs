//! Compares the transactions in the tables with those in the record.

use std::ops::RangeInclusive;

use saiga_tpcc::latency::{Phase, Track, TrackName};
use saiga_tpcc::results::Record;
use saiga_tpcc::spec::DISTRICTS;
use saiga_tpcc::spec::deck::Kind;

use crate::bench::Bench;

/// Counts of rows that transactions leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Books {
    /// From `d_next_o_id`, which condition 2 ties to the rows of `bmsql_oorder`.
    orders: i64,
    /// Each Payment inserts a row.
    payments: i64,
    /// Delivered orders.
    deliveries: i64,
}

impl Books {
    pub(crate) fn of(bench: &Bench) -> Self {
        Self {
            orders: bench.orders(),
            payments: bench.number("select count(*) from bmsql_history"),
            deliveries: bench.number("select sum(c_delivery_cnt) from bmsql_customer"),
        }
    }

    /// Checks that a run has counted each committed transaction once and no other one. Transactions
    /// with an unknown outcome may have committed.
    pub(crate) fn assert_agreement(self, bench: &Bench, record: &Record) {
        let now = Self::of(bench);
        let districts = i64::from(DISTRICTS);
        let skipped = of(record, Kind::Delivery, |track| track.skipped);
        let mut delivered = bounds(record, Kind::Delivery, districts);
        delivered = delivered.start() - skipped..=delivered.end() - skipped;
        for (what, there, counted) in [
            (
                "orders",
                now.orders - self.orders,
                bounds(record, Kind::NewOrder, 1),
            ),
            (
                "payments",
                now.payments - self.payments,
                bounds(record, Kind::Payment, 1),
            ),
            ("deliveries", now.deliveries - self.deliveries, delivered),
        ] {
            assert!(
                counted.contains(&there),
                "{there} {what} in the tables, {counted:?} counted: {:#?}",
                record.tracks
            );
        }
    }
}

/// Sum over all phases, including deferred transactions.
fn of(record: &Record, kind: Kind, count: fn(&Track) -> u64) -> i64 {
    let deferred = (kind == Kind::Delivery).then_some(TrackName::Deferred);
    let names = deferred.into_iter().chain([TrackName::Of(kind)]);
    let tracks = names.flat_map(|name| Phase::ALL.map(|phase| record.tracks.of(phase, name)));
    tracks
        .map(|track| i64::try_from(count(track)).unwrap())
        .sum()
}

/// The possible range of rows of a type, with `each` rows per transaction.
fn bounds(record: &Record, kind: Kind, each: i64) -> RangeInclusive<i64> {
    let least = of(record, kind, |track| track.committed) * each;
    least..=least + of(record, kind, |track| track.unknown) * each
}

/// Number of transactions of all types over all phases.
pub(crate) fn total(record: &Record, count: fn(&Track) -> u64) -> i64 {
    Kind::ALL.map(|kind| of(record, kind, count)).iter().sum()
}
