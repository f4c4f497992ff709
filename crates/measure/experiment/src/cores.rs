//! Where server, client and hogs run, and how much CPU strangers took meanwhile.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::thread::sched_getaffinity;

use crate::process::own_cpu_time;

/// Highest CPU number that we look for.
const MAX_CPU: usize = 1024;

/// Which cores the two sides of a workload share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Server and client on the same core.
    OneCore,
    /// The server on one core, the client on another.
    TwoCores,
    /// Wherever the scheduler puts them.
    Unpinned,
}

impl Placement {
    /// Every placement, in the order of reports.
    pub const ALL: [Self; 3] = [Self::OneCore, Self::TwoCores, Self::Unpinned];

    /// For people: `one core`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneCore => "one core",
            Self::TwoCores => "two cores",
            Self::Unpinned => "unpinned",
        }
    }

    /// For identifiers: `one-core`.
    #[must_use]
    pub fn slug(self) -> String {
        self.name().replace(' ', "-")
    }
}

/// Which of the two cores a busy process of ours occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hog {
    /// Neither.
    None,
    /// The first core: the server's.
    First,
    /// The second core: the client's when there are two.
    Second,
    /// Both.
    Both,
}

impl Hog {
    /// As on the command line: `none`, `0`, `1`, `both`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "0",
            Self::Second => "1",
            Self::Both => "both",
        }
    }
}

/// The two cores of an experiment, chosen among those that we may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// The server's core.
    pub first: usize,
    /// The client's, not a hardware thread of the first where there is a choice.
    pub second: Option<usize>,
    /// CPUs that we may use.
    pub allowed: Vec<usize>,
}

impl Cores {
    /// Chooses the first two that this process may run on.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn choose() -> io::Result<Self> {
        let mask = sched_getaffinity(None)?;
        let allowed: Vec<usize> = (0..MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
        let first = *allowed.first().ok_or(io::ErrorKind::NotFound)?;
        let siblings = siblings_of(first);
        let others = || allowed.iter().copied().filter(|&cpu| cpu != first);
        let second = others()
            .find(|cpu| !siblings.contains(cpu))
            .or_else(|| others().next());
        Ok(Self {
            first,
            second,
            allowed,
        })
    }

    /// The CPUs of server and client; empty means any. `None` when there are too few.
    #[must_use]
    pub fn of(&self, placement: Placement) -> Option<[Vec<usize>; 2]> {
        match placement {
            Placement::OneCore => Some([vec![self.first], vec![self.first]]),
            Placement::TwoCores => Some([vec![self.first], vec![self.second?]]),
            Placement::Unpinned => Some([vec![], vec![]]),
        }
    }

    /// The cores on which hogs run; `None` when there are too few.
    #[must_use]
    pub fn hogged(&self, hog: Hog) -> Option<Vec<usize>> {
        match hog {
            Hog::None => Some(vec![]),
            Hog::First => Some(vec![self.first]),
            Hog::Second => Some(vec![self.second?]),
            Hog::Both => Some(vec![self.first, self.second?]),
        }
    }
}

/// Hardware threads of one core; empty where the kernel does not say.
fn siblings_of(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    fs::read_to_string(path)
        .map(|list| cpu_list(&list))
        .unwrap_or_default()
}

/// Reads a kernel CPU list such as `0-1,4`; what is no number is left out.
fn cpu_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse().ok()?..=to.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// A stretch of time in which we know what our own processes used.
#[derive(Debug)]
pub struct CpuWindow {
    opened: Instant,
    busy_s: f64,
    own: Duration,
}

impl CpuWindow {
    /// Starts to watch.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            opened: Instant::now(),
            busy_s: busy_s()?,
            own: own_cpu_time()?,
        })
    }

    /// CPU seconds of everyone but us and `children_cpu_s`, never below zero.
    ///
    /// The resolution is a tick, 10 ms on each CPU. Time stolen by the hypervisor counts.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn foreign_cpu_s(&self, children_cpu_s: f64) -> io::Result<f64> {
        let own = own_cpu_time()?.saturating_sub(self.own);
        Ok((busy_s()? - self.busy_s - own.as_secs_f64() - children_cpu_s).max(0.0))
    }

    /// Since it was opened.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.opened.elapsed()
    }
}

fn busy_s() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    busy_ticks(&stat)
        .map(|ticks| ticks / ticks_per_second())
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "/proc/stat: the line of all CPUs is missing",
            )
        })
}

/// user, nice, system, irq, softirq and steal of all CPUs together; idle and iowait left out.
fn busy_ticks(stat: &str) -> Option<f64> {
    let fields = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<f64> = fields
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    (fields.len() >= 8).then(|| [0, 1, 2, 5, 6, 7].iter().map(|&i| fields[i]).sum())
}

fn ticks_per_second() -> f64 {
    let ticks = rustix::param::clock_ticks_per_second();
    u32::try_from(ticks).map_or(100.0, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpu_list("7\n"), [7]);
        assert_eq!(cpu_list("\n"), Vec::<usize>::new());
    }

    #[test]
    fn idle_and_waiting_for_disks_are_not_busy() {
        let stat = "cpu  1 2 4 8 16 32 64 128 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n";
        assert_eq!(
            busy_ticks(stat),
            Some(1.0 + 2.0 + 4.0 + 32.0 + 64.0 + 128.0)
        );
        assert_eq!(busy_ticks("intr 1"), None);
    }

    #[test]
    fn with_one_core_there_is_no_second_placement() {
        let cores = Cores {
            first: 3,
            second: None,
            allowed: vec![3],
        };
        assert_eq!(cores.of(Placement::OneCore), Some([vec![3], vec![3]]));
        assert_eq!(cores.of(Placement::TwoCores), None);
        assert_eq!(cores.hogged(Hog::Both), None);
        assert_eq!(cores.hogged(Hog::First), Some(vec![3]));
    }
}
