//! `/proc/stat`: CPU time of each core by kind, and counters of the scheduler.
//!
//! Percentages are of the ticks that the kernel counted for a core, not of the wall clock, so that
//! they add up to 100 even in a late row. Guest time is part of user and nice.
//!
//! Spec: `man 5 proc_stat`. An offline core has no line and therefore no values.

use std::collections::BTreeMap;

use crate::rate::RateMeter;
use crate::table::{Column, Table};

use super::text::Files;

/// Kinds of CPU time, in the order of the file.
const KINDS: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];
/// Number of kinds that add up to the total. User and nice already include the guest kinds.
const DISTINCT: usize = 8;
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;
const STEAL: usize = 7;

type Ticks = [u64; KINDS.len()];

/// CPU time of all cores in one row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Work {
    /// All kinds except idle, iowait and steal.
    pub(crate) busy_s: f64,
    /// The part of `busy_s` in interrupts and softirqs.
    pub(crate) interrupts_s: f64,
    /// Time that the hypervisor gave to other guests.
    pub(crate) steal_s: f64,
}

/// The percentages of one core, or of all cores.
#[derive(Debug)]
struct Shares {
    columns: Vec<Column>,
    before: Option<Ticks>,
}

impl Shares {
    /// Fills the columns; returns the ticks since the previous row.
    fn fill(&mut self, now: Option<Ticks>, table: &mut Table) -> Option<Ticks> {
        let before = std::mem::replace(&mut self.before, now);
        let delta = before.zip(now).and_then(|(before, now)| since(before, now));
        let total: u64 = delta.iter().flat_map(|delta| &delta[..DISTINCT]).sum();
        for (kind, column) in self.columns.iter().enumerate() {
            let share = delta.map(|delta| 100.0 * delta[kind] as f64 / total as f64);
            table.put(*column, share);
        }
        delta
    }
}

/// Ticks of each kind; `None` if a kind has decreased. Idle and iowait may decrease on a running
/// system (`man 5 proc_stat`); their difference is then zero.
fn since(before: Ticks, now: Ticks) -> Option<Ticks> {
    let mut delta = [0; KINDS.len()];
    for (kind, delta) in delta.iter_mut().enumerate() {
        let (before, now) = (before[kind], now[kind]);
        *delta = match kind {
            IDLE | IOWAIT => now.saturating_sub(before),
            _ => now.checked_sub(before)?,
        };
    }
    Some(delta)
}

/// A line of the file with a single number.
#[derive(Debug)]
struct Counter {
    /// First word of the line.
    name: &'static str,
    column: Column,
    /// `None` for a gauge.
    meter: Option<RateMeter>,
}

/// Reads CPU times from `/proc/stat`.
#[derive(Debug)]
pub(crate) struct Cpu {
    ticks_per_s: f64,
    all: Shares,
    cores: BTreeMap<usize, Shares>,
    counters: Vec<Counter>,
}

impl Cpu {
    pub(crate) fn new(ticks_per_s: u64, table: &mut Table) -> Self {
        let name = |kind: &&str| match *kind {
            "steal" => "steal_percent".to_owned(),
            kind => format!("cpu_{kind}_percent"),
        };
        let columns = KINDS.iter().map(|kind| table.column(&name(kind))).collect();
        let counter = |(name, metric, is_rate): (&'static str, &str, bool), table: &mut Table| {
            let column = table.column(metric);
            let meter = is_rate.then(RateMeter::default);
            Counter {
                name,
                column,
                meter,
            }
        };
        let counters = [
            ("ctxt", "context_switches_s", true),
            ("intr", "interrupts_s", true),
            ("softirq", "softirqs_s", true),
            ("processes", "forks_s", true),
            ("procs_running", "run_queue_tasks", false),
            ("procs_blocked", "blocked_tasks", false),
        ];
        Self {
            ticks_per_s: ticks_per_s.max(1) as f64,
            all: Shares {
                columns,
                before: None,
            },
            cores: BTreeMap::new(),
            counters: counters.map(|line| counter(line, table)).into(),
        }
    }

    /// Fills a row; returns the CPU time of all cores since the previous row.
    pub(crate) fn sample(
        &mut self,
        at_s: f64,
        files: &mut Files,
        table: &mut Table,
    ) -> Option<Work> {
        let stat = files.proc("stat").map(parse).unwrap_or_default();
        for &core in stat.cores.keys() {
            self.cores.entry(core).or_insert_with(|| {
                let name = |kind| format!("cpu{core}_{kind}_percent");
                let kinds = KINDS[..DISTINCT].iter();
                let columns = kinds.map(|kind| table.column(&name(kind))).collect();
                Shares {
                    columns,
                    before: None,
                }
            });
        }
        for (core, shares) in &mut self.cores {
            shares.fill(stat.cores.get(core).copied(), table);
        }
        for counter in &mut self.counters {
            let count = stat.counters.get(counter.name).copied();
            let value = match &mut counter.meter {
                Some(meter) => meter.rate(at_s, count),
                None => count.map(|count| count as f64),
            };
            table.put(counter.column, value);
        }
        let delta = self.all.fill(stat.all, table)?;
        Some(self.work(delta))
    }

    fn work(&self, delta: Ticks) -> Work {
        let seconds = |ticks: u64| ticks as f64 / self.ticks_per_s;
        let total: u64 = delta[..DISTINCT].iter().sum();
        Work {
            busy_s: seconds(total - delta[IDLE] - delta[IOWAIT] - delta[STEAL]),
            interrupts_s: seconds(delta[IRQ] + delta[SOFTIRQ]),
            steal_s: seconds(delta[STEAL]),
        }
    }
}

