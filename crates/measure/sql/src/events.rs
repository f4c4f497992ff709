//! Reads the transaction logs of the load generators, and computes figures for a time window.
//!
//! Lines of sysbench (by `load.lua`): `END_US DURATION_US`. Lines of pgbench: `CLIENT NUMBER
//! DURATION_US SCRIPT END_S END_US` (`man pgbench`, "Per-Transaction Logging"); a failed
//! transaction has a word in place of its duration. Ends are microseconds since 1970.

use std::fs;
use std::io;
use std::path::Path;

use saiga_database::Engine;

/// A time window, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
}

/// Durations of the transactions that ended in a window, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    durations_us: Vec<u64>,
}

impl Events {
    /// Reads all files `events.*` in `dir`.
    pub(crate) fn read(engine: Engine, dir: &Path, window: Window) -> io::Result<Self> {
        let mut events = Self::default();
        for path in files(dir)? {
            let text = fs::read_to_string(&path)?;
            events.add(engine, &text, window);
        }
        events.durations_us.sort_unstable();
        Ok(events)
    }

    fn add(&mut self, engine: Engine, text: &str, window: Window) {
        let Window { from_us, to_us } = window;
        let ended = text.lines().filter_map(|line| transaction(engine, line));
        let inside = ended.filter(|(end, _)| (from_us..to_us).contains(end));
        self.durations_us.extend(inside.map(|(_, took)| took));
    }

    pub(crate) fn count(&self) -> usize {
        self.durations_us.len()
    }

    /// The percentile of the durations by nearest rank; `None` without transactions.
    pub(crate) fn percentile_us(&self, per_cent: usize) -> Option<u64> {
        let rank = (self.durations_us.len() * per_cent).div_ceil(100);
        self.durations_us.get(rank.saturating_sub(1)).copied()
    }
}

/// Whether a load generator has logged a transaction, so that its connections exist.
pub(crate) fn any(dir: &Path) -> io::Result<bool> {
    let sizes = files(dir)?
        .into_iter()
        .map(|path| Ok(fs::metadata(path)?.len()));
    Ok(sizes
        .collect::<io::Result<Vec<u64>>>()?
        .into_iter()
        .any(|size| size > 0))
}

/// Removes the logs of an earlier run.
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

/// End and duration of a transaction; `None` for failed transactions.
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
        events.durations_us
    }

    #[test]
    fn only_transactions_that_ended_in_the_window_count() {
        let text = "9999999 1\n10000000 2\n19999999 3\n20000000 4\n";
        assert_eq!(of(Engine::MariaDb, text), [2, 3]);
    }

    #[test]
    fn failed_and_incomplete_lines_of_pgbench_are_left_out() {
        let text = "2 1 1749 0 15 721696\n3 1 failed 0 15 721700\n4 1 17 0 9 999999\n5 1 88 0";
        assert_eq!(of(Engine::Postgres, text), [1749]);
        let retried = "2 1 1749 0 15 721696 3\n";
        assert_eq!(of(Engine::Postgres, retried), [1749]);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let events = Events {
            durations_us: (1..=200).collect(),
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
        assert_eq!(events.durations_us, [3, 5]);
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
