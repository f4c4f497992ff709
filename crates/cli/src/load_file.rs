//! A file with a load's figures of the last second. The load writes the file for the process that
//! started the load.
//!
//! Deliberately absent: history. Each second replaces the previous one; the result has the history.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use saiga_process::replace::replace_in_cache;
use saiga_sampler::Snapshot;
use saiga_sampler::dashboard::LoadNow;
use serde::{Deserialize, Serialize};

/// Maximum size of the file; a longer file was not written by this program.
const MAX_BYTES: u64 = 1 << 20;
/// A load that has written nothing for this time counts as ended: loads write once a second.
const SILENCE: Duration = Duration::from_secs(3);

/// Prefixes of metrics that no dashboard draws. They are left out because a host has many of them.
const NOT_DRAWN: [&str; 2] = ["irq_", "softirq_"];

/// The figures of one second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Second {
    pub(crate) load: LoadNow,
    /// The host's figures, if the load samples the host.
    pub(crate) host: Option<Row>,
}

/// A row of the sampler, without metrics that no dashboard draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    row: u64,
    time_s: f64,
    metrics: Vec<(String, Option<f64>)>,
}

impl Row {
    /// Copies the metrics that a dashboard can draw.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let is_drawn = |name: &str| !NOT_DRAWN.iter().any(|begin| name.starts_with(begin));
        let drawn = snapshot.metrics().filter(|(name, _)| is_drawn(name));
        Self {
            row: snapshot.row,
            time_s: snapshot.time_s,
            metrics: drawn
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}

impl From<Row> for Snapshot {
    fn from(row: Row) -> Self {
        Self::from_metrics(row.row, row.time_s, row.metrics)
    }
}

/// Writes the file, and removes it on drop.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
}

impl Writer {
    /// `path` may exist from a previous run.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Replaces the file. Errors are ignored: the figures are only for display.
    pub(crate) fn write(&self, second: &Second) {
        let _ = self.replace(second);
    }

    fn replace(&self, second: &Second) -> io::Result<()> {
        replace_in_cache(&self.path, &serde_json::to_vec(second)?, 0o600)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // If this fails, readers recognise the old file by its age.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads the file, and tells new figures from figures that it has read before.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    /// Modification time of the last valid file that was read.
    seen: Option<SystemTime>,
}

/// Result of a read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReadResult {
    New(Box<Second>),
    /// The same figures as at the last read.
    Same,
    /// No load is running, or the file is not valid.
    Nothing,
}

impl Reader {
    /// `path` need not exist.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: None,
        }
    }

    /// Reads the file. `now` is compared with its modification time.
    pub(crate) fn read(&mut self, now: SystemTime) -> ReadResult {
        let Ok(file) = File::open(&self.path) else {
            return ReadResult::Nothing;
        };
        let Ok(written) = file.metadata().and_then(|found| found.modified()) else {
            return ReadResult::Nothing;
        };
        if now.duration_since(written).is_ok_and(|age| age > SILENCE) {
            return ReadResult::Nothing;
        }
        if self.seen == Some(written) {
            return ReadResult::Same;
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES).read_to_end(&mut bytes);
        match read.map(|_| serde_json::from_slice(&bytes)) {
            Ok(Ok(second)) => {
                self.seen = Some(written);
                ReadResult::New(Box::new(second))
            }
            Ok(Err(_)) | Err(_) => ReadResult::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_new_once_until_they_change_or_the_load_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.json");
        let (writer, mut reader) = (Writer::new(&path), Reader::new(&path));
        let now = SystemTime::now;
        assert_eq!(reader.read(now()), ReadResult::Nothing);
        let metrics = ["cpu0_user_percent", "irq_24_eth0_interrupts_s"];
        let metrics = metrics.map(|name| (name.to_owned(), Some(1.5))).to_vec();
        let second = Second {
            load: LoadNow {
                throughput: 12.5,
                p99_ms: Some(3.0),
                errors: 2,
                ..LoadNow::default()
            },
            host: Some(Row::of(&Snapshot::from_metrics(7, 7.0, metrics))),
        };
        writer.write(&second);
        assert_eq!(
            reader.read(now()),
            ReadResult::New(Box::new(second.clone()))
        );
        let host = Snapshot::from(second.host.unwrap());
        assert_eq!(
            host.metrics().collect::<Vec<_>>(),
            [("cpu0_user_percent", Some(1.5))]
        );
        assert_eq!(reader.read(now()), ReadResult::Same);
        assert_eq!(reader.read(now() + 2 * SILENCE), ReadResult::Nothing);
        fs::write(&path, "{").unwrap();
        assert_eq!(reader.read(now()), ReadResult::Nothing);
        drop(writer);
        assert_eq!(reader.read(now()), ReadResult::Nothing);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_directory_is_not_an_error() {
        let writer = Writer::new(Path::new("/no/such/folder/load.json"));
        writer.write(&Second::default());
    }
}
