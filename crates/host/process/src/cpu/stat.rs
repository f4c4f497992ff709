//! Reads the host's CPU time by kind from `/proc/stat` (`man 5 proc`).

use std::fs;
use std::io;

/// Minimum share of `irq` in the busy time of a kernel that accounts interrupts separately. Each
/// tick of a busy core is an interrupt of about a microsecond, 100 to 1000 times per second, so the
/// share is 1/10,000 or more. A kernel without this accounting only samples at each tick, within
/// the tick's own interrupt, so `irq` stays 0. A kernel that disabled the accounting soon after
/// boot, because its clock was unreliable, keeps the small `irq` that it had.
const MIN_SHARE: f64 = 1e-5;

/// CPU seconds since boot, of all CPUs of the host together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostTime {
    /// Columns `user`, `nice` and `system`; `user` includes guests.
    pub processes_s: f64,
    /// Column `irq`.
    pub hard_interrupts_s: f64,
    /// Column `softirq`, including the threads `ksoftirqd`.
    pub soft_interrupts_s: f64,
    /// Column `steal`: time that the hypervisor gave to other guests.
    pub stolen_s: f64,
    /// Columns `idle` and `iowait`. A kernel without ticks on idle CPUs measures them, while it
    /// samples the others at each tick (`get_idle_time` in `fs/proc/stat.c`).
    pub idle_s: f64,
}

/// The way in which a kernel accounts the time of interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupts {
    /// Separately, in `irq` and `softirq`, with nanosecond resolution
    /// (`CONFIG_IRQ_TIME_ACCOUNTING`).
    Apart,
    /// As time of the interrupted process. `irq` and `softirq` are an estimate of the part of
    /// interrupts, from a sample at each tick.
    InProcesses,
}

impl HostTime {
    /// Reads the CPU time so far. The resolution is a tick, 10 ms per CPU.
    ///
    /// # Errors
    /// Fails if `/proc/stat` cannot be read or parsed.
    pub fn read() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        Self::parse(&stat).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "/proc/stat: the line of all CPUs is missing",
            )
        })
    }

    /// `None` for kernels without the column `steal`.
    pub(super) fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<f64> = fields
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields.as_slice() else {
            return None;
        };
        let seconds = |ticks: f64| ticks / ticks_per_second();
        Some(Self {
            processes_s: seconds(user + nice + system),
            hard_interrupts_s: seconds(*irq),
            soft_interrupts_s: seconds(*softirq),
            stolen_s: seconds(*steal),
            idle_s: seconds(idle + iowait),
        })
    }

    /// Hard and soft interrupts together.
    #[must_use]
    pub fn interrupts_s(&self) -> f64 {
        self.hard_interrupts_s + self.soft_interrupts_s
    }

    /// Time in which the CPUs were neither idle nor waiting for disks.
    #[must_use]
    pub fn busy_s(&self) -> f64 {
        self.processes_s + self.interrupts_s() + self.stolen_s
    }

    /// The accounting of interrupts by this kernel, inferred from its counters since boot.
    #[must_use]
    pub fn interrupts(&self) -> Interrupts {
        let spent_s = self.processes_s + self.interrupts_s();
        if self.hard_interrupts_s > 0.0 && self.hard_interrupts_s >= spent_s * MIN_SHARE {
            Interrupts::Apart
        } else {
            Interrupts::InProcesses
        }
    }

    /// The difference from `earlier`. Counters that decreased count as unchanged.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let added = |of: fn(&Self) -> f64| (of(self) - of(earlier)).max(0.0);
        Self {
            processes_s: added(|time| time.processes_s),
            hard_interrupts_s: added(|time| time.hard_interrupts_s),
            soft_interrupts_s: added(|time| time.soft_interrupts_s),
            stolen_s: added(|time| time.stolen_s),
            idle_s: added(|time| time.idle_s),
        }
    }

    /// Seconds of interrupts per CPU second of processes since `earlier`, if the kernel accounts
    /// interrupts separately; else 0.
    #[must_use]
    pub fn interrupts_beside_processes_since(&self, earlier: &Self) -> f64 {
        let added = self.since(earlier);
        match self.interrupts() {
            Interrupts::Apart if added.processes_s > 0.0 => {
                added.interrupts_s() / added.processes_s
            }
            Interrupts::Apart | Interrupts::InProcesses => 0.0,
        }
    }
}

