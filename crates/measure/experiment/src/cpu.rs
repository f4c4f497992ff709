//! How much CPU time was spent while a run was measured: by processes that are not part of the
//! experiment, by interrupts, by kernel threads, and by the hypervisor's other guests.
//!
//! Kernels differ in where they keep the time of interrupts ([`Interrupts`]). Some keep it apart,
//! in the time of no process. There it must not count as another process's, and a share of it is
//! added to the processes of the run, whose traffic caused it. Others keep it in the time of the
//! process that was interrupted. There only the interrupts of an idle core are missing.

mod census;
mod stat;

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use crate::process::own_cpu_time;
use crate::result::Warning;
use census::{Census, Worked};

pub use stat::{HostTime, Interrupts};

/// Default limit on other processes, as a share of the host's cores.
const USUAL_SHARE: f64 = 0.02;
/// The least limit, in cores. It is not about other processes but about what can be told: the
/// kernel looks at each core once in a tick, so on two cores that are half busy the time that all
/// processes used is known to 0.07 cores (one standard deviation, in a second of 100 ticks).
const LEAST_CORES: f64 = 0.12;

/// Default of `--max-foreign`, in cores: 2 % of those of the host, but at least 0.12. All CPUs
/// of the host count, as other processes run on all of them.
#[must_use]
pub fn usual_foreign_cores() -> f64 {
    usual_of(stat::cpus())
}

fn usual_of(cpus: usize) -> f64 {
    let cpus = u32::try_from(cpus).map_or(f64::from(u32::MAX), f64::from);
    (USUAL_SHARE * cpus).max(LEAST_CORES)
}

/// A stretch of time in which we know what our own processes used.
#[derive(Debug)]
pub struct CpuWindow {
    census: Census,
    opened: Instant,
    host: HostTime,
    own: Duration,
}

/// What was spent in a [`CpuWindow`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// Wall-clock seconds.
    pub window_s: f64,
    /// CPU seconds of processes that are not part of the experiment.
    pub foreign_s: f64,
    /// CPU seconds of interrupts, those of the threads `ksoftirqd` included, whomever they served.
    pub interrupts_s: f64,
    /// CPU seconds of all other kernel threads; `None` where they cannot be seen.
    pub kernel_threads_s: Option<f64>,
    /// Seconds of interrupts for each second of a process, which the latter does not contain.
    beside: f64,
}

impl CpuWindow {
    /// Starts to watch.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn open() -> io::Result<Self> {
        // The look at all processes takes milliseconds: it lies outside of the window.
        let census = Census::take();
        Ok(Self {
            census,
            opened: Instant::now(),
            host: HostTime::read()?,
            own: own_cpu_time()?,
        })
    }

    /// What was spent until now; `children_cpu_s` is what the experiment's other processes used.
    ///
    /// The resolution is a tick, 10 ms on each CPU. Time stolen by the hypervisor counts as used by
    /// other processes.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn close(self, children_cpu_s: f64) -> io::Result<Used> {
        let own = own_cpu_time()?.saturating_sub(self.own);
        let host = HostTime::read()?;
        let window_s = self.opened.elapsed().as_secs_f64();
        let seen = Seen {
            interrupts: host.interrupts(),
            host: host.since(&self.host),
            ours_s: own.as_secs_f64() + children_cpu_s,
            worked: Census::take().since(&self.census),
        };
        Ok(seen.used(window_s))
    }
}

/// What the kernel told of a window.
#[derive(Debug, Clone, Copy)]
struct Seen {
    interrupts: Interrupts,
    host: HostTime,
    /// Of the experiment's processes.
    ours_s: f64,
    worked: Worked,
}

impl Seen {
    fn used(self, window_s: f64) -> Used {
        let Worked {
            softirqd_s,
            threads_s,
            sees_all,
            ..
        } = self.worked;
        let foreign_s = self.foreign_s().max(0.0);
        let ran_s = self.ours_s + foreign_s + threads_s;
        let beside = match self.interrupts {
            Interrupts::Apart if ran_s > 0.0 => self.host.interrupts_s() / ran_s,
            Interrupts::Apart | Interrupts::InProcesses => 0.0,
        };
        let interrupts_s = match self.interrupts {
            Interrupts::Apart => self.host.interrupts_s(),
            // An estimate, which may be less than what is known.
            Interrupts::InProcesses => self.host.interrupts_s().max(softirqd_s),
        };
        Used {
            window_s,
            foreign_s,
            interrupts_s,
            kernel_threads_s: sees_all.then_some(threads_s),
            beside,
        }
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
                // Interrupts of a process are in its time, interrupts of an idle core are nowhere.
                // How much is which, only the sum over all processes tells. It may miss some that
                // ended, so it decides no more than what may be interrupts.
                let seen = worked.processes_s + host.stolen_s - self.ours_s;
                seen.max(most - outside_threads_s).min(most)
            }
        }
    }
}

impl Used {
    /// What `cpu` of a process of this window comes to with its share of the interrupts, where its
    /// time does not contain those that it had.
    #[must_use]
    pub fn with_interrupts(&self, cpu: Duration) -> Duration {
        cpu.mul_f64(1.0 + self.beside)
    }

    /// What is neither the experiment's nor another process's, as figures of a run.
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let threads = self.kernel_threads_s;
        let threads = threads.map(|seconds| ("kernel_thread_cpu_s".to_owned(), seconds));
        std::iter::once(("interrupt_cpu_s".to_owned(), self.interrupts_s))
            .chain(threads)
            .collect()
    }
}

/// What cannot be told apart on this host.
#[must_use]
pub fn caveat() -> Option<Warning> {
    let interrupts = HostTime::read().ok()?.interrupts();
    let sees_all = Census::take().since(&Census::default()).sees_all;
    let [text, advice] = words(interrupts, sees_all);
    Some(Warning::caveat(&text, &advice))
}

