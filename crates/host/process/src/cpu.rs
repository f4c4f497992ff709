//! CPU time of foreign processes, interrupts, kernel threads and the hypervisor during a run.
//!
//! In: `/proc/stat`, `/proc/PID/stat` and the CPU time of the experiment's own processes. Out:
//! [`Used`] and [`Stolen`]. Kernels differ in how they account interrupts ([`Interrupts`]). If
//! interrupts are accounted separately, they must not count as foreign processes, and a share of
//! them is added to the processes of the run, whose traffic caused them. Otherwise they are part of
//! the time of the interrupted process, and only interrupts of idle cores are missing.

mod census;
mod stat;

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use crate::child::own_cpu_time;
use census::{Census, Worked};

pub use stat::{HostTime, Interrupts};

/// Default limit on foreign processes, as a share of the host's cores.
const DEFAULT_SHARE: f64 = 0.02;
/// Minimum of the default limit, in cores. It follows from the resolution: the kernel samples each
/// core once per tick, so on two cores that are half busy the CPU time of all processes has a
/// standard deviation of 0.07 cores in a second of 100 ticks.
const MIN_CORES: f64 = 0.12;

/// Default of `--max-foreign` in cores: 2 % of the host's cores, but at least 0.12. All cores
/// count, because foreign processes run on all of them.
#[must_use]
pub fn default_foreign_cores() -> f64 {
    default_for(stat::cpus())
}

fn default_for(cpus: usize) -> f64 {
    let cpus = u32::try_from(cpus).map_or(f64::from(u32::MAX), f64::from);
    (DEFAULT_SHARE * cpus).max(MIN_CORES)
}

/// An interval in which CPU time is measured.
#[derive(Debug)]
pub struct CpuWindow {
    census: Census,
    opened: Instant,
    host: HostTime,
    own: Duration,
}

/// CPU time spent in a [`CpuWindow`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    pub window_s: f64,
    /// CPU seconds of processes outside the experiment.
    pub foreign_s: f64,
    /// CPU seconds of interrupts, including the threads `ksoftirqd`, for any process.
    pub interrupts_s: f64,
    /// CPU seconds of all other kernel threads; `None` if they are invisible, as in a container.
    pub kernel_threads_s: Option<f64>,
    /// CPU seconds in which the host's CPUs were not idle, of all processes, interrupts and kernel
    /// threads together, without time that the hypervisor took.
    pub busy_s: f64,
    /// Seconds of interrupts per CPU second of processes, if accounted separately; else 0.
    interrupts_per_cpu_s: f64,
}

impl CpuWindow {
    /// Begins an interval at the current time.
    ///
    /// # Errors
    /// Fails if `/proc/stat` cannot be read.
    pub fn open() -> io::Result<Self> {
        // Reading all processes takes milliseconds and is outside of the interval.
        let census = Census::take();
        Ok(Self {
            census,
            opened: Instant::now(),
            host: HostTime::read()?,
            own: own_cpu_time()?,
        })
    }

    /// Closes the interval. `children_cpu_s` is the CPU time of the experiment's other processes.
    ///
    /// The resolution is a tick, 10 ms per CPU. Time stolen by the hypervisor counts as used by
    /// foreign processes.
    ///
    /// # Errors
    /// Fails if `/proc/stat` cannot be read.
    pub fn close(self, children_cpu_s: f64) -> io::Result<Used> {
        let own = own_cpu_time()?.saturating_sub(self.own);
        let host = HostTime::read()?;
        let window_s = self.opened.elapsed().as_secs_f64();
        let seen = Counters {
            cpus: stat::cpus(),
            interrupts: host.interrupts(),
            host: host.since(&self.host),
            ours_s: own.as_secs_f64() + children_cpu_s,
            worked: Census::take().since(&self.census),
        };
        Ok(seen.used(window_s))
    }
}

/// The kernel's counters for an interval.
#[derive(Debug, Clone, Copy)]
struct Counters {
    cpus: usize,
    interrupts: Interrupts,
    host: HostTime,
    /// CPU seconds of the experiment's processes.
    ours_s: f64,
    worked: Worked,
}

impl Counters {
    fn used(self, window_s: f64) -> Used {
        let Worked {
            softirqd_s,
            threads_s,
            sees_all,
            ..
        } = self.worked;
        let foreign_s = self.foreign_s().max(0.0);
        let ran_s = self.ours_s + foreign_s + threads_s;
        let interrupts_per_cpu_s = match self.interrupts {
            Interrupts::Apart if ran_s > 0.0 => self.host.interrupts_s() / ran_s,
            Interrupts::Apart | Interrupts::InProcesses => 0.0,
        };
        let interrupts_s = match self.interrupts {
            Interrupts::Apart => self.host.interrupts_s(),
            // The kernel's estimate may be less than the known time of ksoftirqd.
            Interrupts::InProcesses => self.host.interrupts_s().max(softirqd_s),
        };
        Used {
            window_s,
            foreign_s,
            interrupts_s,
            kernel_threads_s: sees_all.then_some(threads_s),
            busy_s: self.busy_s(window_s),
            interrupts_per_cpu_s,
        }
    }

