//! Merges the records of several load hosts into one.
//!
//! Records belong together if their runs had the same conditions and the same start, and no two of
//! them have the same worker number. Otherwise the error names the files and the difference.

use std::fs;
use std::path::{Path, PathBuf};

use saiga_experiment::result::detail::Series;

use super::clocks::WorkerClock;
use super::detail;
use super::partial::Partial;
use super::record::{Conditions, FORMAT_VERSION, Record};
use crate::driver::Share;
use crate::latency::gaps::merged;

/// Why records cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The file cannot be read, or is not the record of a worker.
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    /// No record was found.
    #[error("no worker-N.json in {}", dirs.join(", "))]
    NoFiles { dirs: Vec<String> },
    #[error("{} and {} are both records of worker {index}", a.display(), b.display())]
    SameWorker { a: PathBuf, b: PathBuf, index: u32 },
    /// Two records have different conditions.
    #[error(
        "{} and {} are not parts of one run: {what} is {of_a} in one and {of_b} in the other",
        a.display(),
        b.display()
    )]
    Differ {
        a: PathBuf,
        b: PathBuf,
        /// Name of the condition.
        what: String,
        of_a: String,
        of_b: String,
    },
}

/// Reads the records in `paths_or_dirs`. In a directory, reads all files `worker-*.json`. Fails
/// with [`MergeError::NoFiles`] or [`MergeError::Unreadable`].
pub fn read(paths_or_dirs: &[PathBuf]) -> Result<Vec<(PathBuf, Record)>, MergeError> {
    let mut paths = Vec::new();
    for given in paths_or_dirs {
        if !given.is_dir() {
            paths.push(given.clone());
            continue;
        }
        let unreadable = |error: std::io::Error| MergeError::Unreadable {
            path: given.clone(),
            why: error.to_string(),
        };
        for entry in fs::read_dir(given).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or("");
            if name.starts_with("worker-") && name.ends_with(".json") {
                paths.push(path);
            }
        }
    }
    if paths.is_empty() {
        let dirs = paths_or_dirs
            .iter()
            .map(|given| given.display().to_string())
            .collect();
        return Err(MergeError::NoFiles { dirs });
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| Ok((path.clone(), read_one(&path)?)))
        .collect()
}

fn read_one(path: &Path) -> Result<Record, MergeError> {
    let unreadable = |why: String| MergeError::Unreadable {
        path: path.to_owned(),
        why,
    };
    let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let record: Record = serde_json::from_str(&text)
        .map_err(|error| unreadable(format!("not the record of a worker: {error}")))?;
    if record.format_version != FORMAT_VERSION {
        let version = record.format_version;
        return Err(unreadable(format!(
            "format_version is {version}; only {FORMAT_VERSION} can be read"
        )));
    }
    let (index, of) = record.conditions.share;
    if !(1..=of).contains(&index) || of > Share::MAX {
        return Err(unreadable(format!("worker {index} of {of} does not exist")));
    }
    if record.clocks.len() > 1 && record.partial.is_none() {
        return Err(unreadable(
            "the file is a merged record; merge the files of the workers".to_owned(),
        ));
    }
    if let Some(partial) = &record.partial {
        let missing = partial.missing_workers();
        return Err(unreadable(format!(
            "the file is a partial sum ({missing}); merge the files of the workers"
        )));
    }
    Ok(record)
}

/// Merges the records of workers. If workers are missing, the merged record is marked as
/// [`Partial`].
pub fn merge(mut parts: Vec<(PathBuf, Record)>) -> Result<Record, MergeError> {
    parts.sort_by_key(|(_, record)| record.conditions.share.0);
    let mut rest = parts.iter();
    let Some((first_path, first)) = rest.next() else {
        return Err(MergeError::NoFiles { dirs: Vec::new() });
    };
    for (path, record) in rest {
        check_fit((first_path, first), (path, record))?;
    }
    for pair in parts.windows(2) {
        if pair[0].1.conditions.share.0 == pair[1].1.conditions.share.0 {
            return Err(MergeError::SameWorker {
                a: pair[0].0.clone(),
                b: pair[1].0.clone(),
                index: pair[0].1.conditions.share.0,
            });
        }
    }
    let of = first.conditions.share.1;
    let has = |index: u32| {
        parts
            .iter()
            .any(|(_, record)| record.conditions.share.0 == index)
    };
    let missing: Vec<u32> = (1..=of).filter(|index| !has(*index)).collect();
    let partial = (!missing.is_empty()).then(|| Partial::of(&first.conditions, missing));
    let there = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let clocks = parts.iter().map(|(_, part)| WorkerClock {
        worker: part.conditions.share.0,
        offset: part.clock,
    });
    let clocks: Vec<WorkerClock> = clocks.collect();
    let of_hosts: Vec<Series> = parts
        .iter()
        .flat_map(|(_, part)| series_of_host(part))
        .collect();
    let mut records = parts.into_iter().map(|(_, record)| record);
    let Some(mut sum) = records.next() else {
        return Err(MergeError::NoFiles { dirs: Vec::new() });
    };
    for record in records {
        add(&mut sum, record);
    }
    sum.partial = partial;
    (sum.clock, sum.clocks) = (None, clocks);
    sum.gaps = merged(std::mem::take(&mut sum.gaps), there);
    sum.errors
        .sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sum.conditions.share = (1, 1);
    sum.conclude();
    let detail = sum.run.detail.get_or_insert_default();
    detail.series.extend(of_hosts);
    if let Some(series) = &mut sum.series {
        series.drop_histograms();
    }
    Ok(sum)
}

