//! How full the file systems of named directories are.

use std::path::Path;

use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};

/// One file system at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// Its size.
    pub total_kb: u64,
    /// What files take.
    pub used_kb: u64,
    /// What an ordinary user may still take.
    pub available_kb: u64,
    /// As df computes it: of what is used or available, without what is kept for root.
    pub used_percent: f64,
}

impl Fill {
    /// The file system that holds `directory`; `None` when there is no such directory.
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
    fn a_file_system_is_as_full_as_df_says() {
        let fill = Fill::from_blocks(4096, [1000, 300, 600]);
        assert_eq!(
            (fill.total_kb, fill.used_kb, fill.available_kb),
            (4000, 1200, 2400)
        );
        assert!((fill.used_percent - 33.333).abs() < 0.001);
        let empty = Fill::from_blocks(4096, [0, 0, 0]);
        assert!(empty.used_percent == 0.0);
    }

    #[test]
    fn only_directories_that_exist_have_a_file_system() {
        let here = tempfile::tempdir().unwrap();
        let fill = Fill::of(here.path()).unwrap();
        assert!(fill.used_kb <= fill.total_kb && fill.total_kb > 0);
        assert_eq!(Fill::of(&here.path().join("gone")), None);
    }
}
