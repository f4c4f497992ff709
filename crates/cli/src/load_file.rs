//! A file in which a load keeps its figures of the last second, for whoever started it.
//!
//! Deliberately absent: history. Each second replaces the one before; what is kept is the result.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use saiga_sampler::Snapshot;
use saiga_sampler::dashboard::LoadNow;
use serde::{Deserialize, Serialize};

/// Nobody writes more; what is longer is not ours.
const MAX_BYTES: u64 = 1 << 20;
/// A load that has said nothing for so long is over: it does so once a second.
const SILENCE: Duration = Duration::from_secs(3);

/// Metrics of the host that no dashboard draws, and of which there are many.
const NOT_DRAWN: [&str; 2] = ["irq_", "softirq_"];

/// What a load tells of one second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Second {
    /// Its figures.
    pub(crate) load: LoadNow,
    /// The host, when the load watches it.
    pub(crate) host: Option<Row>,
}

/// A row of the sampler beside the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    row: u64,
    time_s: f64,
    metrics: Vec<(String, Option<f64>)>,
}

impl Row {
    /// What of a row a dashboard draws.
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

/// The writing side. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    /// What is written before it takes the file's place.
    next: PathBuf,
}

impl Writer {
    /// For the file at `path`, which a run before may have left.
    pub(crate) fn new(path: &Path) -> Self {
        let mut next = path.as_os_str().to_owned();
        next.push(".next");
        Self {
            path: path.to_owned(),
            next: next.into(),
        }
    }

    /// Replaces the file. It is only looked at: where it cannot be written, nothing is shown.
    pub(crate) fn write(&self, second: &Second) {
        let _ = self.replace(second);
    }

    fn replace(&self, second: &Second) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&self.next)?;
        file.write_all(&serde_json::to_vec(second)?)?;
        fs::rename(&self.next, &self.path)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A file that stays is known by its age.
        let _ = fs::remove_file(&self.path);
    }
}

/// The reading side.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    seen: Option<SystemTime>,
}

/// What a look at the file showed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Look {
    /// Figures that were not there before.
    New(Box<Second>),
    /// Those of the last look.
    Same,
    /// No load is at work.
    Nothing,
}

impl Reader {
    /// Of the file at `path`, which need not be there.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: None,
        }
    }

    /// What is there `now`.
    pub(crate) fn look(&mut self, now: SystemTime) -> Look {
        let Ok(file) = File::open(&self.path) else {
            return Look::Nothing;
        };
        let Ok(written) = file.metadata().and_then(|found| found.modified()) else {
            return Look::Nothing;
        };
        if now.duration_since(written).is_ok_and(|age| age > SILENCE) {
            return Look::Nothing;
        }
        if self.seen.replace(written) == Some(written) {
            return Look::Same;
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES).read_to_end(&mut bytes);
        match read.map(|_| serde_json::from_slice(&bytes)) {
            Ok(Ok(second)) => Look::New(Box::new(second)),
            Ok(Err(_)) | Err(_) => Look::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_seen_once_until_they_change_grow_old_or_the_load_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.json");
        let (writer, mut reader) = (Writer::new(&path), Reader::new(&path));
        let now = SystemTime::now;
        assert_eq!(reader.look(now()), Look::Nothing);
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
        assert_eq!(reader.look(now()), Look::New(Box::new(second.clone())));
        let host = Snapshot::from(second.host.unwrap());
        assert_eq!(
            host.metrics().collect::<Vec<_>>(),
            [("cpu0_user_percent", Some(1.5))]
        );
        assert_eq!(reader.look(now()), Look::Same);
        assert_eq!(reader.look(now() + 2 * SILENCE), Look::Nothing);
        fs::write(&path, "{").unwrap();
        assert_eq!(reader.look(now()), Look::Nothing);
        drop(writer);
        assert_eq!(reader.look(now()), Look::Nothing);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_is_not_there_is_no_fault() {
        let writer = Writer::new(Path::new("/no/such/folder/load.json"));
        writer.write(&Second::default());
    }
}
