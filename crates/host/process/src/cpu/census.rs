//! CPU time of all processes and kernel threads in `/proc`, by two reads and their difference.

use std::collections::BTreeMap;

use super::stat::ticks_per_second;
use crate::proc::{self, Stat};

/// The result of one read of `/proc`. Times are in ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// Kernel threads by PID and start time.
    threads: BTreeMap<(u32, u64), Thread>,
    /// The sum over all living processes and their children that ended and were waited for. A
    /// process that ends stays in this sum.
    processes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    ticks: u64,
    /// `ksoftirqd` handles soft interrupts that would otherwise delay processes.
    is_softirqd: bool,
}

/// CPU time used between two reads.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Worked {
    pub(super) softirqd_s: f64,
    /// CPU seconds of all other kernel threads.
    pub(super) threads_s: f64,
    /// CPU seconds of processes. Too low if a process ended whose parent did not wait for it.
    pub(super) processes_s: f64,
    /// Whether kernel threads are visible, and so all processes of the host. A container shows only
    /// its own processes.
    pub(super) sees_all: bool,
}

impl Census {
    /// Reads `/proc`; processes that end during the read are skipped.
    pub(super) fn take() -> Self {
        let mut census = Self::default();
        for pid in proc::pids().unwrap_or_default() {
            if let Ok(stat) = Stat::of(pid) {
                census.add(&stat);
            }
        }
        census
    }

    fn add(&mut self, stat: &Stat) {
        if stat.is_kernel_thread {
            let thread = Thread {
                ticks: stat.own_ticks,
                is_softirqd: stat.name.starts_with("ksoftirqd/"),
            };
            self.threads.insert((stat.pid, stat.start_ticks), thread);
        } else {
            self.processes += stat.own_ticks + stat.children_ticks;
        }
    }

    /// CPU time used since `earlier`. Kernel threads that have ended are left out.
    pub(super) fn since(&self, earlier: &Self) -> Worked {
        let mut worked = Worked {
            processes_s: seconds(self.processes) - seconds(earlier.processes),
            sees_all: !self.threads.is_empty(),
            ..Worked::default()
        };
        for (key, thread) in &self.threads {
            let before = earlier.threads.get(key).map_or(0, |thread| thread.ticks);
            let used_s = seconds(thread.ticks.saturating_sub(before));
            if thread.is_softirqd {
                worked.softirqd_s += used_s;
            } else {
                worked.threads_s += used_s;
            }
        }
        worked
    }
}

fn seconds(ticks: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "ticks stay far below 2^53")]
    let ticks = ticks as f64;
    ticks / ticks_per_second()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::child::own_cpu_time;

    /// Lines of Linux 6.18, cut after the start time.
    const BEFORE: [&str; 5] = [
        "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 4 0 0 20 0 1 0 2 0 0",
        "15 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 700 0 0 20 0 1 0 3 0 0",
        "91 (kworker/u8:1-writeback) I 2 0 0 0 -1 69238880 0 0 0 0 0 300 0 0 20 0 1 0 9 0 0",
        "400 (mysqld) S 1 400 400 0 -1 4194560 9 8 7 6 5000 1000 10 20 20 0 41 0 800 0 0",
        "500 (sh) S 1 500 500 0 -1 4194304 9 8 7 6 1 1 100 200 20 0 1 0 900 0 0",
    ];

    fn census(lines: &[&str]) -> Census {
        let mut census = Census::default();
        for line in lines {
            census.add(&Stat::parse(line).unwrap());
        }
        census
    }

    fn after(changes: &[(&str, &str)]) -> Census {
        let changed = BEFORE.map(|line| {
            changes.iter().fold(line.to_owned(), |line, (from, to)| {
                if line.contains(from) {
                    line.replacen(from, to, 1)
                } else {
                    line
                }
            })
        });
        census(&changed.each_ref().map(String::as_str))
    }

    #[test]
    fn soft_interrupts_kernel_threads_and_processes_are_distinguished() {
        let later = after(&[
            (" 0 700 ", " 0 725 "),
            (" 0 300 ", " 0 350 "),
            (" 5000 1000 ", " 5100 1030 "),
        ]);
        let worked = later.since(&census(&BEFORE));
        let ticks = ticks_per_second();
        assert_eq!(worked.softirqd_s, 25.0 / ticks);
        assert_eq!(worked.threads_s, 50.0 / ticks);
        assert!(
            (worked.processes_s - 130.0 / ticks).abs() < 1e-9,
            "{worked:?}"
        );
        assert!(worked.sees_all);
    }

    #[test]
    fn a_process_is_not_a_kernel_thread_by_its_name() {
        let line = "7 (ksoftirqd/0) S 1 7 7 0 -1 4194304 0 0 0 0 3 4 1 2 20 0 1 0 8";
        let worked = census(&[line]).since(&Census::default());
        assert_eq!(worked.softirqd_s, 0.0);
        assert_eq!(worked.processes_s, 10.0 / ticks_per_second());
    }

    #[test]
    fn an_ended_child_stays_in_the_sum_and_a_reused_pid_is_a_new_thread() {
        let child = "501 (burn) R 500 500 500 0 -1 4194304 0 0 0 0 30 10 0 0 20 0 1 0 950 0 0";
        let before = census(&[&BEFORE[..], &[child]].concat());
        // The shell waited for its child, whose 40 ticks had become 50; another thread has the PID
        // of the worker.
        let later = after(&[
            (" 100 200 ", " 135 215 "),
            (" 0 300 0 0 20 0 1 0 9 ", " 0 8 0 0 20 0 1 0 970 "),
        ]);
        let worked = later.since(&before);
        let ticks = ticks_per_second();
        assert!(
            (worked.processes_s - 10.0 / ticks).abs() < 1e-9,
            "{worked:?}"
        );
        assert_eq!(worked.threads_s, 8.0 / ticks);
    }

    #[test]
    fn a_container_shows_no_kernel_thread() {
        let own = census(&BEFORE[3..]);
        assert!(!own.since(&Census::default()).sees_all);
    }

    #[test]
    fn this_process_is_in_the_sum() {
        while own_cpu_time().unwrap() < Duration::from_millis(100) {}
        let own = Stat::of(std::process::id()).unwrap();
        assert!(!own.is_kernel_thread && own.own_ticks > 0);
        assert!(Census::take().processes >= own.own_ticks);
    }
}
