//! The pages of a trace, numbered without gaps, and its requests in these pages.

use super::live::LivePages;
use crate::trace::{Label, Op, Row, Sampling, Trace};

/// A trace in pages of a device that holds no other data.
#[derive(Debug, Clone)]
pub struct Footprint {
    pub(super) files: Vec<String>,
    /// The place of each file in the directories of the trace.
    pub(super) places: Vec<String>,
    /// The directories of the trace, if it has several, and the directory of each file.
    pub(super) directories: Vec<String>,
    pub(super) directory_of: Vec<Option<usize>>,
    pub(super) requests: Vec<Request>,
    pub(super) pages: u32,
    pub(super) totals: Totals,
    pub(super) live: LivePages,
    /// The number of pages that determines the size of the device: the mean of live pages, or that
    /// of the trace from which files were left out.
    pub(super) sized_by: f64,
}

/// The totals of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of writes.
    pub writes: u64,
    /// Extrapolated for a sample.
    pub written_bytes: u64,
    /// Page writes of one repetition.
    pub written_pages: u64,
    pub distinct_written_pages: u64,
    /// Writes that begin or end within a page; the whole page is written then.
    pub partial_writes: u64,
    /// Number of discards.
    pub discards: u64,
    /// Extrapolated for a sample.
    pub discarded_bytes: u64,
    /// Pages with data at the start of the recording.
    pub present_pages: u64,
    /// The length of the recording if known, otherwise the time from the first request to the last.
    pub duration_ns: u64,
}

/// A request in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) first: u32,
    pub(super) pages: u32,
    pub(super) label: Label,
}

impl Request {
    /// `file` is an index of `files`; `None` for data without a file.
    pub(super) fn new(first: u32, pages: u32, op: Op, file: Option<u32>) -> Self {
        Self {
            first,
            pages,
            label: Label::new(op, file),
        }
    }

    pub(super) fn op(&self) -> Op {
        self.label.op()
    }

    pub(super) fn file(&self) -> Option<u32> {
        self.label.file()
    }
}

/// The reason why a trace cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FootprintError {
    #[error("has no writes, so there is nothing to simulate; record while the database works")]
    NoWrites,
    /// Page numbers have 32 bits.
    #[error(
        "touches {pages} pages of {page_bytes} bytes; at most 2^32 - 2 can be simulated: use larger \
         pages"
    )]
    TooLarge { pages: u64, page_bytes: u64 },
    /// A page larger than a granule would have bytes that are not adjacent in the database.
    #[error(
        "pages of {page_bytes} bytes: the trace is a sample in granules of {granule_bytes} bytes; \
         use pages of that size or less"
    )]
    Granule { page_bytes: u64, granule_bytes: u64 },
    #[error("pages of {page_bytes} bytes: use a power of two from 512 to 1048576")]
    PageBytes { page_bytes: u64 },
}

/// Adjacent pages of the traced device, `first..end`, numbered from `base` on.
#[derive(Debug, Clone, Copy)]
struct Extent {
    first: u64,
    end: u64,
    base: u64,
}

impl Footprint {
    /// Numbers the pages of a trace in the order of their addresses.
    ///
    /// # Errors
    /// The trace has no writes or too many pages.
    pub fn of(trace: &Trace, page_bytes: u64) -> Result<Self, FootprintError> {
        Self::of_files(trace, page_bytes, &|_| true)
    }

    /// Returns the same trace without some files (`None` for data without a file), for a device of
    /// the same size.
    ///
    /// # Errors
    /// No writes are left.
    pub fn without(
        &self,
        trace: &Trace,
        page_bytes: u64,
        is_left_out: &dyn Fn(Option<u32>) -> bool,
    ) -> Result<Self, FootprintError> {
        let rest = Self::of_files(trace, page_bytes, &|file| !is_left_out(file))?;
        Ok(Self {
            sized_by: self.sized_by,
            ..rest
        })
    }

