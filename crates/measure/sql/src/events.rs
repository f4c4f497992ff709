//! What the load generators note of each transaction, and what holds for a stretch of time.
//!
//! sysbench (by `load.lua`): `END_US TOOK_US`. pgbench: `CLIENT NUMBER TOOK_US SCRIPT
//! END_S END_US` (`man pgbench`, "Per-Transaction Logging"), where a failed transaction has
//! a word in place of its time. Ends are microseconds since 1970.

use std::fs;
use std::io;
use std::path::Path;

use crate::engine::Engine;

/// Between two moments, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
}

/// How long the transactions took that ended in a window, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    took_us: Vec<u64>,
}

impl Events {
    /// Reads every file `events.*` in `dir`.
    pub(crate) fn read(engine: Engine, dir: &Path, window: Window) -> io::Result<Self> {
        let mut events = Self::default();
        for path in files(dir)? {
            let text = fs::read_to_string(&path)?;
            events.add(engine, &text, window);
        }
        events.took_us.sort_unstable();
        Ok(events)
    }

    fn add(&mut self, engine: Engine, text: &str, window: Window) {
        let Window { from_us, to_us } = window;
        let ended = text.lines().filter_map(|line| transaction(engine, line));
        let inside = ended.filter(|(end, _)| (from_us..to_us).contains(end));
        self.took_us.extend(inside.map(|(_, took)| took));
    }

    pub(crate) fn count(&self) -> usize {
        self.took_us.len()
    }

    /// The time that `share` of the transactions did not exceed.
    pub(crate) fn percentile_us(&self, per_cent: usize) -> Option<u64> {
        let rank = (self.took_us.len() * per_cent).div_ceil(100);
        self.took_us.get(rank.saturating_sub(1)).copied()
    }
}

/// Whether a load generator has noted anything: then its connections are made.
pub(crate) fn any(dir: &Path) -> io::Result<bool> {
    let sizes = files(dir)?
        .into_iter()
        .map(|path| Ok(fs::metadata(path)?.len()));
    Ok(sizes
        .collect::<io::Result<Vec<u64>>>()?
        .into_iter()
        .any(|size| size > 0))
}

/// Removes the files of an earlier run.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    files(dir)?.iter().try_for_each(fs::remove_file)
}

fn files(dir: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("events.");
    let entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries
        .iter()
        .filter(|entry| named(entry))
        .map(fs::DirEntry::path)
        .collect())
}

/// When a transaction ended and how long it took; `None` for one that failed.
fn transaction(engine: Engine, line: &str) -> Option<(u64, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    match (engine, fields.as_slice()) {
        (Engine::MariaDb, [end, took]) => Some((end.parse().ok()?, took.parse().ok()?)),
        (Engine::Postgres, [_, _, took, _, seconds, micros, ..]) => {
            let seconds: u64 = seconds.parse().ok()?;
            let micros: u64 = micros.parse().ok()?;
            Some((seconds * 1_000_000 + micros, took.parse().ok()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        from_us: 10_000_000,
        to_us: 20_000_000,
    };

    fn of(engine: Engine, text: &str) -> Vec<u64> {
        let mut events = Events::default();
        events.add(engine, text, WINDOW);
        events.took_us
    }

    #[test]
    fn only_what_ended_in_the_window_counts() {
        let text = "9999999 1\n10000000 2\n19999999 3\n20000000 4\n";
        assert_eq!(of(Engine::MariaDb, text), [2, 3]);
    }

    #[test]
    fn failed_and_torn_lines_of_pgbench_are_left_out() {
        let text = "2 1 1749 0 15 721696\n3 1 failed 0 15 721700\n4 1 17 0 9 999999\n5 1 88 0";
        assert_eq!(of(Engine::Postgres, text), [1749]);
        let retried = "2 1 1749 0 15 721696 3\n";
        assert_eq!(of(Engine::Postgres, retried), [1749]);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let events = Events {
            took_us: (1..=200).collect(),
        };
        assert_eq!(events.percentile_us(50), Some(100));
        assert_eq!(events.percentile_us(99), Some(198));
        assert_eq!(Events::default().percentile_us(50), None);
    }

    #[test]
    fn files_of_other_names_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("events.0", "11000000 5\n"),
            ("events.7", "12000000 3\n"),
            ("stop", "12000000 9\n"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let events = Events::read(Engine::MariaDb, dir.path(), WINDOW).unwrap();
        assert_eq!(events.took_us, [3, 5]);
        assert!(any(dir.path()).unwrap());
        remove(dir.path()).unwrap();
        assert!(!any(dir.path()).unwrap());
        fs::write(dir.path().join("events.1"), "").unwrap();
        assert!(!any(dir.path()).unwrap());
        assert_eq!(
            Events::read(Engine::MariaDb, dir.path(), WINDOW)
                .unwrap()
                .count(),
            0
        );
        assert!(dir.path().join("stop").exists());
    }
}
