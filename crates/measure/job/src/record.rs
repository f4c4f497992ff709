//! The records that `saiga bench tpcc run --json` prints: a line for each database.
//!
//! `run` in a record is a run as `result.json` of an experiment has it, `interval_us` its measured
//! interval since the start. A run on inconsistent tables is rejected by its own record; a violated
//! validity check is told beside the figures, for it holds for all arms alike.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use saiga_experiment::result::{Detail, Run};
use serde::Deserialize;

use crate::client::Output;

/// When a load was measured, in seconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Times {
    /// The measured interval of all databases.
    pub(crate) measured: Range<f64>,
    /// Transactions that ended in it.
    pub(crate) transactions: f64,
}

/// What is read of a record.
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

/// Reads them all.
///
/// # Errors
/// What is not there, for people.
pub(crate) fn read(text: &str) -> Result<Output, String> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let strange = |error| format!("a record of saiga bench tpcc cannot be read: {error}");
    let records: Result<Vec<Record>, _> = lines.map(serde_json::from_str).collect();
    let records = records.map_err(strange)?;
    if records.is_empty() {
        return Err("saiga bench tpcc printed no record".to_owned());
    }
    let several = records.len() > 1;
    let mut sum = Output::default();
    let mut work = 0.0;
    for (record, number) in records.into_iter().zip(1..) {
        let times = record.times();
        let own_work = times.as_ref().map_or(0.0, |times| times.transactions);
        sum.times = spanned(sum.times.take(), times);
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

/// From the first start and the first interval to the last end.
fn spanned(all: Option<Times>, one: Option<Times>) -> Option<Times> {
    let (Some(all), Some(one)) = (all.clone(), one.clone()) else {
        return all.or(one);
    };
    Some(Times {
        measured: all.measured.start.min(one.measured.start)
            ..all.measured.end.max(one.measured.end),
        transactions: all.transactions + one.transactions,
    })
}

/// The value of several databases, each with how much it did: what is counted adds up, what is
/// by transaction is averaged over them, of times and shares the largest is told.
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

/// Adds the details of one database; of several, each has its number before its names.
fn append(all: &mut Detail, one: Detail, number: Option<u32>) {
    let named = |name: &mut String| {
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
    transactions.iter_mut().for_each(|one| named(&mut one.name));
    checks.iter_mut().for_each(|one| named(&mut one.what));
    // The host is one, and watched for all of them.
    let own = series.iter_mut().filter(|one| !is_of_host(&one.name));
    own.for_each(|one| named(&mut one.name));
    histograms.iter_mut().for_each(|one| named(&mut one.name));
    // All are measured at the same time.
    marks.retain(|mark| !all.marks.contains(mark));
    all.folder = all.folder.take().or(folder);
    all.transactions.extend(transactions);
    all.checks.extend(checks);
    all.series.extend(series);
    all.marks.extend(marks);
    all.histograms.extend(histograms);
    all.units.extend(units);
}

/// Whether a course is that of a metric of the host, or of a database's status, whose label is its
/// own.
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

    /// Two databases: transactions add up, the longer latency is told, CPU is shared out.
    #[test]
    fn records_are_summed() {
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
    fn of_several_databases_each_has_its_number_and_the_host_has_none() {
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
    fn a_record_says_itself_that_it_does_not_count() {
        let why = "\"the tables are not consistent after the run: x\"";
        let text = record("\"throughput_ops_s\":1.0", "null") + &record("", why);
        let rejected = read(&text).unwrap().rejected;
        assert_eq!(rejected.as_deref(), Some(why.trim_matches('"')));
        assert!(read("nothing").is_err());
        assert!(read("{\"run\":1}").unwrap_err().contains("cannot be read"));
    }
}
