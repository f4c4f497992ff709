//! Reads the records that `saiga bench tpcc run --json` prints, one line per database.
//!
//! `run` in a record has the format of a run in `result.json`; `interval_us` is the measured
//! interval relative to the start. A record of a run on inconsistent tables contains its rejection.
//! A violated validity check does not reject the run, because it applies to all arms alike.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use saiga_experiment::result::{Detail, Run};
use serde::Deserialize;

use crate::client::Output;

/// The measured interval of a load, and the work done in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Times {
    /// From the first start to the last end of all databases, in seconds since 1970.
    pub(crate) measured: Range<f64>,
    /// Transactions of all databases that ended in their intervals.
    pub(crate) transactions: f64,
}

/// The fields of a record that are read.
#[derive(Debug, Deserialize)]
struct Record {
    run: Run,
    interval_us: (u64, u64),
    #[serde(default)]
    unanswered: u64,
}

impl Record {
    fn times(&self) -> Option<Times> {
        let started = humantime::parse_rfc3339(&self.run.started).ok()?;
        let start_s = unix_s(started);
        let at = |us: u64| start_s + Duration::from_micros(us).as_secs_f64();
        Some(Times {
            measured: at(self.interval_us.0)..at(self.interval_us.1),
            transactions: self.run.metrics.get("throughput_ops_s")? * self.run.seconds,
        })
    }
}

/// Seconds since 1970.
pub(crate) fn unix_s(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Reads the records of all databases and combines them.
///
/// # Errors
/// Returns a message if there is no record or a record cannot be parsed.
pub(crate) fn read(text: &str) -> Result<Output, String> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let invalid = |error| format!("cannot parse a record of saiga bench tpcc: {error}");
    let records: Result<Vec<Record>, _> = lines.map(serde_json::from_str).collect();
    let records = records.map_err(invalid)?;
    if records.is_empty() {
        return Err("saiga bench tpcc printed no record".to_owned());
    }
    let several = records.len() > 1;
    let mut sum = Output::default();
    let mut work = 0.0;
    for (record, number) in records.into_iter().zip(1..) {
        let times = record.times();
        let own_work = times.as_ref().map_or(0.0, |times| times.transactions);
        sum.times = combined(sum.times.take(), times);
        let Record {
            run, unanswered, ..
        } = record;
        sum.seconds = Some(sum.seconds.unwrap_or(0.0).max(run.seconds));
        sum.rejected = sum.rejected.or(run.rejected);
        for (name, value) in run.metrics {
            let joined = match sum.metrics.get(&name) {
                None => value,
                Some(before) => joined(&name, (*before, work), (value, own_work)),
            };
            sum.metrics.insert(name, joined);
        }
        work += own_work;
        sum.unanswered += unanswered;
        if let Some(detail) = run.detail {
            let all = sum.detail.get_or_insert_default();
            append(all, *detail, several.then_some(number));
        }
    }
    Ok(sum)
}

/// Combines the times of two databases: from the earlier start to the later end.
fn combined(all: Option<Times>, one: Option<Times>) -> Option<Times> {
    let (Some(all), Some(one)) = (all.clone(), one.clone()) else {
        return all.or(one);
    };
    Some(Times {
        measured: all.measured.start.min(one.measured.start)
            ..all.measured.end.max(one.measured.end),
        transactions: all.transactions + one.transactions,
    })
}

/// Combines a metric of several databases; each pair is a value and the number of transactions.
/// Values per transaction are averaged by that number, of latencies and shares the largest is
/// taken, counts and rates are added.
fn joined(name: &str, before: (f64, f64), now: (f64, f64)) -> f64 {
    let ends = |units: &[&str]| units.iter().any(|unit| name.ends_with(unit));
    let work = before.1 + now.1;
    if ends(&["_per_op"]) && work > 0.0 {
        (before.0 * before.1 + now.0 * now.1) / work
    } else if ends(&["_us", "_ms", "_percent", "_share"]) {
        before.0.max(now.0)
    } else {
        before.0 + now.0
    }
}

