//! Details of a run of twelve hours, always with the same values.

use saiga_experiment::result::detail::{
    Check, CheckVerdict, Detail, Histogram, Mark, Series, Transactions,
};

/// Number of points of each series.
pub(crate) const POINTS: u32 = 300;
/// Length of a run.
pub(crate) const HOURS: f64 = 12.0;

/// The details of one run; `level` is its throughput relative to the other runs.
pub(crate) fn detail(level: f64) -> Detail {
    Detail {
        folder: Some("runs/0001-kernel".to_owned()),
        transactions: vec![
            transactions("NEW_ORDER", level, Some(45.0)),
            transactions("PAYMENT", level, None),
        ],
        checks: vec![
            check("Rollbacks", "1.02 %", CheckVerdict::Holds),
            check("Remote order lines", "0.50 %", CheckVerdict::Violated),
            check("Deliveries skipped", "0 of 12", CheckVerdict::NotShown),
        ],
        series: vec![
            series("new_orders_per_min", level, Some(100)),
            series("latency_p95_ms", 12.0, None),
            series("cpu_user_percent", 55.0, None),
        ],
        marks: vec![
            Mark {
                from_s: 600.0,
                to_s: Some(HOURS * 3600.0),
                what: "measured".to_owned(),
            },
            Mark {
                from_s: 14_400.0,
                to_s: Some(14_700.0),
                what: "server gone".to_owned(),
            },
        ],
        histograms: vec![Histogram {
            name: "NEW_ORDER".to_owned(),
            bin_ms: 1.0,
            counts: (0..40).map(|bin| 1000 / (1 + bin)).collect(),
        }],
        ..Detail::default()
    }
}

fn transactions(name: &str, level: f64, least: Option<f64>) -> Transactions {
    Transactions {
        name: name.to_owned(),
        count: 123_456,
        share_percent: 45.1,
        least_share_percent: least,
        mean_ms: 6.5 / level,
        p50_ms: 6.0 / level,
        p90_ms: 11.0,
        p99_ms: 20.0,
        max_ms: 812.0,
        limit_p90_ms: Some(5000.0),
        rolled_back: 1234,
        retries: 17,
        failed: 2,
    }
}

fn check(what: &str, found: &str, verdict: CheckVerdict) -> Check {
    Check {
        clause: "TPC-C §5.5.1.5".to_owned(),
        what: what.to_owned(),
        found: found.to_owned(),
        bounds: "0.9 to 1.1 %".to_owned(),
        verdict,
    }
}

/// A wave around `level` that has no value at the point `gap`.
fn series(name: &str, level: f64, gap: Option<u32>) -> Series {
    let wave = |at: u32| level * (1.0 + 0.1 * (f64::from(at) / 9.0).sin());
    let value = |at: u32, factor: f64| (Some(at) != gap).then(|| factor * wave(at));
    let list = |factor: f64| (0..POINTS).map(|at| value(at, factor)).collect();
    Series {
        name: name.to_owned(),
        at_s: (0..POINTS)
            .map(|at| f64::from(at) * HOURS * 3600.0 / f64::from(POINTS))
            .collect(),
        mean: list(1.0),
        low: list(0.7),
        high: list(1.5),
    }
}
