//! `/proc/interrupts` and `/proc/softirqs`: rates by interrupt line and by core.
//!
//! A large server has a thousand lines on 256 cores. Active lines of network cards, and lines that
//! were busy in some row, get their own columns, also by core if few cores serve the line. All
//! other lines are one sum. Every core has its sum over all lines.
//!
//! Both files are expensive to read on such a machine, so [`Throttle`] limits the reads.

use std::collections::{BTreeMap, HashSet};

use crate::rate::RateMeter;
use crate::table::{Column, Table};
use crate::throttle::Throttle;

use super::text::{Files, names_in};

/// A line gets its own columns once it reaches this rate.
const BUSY_PER_S: f64 = 100.0;
/// Maximum number of lines with their own columns, including those of network cards.
const LINES_MAX: usize = 64;
/// Maximum number of cores with a column for one line. The sum of the line covers all cores.
const CORES_MAX: usize = 4;
/// Limit for both files: bytes per row, on average.
const BYTES_PER_ROW: usize = 128 * 1024;

/// One line of `/proc/interrupts`.
#[derive(Debug)]
struct Line {
    /// Time of the last reading that contained the line.
    last_s: f64,
    meter: RateMeter,
    /// The line's own columns, if it has any.
    kept: Option<LineColumns>,
}

/// The columns of a busy line.
#[derive(Debug)]
struct LineColumns {
    prefix: String,
    column: Column,
    /// Counts per core when the columns were added, in the order of the file's header.
    first: Vec<u64>,
    cores: BTreeMap<usize, (Column, RateMeter)>,
}

/// Reader of both files.
#[derive(Debug)]
pub(crate) struct Interrupts {
    throttle: Throttle,
    lines: BTreeMap<String, Line>,
    /// Number of lines with their own columns.
    kept: usize,
    network_lines: HashSet<String>,
    other: Column,
    cores: BTreeMap<usize, (Column, RateMeter)>,
    soft: BTreeMap<String, (Column, RateMeter)>,
}

impl Interrupts {
    pub(crate) fn new(files: &Files, table: &mut Table) -> Self {
        Self {
            throttle: Throttle::new(BYTES_PER_ROW),
            lines: BTreeMap::new(),
            kept: 0,
            network_lines: network_lines(files),
            other: table.column("irq_other_interrupts_s"),
            cores: BTreeMap::new(),
            soft: BTreeMap::new(),
        }
    }

    /// Fills a row, or does nothing in a row that must not read the files.
    pub(crate) fn sample(&mut self, at_s: f64, files: &mut Files, table: &mut Table) {
        if !self.throttle.is_due() {
            return;
        }
        let text = files.proc("interrupts").unwrap_or_default();
        let mut bytes = text.len();
        self.hard(at_s, text, table);
        let text = files.proc("softirqs").unwrap_or_default();
        bytes += text.len();
        self.soft(at_s, text, table);
        self.throttle.on_read(bytes);
    }

    fn hard(&mut self, at_s: f64, text: &str, table: &mut Table) {
        let mut rows = text.lines();
        let cores = rows.next().map(core_numbers).unwrap_or_default();
        let mut sums = vec![0; cores.len()];
        let mut other = None;
        for row in rows.filter_map(|row| Row::parse(row, cores.len())) {
            for (sum, count) in sums.iter_mut().zip(&row.counts) {
                *sum += count;
            }
            let rate = self.line(at_s, &row, &cores, table);
            other = add(other, rate);
        }
        table.put(self.other, other);
        for line in self.lines.values_mut().filter(|line| line.last_s < at_s) {
            line.reset();
        }
        let sums: BTreeMap<usize, u64> = cores.into_iter().zip(sums).collect();
        for &core in sums.keys() {
            self.cores.entry(core).or_insert_with(|| {
                let column = table.column(&format!("cpu{core}_interrupts_s"));
                (column, RateMeter::default())
            });
        }
        for (core, (column, meter)) in &mut self.cores {
            table.put(*column, meter.rate(at_s, sums.get(core).copied()));
        }
    }