/// Adds the details of a database. `number` is put before the names if there are several databases.
fn append(all: &mut Detail, one: Detail, number: Option<u32>) {
    let prefix = |name: &mut String| {
        if let Some(number) = number {
            name.insert_str(0, &format!("{number}: "));
        }
    };
    let Detail {
        folder,
        mut transactions,
        mut checks,
        mut series,
        mut marks,
        mut histograms,
        units,
    } = one;
    transactions
        .iter_mut()
        .for_each(|one| prefix(&mut one.name));
    checks.iter_mut().for_each(|one| prefix(&mut one.what));
    // Series of the host have no number, because all databases share the host.
    let own = series.iter_mut().filter(|one| !is_of_host(&one.name));
    own.for_each(|one| prefix(&mut one.name));
    histograms.iter_mut().for_each(|one| prefix(&mut one.name));
    // All databases are measured at the same time, so their marks are equal.
    marks.retain(|mark| !all.marks.contains(mark));
    all.folder = all.folder.take().or(folder);
    all.transactions.extend(transactions);
    all.checks.extend(checks);
    all.series.extend(series);
    all.marks.extend(marks);
    all.histograms.extend(histograms);
    all.units.extend(units);
}

/// Whether a time series belongs to the host, or to a database's status, which has its own label.
fn is_of_host(name: &str) -> bool {
    let begins = ["cpu_", "disk_", "net_", "mem_", "db_", "server_", "client_"];
    let whole = ["steal_percent", "run_queue_tasks", "context_switches_s"];
    begins.iter().any(|begin| name.starts_with(begin)) || whole.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(metrics: &str, rejected: &str) -> String {
        format!(
            "{{\"format_version\":1,\"interval_us\":[1000000,61000000],\"run\":{{\"cell\":\"c\",\
             \"arm\":\"a\",\"pair\":0,\"position\":0,\"started\":\"1970-01-01T00:01:40.250Z\",\
             \"seconds\":60.0,\"metrics\":{{{metrics}}},\"foreign_cpu_s\":0.0,\"rejected\":{rejected}}}}}\n"
        )
    }

    /// Transactions add up, the longer latency is kept, CPU time is averaged by transactions.
    #[test]
    fn the_records_of_two_databases_are_combined() {
        let one = "\"throughput_ops_s\":30.0,\"tpmc_no_think_time\":900.0,\"latency_p99_us\":5.0,\
                   \"client_cpu_us_per_op\":100.0";
        let other = "\"throughput_ops_s\":10.0,\"tpmc_no_think_time\":800.0,\"latency_p99_us\":7.0,\
                     \"client_cpu_us_per_op\":200.0";
        let text = format!("noise\n{}{}", record(one, "null"), record(other, "null"));
        let read = read(&text).unwrap();
        let value = |name: &str| read.metrics[name];
        assert_eq!(
            (read.seconds, value("tpmc_no_think_time")),
            (Some(60.0), 1700.0)
        );
        assert_eq!(
            (value("latency_p99_us"), value("client_cpu_us_per_op")),
            (7.0, 125.0)
        );
        let times = read.times.unwrap();
        assert_eq!(times.transactions, 2400.0);
        assert_eq!(times.measured, 101.25..161.25);
    }

    #[test]
    fn series_of_databases_are_numbered_and_those_of_the_host_are_not() {
        let series = |name: &str| format!("{{\"name\":\"{name}\",\"at_s\":[0.5],\"mean\":[1.0]}}");
        let one = |all: &str| {
            let detail = format!("null,\"detail\":{{\"series\":[{all}]}}");
            record("\"throughput_ops_s\":1.0", &detail)
        };
        let both = format!(
            "{},{}",
            series("throughput_ops_s"),
            series("cpu_user_percent")
        );
        let text = one(&both) + &one(&series("throughput_ops_s"));
        let detail = read(&text).unwrap().detail.unwrap();
        let names: Vec<&str> = detail.series.iter().map(|one| one.name.as_str()).collect();
        let wanted = [
            "1: throughput_ops_s",
            "cpu_user_percent",
            "2: throughput_ops_s",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn the_rejection_in_a_record_is_kept() {
        let reason = "\"the tables are not consistent after the run: x\"";
        let text = record("\"throughput_ops_s\":1.0", "null") + &record("", reason);
        let rejected = read(&text).unwrap().rejected;
        assert_eq!(rejected.as_deref(), Some(reason.trim_matches('"')));
        assert!(read("nothing").is_err());
        assert!(read("{\"run\":1}").unwrap_err().contains("cannot parse"));
    }
}