    /// From the idle time, which has a finer resolution than the sampled time of processes.
    fn busy_s(self, window_s: f64) -> f64 {
        let HostTime {
            idle_s, stolen_s, ..
        } = self.host;
        let cpus = u32::try_from(self.cpus).map_or(0.0, f64::from);
        (cpus * window_s - idle_s - stolen_s).max(0.0)
    }

    fn foreign_s(self) -> f64 {
        let Self { host, worked, .. } = self;
        let without_interrupts = host.processes_s + host.stolen_s - self.ours_s - worked.threads_s;
        match self.interrupts {
            Interrupts::Apart => without_interrupts,
            Interrupts::InProcesses => {
                let outside_threads_s = (host.interrupts_s() - worked.softirqd_s).max(0.0);
                let most = without_interrupts + host.interrupts_s() - worked.softirqd_s;
                if !worked.sees_all {
                    return most;
                }
                // Interrupts during a process are in its CPU time, interrupts of an idle core are
                // in none. Only the sum over all processes shows the division. That sum may lack
                // processes that ended, so it only decides on the part that may be interrupts.
                let seen = worked.processes_s + host.stolen_s - self.ours_s;
                seen.max(most - outside_threads_s).min(most)
            }
        }
    }
}

impl Used {
    /// Adds the share of interrupts to the CPU time `cpu` of a process, if the kernel accounts
    /// interrupts separately.
    #[must_use]
    pub fn with_interrupts(&self, cpu: Duration) -> Duration {
        cpu.mul_f64(1.0 + self.interrupts_per_cpu_s)
    }

    /// CPU time of interrupts and kernel threads, as metrics of a run.
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let threads = self.kernel_threads_s;
        let threads = threads.map(|seconds| ("kernel_thread_cpu_s".to_owned(), seconds));
        std::iter::once(("interrupt_cpu_s".to_owned(), self.interrupts_s))
            .chain(threads)
            .collect()
    }
}

/// A sentence about the CPU time that this kernel does not attribute to processes, and advice.
#[must_use]
pub fn caveat() -> Option<[String; 2]> {
    let interrupts = HostTime::read().ok()?.interrupts();
    let sees_all = Census::take().since(&Census::default()).sees_all;
    Some(sentences(interrupts, sees_all))
}

fn sentences(interrupts: Interrupts, sees_all: bool) -> [String; 2] {
    let mut text = match interrupts {
        Interrupts::Apart => {
            "This kernel accounts interrupts separately from processes and does not record which \
             process an interrupt served. CPU time per operation contains a share of them, in \
             proportion to the CPU time of each process."
        }
        Interrupts::InProcesses => {
            "This kernel adds the time of an interrupt to the process that was interrupted. CPU \
             time per operation contains the interrupts of the server and the client, whichever \
             process they served, and none of the interrupts of an idle core."
        }
    }
    .to_owned();
    text.push_str(if sees_all {
        " The CPU time of kernel threads, which write to disks for example, is in no process."
    } else {
        " Kernel threads, and processes outside of this container, are invisible here; they count \
         as other processes."
    });
    let advice = "See interrupt_cpu_s and kernel_thread_cpu_s of each run in result.json.";
    [text, advice.to_owned()]
}

/// An interval in which the CPU time taken by the hypervisor is measured.
#[derive(Debug)]
pub struct StealWindow {
    opened: Instant,
    stolen_s: f64,
}

/// CPU time that the hypervisor took in a [`StealWindow`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stolen {
    /// CPU seconds of all CPUs together.
    pub cpu_s: f64,
    /// Length of the interval in seconds.
    pub window_s: f64,
}