    /// Fills the columns of a line. Returns the rate of a line without columns.
    fn line(&mut self, at_s: f64, row: &Row, cores: &[usize], table: &mut Table) -> Option<f64> {
        let line = self.lines.entry(row.name.to_owned()).or_insert(Line {
            last_s: at_s,
            meter: RateMeter::default(),
            kept: None,
        });
        line.last_s = at_s;
        let rate = line.meter.rate(at_s, Some(row.counts.iter().sum()));
        if line.kept.is_none() && self.kept < LINES_MAX {
            let is_network = self.network_lines.contains(row.name);
            let least = if is_network {
                f64::MIN_POSITIVE
            } else {
                BUSY_PER_S
            };
            if rate.is_some_and(|rate| rate >= least) {
                line.kept = Some(LineColumns::new(row, table));
                self.kept += 1;
            }
        }
        match &mut line.kept {
            Some(kept) => {
                table.put(kept.column, rate);
                kept.by_core(at_s, row, cores, table);
                None
            }
            None => rate,
        }
    }

    fn soft(&mut self, at_s: f64, text: &str, table: &mut Table) {
        let mut rows = text.lines();
        let cores = rows.next().map(core_numbers).unwrap_or_default();
        for row in rows.filter_map(|row| Row::parse(row, cores.len())) {
            let (column, meter) = self.soft.entry(row.name.to_owned()).or_insert_with(|| {
                let name = format!("softirq_{}_events_s", row.name.to_ascii_lowercase());
                (table.column(&name), RateMeter::default())
            });
            table.put(*column, meter.rate(at_s, Some(row.counts.iter().sum())));
        }
    }
}

impl Line {
    /// Forgets the counts of a removed device; they start at zero when the device returns.
    fn reset(&mut self) {
        self.meter = RateMeter::default();
        let cores = self
            .kept
            .iter_mut()
            .flat_map(|kept| kept.cores.values_mut());
        for (_, meter) in cores {
            *meter = RateMeter::default();
        }
    }
}

impl LineColumns {
    fn new(row: &Row, table: &mut Table) -> Self {
        let prefix = row.prefix();
        Self {
            column: table.column(&format!("{prefix}_interrupts_s")),
            prefix,
            first: row.counts.clone(),
            cores: BTreeMap::new(),
        }
    }

    /// Fills the columns by core of a device line. Lines that every core has, such as timers, have
    /// none; they are part of the sums of the cores.
    fn by_core(&mut self, at_s: f64, row: &Row, cores: &[usize], table: &mut Table) {
        if !row.is_device() {
            return;
        }
        let first = self.first.iter().copied().chain(std::iter::repeat(0));
        for ((core, count), first) in cores.iter().zip(&row.counts).zip(first) {
            if *count != first && self.cores.len() < CORES_MAX {
                self.cores.entry(*core).or_insert_with(|| {
                    let name = format!("{}_cpu{core}_interrupts_s", self.prefix);
                    (table.column(&name), RateMeter::default())
                });
            }
            if let Some((column, meter)) = self.cores.get_mut(core) {
                table.put(*column, meter.rate(at_s, Some(*count)));
            }
        }
    }
}

/// One row of either file.
#[derive(Debug)]
struct Row<'a> {
    name: &'a str,
    counts: Vec<u64>,
    /// The last word of the line, which names its device: `virtio2-input.0`.
    action: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str, cores: usize) -> Option<Self> {
        let (name, rest) = line.split_once(':')?;
        let words = rest.split_ascii_whitespace().take(cores);
        let counts: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let action = rest
            .split_ascii_whitespace()
            .next_back()
            .unwrap_or_default();
        Some(Self {
            name: name.trim_start(),
            counts,
            action,
        })
    }

    fn is_device(&self) -> bool {
        self.name.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Prefix of the columns: `irq_38_virtio2-input.0` for a device, `irq_loc` for a line of the
    /// CPU.
    fn prefix(&self) -> String {
        if self.is_device() {
            format!("irq_{}_{}", self.name, self.action)
        } else {
            format!("irq_{}", self.name.to_ascii_lowercase())
        }
    }
}

/// The core numbers in a header such as `CPU0 CPU2`, which omits offline cores.
fn core_numbers(header: &str) -> Vec<usize> {
    let words = header.split_ascii_whitespace();
    words
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect()
}

fn add(sum: Option<f64>, rate: Option<f64>) -> Option<f64> {
    match (sum, rate) {
        (None, rate) => rate,
        (sum, None) => sum,
        (Some(sum), Some(rate)) => Some(sum + rate),
    }
}

