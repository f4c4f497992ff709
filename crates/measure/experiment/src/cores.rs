//! Where server, client and hogs run.

use std::fs;
use std::io;

use rustix::thread::sched_getaffinity;

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

    /// Chooses the first of these, and the next that is not a hardware thread of it where there
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

/// Reads a kernel CPU list such as `0-1,4`; what is not a number is left out.
fn cpu_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse().ok()?..=to.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
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
