//! Divides written and moved pages among the directories of a trace: several databases on one
//! drive.

use saiga_ftl::replay::Case;
use saiga_ftl::trace::Trace;

use crate::sets::written_bytes;

/// The name for files outside all directories and for data without a file.
const ELSEWHERE: &str = "(no directory)";

/// The directories of a trace with several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    /// Directories with the bytes that the trace writes to them; the last entry is [`ELSEWHERE`].
    list: Vec<(String, u64)>,
}

/// The share of a directory in a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The path of the directory.
    pub name: String,
    /// Bytes that the trace writes to its files.
    pub written_bytes: u64,
    /// `written_bytes` as a share of all bytes that the trace writes.
    pub of_written: f64,
    /// Pages that the host wrote to its files during the measurement.
    pub host_pages: u64,
    /// Pages of its files that were moved.
    pub moved_pages: u64,
    /// Pages of any directory that were moved because pages of its files had died in their units.
    pub caused_pages: f64,
    /// `caused_pages` as a share of all moved pages; `None` without any.
    pub of_caused: Option<f64>,
}

impl Directories {
    /// Returns `None` for a trace with fewer than two directories.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Self> {
        if trace.directories.len() < 2 {
            return None;
        }
        let names = trace.directories.iter().map(String::as_str);
        let mut list: Vec<(String, u64)> = names
            .chain([ELSEWHERE])
            .map(|name| (name.to_owned(), 0))
            .collect();
        let last = trace.directories.len();
        let files = trace.files.iter().map(|name| trace.directory_of(name));
        for (directory, bytes) in files.chain([None]).zip(written_bytes(trace)) {
            list[directory.unwrap_or(last)].1 += bytes;
        }
        Some(Self { list })
    }

    /// Returns each directory with the bytes that the trace writes to it.
    pub fn written(&self) -> impl Iterator<Item = (&str, u64)> {
        self.list
            .iter()
            .map(|(name, bytes)| (name.as_str(), *bytes))
    }

    /// Returns the share of each directory; empty if there were too many classes to distinguish
    /// them.
    #[must_use]
    pub fn parts(&self, case: &Case) -> Vec<Part> {
        if case.classes.iter().all(|class| class.directory.is_none()) {
            return Vec::new();
        }
        let measured = &case.outcome.measured;
        let all: u64 = self.list.iter().map(|(_, bytes)| bytes).sum();
        let all_caused: f64 = measured.charged.iter().flatten().sum();
        let part = |(number, (name, written_bytes)): (usize, &(String, u64))| {
            let is_of = |class: usize| {
                let directory = case.classes[class].directory;
                directory.unwrap_or(self.list.len() - 1) == number
            };
            let classes = || (0..case.classes.len()).filter(|class| is_of(*class));
            let caused: f64 = classes().flat_map(|class| &measured.charged[class]).sum();
            Part {
                name: name.clone(),
                written_bytes: *written_bytes,
                of_written: *written_bytes as f64 / all.max(1) as f64,
                host_pages: classes().map(|class| measured.host[class]).sum(),
                moved_pages: classes().map(|class| measured.moved[class]).sum(),
                caused_pages: caused,
                of_caused: (all_caused > 0.0).then(|| caused / all_caused),
            }
        };
        self.list.iter().enumerate().map(part).collect()
    }
}

impl Part {
    /// Returns the write amplification of the directory's own pages; `None` without writes.
    #[must_use]
    pub fn waf(&self) -> Option<f64> {
        let (host, moved) = (self.host_pages as f64, self.moved_pages as f64);
        (self.host_pages > 0).then(|| (host + moved) / host)
    }
}