/// The series that describe one load host, such as its CPU use. They cannot be added, so the number
/// of the worker becomes part of their names.
fn series_of_host(part: &Record) -> Vec<Series> {
    let index = part.conditions.share.0;
    let own = detail::of(part).series;
    let is_own = |one: &Series| own.iter().any(|known| known.name == one.name);
    let all = part.run.detail.iter().flat_map(|detail| &detail.series);
    all.filter(|one| !is_own(one))
        .map(|one| Series {
            name: format!("worker_{index}_{}", one.name),
            ..one.clone()
        })
        .collect()
}

/// Checks that two records have the same conditions, except the share and the end of the session.
fn check_fit(
    (a_path, a): (&Path, &Record),
    (b_path, b): (&Path, &Record),
) -> Result<(), MergeError> {
    let comparable = |conditions: &Conditions| {
        let mut conditions = conditions.clone();
        conditions.share.0 = 0;
        conditions.session_end.clear();
        // Local times may be in different time zones; `started_unix_s` must be equal.
        conditions.session_start.clear();
        match serde_json::to_value(&conditions) {
            Ok(serde_json::Value::Object(map)) => map,
            Ok(_) | Err(_) => serde_json::Map::new(),
        }
    };
    let (of_a, of_b) = (comparable(&a.conditions), comparable(&b.conditions));
    for (what, value) in &of_a {
        let other = of_b.get(what);
        if other != Some(value) {
            return Err(MergeError::Differ {
                a: a_path.to_owned(),
                b: b_path.to_owned(),
                what: what.clone(),
                of_a: value.to_string(),
                of_b: other.map(ToString::to_string).unwrap_or_default(),
            });
        }
    }
    Ok(())
}

fn add(sum: &mut Record, part: Record) {
    sum.interval_us = joined(sum.interval_us, part.interval_us);
    sum.last_us = sum.last_us.max(part.last_us);
    if part.end != "done" {
        sum.end = part.end;
    }
    if part.conditions.session_end > sum.conditions.session_end {
        sum.conditions.session_end = part.conditions.session_end;
    }
    // Each host has its own delivery workers.
    sum.conditions.delivery_workers += part.conditions.delivery_workers;
    sum.tracks.add(&part.tracks);
    sum.tally.add(&part.tally);
    match (&mut sum.series, part.series) {
        (Some(mine), Some(theirs)) => mine.add(&theirs),
        (mine, theirs) => *mine = mine.take().or(theirs),
    }
    sum.gaps.extend(part.gaps);
    sum.lost_connections += part.lost_connections;
    for (text, count) in part.errors {
        match sum.errors.iter_mut().find(|(known, _)| *known == text) {
            Some((_, sum)) => *sum += count,
            None => sum.errors.push((text, count)),
        }
    }
    sum.backlog += part.backlog;
    sum.undelivered += part.undelivered;
    sum.unanswered += part.unanswered;
    sum.client_cpu_s += part.client_cpu_s;
    sum.run.foreign_cpu_s += part.run.foreign_cpu_s;
}

/// The smallest interval that contains both intervals. Workers end at different times if one is
/// stopped early, or if each performs a fixed number of transactions. If all transactions were
/// divided by a shorter interval, the throughput would be too high. A worker that was stopped in
/// its ramp-up has an empty interval, which is ignored.
fn joined(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    match (a.0 < a.1, b.0 < b.1) {
        (true, false) => a,
        (false, true) => b,
        (true, true) | (false, false) => (a.0.min(b.0), a.1.max(b.1)),
    }
}