/// The lines of `/proc/stat` that the columns need.
#[derive(Debug, Default)]
struct Stat<'a> {
    all: Option<Ticks>,
    cores: BTreeMap<usize, Ticks>,
    counters: BTreeMap<&'a str, u64>,
}

fn parse(text: &str) -> Stat<'_> {
    let mut stat = Stat::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else {
            continue;
        };
        match name.strip_prefix("cpu").map(str::parse) {
            Some(Ok(core)) => {
                stat.cores.insert(core, ticks(rest));
            }
            Some(Err(_)) => stat.all = Some(ticks(rest)),
            None => {
                let total = rest.split_ascii_whitespace().next();
                if let Some(Ok(total)) = total.map(str::parse) {
                    stat.counters.insert(name, total);
                }
            }
        }
    }
    stat
}

/// The ticks of a line by kind. Kinds that an older kernel does not have are zero.
fn ticks(fields: &str) -> Ticks {
    let mut ticks = [0; KINDS.len()];
    for (ticks, field) in ticks.iter_mut().zip(fields.split_ascii_whitespace()) {
        *ticks = field.parse().unwrap_or(0);
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    fn host(stat: &str) -> Host {
        let host = Host::new();
        host.proc("stat", stat);
        host
    }

    #[test]
    fn percentages_are_of_the_ticks_of_each_core() {
        let host = host("cpu 100 0 0 900 0 0 0 0 0 0\ncpu0 50 0 0 450\ncpu1 50 0 0 450\nctxt 5\n");
        let mut table = Table::default();
        let mut cpu = Cpu::new(100, &mut table);
        let mut files = host.files();
        assert_eq!(cpu.sample(0.0, &mut files, &mut table), None);
        host.proc(
            "stat",
            "cpu 150 0 30 1000 10 4 2 4 0 0\ncpu0 100 0 30 450 10 4 2 4\ncpu1 50 0 0 550\n\
             intr 99 0 1\nctxt 505\nprocs_running 3\n",
        );
        let work = cpu.sample(2.0, &mut files, &mut table).unwrap();
        assert_eq!(
            work,
            Work {
                busy_s: 0.86,
                interrupts_s: 0.06,
                steal_s: 0.04
            }
        );
        for (name, value) in [
            ("cpu_user_percent", Some(25.0)),
            ("cpu_idle_percent", Some(50.0)),
            ("steal_percent", Some(2.0)),
            ("cpu0_user_percent", Some(50.0)),
            ("cpu0_idle_percent", Some(0.0)),
            ("cpu0_steal_percent", Some(4.0)),
            ("cpu1_idle_percent", Some(100.0)),
            ("context_switches_s", Some(250.0)),
            ("interrupts_s", None),
            ("run_queue_tasks", Some(3.0)),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
    }

    /// The kernel's counters of idle and iowait may decrease by a tick.
    #[test]
    fn all_percentages_are_known_if_idle_and_iowait_decrease() {
        let host = host("cpu 100 0 0 900 50 0 0 0\ncpu0 100 0 0 900 50 0 0 0\n");
        let mut table = Table::default();
        let mut cpu = Cpu::new(100, &mut table);
        let mut files = host.files();
        cpu.sample(0.0, &mut files, &mut table);
        host.proc(
            "stat",
            "cpu 130 0 10 899 49 0 0 0\ncpu0 130 0 10 899 49 0 0 0\n",
        );
        let work = cpu.sample(1.0, &mut files, &mut table).unwrap();
        assert_eq!(work.busy_s, 0.4);
        for (name, value) in [
            ("cpu0_user_percent", Some(75.0)),
            ("cpu_system_percent", Some(25.0)),
            ("cpu_idle_percent", Some(0.0)),
            ("cpu0_iowait_percent", Some(0.0)),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
    }

    /// Core 1 goes offline and comes back with its counters at zero; core 2 appears.
    #[test]
    fn an_offline_core_and_a_new_core_have_no_percentages() {
        let host = host("cpu 1 0 0 1\ncpu0 1 0 0 1\ncpu1 9 0 0 9\n");
        let mut table = Table::default();
        let mut cpu = Cpu::new(100, &mut table);
        let mut files = host.files();
        for (at_s, stat, core1, core2) in [
            (0.0, "cpu0 1 0 0 1\ncpu1 9 0 0 9\n", None, None),
            (1.0, "cpu0 2 0 0 1\n", None, None),
            (2.0, "cpu0 3 0 0 1\ncpu1 0 0 0 1\n", None, None),
            (
                3.0,
                "cpu0 4 0 0 1\ncpu1 1 0 0 2\ncpu2 1 0 0 0\n",
                Some(50.0),
                None,
            ),
            (
                4.0,
                "cpu0 5 0 0 1\ncpu1 0 0 0 3\ncpu2 2 0 0 0\n",
                None,
                Some(100.0),
            ),
        ] {
            host.proc("stat", stat);
            cpu.sample(at_s, &mut files, &mut table);
            assert_eq!(host.cell(&table, "cpu1_user_percent"), core1, "{at_s}");
            if at_s >= 3.0 {
                assert_eq!(host.cell(&table, "cpu2_user_percent"), core2, "{at_s}");
            }
        }
        host.remove("stat");
        assert_eq!(cpu.sample(5.0, &mut files, &mut table), None);
        assert_eq!(host.cell(&table, "cpu0_user_percent"), None);
    }
}
