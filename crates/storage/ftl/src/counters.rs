//! Counters of a device: pages written and moved, by class, frontier and cause.

use crate::layout::Role;

/// Bins of the histogram of victims by valid share.
pub const VALID_STEPS: usize = 20;

/// Counts since the device was new, or between two states.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// Pages written by the host, by class.
    pub host: Vec<u64>,
    /// Pages moved by garbage collection, by class.
    pub moved: Vec<u64>,
    /// Discarded pages with data, by class.
    pub trimmed: Vec<u64>,
    /// Erased units.
    pub erased: u64,
    /// Victims by their share of valid pages: below 5 %, below 10 %, and so on; the last bin
    /// includes 100 %. Empty units are not victims.
    pub victims: [u64; VALID_STEPS],
    /// Pages moved from the units of each frontier, by class.
    pub moved_from: Vec<FrontierMoves>,
    /// `charged[a][b]`: pages of class b moved because pages of class a in the same unit had died.
    /// The moved pages of each victim are divided in proportion to its dead pages.
    pub charged: Vec<Vec<f64>>,
    /// Pages moved from victims without dead pages, by class.
    pub moved_in_vain: Vec<u64>,
}

/// Pages moved from the units of one frontier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierMoves {
    pub role: Role,
    /// Victims among its units.
    pub victims: u64,
    /// Moved pages by class.
    pub moved: Vec<u64>,
}

impl Counters {
    pub(crate) fn new(classes: usize, roles: &[Role]) -> Self {
        let from = |&role: &Role| FrontierMoves {
            role,
            victims: 0,
            moved: vec![0; classes],
        };
        Self {
            host: vec![0; classes],
            moved: vec![0; classes],
            trimmed: vec![0; classes],
            erased: 0,
            victims: [0; VALID_STEPS],
            moved_from: roles.iter().map(from).collect(),
            charged: vec![vec![0.0; classes]; classes],
            moved_in_vain: vec![0; classes],
        }
    }

    /// Returns the pages written by the host.
    #[must_use]
    pub fn host_pages(&self) -> u64 {
        self.host.iter().sum()
    }

    /// Returns the pages moved by garbage collection.
    #[must_use]
    pub fn moved_pages(&self) -> u64 {
        self.moved.iter().sum()
    }

    /// Returns write amplification: programmed pages divided by host pages; `None` without host
    /// pages.
    #[must_use]
    pub fn waf(&self) -> Option<f64> {
        let host = self.host_pages();
        (host > 0).then(|| (host + self.moved_pages()) as f64 / host as f64)
    }

    /// Returns the counts since an earlier state of the same device.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            host: less(&self.host, &earlier.host),
            moved: less(&self.moved, &earlier.moved),
            trimmed: less(&self.trimmed, &earlier.trimmed),
            erased: self.erased - earlier.erased,
            victims: std::array::from_fn(|step| self.victims[step] - earlier.victims[step]),
            moved_from: pairs(&self.moved_from, &earlier.moved_from, |now, then| {
                FrontierMoves {
                    role: now.role,
                    victims: now.victims - then.victims,
                    moved: less(&now.moved, &then.moved),
                }
            }),
            charged: pairs(&self.charged, &earlier.charged, |now, then| {
                pairs(now, then, |now, then| now - then)
            }),
            moved_in_vain: less(&self.moved_in_vain, &earlier.moved_in_vain),
        }
    }
}

fn less(now: &[u64], then: &[u64]) -> Vec<u64> {
    pairs(now, then, |now, then| now - then)
}

fn pairs<T, R>(now: &[T], then: &[T], join: impl Fn(&T, &T) -> R) -> Vec<R> {
    now.iter()
        .zip(then)
        .map(|(now, then)| join(now, then))
        .collect()
}
