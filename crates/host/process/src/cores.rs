//! Chooses the CPUs of server, client and CPU hogs.
//!
//! In: the affinity mask of this process and the kernel's list of hardware threads. Out: two cores,
//! and the CPUs of a [`Placement`] and a [`Hog`] on them.

use std::fs;
use std::io;

use rustix::thread::sched_getaffinity;

use crate::numbers::Numbers;

/// CPUs with this number and above are ignored.
const MAX_CPU: usize = 1024;

/// The CPUs of server and client relative to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Server and client share one core.
    OneCore,
    TwoCores,
    /// No CPU affinity.
    Unpinned,
    /// The CPUs that the experiment file names, which may differ between arms.
    OfFile,
}

impl Placement {
    /// The placements of built-in experiments, in the order of reports.
    pub const ALL: [Self; 3] = [Self::OneCore, Self::TwoCores, Self::Unpinned];

    /// The name in reports: `one core`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneCore => "one core",
            Self::TwoCores => "two cores",
            Self::Unpinned => "unpinned",
            Self::OfFile => "as the file says",
        }
    }

    /// The name in cell ids: `one-core`.
    #[must_use]
    pub fn slug(self) -> String {
        self.name().replace(' ', "-")
    }
}

/// The cores on which a CPU hog, an endless loop, runs beside the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hog {
    None,
    /// The server's core.
    First,
    /// The second core: the client's with [`Placement::TwoCores`].
    Second,
    Both,
}

impl Hog {
    /// The name on the command line: `none`, `0`, `1`, `both`.
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

/// The two cores of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    pub first: usize,
    /// The client's core; a hardware thread of the first core only if there is no other. `None` on
    /// one CPU.
    pub second: Option<usize>,
    /// The CPUs in the affinity mask of this process.
    pub allowed: Vec<usize>,
}

impl Cores {
    /// Chooses among the CPUs in the affinity mask of this process.
    ///
    /// # Errors
    /// Fails if sched_getaffinity(2) fails.
    pub fn choose() -> io::Result<Self> {
        let mask = sched_getaffinity(None)?;
        let allowed = (0..MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect();
        Ok(Self::among(allowed).ok_or(io::ErrorKind::NotFound)?)
    }

    /// Chooses the first CPU, and the next CPU that is not a hardware thread of the same core, if
    /// there is one. Returns `None` if `allowed` is empty.
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

    /// The CPUs of server and client; an empty list means all. `None` if there are too few CPUs.
    #[must_use]
    pub fn of(&self, placement: Placement) -> Option<[Vec<usize>; 2]> {
        match placement {
            Placement::OneCore => Some([vec![self.first], vec![self.first]]),
            Placement::TwoCores => Some([vec![self.first], vec![self.second?]]),
            Placement::Unpinned | Placement::OfFile => Some([vec![], vec![]]),
        }
    }

    /// The CPUs on which hogs run; `None` if there are too few CPUs.
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

/// The hardware threads of the core of `cpu`; empty if the kernel does not list them.
fn siblings_of(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = fs::read_to_string(path).ok();
    let cpus = list.and_then(|list| list.parse::<Numbers>().ok());
    cpus.unwrap_or_default().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_core_is_another_allowed_cpu() {
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
