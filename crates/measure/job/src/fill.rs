//! How full the file systems of directories are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The share in use of the file system of each directory, in percent, by metric names such as
/// `fill_data_mysql_before_percent`. Directories that statvfs(3) rejects are left out.
pub(crate) fn levels(dirs: &[PathBuf], when: &str) -> BTreeMap<String, f64> {
    let level = |dir: &PathBuf| {
        let stat = rustix::fs::statvfs(dir).ok()?;
        #[expect(clippy::cast_precision_loss, reason = "a percentage")]
        let (all, free) = (stat.f_blocks as f64, stat.f_bfree as f64);
        (all > 0.0).then(|| (name_of(dir, when), (all - free) / all * 100.0))
    };
    dirs.iter().filter_map(level).collect()
}

fn name_of(dir: &Path, when: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let name: String = dir.to_string_lossy().chars().map(plain).collect();
    format!("fill_{}_{when}_percent", name.trim_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_a_level_and_a_missing_directory_has_none() {
        let dirs = [PathBuf::from("/proc/none"), std::env::temp_dir()];
        let levels = levels(&dirs, "before");
        assert_eq!(levels.len(), 1);
        assert!(
            levels.values().all(|level| (0.0..=100.0).contains(level)),
            "{levels:?}"
        );
        assert_eq!(
            name_of(Path::new("/data/MySQL-1"), "after"),
            "fill_data_mysql_1_after_percent"
        );
    }
}
