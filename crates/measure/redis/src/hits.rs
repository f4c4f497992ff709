//! How many GETs of a run found their key, by the servers' own count.

use std::io;

use crate::server::Server;

/// Keys found and not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hits {
    found: u64,
    missed: u64,
}

impl Hits {
    /// What `servers` counted since they started.
    pub(crate) fn count(servers: &[&Server]) -> io::Result<Self> {
        let mut all = Self {
            found: 0,
            missed: 0,
        };
        for server in servers {
            let info = server.info("stats")?;
            all.found += info.count("keyspace_hits");
            all.missed += info.count("keyspace_misses");
        }
        Ok(all)
    }

    /// The share found since `before`; `None` when nothing was looked for.
    pub(crate) fn share_since(self, before: Self) -> Option<f64> {
        let found = self.found.saturating_sub(before.found);
        let all = found + self.missed.saturating_sub(before.missed);
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let share = found as f64 / all as f64;
        (all > 0).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_since_counts() {
        let of = |found, missed| Hits { found, missed };
        assert_eq!(of(40, 20).share_since(of(10, 10)), Some(0.75));
        assert_eq!(of(10, 10).share_since(of(10, 10)), None);
    }
}