fn words(interrupts: Interrupts, sees_all: bool) -> [String; 2] {
    let mut text = match interrupts {
        Interrupts::Apart => {
            "This kernel keeps the time of interrupts apart from processes, and does not tell \
             which process an interrupt served. CPU time per operation contains a share of them, \
             in proportion to the CPU time of each process."
        }
        Interrupts::InProcesses => {
            "This kernel keeps the time of an interrupt in the process that it interrupts: CPU \
             time per operation contains those that hit the server or the client, whichever \
             process they served, and none of those that hit an idle core."
        }
    }
    .to_owned();
    text.push_str(if sees_all {
        " The time of kernel threads, which write to disks for example, is in no process's."
    } else {
        " Kernel threads, and processes outside of this container, cannot be seen from here: they \
         count as other processes."
    });
    let advice =
        "A run's interrupt_cpu_s and kernel_thread_cpu_s in result.json say how much it was.";
    [text, advice.to_owned()]
}

/// A stretch of time in which the hypervisor may have given our CPUs to others.
#[derive(Debug)]
pub struct StealWindow {
    opened: Instant,
    stolen_s: f64,
}

/// What was taken away in a [`StealWindow`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stolen {
    /// CPU seconds, of all CPUs together.
    pub cpu_s: f64,
    /// Wall-clock seconds in which they were counted.
    pub window_s: f64,
}

impl StealWindow {
    /// Starts to watch.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            opened: Instant::now(),
            stolen_s: HostTime::read()?.stolen_s,
        })
    }

    /// What was taken since. The resolution is a tick, 10 ms on each CPU.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn stolen(&self) -> io::Result<Stolen> {
        Ok(Stolen {
            cpu_s: (HostTime::read()?.stolen_s - self.stolen_s).max(0.0),
            window_s: self.opened.elapsed().as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two seconds of two busy cores: server and client used 2.5 s, another process 0.25 s.
    const APART: Seen = Seen {
        interrupts: Interrupts::Apart,
        host: HostTime {
            processes_s: 2.875,
            hard_interrupts_s: 0.125,
            soft_interrupts_s: 0.625,
            stolen_s: 0.0,
        },
        ours_s: 2.5,
        worked: Worked {
            softirqd_s: 0.25,
            threads_s: 0.125,
            processes_s: 2.75,
            sees_all: true,
        },
    };

    /// The same where 0.25 s of soft interrupts hit our processes and 0.125 s an idle core.
    const IN_PROCESSES: Seen = Seen {
        interrupts: Interrupts::InProcesses,
        host: HostTime {
            processes_s: 2.875,
            hard_interrupts_s: 0.0,
            soft_interrupts_s: 0.625,
            stolen_s: 0.0,
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
    fn neither_interrupts_nor_kernel_threads_are_other_processes() {
        for seen in [APART, IN_PROCESSES] {
            assert_eq!(seen.used(2.0).foreign_s, 0.25, "{:?}", seen.interrupts);
        }
    }

    #[test]
    fn a_process_that_ended_unseen_hides_behind_interrupts_only() {
        let mut lost = IN_PROCESSES;
        lost.worked.processes_s = 1.0;
        // 0.375 s of soft interrupts were outside of ksoftirqd.
        lost.host.processes_s = 3.875;
        assert_eq!(lost.used(2.0).foreign_s, 1.0);
        // Counters of ticks differ from those of processes: no more than all that was used.
        lost.worked.processes_s = 9.0;
        assert_eq!(lost.used(2.0).foreign_s, 1.375);
    }

    #[test]
    fn what_cannot_be_seen_counts_as_other_processes() {
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
    fn stolen_time_counts_as_before() {
        for mut seen in [APART, IN_PROCESSES] {
            seen.host.stolen_s = 0.5;
            assert_eq!(seen.used(2.0).foreign_s, 0.75, "{:?}", seen.interrupts);
        }
    }

    #[test]
    fn interrupts_that_are_kept_apart_are_shared_among_all_that_ran() {
        // 0.75 s of interrupts beside 2.5 s of ours, 0.25 s of others and 0.125 s of threads.
        let used = APART.used(2.0);
        let server = used.with_interrupts(Duration::from_millis(1150));
        assert_eq!(server, Duration::from_millis(1450));
        let contained = IN_PROCESSES.used(2.0);
        let server = Duration::from_millis(1150);
        assert_eq!(contained.with_interrupts(server), server);
    }

    #[test]
    fn a_run_keeps_what_served_nobody_in_particular() {
        let metrics = APART.used(2.0).metrics();
        let wanted = [("interrupt_cpu_s", 0.75), ("kernel_thread_cpu_s", 0.125)];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(metrics, BTreeMap::from(wanted));
    }

    #[test]
    fn the_usual_limit_grows_with_the_host() {
        for (cpus, wanted) in [
            (0, 0.12),
            (1, 0.12),
            (2, 0.12),
            (6, 0.12),
            (8, 0.16),
            (128, 2.56),
        ] {
            assert!((usual_of(cpus) - wanted).abs() < 1e-9, "{cpus} CPUs");
        }
    }

    #[test]
    fn a_report_says_what_was_not_separated() {
        let apart = words(Interrupts::Apart, true).concat();
        assert!(
            apart.contains("in proportion to the CPU time of each process"),
            "{apart}"
        );
        let contained = words(Interrupts::InProcesses, false).concat();
        assert!(
            contained.contains("none of those that hit an idle core"),
            "{contained}"
        );
        assert!(
            contained.contains("count as other processes"),
            "{contained}"
        );
    }
}