/// Message-signalled interrupt lines of network cards. With virtio they belong to the parent
/// device.
fn network_lines(files: &Files) -> HashSet<String> {
    let class = files.sys_path("class/net");
    let interfaces = names_in(&class);
    let directories = interfaces.iter().flat_map(|name| {
        let device = class.join(name).join("device");
        ["msi_irqs", "../msi_irqs"].map(|irqs| device.join(irqs))
    });
    directories.flat_map(|irqs| names_in(&irqs)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    fn row(host: &Host, source: &mut Interrupts, at_s: f64, lines: &str, table: &mut Table) {
        host.proc("interrupts", lines);
        table.clear();
        source.sample(at_s, &mut host.files(), table);
    }

    #[test]
    fn busy_lines_and_network_lines_have_columns_and_the_others_a_sum() {
        let host = Host::new();
        host.sys("class/net/eth0/device/msi_irqs/38", "msi");
        let mut table = Table::default();
        let mut source = Interrupts::new(&host.files(), &mut table);
        let first = "   CPU0 CPU1\n 36: 0 1000 PCI-MSIX 1-edge virtio1-req.0\n\
                     38: 5 5 PCI-MSIX 1-edge virtio2-input.0\n 40: 7 0 IO-APIC ttyS0\n\
                     LOC: 100 100 Local timer interrupts\nERR: 0\n";
        row(&host, &mut source, 0.0, first, &mut table);
        let second = "   CPU0 CPU1\n 36: 0 1400 PCI-MSIX 1-edge virtio1-req.0\n\
                      38: 5 7 PCI-MSIX 1-edge virtio2-input.0\n 40: 27 0 IO-APIC ttyS0\n\
                      LOC: 300 400 Local timer interrupts\nERR: 4\n";
        row(&host, &mut source, 2.0, second, &mut table);
        for (name, value) in [
            ("irq_36_virtio1-req.0_interrupts_s", Some(200.0)),
            ("irq_38_virtio2-input.0_interrupts_s", Some(1.0)),
            ("irq_loc_interrupts_s", Some(250.0)),
            ("irq_other_interrupts_s", Some(12.0)),
            ("cpu0_interrupts_s", Some(112.0)),
            ("cpu1_interrupts_s", Some(351.0)),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
        let third = second
            .replace(" 1400 ", " 1500 ")
            .replace("38: 5 7", "38: 8 7");
        row(&host, &mut source, 3.0, &third, &mut table);
        let fourth = third
            .replace(" 1500 ", " 1600 ")
            .replace("38: 8 7", "38: 9 7");
        row(&host, &mut source, 4.0, &fourth, &mut table);
        for (name, value) in [
            ("irq_36_virtio1-req.0_cpu1_interrupts_s", Some(100.0)),
            ("irq_38_virtio2-input.0_cpu0_interrupts_s", Some(1.0)),
            ("irq_loc_interrupts_s", Some(0.0)),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
        let by_core = |name: &&String| name.contains("_cpu1_") && name.contains("38");
        assert_eq!(table.names().iter().find(by_core), None);
    }

    /// When a core goes offline, the sums no longer include its counts and decrease.
    #[test]
    fn a_core_that_goes_offline_makes_no_negative_rate() {
        let host = Host::new();
        let mut table = Table::default();
        let mut source = Interrupts::new(&host.files(), &mut table);
        let both = "CPU0 CPU1\n9: 10 5000 x y\n";
        row(&host, &mut source, 0.0, both, &mut table);
        row(&host, &mut source, 1.0, "CPU0\n9: 30 x y\n", &mut table);
        for (name, value) in [
            ("irq_other_interrupts_s", None),
            ("cpu0_interrupts_s", Some(20.0)),
            ("cpu1_interrupts_s", None),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
        row(&host, &mut source, 2.0, "CPU0\n9: 40 x y\n", &mut table);
        assert_eq!(host.cell(&table, "irq_other_interrupts_s"), Some(10.0));
    }

    #[test]
    fn softirqs_are_by_kind() {
        let host = Host::new();
        let mut table = Table::default();
        let mut source = Interrupts::new(&host.files(), &mut table);
        host.proc("softirqs", "CPU0 CPU1\nNET_RX: 1 2\nRCU: 0 0\n");
        row(&host, &mut source, 0.0, "CPU0 CPU1\n", &mut table);
        host.proc("softirqs", "CPU0 CPU1\nNET_RX: 11 22\nRCU: 1 0\n");
        row(&host, &mut source, 2.0, "CPU0 CPU1\n", &mut table);
        assert_eq!(host.cell(&table, "softirq_net_rx_events_s"), Some(15.0));
        assert_eq!(host.cell(&table, "softirq_rcu_events_s"), Some(0.5));
    }
}
