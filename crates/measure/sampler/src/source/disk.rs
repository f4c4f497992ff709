//! `/proc/diskstats`: rates, wait times and utilisation of disks.
//!
//! Spec: `Documentation/admin-guide/iostats.rst`. Covers disks with a physical device (not loop,
//! RAM, device mapper or MD, whose requests reach physical disks anyway) and the disks that the
//! configuration names. A sector is 512 bytes for every disk.

use std::collections::{BTreeMap, HashSet};

use procfs::DiskStat;

use crate::rate::per_second;
use crate::table::{Column, Table};

use super::text::Files;

const METRICS: [&str; 13] = [
    "reads_s",
    "writes_s",
    "read_merges_s",
    "write_merges_s",
    "read_kb_s",
    "write_kb_s",
    "flushes_s",
    "discards_s",
    "read_wait_ms",
    "write_wait_ms",
    "flush_wait_ms",
    "util_percent",
    "queue_requests",
];

#[derive(Debug)]
struct Disk {
    columns: [Column; METRICS.len()],
    before: Option<(f64, DiskStat)>,
}

/// Reads counters of block devices from `/proc/diskstats`.
#[derive(Debug)]
pub(crate) struct Disks {
    disks: BTreeMap<String, Disk>,
    /// Names in the file that are not physical disks.
    others: HashSet<String>,
}

impl Disks {
    /// Adds the columns of the `named` disks, even if a disk does not exist.
    pub(crate) fn new(named: &[String], table: &mut Table) -> Self {
        let disks = named
            .iter()
            .map(|name| (name.clone(), Disk::new(name, table)));
        Self {
            disks: disks.collect(),
            others: HashSet::new(),
        }
    }

    /// Fills a row; adds columns for new disks.
    pub(crate) fn sample(&mut self, at_s: f64, files: &mut Files, table: &mut Table) {
        let text = files.proc("diskstats").unwrap_or_default();
        let stats = text.lines().filter_map(|line| {
            let name = line.split_ascii_whitespace().nth(2)?;
            let wanted = !self.others.contains(name);
            wanted.then(|| DiskStat::from_line(line).ok()).flatten()
        });
        let mut stats: BTreeMap<String, DiskStat> =
            stats.map(|stat| (stat.name.clone(), stat)).collect();
        for name in stats.keys() {
            if self.disks.contains_key(name) {
                continue;
            }
            if is_physical(files, name) {
                self.disks.insert(name.clone(), Disk::new(name, table));
            } else {
                self.others.insert(name.clone());
            }
        }
        for (name, disk) in &mut self.disks {
            disk.fill(at_s, stats.remove(name), table);
        }
    }
}

/// Partitions have no entry in `/sys/block`, and virtual disks have no `device` there.
fn is_physical(files: &Files, name: &str) -> bool {
    let path = format!("block/{}/device", name.replace('/', "!"));
    files.sys_path(&path).exists()
}

impl Disk {
    fn new(name: &str, table: &mut Table) -> Self {
        Self {
            columns: METRICS.map(|metric| table.column(&format!("disk_{name}_{metric}"))),
            before: None,
        }
    }

    fn fill(&mut self, at_s: f64, now: Option<DiskStat>, table: &mut Table) {
        let before = self.before.take();
        let values = match (&before, &now) {
            (Some((before_s, before)), Some(now)) => metrics(before, now, at_s - before_s),
            (None, _) | (_, None) => [None; METRICS.len()],
        };
        for (column, value) in self.columns.iter().zip(values) {
            table.put(*column, value);
        }
        self.before = now.map(|now| (at_s, now));
    }
}