impl StealWindow {
    /// Begins an interval at the current time.
    ///
    /// # Errors
    /// Fails if `/proc/stat` cannot be read.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            opened: Instant::now(),
            stolen_s: HostTime::read()?.stolen_s,
        })
    }

    /// The CPU time taken since the interval was opened. The resolution is a tick, 10 ms per CPU.
    ///
    /// # Errors
    /// Fails if `/proc/stat` cannot be read.
    pub fn close(&self) -> io::Result<Stolen> {
        Ok(Stolen {
            cpu_s: (HostTime::read()?.stolen_s - self.stolen_s).max(0.0),
            window_s: self.opened.elapsed().as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two seconds of two busy cores: server and client used 2.5 s, a foreign process 0.25 s.
    const APART: Counters = Counters {
        cpus: 2,
        interrupts: Interrupts::Apart,
        host: HostTime {
            processes_s: 2.875,
            hard_interrupts_s: 0.125,
            soft_interrupts_s: 0.625,
            stolen_s: 0.0,
            idle_s: 0.375,
        },
        ours_s: 2.5,
        worked: Worked {
            softirqd_s: 0.25,
            threads_s: 0.125,
            processes_s: 2.75,
            sees_all: true,
        },
    };

    /// As [`APART`], with 0.25 s of soft interrupts in the experiment's processes and 0.125 s on an
    /// idle core.
    const IN_PROCESSES: Counters = Counters {
        cpus: 2,
        interrupts: Interrupts::InProcesses,
        host: HostTime {
            processes_s: 2.875,
            hard_interrupts_s: 0.0,
            soft_interrupts_s: 0.625,
            stolen_s: 0.0,
            idle_s: 0.5,
        },
        ours_s: 2.75,
        worked: Worked {
            softirqd_s: 0.25,
            threads_s: 0.125,
            processes_s: 3.0,
            sees_all: true,
        },
    };

    #[test]
    fn interrupts_and_kernel_threads_are_not_foreign_processes() {
        for seen in [APART, IN_PROCESSES] {
            assert_eq!(seen.used(2.0).foreign_s, 0.25, "{:?}", seen.interrupts);
        }
    }

    #[test]
    fn a_process_that_ended_unseen_is_masked_by_interrupts_at_most() {
        let mut lost = IN_PROCESSES;
        lost.worked.processes_s = 1.0;
        // 0.375 s of soft interrupts ran outside of ksoftirqd.
        lost.host.processes_s = 3.875;
        assert_eq!(lost.used(2.0).foreign_s, 1.0);
        // Counters in ticks differ from those of processes; the result is at most all of the used
        // time.
        lost.worked.processes_s = 9.0;
        assert_eq!(lost.used(2.0).foreign_s, 1.375);
    }

    #[test]
    fn invisible_kernel_threads_count_as_foreign_processes() {
        let mut container = IN_PROCESSES;
        container.worked = Worked {
            processes_s: 2.75,
            ..Worked::default()
        };
        assert_eq!(container.used(2.0).foreign_s, 0.75);
        assert_eq!(container.used(2.0).kernel_threads_s, None);
        let mut container = APART;
        container.worked = Worked::default();
        assert_eq!(container.used(2.0).foreign_s, 0.375);
    }

    #[test]
    fn stolen_time_counts_as_foreign() {
        for mut seen in [APART, IN_PROCESSES] {
            seen.host.stolen_s = 0.5;
            assert_eq!(seen.used(2.0).foreign_s, 0.75, "{:?}", seen.interrupts);
        }
    }

    #[test]
    fn the_host_is_busy_when_it_is_neither_idle_nor_stopped() {
        assert_eq!(APART.used(2.0).busy_s, 3.625);
        let mut stolen = APART;
        stolen.host.stolen_s = 0.5;
        assert_eq!(stolen.used(2.0).busy_s, 3.125);
        // The counters' resolution is a tick.
        stolen.host.idle_s = 4.0;
        assert_eq!(stolen.used(2.0).busy_s, 0.0);
    }

    #[test]
    fn separate_interrupts_are_distributed_over_all_that_ran() {
        // 0.75 s of interrupts for 2.5 s of the experiment, 0.25 s of others and 0.125 s of
        // threads.
        let used = APART.used(2.0);
        let server = used.with_interrupts(Duration::from_millis(1150));
        assert_eq!(server, Duration::from_millis(1450));
        let contained = IN_PROCESSES.used(2.0);
        let server = Duration::from_millis(1150);
        assert_eq!(contained.with_interrupts(server), server);
    }

    #[test]
    fn interrupts_and_kernel_threads_are_metrics_of_a_run() {
        let metrics = APART.used(2.0).metrics();
        let wanted = [("interrupt_cpu_s", 0.75), ("kernel_thread_cpu_s", 0.125)];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(metrics, BTreeMap::from(wanted));
    }

    #[test]
    fn the_default_limit_grows_with_the_host() {
        for (cpus, wanted) in [
            (0, 0.12),
            (1, 0.12),
            (2, 0.12),
            (6, 0.12),
            (8, 0.16),
            (128, 2.56),
        ] {
            assert!((default_for(cpus) - wanted).abs() < 1e-9, "{cpus} CPUs");
        }
    }

    #[test]
    fn the_caveat_names_what_is_not_separated() {
        let apart = sentences(Interrupts::Apart, true).concat();
        assert!(
            apart.contains("in proportion to the CPU time of each process"),
            "{apart}"
        );
        let contained = sentences(Interrupts::InProcesses, false).concat();
        assert!(
            contained.contains("none of the interrupts of an idle core"),
            "{contained}"
        );
        assert!(
            contained.contains("count as other processes"),
            "{contained}"
        );
    }
}
