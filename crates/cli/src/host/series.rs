//! Selects the host's metrics that a result keeps as time series.
//!
//! All metrics are in `host.csv`. A report draws a panel for each time series, so only those that
//! explain most runs are kept: disks and interfaces are added up, and single cores are left out.

use std::num::NonZeroUsize;

use saiga_experiment::result::detail;
use saiga_sampler::Device;
use saiga_sampler::series::{Bucket, Series};

/// Maximum number of points of a time series.
const POINTS: NonZeroUsize = NonZeroUsize::new(300).expect("300 is not zero");

/// A time series, and the columns that are added up for it.
struct KeptSeries {
    name: &'static str,
    is_part: fn(&str) -> bool,
}

/// In the order of the report.
const KEPT: [KeptSeries; 14] = [
    KeptSeries {
        name: "cpu_user_percent",
        is_part: |name| matches!(name, "cpu_user_percent" | "cpu_nice_percent"),
    },
    KeptSeries {
        name: "cpu_system_percent",
        is_part: |name| name == "cpu_system_percent",
    },
    KeptSeries {
        name: "cpu_interrupts_percent",
        is_part: |name| matches!(name, "cpu_irq_percent" | "cpu_softirq_percent"),
    },
    KeptSeries {
        name: "cpu_iowait_percent",
        is_part: |name| name == "cpu_iowait_percent",
    },
    KeptSeries {
        name: "server_cpu_percent",
        is_part: |name| name == "server_cpu_percent",
    },
    KeptSeries {
        name: "client_cpu_percent",
        is_part: |name| name == "client_cpu_percent",
    },
    KeptSeries {
        name: "run_queue_tasks",
        is_part: |name| name == "run_queue_tasks",
    },
    KeptSeries {
        name: "disk_write_kb_s",
        is_part: |name| name.starts_with("disk_") && name.ends_with("_write_kb_s"),
    },
    KeptSeries {
        name: "disk_read_kb_s",
        is_part: |name| name.starts_with("disk_") && name.ends_with("_read_kb_s"),
    },
    KeptSeries {
        name: "net_out_kb_s",
        is_part: |name| name.starts_with("net_") && name.ends_with("_tx_kb_s"),
    },
    KeptSeries {
        name: "net_in_kb_s",
        is_part: |name| name.starts_with("net_") && name.ends_with("_rx_kb_s"),
    },
    KeptSeries {
        name: "steal_percent",
        is_part: |name| name == "steal_percent",
    },
    KeptSeries {
        name: "context_switches_s",
        is_part: |name| name == "context_switches_s",
    },
    KeptSeries {
        name: "server_rss_kb",
        is_part: |name| name == "server_rss_kb",
    },
];

/// Database counters that are kept, by the end of their names.
const DATABASE: [&str; 8] = [
    "_Innodb_row_lock_waits_s",
    "_Innodb_buffer_pool_reads_s",
    "_Innodb_log_writes_s",
    "_Innodb_os_log_fsyncs_s",
    "_database.deadlocks_s",
    "_database.blks_read_s",
    "_wal.wal_write_s",
    "_wal.wal_sync_s",
];

fn is_of_database(name: &str) -> bool {
    name.starts_with("db_") && DATABASE.iter().any(|end| name.ends_with(end))
}

/// Metrics that are kept of a given disk, by the end of their names.
const OF_DISK: [&str; 6] = [
    "write_kb_s",
    "read_kb_s",
    "write_wait_ms",
    "read_wait_ms",
    "util_percent",
    "queue_requests",
];
/// Metrics that are kept of a given network interface.
const OF_NETWORK: [&str; 4] = ["tx_kb_s", "rx_kb_s", "tx_packets_s", "rx_packets_s"];

fn is_of_device(name: &str, devices: &[Device]) -> bool {
    devices.iter().any(|device| {
        let (begin, ends) = match device {
            Device::Disk(disk) => (format!("disk_{disk}_"), &OF_DISK[..]),
            Device::Network(interface) => (format!("net_{interface}_"), &OF_NETWORK[..]),
        };
        let metric = name.strip_prefix(&begin);
        metric.is_some_and(|metric| ends.contains(&metric))
    })
}

/// Whether a column is part of a time series; those of `devices` are also kept individually.
pub(super) fn is_wanted(name: &str, devices: &[Device]) -> bool {
    is_of_database(name)
        || is_of_device(name, devices)
        || KEPT.iter().any(|kept| (kept.is_part)(name))
}

/// The time series, `shift_s` later than in the file, without rows before zero.
pub(super) fn of(file: &Series, devices: &[Device], shift_s: f64) -> Vec<detail::Series> {
    let times_s = file.times_s.iter().map(|time_s| time_s + shift_s);
    let first = times_s.clone().take_while(|time_s| *time_s <= 0.0).count();
    let sum = |names: Vec<&str>| {
        let columns = names.into_iter().filter_map(|name| file.column(name));
        columns
            .map(|column| column.skip(first).collect::<Vec<_>>())
            .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| added(a, b)).collect())
    };
    let names = || file.names.iter().map(String::as_str);
    let kept = KEPT.iter().map(|kept| {
        let parts = names().filter(|name| (kept.is_part)(name)).collect();
        (kept.name, sum(parts))
    });
    let single = names().filter(|name| is_of_device(name, devices) || is_of_database(name));
    let courses = kept.chain(single.map(|name| (name, sum(vec![name]))));
    let columns = courses.filter_map(|(name, values)| Some((name.to_owned(), values?)));
    thinned(&Series::of(times_s.skip(first).collect(), columns))
}