/// The values in the order of [`METRICS`].
fn metrics(before: &DiskStat, now: &DiskStat, seconds: f64) -> [Option<f64>; METRICS.len()] {
    let rate = |count: fn(&DiskStat) -> u64| per_second(count(before), count(now), seconds);
    let rate_of = |count: fn(&DiskStat) -> Option<u64>| {
        per_second(count(before)?, count(now)?, seconds) // Not in older kernels.
    };
    let wait = |time_ms: Option<f64>, requests: Option<f64>| {
        let (time_ms, requests) = (time_ms?, requests?);
        (requests > 0.0).then(|| time_ms / requests)
    };
    let (reads, writes) = (rate(|d| d.reads), rate(|d| d.writes));
    let flushes = rate_of(|d| d.flushes);
    let kb = |sectors: Option<f64>| sectors.map(|sectors| sectors / 2.0);
    let busy_ms_s = rate(|d| d.time_in_progress);
    [
        reads,
        writes,
        rate(|d| d.merged),
        rate(|d| d.writes_merged),
        kb(rate(|d| d.sectors_read)),
        kb(rate(|d| d.sectors_written)),
        flushes,
        rate_of(|d| d.discards),
        wait(rate(|d| d.time_reading), reads),
        wait(rate(|d| d.time_writing), writes),
        wait(rate_of(|d| d.time_flushing), flushes),
        // The kernel rounds the busy time up to a tick, so it may exceed the interval.
        busy_ms_s.map(|ms| (ms / 10.0).min(100.0)),
        rate(|d| d.weighted_time_in_progress).map(|ms| ms / 1000.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    const SDA: &str = "8 0 sda 100 10 8000 50 200 20 16000 400 0 300 450 1 0 8 1 40 20\n";

    fn row(host: &Host, disks: &mut Disks, at_s: f64, stats: &str, table: &mut Table) {
        host.proc("diskstats", stats);
        disks.sample(at_s, &mut host.files(), table);
    }

    #[test]
    fn rates_waits_and_utilisation_of_a_disk() {
        let host = Host::new();
        host.sys("block/sda/device/model", "");
        host.sys("block/loop0/size", "");
        let mut table = Table::default();
        let mut disks = Disks::new(&[], &mut table);
        let others = "8 1 sda1 1 1 1 1 1 1 1 1 0 1 1\n7 0 loop0 1 1 1 1 1 1 1 1 0 1 1\n";
        row(
            &host,
            &mut disks,
            0.0,
            &format!("{SDA}{others}"),
            &mut table,
        );
        let later = "8 0 sda 100 10 8000 50 400 40 16800 500 3 1300 1450 1 0 8 1 90 45\n";
        row(&host, &mut disks, 2.0, later, &mut table);
        for (metric, value) in METRICS.into_iter().zip([
            Some(0.0),
            Some(100.0),
            Some(0.0),
            Some(10.0),
            Some(0.0),
            Some(200.0),
            Some(25.0),
            Some(0.0),
            None, // Without reads there is no wait time of a read.
            Some(0.5),
            Some(0.5),
            Some(50.0),
            Some(0.5),
        ]) {
            assert_eq!(
                host.cell(&table, &format!("disk_sda_{metric}")),
                value,
                "{metric}"
            );
        }
        assert_eq!(table.names().len(), METRICS.len(), "{:?}", table.names());
    }

    /// A kernel before 4.18 has no discards and no flushes; a 32-bit time has wrapped.
    #[test]
    fn wrapped_and_missing_counters_are_unknown() {
        let host = Host::new();
        let mut table = Table::default();
        let mut disks = Disks::new(&["dm-0".into()], &mut table);
        row(
            &host,
            &mut disks,
            0.0,
            "8 0 dm-0 1 0 0 0 0 0 0 4294967290 0 9 9\n",
            &mut table,
        );
        row(
            &host,
            &mut disks,
            1.0,
            "8 0 dm-0 2 0 0 0 5 0 0 4 0 5000 9\n",
            &mut table,
        );
        for (name, value) in [
            ("disk_dm-0_reads_s", Some(1.0)),
            ("disk_dm-0_writes_s", Some(5.0)),
            ("disk_dm-0_write_wait_ms", None),
            ("disk_dm-0_flushes_s", None),
            ("disk_dm-0_util_percent", Some(100.0)),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
    }

    #[test]
    fn a_disk_that_was_replugged_has_no_rate_in_its_first_row() {
        let host = Host::new();
        host.sys("block/sda/device/model", "");
        let mut table = Table::default();
        let mut disks = Disks::new(&[], &mut table);
        let plus = SDA.replace("sda 100", "sda 170");
        for (at_s, stats, reads_s) in [
            (0.0, "", None),
            (1.0, SDA, None),
            (2.0, plus.as_str(), Some(70.0)),
            (3.0, "", None),
            (4.0, SDA, None),
            (5.0, plus.as_str(), Some(70.0)),
        ] {
            row(&host, &mut disks, at_s, stats, &mut table);
            if at_s > 0.0 {
                assert_eq!(host.cell(&table, "disk_sda_reads_s"), reads_s, "{at_s}");
            }
        }
    }
}
