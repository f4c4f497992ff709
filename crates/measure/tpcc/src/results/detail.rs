//! Converts a record to the details of a run in an experiment's result, which reports show.

use std::collections::BTreeMap;

use saiga_experiment::result::Detail;
use saiga_experiment::result::detail::{
    Check, CheckVerdict, Histogram, Mark, Series, Transactions,
};

use super::record::Record;
use super::validity::{Verdict, limit};
use crate::driver::clock::seconds;
use crate::latency::{Phase, Second, TrackName};

/// Maximum number of points of a time series.
const POINTS: usize = 300;
/// Number of histogram bins up to four times the 90th percentile (§5.6.1.2). One more bin counts
/// all longer times.
const BINS: u64 = 40;

/// The details of a record.
#[must_use]
pub fn of(record: &Record) -> Detail {
    Detail {
        folder: None,
        transactions: TrackName::ALL
            .iter()
            .filter_map(|name| transactions(record, *name))
            .collect(),
        checks: record
            .validity
            .iter()
            .map(check)
            .chain(record.consistency.iter().map(consistency))
            .collect(),
        series: series(record),
        marks: marks(record),
        histograms: TrackName::ALL
            .iter()
            .filter_map(|name| histogram(record, *name))
            .collect(),
        units: BTreeMap::new(),
    }
}

fn ms(us: f64) -> f64 {
    us / 1000.0
}

fn transactions(record: &Record, name: TrackName) -> Option<Transactions> {
    let track = record.tracks.of(Phase::Measured, name);
    let at = |quantile| Some(ms(track.latency.quantile_us(quantile)? as f64));
    let count = track.done() + track.queued;
    Some(Transactions {
        name: name.name().to_owned(),
        count,
        share_percent: record
            .tracks
            .share_percent(Phase::Measured, name)
            .unwrap_or(0.0),
        least_share_percent: match name {
            TrackName::Of(kind) => kind.least_share(),
            TrackName::Deferred => None,
        },
        mean_ms: ms(track.latency.mean_us()?),
        p50_ms: at(0.5)?,
        p90_ms: at(0.9)?,
        p99_ms: at(0.99)?,
        max_ms: ms(track.latency.max_us()? as f64),
        limit_p90_ms: Some(limit(name).as_secs_f64() * 1000.0),
        rolled_back: track.rolled_back,
        retries: track.retries,
        failed: track.failed + track.unknown,
    })
}

fn check(check: &super::validity::Check) -> Check {
    Check {
        clause: format!("TPC-C {}", check.clause),
        what: check.name.clone(),
        found: check.found.clone(),
        bounds: check.allowed.clone(),
        verdict: match check.verdict {
            Verdict::Holds => CheckVerdict::Holds,
            Verdict::Fails => CheckVerdict::Violated,
            Verdict::TooFew { .. } | Verdict::Nothing | Verdict::CannotTell => {
                CheckVerdict::NotShown
            }
        },
    }
}

/// Converts a consistency check to a check of the report.
#[must_use]
pub fn consistency(checked: &super::record::Consistency) -> Check {
    let (found, verdict) = match (&checked.not_checked, checked.broken.as_slice()) {
        (Some(why), _) => (format!("not checked: {why}"), CheckVerdict::NotShown),
        (None, []) => {
            let sample = checked.sample.as_ref();
            let of = sample.map_or_else(String::new, |sample| format!(" in {sample}"));
            let found = format!("{} rules hold{of}", checked.checked);
            (found, CheckVerdict::Holds)
        }
        (None, broken) => (broken.join("; "), CheckVerdict::Violated),
    };
    Check {
        clause: "TPC-C §3.3.2".to_owned(),
        what: format!("tables are consistent {} the run", checked.when),
        found,
        bounds: "no violation".to_owned(),
        verdict,
    }
}