/// Number of online CPUs of the host, whatever the affinity of this process.
pub(super) fn cpus() -> usize {
    fs::read_to_string("/proc/stat").map_or(0, |stat| cpus_in(&stat))
}

fn cpus_in(stat: &str) -> usize {
    let number = |line: &str| {
        let rest = line.strip_prefix("cpu")?;
        rest.split_once(' ')?.0.parse::<usize>().ok()
    };
    stat.lines().filter_map(number).count()
}

pub(super) fn ticks_per_second() -> f64 {
    let ticks = rustix::param::clock_ticks_per_second();
    u32::try_from(ticks).map_or(100.0, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_disks_are_not_busy() {
        let stat = "cpu  100 200 400 800 1600 3200 6400 12800 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n";
        let ticks = ticks_per_second();
        let wanted = HostTime {
            processes_s: 700.0 / ticks,
            hard_interrupts_s: 3200.0 / ticks,
            soft_interrupts_s: 6400.0 / ticks,
            stolen_s: 12800.0 / ticks,
            idle_s: 2400.0 / ticks,
        };
        assert_eq!(HostTime::parse(stat), Some(wanted));
        assert!((wanted.busy_s() * ticks - 23_100.0).abs() < 1e-6);
        assert_eq!(HostTime::parse("intr 1"), None);
        let without_steal = HostTime::parse("cpu 1 2 3 4 5 6 7\n");
        assert_eq!(without_steal, None);
    }

    /// The first line is from a real machine, the others are derived from it.
    const KERNELS: [(&str, &str, Interrupts); 3] = [
        (
            "6.18 in a virtual machine, without it",
            "cpu  1801253 936088 1007408 1934186 38874 0 71497 7619 0 0",
            Interrupts::InProcesses,
        ),
        (
            "the same after a minute",
            "cpu  1842 0 913 5200 41 0 22 3 0 0",
            Interrupts::InProcesses,
        ),
        (
            "with it, given up after two seconds and two days ago",
            "cpu  9482011 3 2250148 21400117 70012 1 190022 0 0 0",
            Interrupts::InProcesses,
        ),
    ];

    #[test]
    fn the_accounting_of_interrupts_is_inferred_from_counters() {
        for (kernel, stat, wanted) in KERNELS {
            let time = HostTime::parse(stat).unwrap();
            assert_eq!(time.interrupts(), wanted, "{kernel}");
        }
        // 250 ticks per second on a busy core, half a microsecond each.
        let least = HostTime {
            processes_s: 80_000.0,
            hard_interrupts_s: 10.0,
            ..HostTime::default()
        };
        assert_eq!(least.interrupts(), Interrupts::Apart);
    }

    #[test]
    fn only_separate_interrupts_are_added_to_processes() {
        let from = HostTime::default();
        let apart = HostTime {
            processes_s: 4.0,
            hard_interrupts_s: 0.25,
            soft_interrupts_s: 0.75,
            stolen_s: 9.0,
            idle_s: 0.0,
        };
        assert_eq!(apart.interrupts_beside_processes_since(&from), 0.25);
        let contained = HostTime {
            hard_interrupts_s: 0.0,
            ..apart
        };
        assert_eq!(contained.interrupts_beside_processes_since(&from), 0.0);
        assert_eq!(apart.interrupts_beside_processes_since(&apart), 0.0);
    }

    #[test]
    fn every_cpu_of_the_host_has_a_line() {
        let stat = "cpu  1 2\ncpu0 1 2\ncpu1 1 2\ncpu12 1 2\nintr 1\nctxt 7\n";
        assert_eq!(cpus_in(stat), 3);
    }
}
