//! What a device did: pages written and moved, whose, and out of what.

use crate::layout::Role;

/// Steps of the histogram of victims' valid shares.
pub const VALID_STEPS: usize = 20;

/// Counts since the device was new, or between two looks at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// Pages that the host wrote, by class.
    pub host: Vec<u64>,
    /// Pages that garbage collection moved, by class.
    pub moved: Vec<u64>,
    /// Pages that were discarded while they held data, by class.
    pub trimmed: Vec<u64>,
    /// Units that were erased.
    pub erased: u64,
    /// Victims by the share of their pages that was valid: below 5 %, below 10 %, ... and the
    /// last step with 100 %. Units that had become empty are no victims.
    pub victims: [u64; VALID_STEPS],
    /// Pages moved out of units that a frontier had filled, by frontier and class.
    pub moved_from: Vec<FrontierMoves>,
    /// `charged[a][b]`: pages of class b that were moved because pages of class a in the same
    /// unit had died. Each victim's moved pages are split by its dead pages.
    pub charged: Vec<Vec<f64>>,
    /// Pages moved out of victims in which nothing had died, by class.
    pub moved_in_vain: Vec<u64>,
}

/// What was moved out of the units of one frontier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierMoves {
    /// The frontier.
    pub role: Role,
    /// Its units that were victims.
    pub victims: u64,
    /// Pages by class.
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

    /// Pages that the host wrote.
    #[must_use]
    pub fn host_pages(&self) -> u64 {
        self.host.iter().sum()
    }

    /// Pages that garbage collection moved.
    #[must_use]
    pub fn moved_pages(&self) -> u64 {
        self.moved.iter().sum()
    }

    /// Write amplification: pages programmed for each page that the host wrote; `None` before
    /// the first.
    #[must_use]
    pub fn waf(&self) -> Option<f64> {
        let host = self.host_pages();
        (host > 0).then(|| (host + self.moved_pages()) as f64 / host as f64)
    }

    /// What was counted after an earlier look at the same device.
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
