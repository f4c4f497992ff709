//! The pages that a trace touches, numbered without gaps, and its requests in such pages.

use super::live::LivePages;
use crate::trace::{Label, Op, Row, Sampling, Trace};

/// A trace in pages of a device that holds nothing else.
#[derive(Debug, Clone)]
pub struct Footprint {
    pub(super) files: Vec<String>,
    /// Where each is below the directories of the trace.
    pub(super) places: Vec<String>,
    /// The directories of the trace, if there are several, and the one of each file.
    pub(super) directories: Vec<String>,
    pub(super) directory_of: Vec<Option<usize>>,
    pub(super) requests: Vec<Request>,
    pub(super) pages: u32,
    pub(super) totals: Totals,
    pub(super) live: LivePages,
    /// The pages by which a device is sized: those that are live in the mean, unless it is another
    /// trace's device.
    pub(super) sized_by: f64,
}

/// What a trace consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Writes.
    pub writes: u64,
    /// Bytes of them; of a sample, those that it stands for.
    pub written_bytes: u64,
    /// Pages of them: what one repetition writes to the device.
    pub written_pages: u64,
    /// Different pages of them.
    pub distinct_written_pages: u64,
    /// Writes that begin or end within a page, which is then written whole.
    pub partial_writes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes of them; of a sample, those that it stands for.
    pub discarded_bytes: u64,
    /// Pages that held data when the recording began.
    pub present_pages: u64,
    /// What was recorded, where the trace tells it, else from the first request to the last.
    pub duration_ns: u64,
}

/// Pages that are handled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) first: u32,
    pub(super) pages: u32,
    pub(super) label: Label,
}

impl Request {
    /// The number of the file is an index of `files`; `None` for what belongs to none.
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

/// Why a trace cannot be replayed at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FootprintError {
    /// Nothing happens in it.
    #[error("has no writes, so there is nothing to simulate; record while the database works")]
    NoWrites,
    /// Pages are numbered with 32 bits.
    #[error(
        "touches {pages} pages of {page_bytes} bytes; at most 2^32 - 2 can be simulated: use larger pages"
    )]
    TooLarge {
        /// How many it touches.
        pages: u64,
        /// How large they are.
        page_bytes: u64,
    },
    /// A page would have bytes of several places.
    #[error(
        "pages of {page_bytes} bytes: the trace is a sample in granules of {granule_bytes} bytes; use pages of that size \
         or less"
    )]
    Granule {
        /// What was asked for.
        page_bytes: u64,
        /// What follows each other in the sample.
        granule_bytes: u64,
    },
    /// A page is made of sectors.
    #[error("pages of {page_bytes} bytes: use a power of two from 512 to 1048576")]
    PageBytes {
        /// What was asked for.
        page_bytes: u64,
    },
}

/// Pages of the traced device that follow each other, `first..end`, numbered from `base` on.
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

    /// The same trace without some files (`None` is what belongs to no file): as if they had never
    /// been there, on the device that this one is replayed on.
    ///
    /// # Errors
    /// Nothing is left that is written.
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
            footprint.enter(&row, page_bytes, &extents);
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

    /// How many pages hold data at a time. Discards are deaths, whether or not the device is told
    /// of them.
    #[must_use]
    pub fn live(&self) -> LivePages {
        self.live
    }

    /// Distinct pages that are written or were there.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// How often one repetition writes a page that it writes at all, in the mean.
    #[must_use]
    pub fn writes_per_page(&self) -> f64 {
        self.totals.written_pages as f64 / self.totals.distinct_written_pages as f64
    }

    /// What it consists of.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    fn enter(&mut self, row: &Row, page_bytes: u64, extents: &[Extent]) {
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
            // Several may be in one page.
            Op::Present => {}
            Op::Discard => {
                totals.discards += 1;
                totals.discarded_bytes = totals.discarded_bytes.saturating_add(row.len);
            }
        }
        // A write lies in one extent; a discard may reach over several and what is in none.
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

/// The pages of a row, as first and end: all that it touches; of a discard, those it covers.
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

/// The pages of some operations, merged where they meet.
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

/// All items, made fewer by `condense` whenever there are twice as many as it left the last time: what
/// is written again and again takes the memory of one write.
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

    /// docs/ftl.md says what a row takes.
    #[test]
    fn a_request_takes_12_bytes() {
        assert_eq!(size_of::<Request>(), 12);
    }

    /// However many there are, no more than twice what is left of them is held.
    #[test]
    fn what_is_condensed_stays_small() {
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
            // Pages 1 and 2 are known, 3 is not, 4 is covered in half.
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
    fn a_trace_is_as_long_as_was_recorded_if_it_tells() {
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

    /// The table stays on the same device, of which the log left some more free.
    #[test]
    fn without_a_file_it_is_the_same_device() {
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
    fn of_a_sample_bytes_are_those_that_it_stands_for() {
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

    /// Two logs of four pages take turns, beside a table of ten: each is deleted before it is
    /// written again.
    #[test]
    fn what_was_discarded_is_not_live() {
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
        // One log is whole, the other has one to four pages.
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
    fn a_page_that_was_there_is_counted_once() {
        let parts = (0..4).map(|part| row(Op::Present, part * 1024, 1024));
        let all = parts.chain([row(Op::Write, 8192, 4096)]);
        let found = footprint(all.collect()).unwrap();
        assert_eq!((found.totals().present_pages, found.pages()), (1, 2));
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
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
