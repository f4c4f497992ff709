//! Usage of the file systems of named directories.

use std::path::Path;

use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};

/// Usage of a file system at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub total_kb: u64,
    pub used_kb: u64,
    /// Space that a user without privileges may still use.
    pub available_kb: u64,
    /// Computed as in df(1): used / (used + available), without the space reserved for root.
    pub used_percent: f64,
}

impl Usage {
    /// The usage of the file system of `directory`; `None` if the directory does not exist.
    #[must_use]
    pub fn of(directory: &Path) -> Option<Self> {
        let stat = statvfs(directory).ok()?;
        let used = stat.f_blocks.saturating_sub(stat.f_bfree);
        Some(Self::from_blocks(
            stat.f_frsize,
            [stat.f_blocks, used, stat.f_bavail],
        ))
    }

    fn from_blocks(block_bytes: u64, [total, used, available]: [u64; 3]) -> Self {
        let kb = |blocks: u64| blocks.saturating_mul(block_bytes) / 1024;
        let countable = used.saturating_add(available);
        let used_percent = if countable == 0 {
            0.0
        } else {
            100.0 * used as f64 / countable as f64
        };
        Self {
            total_kb: kb(total),
            used_kb: kb(used),
            available_kb: kb(available),
            used_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_those_of_df() {
        let fill = Usage::from_blocks(4096, [1000, 300, 600]);
        assert_eq!(
            (fill.total_kb, fill.used_kb, fill.available_kb),
            (4000, 1200, 2400)
        );
        assert!((fill.used_percent - 33.333).abs() < 0.001);
        let empty = Usage::from_blocks(4096, [0, 0, 0]);
        assert!(empty.used_percent == 0.0);
    }

    #[test]
    fn only_existing_directories_have_a_file_system() {
        let here = tempfile::tempdir().unwrap();
        let fill = Usage::of(here.path()).unwrap();
        assert!(fill.used_kb <= fill.total_kb && fill.total_kb > 0);
        assert_eq!(Usage::of(&here.path().join("gone")), None);
    }
}
