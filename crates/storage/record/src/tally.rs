//! What a recording adds up to.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use saiga_blocktrace::Operation;
use saiga_ftl::trace::{Trace, kind_of};

/// Bytes of a page, as the simulator counts them by default.
const PAGE: u64 = 4096;
/// Pages of one part of the set of written pages: a bit for each in 4 KiB.
const PART: u64 = 32_768;

/// Bytes by what was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Written.
    pub written: u64,
    /// Discarded.
    pub discarded: u64,
}

/// What has been recorded so far.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// All of it.
    pub total: Written,
    /// What belongs to no file of the directories.
    pub no_file: Written,
    /// Our own output, which is not in the trace.
    pub own: Written,
    /// Bytes that held data when the recording began.
    pub present: u64,
    /// Rows of the trace, but for what was there before. All else is of what was recorded, also
    /// where the trace is a sample.
    pub rows: u64,
    /// Events that were lost.
    pub lost: u64,
    /// From begin to end, in nanoseconds.
    pub duration_ns: u64,
    files: HashMap<Arc<str>, u64>,
    hints: HashMap<HintKey, u64>,
    pages: Pages,
}

/// What bytes by hint are told apart by: the file, if it was there when it was looked for, the hint, whether the write
/// was smaller than a block.
type HintKey = (Option<Arc<str>>, Option<u8>, bool);

/// Bytes that were written to a file under a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hinted<'a> {
    /// Which file; none for the file system's own, and for files that were gone when they were looked for.
    pub file: Option<&'a str>,
    /// As fcntl(2) numbers them; none where the kernel does not say.
    pub hint: Option<u8>,
    /// Whether they came in writes smaller than a block of most file systems (4096 bytes).
    pub is_part: bool,
    /// How many.
    pub bytes: u64,
}

/// Pages that were written at least once, and how often in sum.
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
            // 64 pages in each number.
            part.resize(512, 0);
            let place = usize::try_from(page % PART / 64).unwrap_or_default();
            if let Some(bits) = part.get_mut(place) {
                let bit = 1_u64 << (page % 64);
                self.distinct += u64::from(*bits & bit == 0);
                *bits |= bit;
            }
        }
    }
}

impl Tally {
    /// Counts a write.
    pub(crate) fn write(&mut self, range: &Range<u64>, file: Option<&Arc<str>>) {
        let bytes = range.end - range.start;
        self.total.written += bytes;
        self.pages.write(range);
        match file {
            None => self.no_file.written += bytes,
            Some(file) => *self.files.entry(Arc::clone(file)).or_default() += bytes,
        }
    }

    /// Counts a discard.
    pub(crate) fn discard(&mut self, range: &Range<u64>, is_of_file: bool) {
        let bytes = range.end - range.start;
        self.total.discarded += bytes;
        if !is_of_file {
            self.no_file.discarded += bytes;
        }
    }

    /// Counts a piece of our own output.
    pub(crate) fn own(&mut self, operation: Operation, range: &Range<u64>) {
        let bytes = range.end - range.start;
        match operation {
            Operation::Write => self.own.written += bytes,
            Operation::Discard => self.own.discarded += bytes,
        }
    }

    /// How often a page was written that was written at all, in the mean; `None` if none was.
    #[must_use]
    pub fn writes_per_page(&self) -> Option<f64> {
        let Pages {
            written, distinct, ..
        } = self.pages;
        (distinct > 0).then(|| written as f64 / distinct as f64)
    }

    /// Counts the hint of some of the bytes of a write of `whole` bytes.
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

    /// Bytes written, by file and hint. Unlike in the trace, what a file wrote that was gone at the next look is not counted for any file.
    pub fn hints(&self) -> impl Iterator<Item = Hinted<'_>> {
        let rows = self.hints.iter();
        rows.map(|((file, hint, is_part), bytes)| Hinted {
            file: file.as_deref(),
            hint: *hint,
            is_part: *is_part,
            bytes: *bytes,
        })
    }

    /// Bytes written to each directory's files, in the order of `directories`.
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

    /// Bytes written by kind of file (names below `directories`, without their numbers), most first.
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
    fn pages_are_counted_once_and_as_often_as_they_are_written() {
        let mut tally = Tally::default();
        assert_eq!(tally.writes_per_page(), None);
        let far = 1 << 40;
        for range in [0..8192, 4096..4608, far..far + 4096, far..far + 4096] {
            tally.write(&range, None);
        }
        let expected = 5.0 / 3.0;
        assert!((tally.writes_per_page().unwrap() - expected).abs() < 1e-9);
        assert_eq!(tally.total.written, 8192 + 512 + 8192);
        assert_eq!(tally.no_file, tally.total);
    }

    #[test]
    fn of_our_own_output_pieces_are_counted_and_no_whole_requests() {
        let mut tally = Tally::default();
        // A request of two pages with one of somebody else in between.
        for range in [0..4096, 8192..12_288] {
            tally.own(Operation::Write, &range);
        }
        tally.own(Operation::Discard, &(0..512));
        let expected = Written {
            written: 8192,
            discarded: 512,
        };
        assert_eq!((tally.own, tally.total), (expected, Written::default()));
    }

    #[test]
    fn kinds_are_names_below_the_directories_without_numbers() {
        let mut tally = Tally::default();
        for (name, bytes) in [
            ("/db/binlog.000001", 512),
            ("/db/binlog.000002", 1024),
            ("/db/t.ibd", 1024),
        ] {
            tally.write(&(0..bytes), Some(&name.into()));
        }
        let found = tally.kinds(&["/db".to_owned()]);
        assert_eq!(
            found,
            [("binlog.N".to_owned(), 1536), ("t.ibd".to_owned(), 1024)]
        );
    }

    #[test]
    fn each_directory_has_what_its_files_were_written() {
        let mut tally = Tally::default();
        for (name, bytes) in [
            ("/a/t", 512),
            ("/a/b/t", 1024),
            ("/c/t", 2048),
            ("/a/s", 512),
        ] {
            tally.write(&(0..bytes), Some(&name.into()));
        }
        let directories = ["/a", "/a/b", "/d"].map(str::to_owned);
        assert_eq!(tally.by_directory(&directories), [1024, 1024, 0]);
    }
}
