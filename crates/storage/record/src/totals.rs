//! The totals of a recording: bytes by file, kind, directory and hint, and writes per page.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use saiga_blocktrace::Operation;
use saiga_ftl::trace::{Trace, kind_of};

/// The simulator's default page size.
const PAGE: u64 = 4096;
/// Pages in one part of the bit set of written pages; a part takes 4 KiB.
const PART: u64 = 32_768;

/// Numbers of written and discarded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteCounts {
    pub written: u64,
    pub discarded: u64,
}

/// The totals of a recording. They count all pages, even if the trace is a sample.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    pub total: ByteCounts,
    /// Bytes that belong to no file in the directories.
    pub no_file: ByteCounts,
    /// Bytes of the recorder's own output, which are not in the trace.
    pub own: ByteCounts,
    /// Bytes of files at the start.
    pub present: u64,
    /// Rows of the trace, without those of data present at the start.
    pub rows: u64,
    /// Number of lost events.
    pub lost: u64,
    /// Length of the recording.
    pub duration_ns: u64,
    files: HashMap<Arc<str>, u64>,
    hints: HashMap<HintKey, u64>,
    pages: Pages,
}

/// The key of bytes by hint: the file if it still existed at the scan, the hint, and whether the
/// write was smaller than a block.
type HintKey = (Option<Arc<str>>, Option<u8>, bool);

/// Bytes written to a file with one hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HintBytes<'a> {
    /// `None` for the file system's own writes, and for files that were deleted before the scan.
    pub file: Option<&'a str>,
    /// The value of fcntl(2); `None` if the kernel does not report hints.
    pub hint: Option<u8>,
    /// Whether the writes were smaller than 4096 bytes, the block size of most file systems.
    pub is_part: bool,
    pub bytes: u64,
}

/// The set of written pages, and the number of page writes.
#[derive(Debug, Clone, Default)]
struct Pages {
    parts: HashMap<u64, Vec<u64>>,
    written: u64,
    distinct: u64,
}

impl Pages {
    fn write(&mut self, range: &Range<u64>) {
        for page in range.start / PAGE..range.end.div_ceil(PAGE) {
            self.written += 1;
            let part = self.parts.entry(page / PART).or_default();
            // Each number has the bits of 64 pages.
            part.resize(512, 0);
            let index = usize::try_from(page % PART / 64).unwrap_or_default();
            if let Some(bits) = part.get_mut(index) {
                let bit = 1_u64 << (page % 64);
                self.distinct += u64::from(*bits & bit == 0);
                *bits |= bit;
            }
        }
    }
}

impl Totals {
    pub(crate) fn write(&mut self, range: &Range<u64>, file: Option<&Arc<str>>) {
        let bytes = range.end - range.start;
        self.total.written += bytes;
        self.pages.write(range);
        match file {
            None => self.no_file.written += bytes,
            Some(file) => *self.files.entry(Arc::clone(file)).or_default() += bytes,
        }
    }

    pub(crate) fn discard(&mut self, range: &Range<u64>, is_of_file: bool) {
        let bytes = range.end - range.start;
        self.total.discarded += bytes;
        if !is_of_file {
            self.no_file.discarded += bytes;
        }
    }

    /// Counts a part of the recorder's own output.
    pub(crate) fn own(&mut self, operation: Operation, range: &Range<u64>) {
        let bytes = range.end - range.start;
        match operation {
            Operation::Write => self.own.written += bytes,
            Operation::Discard => self.own.discarded += bytes,
        }
    }

    /// Returns the mean number of writes of the written pages; `None` if no page was written.
    #[must_use]
    pub fn writes_per_page(&self) -> Option<f64> {
        let Pages {
            written, distinct, ..
        } = self.pages;
        (distinct > 0).then(|| written as f64 / distinct as f64)
    }

    /// Counts `bytes`, which are part of a write of `whole` bytes, under file and hint.
    pub(crate) fn hint(
        &mut self,
        file: Option<Arc<str>>,
        hint: Option<u8>,
        whole: u64,
        bytes: u64,
    ) {
        let key = (file, hint, whole < PAGE);
        *self.hints.entry(key).or_default() += bytes;
    }

    /// Returns bytes written by file and hint. Unlike in the trace, writes to a file that was
    /// deleted before the next scan belong to no file.
    pub fn hints(&self) -> impl Iterator<Item = HintBytes<'_>> {
        let rows = self.hints.iter();
        rows.map(|((file, hint, is_part), bytes)| HintBytes {
            file: file.as_deref(),
            hint: *hint,
            is_part: *is_part,
            bytes: *bytes,
        })
    }

    /// Returns bytes written to files of each directory, in the order of `directories`.
    #[must_use]
    pub fn by_directory(&self, directories: &[String]) -> Vec<u64> {
        let trace = Trace {
            directories: directories.to_vec(),
            ..Trace::default()
        };
        let mut written = vec![0; directories.len()];
        for (file, bytes) in &self.files {
            if let Some(directory) = trace.directory_of(file) {
                written[directory] += bytes;
            }
        }
        written
    }

    /// Returns bytes written by kind of file, in descending order of bytes. A kind is a path in
    /// `directories` without its numbers.
    #[must_use]
    pub fn kinds(&self, directories: &[String]) -> Vec<(String, u64)> {
        let trace = Trace {
            directories: directories.to_vec(),
            ..Trace::default()
        };
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for (file, bytes) in &self.files {
            *kinds.entry(kind_of(trace.place(file))).or_default() += bytes;
        }
        let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_per_page_are_page_writes_by_distinct_pages() {
        let mut totals = Totals::default();
        assert_eq!(totals.writes_per_page(), None);
        let far = 1 << 40;
        for range in [0..8192, 4096..4608, far..far + 4096, far..far + 4096] {
            totals.write(&range, None);
        }
        let expected = 5.0 / 3.0;
        assert!((totals.writes_per_page().unwrap() - expected).abs() < 1e-9);
        assert_eq!(totals.total.written, 8192 + 512 + 8192);
        assert_eq!(totals.no_file, totals.total);
    }

    #[test]
    fn only_own_parts_of_requests_are_counted_as_own_output() {
        let mut totals = Totals::default();
        // A request with a page of another file in between.
        for range in [0..4096, 8192..12_288] {
            totals.own(Operation::Write, &range);
        }
        totals.own(Operation::Discard, &(0..512));
        let expected = ByteCounts {
            written: 8192,
            discarded: 512,
        };
        assert_eq!(
            (totals.own, totals.total),
            (expected, ByteCounts::default())
        );
    }

    #[test]
    fn kinds_are_paths_in_the_directories_without_numbers() {
        let mut totals = Totals::default();
        for (name, bytes) in [
            ("/db/binlog.000001", 512),
            ("/db/binlog.000002", 1024),
            ("/db/t.ibd", 1024),
        ] {
            totals.write(&(0..bytes), Some(&name.into()));
        }
        let found = totals.kinds(&["/db".to_owned()]);
        assert_eq!(
            found,
            [("binlog.N".to_owned(), 1536), ("t.ibd".to_owned(), 1024)]
        );
    }

    #[test]
    fn each_directory_has_the_bytes_of_its_files() {
        let mut totals = Totals::default();
        for (name, bytes) in [
            ("/a/t", 512),
            ("/a/b/t", 1024),
            ("/c/t", 2048),
            ("/a/s", 512),
        ] {
            totals.write(&(0..bytes), Some(&name.into()));
        }
        let directories = ["/a", "/a/b", "/d"].map(str::to_owned);
        assert_eq!(totals.by_directory(&directories), [1024, 1024, 0]);
    }
}