    fn of_files(
        trace: &Trace,
        page_bytes: u64,
        is_in: &dyn Fn(Option<u32>) -> bool,
    ) -> Result<Self, FootprintError> {
        let rows = || trace.rows.iter().filter(|row| is_in(row.file));
        if !page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&page_bytes) {
            return Err(FootprintError::PageBytes { page_bytes });
        }
        let granule = trace.sampled.map(Sampling::granule_bytes);
        if let Some(granule_bytes) = granule.filter(|bytes| page_bytes > *bytes) {
            return Err(FootprintError::Granule {
                page_bytes,
                granule_bytes,
            });
        }
        let extents = merged(rows(), &[Op::Write, Op::Present], page_bytes);
        let pages = length(&extents);
        let count = u32::try_from(pages)
            .ok()
            .filter(|count| *count < u32::MAX - 1);
        let count = count.ok_or(FootprintError::TooLarge { pages, page_bytes })?;
        let mut footprint = Self {
            files: trace.files.clone(),
            places: trace
                .files
                .iter()
                .map(|name| trace.place(name).to_owned())
                .collect(),
            directories: Vec::new(),
            directory_of: vec![None; trace.files.len()],
            requests: Vec::with_capacity(trace.rows.len()),
            pages: count,
            totals: Totals::default(),
            live: LivePages::default(),
            sized_by: 0.0,
        };
        if trace.directories.len() > 1 {
            footprint.directories.clone_from(&trace.directories);
            let names = trace.files.iter();
            footprint.directory_of = names.map(|name| trace.directory_of(name)).collect();
        }
        for row in rows() {
            footprint.add_row(&row, page_bytes, &extents);
        }
        if footprint.totals.writes == 0 {
            return Err(FootprintError::NoWrites);
        }
        let written = merged(rows(), &[Op::Write], page_bytes);
        footprint.totals.distinct_written_pages = length(&written);
        let present = merged(rows(), &[Op::Present], page_bytes);
        footprint.totals.present_pages = length(&present);
        for bytes in [
            &mut footprint.totals.written_bytes,
            &mut footprint.totals.discarded_bytes,
        ] {
            *bytes = trace.stand_for(*bytes);
        }
        let span = trace.span_ns();
        footprint.totals.duration_ns = span.map_or(0, |[begin, end]| end - begin);
        footprint.live = LivePages::of(&footprint.requests);
        footprint.sized_by = footprint.live.mean;
        Ok(footprint)
    }

    /// Returns the number of pages with data over time. Discards count even if the device does not
    /// receive them.
    #[must_use]
    pub fn live(&self) -> LivePages {
        self.live
    }

    /// Returns the number of distinct pages that are written or present at the start.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns the mean number of writes of the written pages in one repetition.
    #[must_use]
    pub fn writes_per_page(&self) -> f64 {
        self.totals.written_pages as f64 / self.totals.distinct_written_pages as f64
    }

    /// Returns the totals of the trace.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    fn add_row(&mut self, row: &Row, page_bytes: u64, extents: &[Extent]) {
        let (first, end) = span(row, page_bytes);
        let totals = &mut self.totals;
        match row.op {
            Op::Write => {
                let is_whole =
                    row.lba.is_multiple_of(page_bytes) && row.len.is_multiple_of(page_bytes);
                totals.writes += 1;
                totals.written_bytes = totals.written_bytes.saturating_add(row.len);
                totals.written_pages += end - first;
                totals.partial_writes += u64::from(!is_whole);
            }
            // Counted later: several rows may be in one page.
            Op::Present => {}
            Op::Discard => {
                totals.discards += 1;
                totals.discarded_bytes = totals.discarded_bytes.saturating_add(row.len);
            }
        }
        // A write is in one extent; a discard may cover several, and pages outside extents.
        let from = extents.partition_point(|extent| extent.end <= first);
        for extent in extents[from..]
            .iter()
            .take_while(|extent| extent.first < end)
        {
            let (begin, stop) = (first.max(extent.first), end.min(extent.end));
            let numbers = [extent.base + begin - extent.first, stop - begin].map(u32::try_from);
            if let [Ok(first), Ok(pages)] = numbers {
                let request = Request::new(first, pages, row.op, row.file);
                self.requests.push(request);
            }
        }
    }
}

/// Returns the pages of a row as first and end: all that it touches; for a discard, those that it
/// covers.
fn span(row: &Row, page_bytes: u64) -> (u64, u64) {
    let end = row.lba + row.len;
    match row.op {
        Op::Write | Op::Present => (row.lba / page_bytes, end.div_ceil(page_bytes)),
        Op::Discard => {
            let first = row.lba.div_ceil(page_bytes);
            (first, (end / page_bytes).max(first))
        }
    }
}

fn length(extents: &[Extent]) -> u64 {
    extents
        .last()
        .map_or(0, |last| last.base + last.end - last.first)
}

