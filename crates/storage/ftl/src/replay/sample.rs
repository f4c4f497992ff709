//! Scales a trace down to a sample of its pages, with all requests to them.
//!
//! Each page is kept with the same probability, by a hash of its number, so that rings remain rings
//! with fewer pages, hot pages keep their share of the writes, and the order is preserved (spatial
//! sampling, as SHARDS does for caches).

use super::footprint::{Footprint, Request, Totals, condensed};
use super::live::LivePages;
use crate::trace::{Op, mix};

impl Footprint {
    /// Returns a sample of about `pages` pages; the whole trace if it has no more, or if the sample
    /// has no writes.
    #[must_use]
    pub fn sampled(&self, pages: u32) -> Self {
        if pages >= self.pages() {
            return self.clone();
        }
        let share = f64::from(pages) / f64::from(self.pages());
        let ranks = Ranks::of(self, share);
        let mut sample = Self {
            requests: Vec::new(),
            pages: ranks.before(self.pages()),
            files: self.files.clone(),
            places: self.places.clone(),
            directories: self.directories.clone(),
            directory_of: self.directory_of.clone(),
            totals: Totals {
                duration_ns: self.totals().duration_ns,
                ..Totals::default()
            },
            live: LivePages::default(),
            sized_by: 0.0,
        };
        let mut written = Vec::new();
        for request in &self.requests {
            let [first, end] =
                [request.first, request.first + request.pages].map(|page| ranks.before(page));
            if first < end {
                sample.count(request.op(), end - first);
                if request.op() == Op::Write {
                    written.push((first, end));
                }
                sample.requests.push(Request {
                    first,
                    pages: end - first,
                    ..*request
                });
            }
        }
        sample.totals.distinct_written_pages = distinct(written);
        sample.live = LivePages::of(&sample.requests);
        sample.sized_by = sample.live.mean * self.sized_by / self.live.mean;
        if sample.totals.writes == 0 {
            return self.clone();
        }
        sample
    }

    fn count(&mut self, op: Op, pages: u32) {
        let pages = u64::from(pages);
        let totals = &mut self.totals;
        match op {
            Op::Write => {
                totals.writes += 1;
                totals.written_pages += pages;
            }
            Op::Present => totals.present_pages += pages,
            Op::Discard => totals.discards += 1,
        }
    }
}

/// The number of kept pages before each end of a request. A trace of few lines may have billions of
/// pages, so nothing is stored for each page.
struct Ranks(Vec<(u32, u32)>);

impl Ranks {
    fn of(footprint: &Footprint, share: f64) -> Self {
        let requests = footprint.requests.iter();
        let borders = borders(requests, footprint.pages());
        let (mut page, mut rank) = (0, 0);
        let ranked = borders.into_iter().map(|border| {
            rank += (page..border)
                .map(|page| u32::from(is_kept(page, share)))
                .sum::<u32>();
            page = border;
            (border, rank)
        });
        Self(ranked.collect())
    }

    /// Returns the new number of a page that is an end of a request.
    fn before(&self, page: u32) -> u32 {
        let at = self.0.partition_point(|(border, _)| *border < page);
        self.0.get(at).map_or(0, |(_, rank)| *rank)
    }
}

/// Returns the first and end pages of requests, and `last`, sorted, each once.
pub(super) fn borders<'a>(requests: impl Iterator<Item = &'a Request>, last: u32) -> Vec<u32> {
    let ends = requests.flat_map(|request| [request.first, request.first + request.pages]);
    condensed(ends.chain([last]), |borders| {
        borders.sort_unstable();
        borders.dedup();
    })
}

/// Returns the number of distinct pages in these spans.
fn distinct(mut spans: Vec<(u32, u32)>) -> u64 {
    spans.sort_unstable();
    let (mut count, mut done) = (0, 0);
    for (first, end) in spans {
        count += u64::from(end.saturating_sub(first.max(done)));
        done = done.max(end);
    }
    count
}

/// Whether a page is kept in a sample of this share.
fn is_kept(page: u32, share: f64) -> bool {
    let hash = mix(page.into());
    (hash >> 32) as f64 / 4_294_967_296.0 < share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Row, Trace};

    #[test]
    fn a_sample_has_its_share_of_each_file() {
        let mut trace = Trace {
            files: vec!["ring".to_owned(), "table".to_owned()],
            ..Trace::default()
        };
        let mut row = |op, page: u64, pages: u64, file| {
            trace.rows.push(Row {
                t_ns: 0,
                lba: page * 4096,
                len: pages * 4096,
                op,
                file: Some(file),
            });
        };
        row(Op::Present, 10_000, 30_000, 1);
        for turn in 0..3 {
            (0..100).for_each(|i| row(Op::Write, i * 100, 100, 0));
            row(Op::Write, 10_000 + turn * 1000, 1000, 1);
        }
        row(Op::Discard, 0, 10_000, 0);
        let whole = Footprint::of(&trace, 4096).unwrap();
        let sample = whole.sampled(8000);
        let near = |found: u64, expected: u64| {
            assert!(
                found.abs_diff(expected) * 20 < expected,
                "{found} is far from {expected}"
            );
        };
        near(sample.pages().into(), 8000);
        near(sample.totals().written_pages, 6600);
        near(sample.totals().distinct_written_pages, 2600);
        near(sample.totals().present_pages, 6000);
        assert_eq!(whole.sampled(40_000).pages(), 40_000);
        // The ring is still written from its first page to its last, three times.
        let of_ring = |request: &&Request| request.op() == Op::Write && request.file() == Some(0);
        let ring = sample.requests.iter().filter(of_ring);
        let ends: Vec<u32> = ring.map(|request| request.first + request.pages).collect();
        let breaks = ends.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert_eq!(breaks, 2);
    }

    #[test]
    fn pages_of_several_writes_are_counted_once() {
        assert_eq!(distinct(vec![(5, 9), (0, 3), (7, 8), (2, 4), (9, 9)]), 8);
        assert_eq!(distinct(Vec::new()), 0);
    }

    #[test]
    fn a_sample_without_writes_is_not_used() {
        let mut trace = Trace::default();
        let row = |op, lba, len| Row {
            t_ns: 0,
            lba,
            len,
            op,
            file: None,
        };
        let rows = [row(Op::Present, 0, 4096 << 20), row(Op::Write, 0, 4096)];
        trace.rows = rows.into_iter().collect();
        let footprint = Footprint::of(&trace, 4096).unwrap();
        assert_eq!(footprint.sampled(16).pages(), 1 << 20);
    }
}