fn marks(record: &Record) -> Vec<Mark> {
    let mark = |(from_us, to_us), what: &str| Mark {
        from_s: seconds(from_us),
        to_s: Some(seconds(to_us)),
        what: what.to_owned(),
    };
    let gaps = record
        .gaps
        .iter()
        .map(|gap| mark((gap.from_us, gap.to_us), "server gone"));
    std::iter::once(mark(record.interval_us, "measured"))
        .chain(gaps)
        .collect()
}

fn histogram(record: &Record, name: TrackName) -> Option<Histogram> {
    let latency = &record.tracks.of(Phase::Measured, name).latency;
    let p90_us = latency.quantile_us(0.9)?;
    let bin_us = (4 * p90_us).div_ceil(BINS).max(1);
    let bins = (0..BINS).map(|bin| latency.between(bin * bin_us, (bin + 1) * bin_us - 1));
    let mut counts: Vec<u64> = bins.collect();
    counts.push(latency.between(BINS * bin_us, u64::MAX));
    Some(Histogram {
        name: name.name().to_owned(),
        bin_ms: ms(bin_us as f64),
        counts,
    })
}

fn series(record: &Record) -> Vec<Series> {
    let Some(all) = &record.series else {
        return Vec::new();
    };
    let quantile =
        |at: usize| move |second: &Second| second.new_order_us.map(|us| ms(us[at] as f64));
    let entry = |name: &str, value: &dyn Fn(&Second) -> Option<f64>| {
        downsampled(name, &all.seconds.iter().map(value).collect::<Vec<_>>())
    };
    vec![
        entry("new_orders_per_s", &|second| {
            Some(f64::from(second.done[0]))
        }),
        entry("throughput_ops_s", &|second| {
            Some(f64::from(second.total()))
        }),
        entry("concurrency", &|second| Some(second.concurrency())),
        entry("response_mean_ms", &|second| {
            let total = second.total();
            (total > 0).then(|| ms(second.latency_sum_us as f64 / f64::from(total)))
        }),
        entry("new_order_p50_ms", &quantile(0)),
        entry("new_order_p95_ms", &quantile(1)),
        entry("new_order_p99_ms", &quantile(2)),
        entry("errors_per_s", &|second| {
            Some(f64::from(second.failed + second.unknown))
        }),
        entry("retries_per_s", &|second| Some(f64::from(second.retries))),
    ]
}

/// Divides a series into at most [`POINTS`] parts of equal length, each with its mean, minimum and
/// maximum.
fn downsampled(name: &str, values: &[Option<f64>]) -> Series {
    let part_length = values.len().div_ceil(POINTS).max(1);
    let mut series = Series {
        name: name.to_owned(),
        at_s: Vec::new(),
        mean: Vec::new(),
        low: Vec::new(),
        high: Vec::new(),
    };
    for (index, part) in values.chunks(part_length).enumerate() {
        let known = || part.iter().flatten().copied();
        let count = known().count() as f64;
        series
            .at_s
            .push((index * part_length) as f64 + part.len() as f64 / 2.0);
        series
            .mean
            .push((count > 0.0).then(|| known().sum::<f64>() / count));
        if part_length > 1 {
            series.low.push(known().reduce(f64::min));
            series.high.push(known().reduce(f64::max));
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_peaks() {
        let mut values = vec![Some(1.0); 600];
        values[5] = Some(9.0);
        (values[6], values[7]) = (None, None);
        let series = downsampled("x", &values);
        assert_eq!((series.mean.len(), series.is_even()), (300, true));
        assert_eq!((series.at_s[0], series.at_s[2]), (1.0, 5.0));
        assert_eq!(
            (series.mean[2], series.low[2], series.high[2]),
            (Some(5.0), Some(1.0), Some(9.0))
        );
        assert_eq!((series.mean[3], series.high[3]), (None, None));
        let short = downsampled("x", &values[..10]);
        assert_eq!((short.mean.len(), short.low.len()), (10, 0));
        assert_eq!(short.at_s[1], 1.5);
    }
}