/// The sum of the known values; unknown if neither is known.
fn added(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, None) | (None, one) => one,
    }
}

fn thinned(series: &Series) -> Vec<detail::Series> {
    let few = series.downsample(POINTS);
    let is_thinned = few.times_s.len() < series.times_s.len();
    // A row covers the time since the previous row.
    let starts = std::iter::once(0.0).chain(few.times_s.iter().copied());
    let at_s: Vec<f64> = starts
        .zip(&few.times_s)
        .map(|(from, to)| f64::midpoint(from, *to))
        .collect();
    let course = |(name, buckets): (&String, &Vec<Option<Bucket>>)| {
        let of = |value: fn(&Bucket) -> f64| {
            let values = buckets.iter().map(|bucket| bucket.as_ref().map(value));
            values.collect::<Vec<_>>()
        };
        let extremes = |value| if is_thinned { of(value) } else { Vec::new() };
        detail::Series {
            name: name.clone(),
            at_s: at_s.clone(),
            mean: of(|bucket| rounded(bucket.mean)),
            low: extremes(|bucket| bucket.min),
            high: extremes(|bucket| bucket.max),
        }
    };
    let known = few.names.iter().zip(&few.columns);
    known
        .filter(|(_, buckets)| buckets.iter().any(Option::is_some))
        .map(course)
        .collect()
}

/// Rounds to a thousandth, which is finer than any metric here and shorter in a result.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rows: u32, columns: &[(&str, Option<f64>)]) -> Series {
        let column = |(name, value): &(&str, Option<f64>)| {
            // The row at the start has no rates.
            let rates = std::iter::repeat_n(*value, rows as usize);
            (
                (*name).to_owned(),
                std::iter::once(None).chain(rates).collect(),
            )
        };
        Series::of(
            (0..=rows).map(f64::from).collect(),
            columns.iter().map(column),
        )
    }

    #[test]
    fn disks_are_added_up_and_cores_left_out() {
        let names = [
            ("cpu0_user_percent", Some(1.0)),
            ("disk_sda_write_kb_s", Some(10.0)),
            ("disk_sdb_write_kb_s", Some(5.5)),
            ("db_mysql_Innodb_log_writes_s", Some(7.0)),
            ("db_mysql_Uptime_s", Some(1.0)),
            ("server_cpu_percent", None),
        ];
        let wanted: Vec<_> = names
            .into_iter()
            .filter(|(name, _)| is_wanted(name, &[]))
            .collect();
        assert_eq!(wanted.len(), 4);
        let series = of(&file(6, &wanted), &[], 0.0);
        let found: Vec<_> = series
            .iter()
            .map(|one| (one.name.as_str(), one.mean[2]))
            .collect();
        assert_eq!(
            found,
            [
                ("disk_write_kb_s", Some(15.5)),
                ("db_mysql_Innodb_log_writes_s", Some(7.0)),
            ]
        );
        assert_eq!(series[0].at_s, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]);
        assert!(series.iter().all(|one| one.low.is_empty() && one.is_even()));
    }

    #[test]
    fn a_given_device_is_also_kept_individually() {
        let columns = [
            ("disk_sda_write_kb_s", Some(10.0)),
            ("disk_sdb_write_kb_s", Some(5.5)),
            ("disk_sdb_util_percent", Some(2.0)),
            ("disk_sdb_flushes_s", Some(2.0)),
        ];
        let devices = [Device::Disk("sdb".to_owned())];
        let wanted: Vec<_> = columns
            .into_iter()
            .filter(|(name, _)| is_wanted(name, &devices))
            .collect();
        let series = of(&file(6, &wanted), &devices, 0.0);
        let found: Vec<_> = series
            .iter()
            .map(|one| (one.name.as_str(), one.mean[2]))
            .collect();
        assert_eq!(
            found,
            [
                ("disk_write_kb_s", Some(15.5)),
                ("disk_sdb_write_kb_s", Some(5.5)),
                ("disk_sdb_util_percent", Some(2.0)),
            ]
        );
    }

    #[test]
    fn a_long_run_has_few_points_and_a_later_zero_leaves_rows_out() {
        let long = of(&file(43_200, &[("steal_percent", Some(3.0))]), &[], 0.0);
        assert_eq!(long[0].mean.len(), 300);
        assert!(long[0].is_even() && long[0].high.len() == 300);
        let late = of(&file(10, &[("steal_percent", Some(3.0))]), &[], -4.0);
        assert_eq!(late[0].at_s, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]);
    }
}
