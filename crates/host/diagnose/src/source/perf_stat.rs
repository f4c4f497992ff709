//! Counts that `perf stat -x, -o FILE` wrote (`man 1 perf-stat`, section CSV FORMAT).

use std::path::{Path, PathBuf};

use crate::observation::counters::Counters;

/// A file of counts is not usable.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: csv::Error },
    /// Instructions or cycles are missing.
    #[error(
        "{path} has no count of {event}: write it with `perf stat -x, -o FILE -e \
         instructions,cycles,cache-misses,... -p PID sleep 60` on a machine with hardware counters"
    )]
    Missing { path: PathBuf, event: &'static str },
}

/// Reads the counts of one placement, which gets the name of the file without its extension.
/// Several counts of one event, as of several CPUs, are added. Events that were not counted are
/// left out.
///
/// # Errors
/// The file cannot be read, or has no instructions or cycles.
pub fn read(path: &Path) -> Result<Counters, CountersError> {
    let read_error = |source| CountersError::Read {
        path: path.to_owned(),
        source,
    };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .comment(Some(b'#'))
        .flexible(true)
        .from_path(path)
        .map_err(read_error)?;
    let mut counters = Counters {
        name: path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        ..Counters::default()
    };
    for line in reader.records() {
        let line = line.map_err(read_error)?;
        // With -A or --per-node, the CPU or node is before the count.
        let counted = (0..line.len()).find_map(|column| count(&line, column));
        let Some((event, count)) = counted else {
            continue;
        };
        match event {
            "instructions" | "inst_retired" => counters.instructions += count,
            "cycles" | "cpu-cycles" | "cpu_cycles" => counters.cycles += count,
            _ => *counters.events.entry(event.to_owned()).or_default() += count,
        }
    }
    for (event, count) in [
        ("instructions", counters.instructions),
        ("cycles", counters.cycles),
    ] {
        if count <= 0.0 {
            let path = path.to_owned();
            return Err(CountersError::Missing { path, event });
        }
    }
    Ok(counters)
}

/// The event and its count if the count is in this column: the unit follows, then the event.
fn count(line: &csv::StringRecord, column: usize) -> Option<(&str, f64)> {
    let count = line.get(column)?.parse().ok()?;
    let event = plain(line.get(column + 2)?);
    let is_name = event.starts_with(|first: char| first.is_ascii_alphabetic());
    is_name.then_some((event, count))
}

/// The name of an event without modifiers and PMU: `instructions` of `cpu_core/instructions/u`.
fn plain(event: &str) -> &str {
    match event.split('/').collect::<Vec<_>>().as_slice() {
        [_, name, ..] => name,
        _ => event.split(':').next().unwrap_or(event),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn parsed(text: &str) -> Result<Counters, CountersError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("local.csv");
        fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn counts_are_read_with_and_without_modifiers() {
        let counters = parsed(
            "# started on Fri Nov 27 12:00:00 2026\n\n\
             5320000,,instructions:u,1000,100.00,0.53,insn per cycle\n\
             10000000,,cpu_core/cycles/u,1000,100.00,,\n\
             <not supported>,,LLC-loads,0,100.00,,\n\
             4620,,iTLB-load-misses,400,41.00,,\n\
             380,,iTLB-load-misses,400,41.00,,\n\
             424,,cache-misses,400,41.00,4.24,of all cache refs\n\
             10000,,cache-references,400,41.00,,\n",
        )
        .unwrap();
        assert_eq!(counters.name, "local");
        assert!((counters.ipc() - 0.532).abs() < 1e-9);
        let rates: Vec<(&str, f64)> = counters.miss_rates().collect();
        assert_eq!(
            rates,
            [
                ("cache-misses", 0.0424),
                ("iTLB-load-misses", 5000.0 / 5_320_000.0)
            ]
        );
    }

    #[test]
    fn counts_behind_a_cpu_or_a_node_are_added() {
        let counters = parsed(
            "S0-N0,1,100,,instructions,9,100.00,,\n\
             S0-N1,1,300,,instructions,9,100.00,,\n\
             CPU0,1000,,cycles,9,100.00,,\n",
        )
        .unwrap();
        assert!((counters.ipc() - 0.4).abs() < 1e-9);
    }

    #[test]
    fn a_machine_without_counters_is_named() {
        let text = "<not supported>,,instructions,0,100.00,,\n<not supported>,,cycles,0,100.00,,\n";
        let error = parsed(text).unwrap_err().to_string();
        assert!(error.contains("has no count of instructions"), "{error}");
    }
}
