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
    /// Where the file of the experiment puts them, arm by arm.
    OfFile,
}

impl Placement {
    /// Every placement that we choose ourselves, in the order of reports.
    pub const ALL: [Self; 3] = [Self::OneCore, Self::TwoCores, Self::Unpinned];

    /// For people: `one core`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneCore => "one core",
            Self::TwoCores => "two cores",
            Self::Unpinned => "unpinned",
            Self::OfFile => "as the file says",
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
    /// Chooses among the CPUs that this process may run on.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn choose() -> io::Result<Self> {
        let mask = sched_getaffinity(None)?;
        let allowed = (0..MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
        Ok(Self::among(allowed).ok_or(io::ErrorKind::NotFound)?)
    }

    /// Chooses the first of these, and the next that is no hardware thread of it where there
    /// is one; `None` when there are none at all.
    #[must_use]
    pub fn among(allowed: Vec<usize>) -> Option<Self> {
        let first = *allowed.first()?;
        let siblings = siblings_of(first);
        let others = || allowed.iter().copied().filter(|&cpu| cpu != first);
        let second = others()
            .find(|cpu| !siblings.contains(cpu))
            .or_else(|| others().next());
        Some(Self {
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
            Placement::Unpinned | Placement::OfFile => Some([vec![], vec![]]),
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
            stolen_s: seconds(stolen_ticks)?,
        })
    }

    /// What was taken since. The resolution is a tick, 10 ms on each CPU.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn stolen(&self) -> io::Result<Stolen> {
        Ok(Stolen {
            cpu_s: (seconds(stolen_ticks)? - self.stolen_s).max(0.0),
            window_s: self.opened.elapsed().as_secs_f64(),
        })
    }
}

fn busy_s() -> io::Result<f64> {
    seconds(busy_ticks)
}

/// Ticks of `/proc/stat` as seconds.
fn seconds(of: fn(&str) -> Option<f64>) -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    of(&stat)
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
    let fields = fields(stat)?;
    Some([0, 1, 2, 5, 6, 7].iter().map(|&i| fields[i]).sum())
}

/// Steal of all CPUs together.
fn stolen_ticks(stat: &str) -> Option<f64> {
    fields(stat).map(|fields| fields[7])
}

/// The line of all CPUs, at least to steal.
fn fields(stat: &str) -> Option<Vec<f64>> {
    let fields = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<f64> = fields
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    (fields.len() >= 8).then_some(fields)
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
        assert_eq!(stolen_ticks(stat), Some(128.0));
        assert_eq!(busy_ticks("intr 1"), None);
        assert_eq!(
            stolen_ticks("cpu 1 2 3 4 5 6 7\n"),
            None,
            "a kernel without steal"
        );
    }

    #[test]
    fn the_second_core_is_another_one_of_those_allowed() {
        let cores = Cores::among(vec![5, 7]).unwrap();
        assert_eq!((cores.first, cores.second), (5, Some(7)));
        assert_eq!(Cores::among(vec![]), None);
    }

    #[test]
    fn with_one_core_there_is_no_second_placement() {
        let cores = Cores::among(vec![3]).unwrap();
        assert_eq!(cores.of(Placement::OneCore), Some([vec![3], vec![3]]));
        assert_eq!(cores.of(Placement::TwoCores), None);
        assert_eq!(cores.hogged(Hog::Both), None);
        assert_eq!(cores.hogged(Hog::First), Some(vec![3]));
    }
}