/// Returns the pages of some operations as extents, merged if they touch.
fn merged(rows: impl Iterator<Item = Row>, ops: &[Op], page_bytes: u64) -> Vec<Extent> {
    let spans = rows.filter(|row| ops.contains(&row.op));
    let spans = condensed(spans.map(|row| span(&row, page_bytes)), |spans| {
        spans.sort_unstable();
        spans.dedup_by(|next, last| {
            let meets = next.0 <= last.1;
            if meets {
                last.1 = last.1.max(next.1);
            }
            meets
        });
    });
    let mut base = 0;
    let extent = |(first, end): (u64, u64)| {
        let extent = Extent { first, end, base };
        base += end - first;
        extent
    };
    spans.into_iter().map(extent).collect()
}

/// Collects items, and reduces them by `condense` whenever their number has doubled, so that
/// repeated writes take the memory of one.
pub(super) fn condensed<T>(
    items: impl Iterator<Item = T>,
    condense: impl Fn(&mut Vec<T>),
) -> Vec<T> {
    let mut all = Vec::new();
    let mut limit = 1 << 16;
    for item in items {
        all.push(item);
        if all.len() == limit {
            condense(&mut all);
            limit = (2 * all.len()).max(1 << 16);
        }
    }
    condense(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Options, device};
    use crate::trace::Recorded;

    fn row(op: Op, lba: u64, len: u64) -> Row {
        Row {
            t_ns: lba,
            lba,
            len,
            op,
            file: None,
        }
    }

    fn footprint(mut rows: Vec<Row>) -> Result<Footprint, FootprintError> {
        rows.sort_by_key(|row| row.t_ns);
        let trace = Trace {
            rows: rows.into_iter().collect(),
            ..Trace::default()
        };
        Footprint::of(&trace, 4096)
    }

    /// docs/ftl.md has the memory of a row.
    #[test]
    fn a_request_takes_12_bytes() {
        assert_eq!(size_of::<Request>(), 12);
    }

    /// At most twice the remaining items are held.
    #[test]
    fn condensed_items_take_little_memory() {
        let most = std::cell::Cell::new(0);
        let all = condensed((0..1_000_000_u32).map(|i| i % 7), |all| {
            most.set(most.get().max(all.len()));
            all.sort_unstable();
            all.dedup();
        });
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(most.get(), 1 << 16);
    }

    #[test]
    fn pages_are_numbered_without_gaps() {
        let found = footprint(vec![
            row(Op::Write, 1 << 40, 8192),
            row(Op::Write, 4096, 512),
            row(Op::Present, 8192, 4096),
            // Pages 1 and 2 are in the footprint, 3 is not, and half of 4 is covered.
            row(Op::Discard, 4096, 14_336),
            row(Op::Write, 512, 4096),
        ])
        .unwrap();
        let request = |first, pages, op| Request::new(first, pages, op, None);
        assert_eq!(found.pages(), 5);
        let expected = [
            request(0, 2, Op::Write),
            request(1, 1, Op::Write),
            request(1, 2, Op::Discard),
            request(2, 1, Op::Present),
            request(3, 2, Op::Write),
        ];
        assert_eq!(found.requests, expected);
        let totals = Totals {
            writes: 3,
            written_bytes: 8192 + 512 + 4096,
            written_pages: 5,
            distinct_written_pages: 4,
            partial_writes: 2,
            discards: 1,
            discarded_bytes: 14_336,
            present_pages: 1,
            duration_ns: (1 << 40) - 512,
        };
        assert_eq!(*found.totals(), totals);
    }

    #[test]
    fn the_length_is_that_of_the_recording_if_known() {
        let mut trace = Trace {
            rows: [3, 9]
                .map(|t_ns| Row {
                    t_ns,
                    ..row(Op::Write, 0, 512)
                })
                .into_iter()
                .collect(),
            ..Trace::default()
        };
        let found = |trace: &Trace| Footprint::of(trace, 4096).unwrap().totals().duration_ns;
        assert_eq!(found(&trace), 6);
        trace.recorded = Some(Recorded {
            duration_ns: 20,
            lost: 0,
        });
        assert_eq!(found(&trace), 20);
    }

    /// The table stays on the same device, which has more free space without the log.
    #[test]
    fn without_a_file_the_device_has_the_same_size() {
        let of = |t_ns, op, first: u64, pages: u64, file| Row {
            t_ns,
            lba: first * 4096,
            len: pages * 4096,
            op,
            file: Some(file),
        };
        let rows = [
            of(0, Op::Present, 0, 100, 0),
            of(0, Op::Present, 100, 60, 1),
            of(1, Op::Write, 100, 60, 1),
            of(2, Op::Write, 0, 100, 0),
            of(3, Op::Discard, 200, 60, 1),
        ];
        let trace = Trace {
            files: vec!["table".to_owned(), "log".to_owned()],
            rows: rows.into_iter().collect(),
            ..Trace::default()
        };
        let whole = Footprint::of(&trace, 4096).unwrap();
        let rest = whole.without(&trace, 4096, &|file| file == Some(1));
        let rest = rest.unwrap();
        assert_eq!((whole.pages(), rest.pages()), (160, 100));
        let found = [rest.totals().written_bytes, rest.totals().discards];
        assert_eq!(found, [100 * 4096, 0]);
        let options = Options {
            unit_pages: Some(8),
            utilisation: 0.8,
            ..Options::default()
        };
        let of = |footprint| device(footprint, &options).unwrap().logical_pages;
        assert_eq!((whole.live().mean, of(&whole)), (160.0, 200));
        assert_eq!((rest.live().mean, of(&rest)), (100.0, 200));
        // A sample has two logical pages for each of its pages, too, in whole units.
        let sample = rest.sampled(50);
        let expected = 2 * sample.pages();
        assert!(sample.pages() < 100 && of(&sample).abs_diff(expected) <= 8);
        let all = whole.without(&trace, 4096, &|_| true).unwrap_err();
        assert_eq!(all, FootprintError::NoWrites);
    }

    #[test]
    fn bytes_of_a_sample_are_extrapolated() {
        let mut trace = Trace {
            rows: [row(Op::Write, 0, 8192), row(Op::Discard, 8192, 4096)]
                .into_iter()
                .collect(),
            sampled: Sampling::new(10),
            ..Trace::default()
        };
        let found = Footprint::of(&trace, 4096).unwrap();
        let Totals {
            written_bytes,
            written_pages,
            discarded_bytes,
            ..
        } = *found.totals();
        assert_eq!((written_bytes, written_pages), (81_920, 2));
        assert_eq!(discarded_bytes, 40_960);
        let error = Footprint::of(&trace, 32_768).unwrap_err().to_string();
        assert!(error.contains("granules of 16384 bytes"), "{error}");
        trace.sampled = None;
        Footprint::of(&trace, 32_768).unwrap();
    }

    /// Two logs of four pages are written in turn, beside a table of ten: each is deleted before it
    /// is written again.
    #[test]
    fn discarded_pages_are_not_live() {
        let page = |number: u64| number * 4096;
        let mut rows = vec![Row {
            t_ns: 0,
            ..row(Op::Present, 0, page(10))
        }];
        for (turn, first) in [(1, 100), (2, 200)] {
            for (op, len) in [(Op::Discard, 4), (Op::Write, 4)] {
                rows.push(Row {
                    t_ns: turn,
                    ..row(op, page(first), page(len))
                });
            }
        }
        let found = footprint(rows).unwrap();
        assert_eq!(found.pages(), 18);
        // One log is complete, the other has one to four pages.
        assert_eq!(
            found.live(),
            LivePages {
                mean: 16.5,
                most: 18
            }
        );
    }

    /// A file system of 1 KiB blocks has four files in a page.
    #[test]
    fn a_present_page_is_counted_once() {
        let parts = (0..4).map(|part| row(Op::Present, part * 1024, 1024));
        let all = parts.chain([row(Op::Write, 8192, 4096)]);
        let found = footprint(all.collect()).unwrap();
        assert_eq!((found.totals().present_pages, found.pages()), (1, 2));
    }

    #[test]
    fn traces_that_cannot_be_replayed_are_refused() {
        let nothing = footprint(vec![row(Op::Discard, 0, 4096)]).unwrap_err();
        assert_eq!(nothing, FootprintError::NoWrites);
        let huge = footprint(vec![row(Op::Write, 0, 1 << 45)]).unwrap_err();
        let pages = 1 << 33;
        assert_eq!(
            huge,
            FootprintError::TooLarge {
                pages,
                page_bytes: 4096
            }
        );
        let odd = Footprint::of(&Trace::default(), 3000).unwrap_err();
        assert_eq!(odd, FootprintError::PageBytes { page_bytes: 3000 });
    }
}
