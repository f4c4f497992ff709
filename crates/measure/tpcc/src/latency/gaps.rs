//! Times in which nothing was done although terminals wanted to: a server that is restarted, a
//! fail-over.

use serde::{Deserialize, Serialize};

use crate::driver::clock::SECOND_US;

/// A shorter pause is none.
const LEAST_US: u64 = SECOND_US;

/// A time without a single transaction that was done, in which connections were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// When the last transaction before it was done, since the start of the run.
    pub from_us: u64,
    /// When the first one after it was; or the end of the run.
    pub to_us: u64,
    /// Connections lost in it.
    pub lost: u32,
}

/// Finds them, from transactions and losses that come in the order of time, nearly.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    found: Vec<Gap>,
    last_done_us: u64,
    lost: u32,
}

impl Gaps {
    /// A transaction was done.
    pub fn on_done(&mut self, at_us: u64) {
        if at_us <= self.last_done_us {
            return;
        }
        self.end(at_us);
        self.last_done_us = at_us;
        self.lost = 0;
    }

    /// A connection was lost.
    pub fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// When the last transaction was done.
    #[must_use]
    pub fn last_done_us(&self) -> u64 {
        self.last_done_us
    }

    /// Whether connections were lost since then.
    #[must_use]
    pub fn has_losses(&self) -> bool {
        self.lost > 0
    }

    /// All of a run that ends at `end_us`.
    #[must_use]
    pub fn finish(mut self, end_us: u64) -> Vec<Gap> {
        self.end(end_us);
        self.found
    }

    fn end(&mut self, to_us: u64) {
        let Self {
            last_done_us, lost, ..
        } = *self;
        if lost > 0 && to_us.saturating_sub(last_done_us) >= LEAST_US {
            self.found.push(Gap {
                from_us: last_done_us,
                to_us,
                lost,
            });
        }
    }
}

/// Gaps of a run on `hosts` hosts: where none of them had anything done.
#[must_use]
pub fn merged(gaps: Vec<Gap>, hosts: u32) -> Vec<Gap> {
    let mut edges: Vec<(u64, i64)> = Vec::new();
    for gap in &gaps {
        edges.extend([(gap.from_us, 1), (gap.to_us, -1)]);
    }
    // Where one ends and the next begins at the same instant, it ends first.
    edges.sort_unstable();
    let (mut open, mut found, mut since) = (0, Vec::new(), None);
    for (at_us, change) in edges {
        open += change;
        match since {
            None if open == i64::from(hosts) => since = Some(at_us),
            Some(from_us) if open < i64::from(hosts) => {
                let touching = gaps
                    .iter()
                    .filter(|gap| gap.from_us <= from_us && gap.to_us >= at_us);
                let lost = touching.map(|gap| gap.lost).sum();
                let gap = Gap {
                    from_us,
                    to_us: at_us,
                    lost,
                };
                found.extend((at_us - from_us >= LEAST_US).then_some(gap));
                since = None;
            }
            None | Some(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_between_the_last_and_the_next_that_was_done() {
        let mut gaps = Gaps::default();
        gaps.on_done(4_000_000);
        gaps.on_lost();
        gaps.on_lost();
        gaps.on_done(9_500_000);
        gaps.on_done(9_400_000); // Of another terminal, told a little late.
        gaps.on_done(20_000_000); // Slow, but nothing was lost.
        gaps.on_lost();
        gaps.on_done(20_500_000); // One of several connections: no gap.
        gaps.on_lost();
        let found = gaps.finish(30_000_000);
        let gap = |from_us, to_us, lost| Gap {
            from_us,
            to_us,
            lost,
        };
        assert_eq!(
            found,
            [gap(4_000_000, 9_500_000, 2), gap(20_500_000, 30_000_000, 1)]
        );
    }

    #[test]
    fn a_gap_of_all_hosts_is_one_of_the_run() {
        let gap = |from_us, to_us, lost| Gap {
            from_us,
            to_us,
            lost,
        };
        let all = vec![
            gap(1_000_000, 5_000_000, 3),
            gap(2_000_000, 6_000_000, 4),
            gap(8_000_000, 9_000_000, 1),
        ];
        assert_eq!(merged(all.clone(), 2), [gap(2_000_000, 5_000_000, 7)]);
        assert_eq!(merged(all[..1].to_vec(), 1), all[..1]);
        assert!(merged(all, 3).is_empty());
    }
}
