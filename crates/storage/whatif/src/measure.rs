//! Measures the lifetimes of the bytes of each file from the rows of a trace.
//!
//! A [`LifetimeMeter`] takes rows one by one, from a file or from a recorder, and has results at
//! any time. A write of a page is observed until the page is written again or discarded; at the end
//! of the trace, its life was at least that long.
//!
//! Memory is bounded: above four million pages, also within one row, the meter continues with every
//! second page and counts each twice.

mod conclusion;
mod evidence;
mod extents;
mod lifetimes;

use std::collections::{BTreeMap, HashMap};

use saiga_ftl::trace::{Op, Row, Trace, kind_of};

pub use conclusion::{Behaviour, Conclusion, conclude};
pub use evidence::Evidence;
use extents::Extents;
pub use lifetimes::{Age, Lifetimes};

/// Most pages that are watched.
const MOST_PAGES: usize = 4 << 20;
/// In a ring, consecutive distances between rewrites differ by less than this factor.
const SAME_DISTANCE: f64 = 1.5;

/// Collects evidence about each file from rows.
#[derive(Debug)]
pub struct LifetimeMeter {
    page_bytes: u64,
    /// The last write of each watched page.
    pages: BTreeMap<u64, Last>,
    /// Pages with data at the start.
    present: Extents,
    files: Vec<File>,
    kinds: HashMap<String, usize>,
    kinds_in_turn: Vec<KindWrites>,
    /// Every 2^`thinned`-th page is watched.
    thinned: u32,
    most_pages: usize,
    /// Start and end: the first and the last row, or those of the recording.
    span_ns: Option<[u64; 2]>,
}

/// The last write of a page.
#[derive(Debug, Clone, Copy)]
struct Last {
    t_ns: u64,
    /// `None` for data without a file.
    file: Option<u32>,
    /// The number of the request among those to the file.
    request: u64,
    /// The number of the page write among those to files of the kind.
    turn: u64,
}

#[derive(Debug)]
struct File {
    kind: usize,
    evidence: Evidence,
    /// The pages of its last request.
    request: [u64; 2],
}

/// Writes to the files of a kind, which may form a ring.
#[derive(Debug, Default)]
struct KindWrites {
    /// Page writes so far.
    writes: u64,
    /// The page writes between the last rewrite and the previous write of the same page.
    distance: Option<f64>,
}

/// A write request in pages.
#[derive(Debug, Clone, Copy)]
struct Request {
    t_ns: u64,
    first: u64,
    end: u64,
    /// Whether it begins in the file's previous request or directly after it.
    is_forward: bool,
}

impl LifetimeMeter {
    /// Creates a meter for pages of this size.
    #[must_use]
    pub fn new(page_bytes: u64) -> Self {
        Self {
            page_bytes: page_bytes.max(1),
            pages: BTreeMap::new(),
            present: Extents::default(),
            files: Vec::new(),
            kinds: HashMap::new(),
            kinds_in_turn: Vec::new(),
            thinned: 0,
            most_pages: MOST_PAGES,
            span_ns: None,
        }
    }

    /// Measures a whole trace; bytes of a sample are extrapolated.
    #[must_use]
    pub fn of(trace: &Trace, page_bytes: u64) -> Self {
        let mut meter = Self::new(page_bytes);
        for name in &trace.files {
            meter.add_file(trace.place(name));
        }
        trace.rows.iter().for_each(|row| meter.add_row(&row));
        for file in &mut meter.files {
            file.evidence.written_bytes = trace.stand_for(file.evidence.written_bytes);
        }
        if let Some(span) = trace.span_ns() {
            meter.extend_span(span);
        }
        meter
    }

    /// Extends the observed time, which may be longer than that of the rows.
    pub fn extend_span(&mut self, [begin, end]: [u64; 2]) {
        self.span_ns = Some(match self.span_ns {
            None => [begin, end.max(begin)],
            Some([first, last]) => [first.min(begin), last.max(end)],
        });
    }

    /// Adds the next file. Rows refer to files by their index in this order.
    pub fn add_file(&mut self, place: &str) {
        let next = self.kinds.len();
        let kind = *self.kinds.entry(kind_of(place)).or_insert(next);
        if kind == next {
            self.kinds_in_turn.push(KindWrites::default());
        }
        self.files.push(File {
            kind,
            evidence: Evidence::default(),
            request: [0, 0],
        });
    }

    /// Adds the next row, whose file must be known.
    pub fn add_row(&mut self, row: &Row) {
        self.extend_span([row.t_ns; 2]);
        let (first, end) = (
            row.lba / self.page_bytes,
            (row.lba + row.len).div_ceil(self.page_bytes),
        );
        match row.op {
            Op::Present => {
                self.present.insert(first, end);
                if let Some(file) = self.known(row.file) {
                    file.evidence.pages += end - first;
                }
            }
            Op::Write => self.write(row, first, end),
            Op::Discard => {
                let first = row.lba.div_ceil(self.page_bytes);
                self.discard(row.t_ns, first, (row.lba + row.len) / self.page_bytes);
            }
        }
    }

    /// Returns the observed time in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.span_ns
            .map_or(0.0, |[begin, end]| (end - begin) as f64 / 1e9)
    }

    /// Returns the evidence about each file so far, in their order.
    #[must_use]
    pub fn evidence(&self) -> Vec<Evidence> {
        let mut all: Vec<Evidence> = self
            .files
            .iter()
            .map(|file| file.evidence.clone())
            .collect();
        let now = self.span_ns.map_or(0, |[_, end]| end);
        for last in self.pages.values() {
            let evidence = last.file.and_then(|file| all.get_mut(file as usize));
            if let Some(evidence) = evidence {
                evidence
                    .lifetimes
                    .add_censored(now - last.t_ns, self.weight());
            }
        }
        all
    }

    /// Returns the number of pages that each watched page represents.
    fn weight(&self) -> u64 {
        1 << self.thinned
    }

    fn known(&mut self, file: Option<u32>) -> Option<&mut File> {
        self.files.get_mut(file? as usize)
    }

    fn write(&mut self, row: &Row, first: u64, end: u64) {
        let mut request = Request {
            t_ns: row.t_ns,
            first,
            end,
            is_forward: false,
        };
        let (mut number, mut turn) = (0, 0);
        if let Some(file) = self.known(row.file) {
            request.is_forward = file.evidence.begin(&request, file.request, row.len);
            file.request = [first, end];
            number = file.evidence.requests;
            let kind = file.kind;
            turn = self.kinds_in_turn[kind].writes;
            self.kinds_in_turn[kind].writes += end - first;
        }
        let mut is_judged = false;
        for page in first..end {
            if !is_watched(page, self.thinned) {
                continue;
            }
            let last = Last {
                t_ns: row.t_ns,
                file: row.file,
                request: number,
                turn: turn + (page - first),
            };
            match self.pages.insert(page, last) {
                Some(before) => self.on_rewrite(before, last, &request, &mut is_judged),
                None => self.on_first_write(page, row.file),
            }
            if self.pages.len() > self.most_pages {
                self.thin();
            }
        }
    }

    /// Continues with half of the pages.
    fn thin(&mut self) {
        self.thinned += 1;
        let thinned = self.thinned;
        self.pages.retain(|page, _| is_watched(*page, thinned));
    }

    /// Handles the first write of a page in the trace.
    fn on_first_write(&mut self, page: u64, file: Option<u32>) {
        let (weight, was_there) = (self.weight(), self.present.contains(page));
        if let Some(file) = self.known(file) {
            if was_there {
                file.evidence.rewritten += weight;
            } else {
                file.evidence.pages += weight;
            }
        }
    }

    /// Handles another write of a page.
    fn on_rewrite(&mut self, before: Last, now: Last, request: &Request, is_judged: &mut bool) {
        let weight = self.weight();
        let kind = |meter: &Self, file: Option<u32>| {
            file.and_then(|file| meter.files.get(file as usize))
                .map(|file| file.kind)
        };
        let [old_kind, new_kind] = [before.file, now.file].map(|file| kind(self, file));
        let is_same_kind = old_kind.is_some() && old_kind == new_kind;
        if let Some(old) = self.known(before.file) {
            old.evidence
                .lifetimes
                .add_ended(now.t_ns - before.t_ns, weight);
            if !is_same_kind {
                old.evidence.deleted += weight;
            }
        }
        let is_tip = before.file == now.file && before.request + 1 == now.request;
        let in_turn = if is_same_kind && !(is_tip && request.is_forward) && !*is_judged {
            *is_judged = true;
            new_kind.and_then(|kind| self.kinds_in_turn[kind].is_in_turn(now.turn - before.turn))
        } else {
            None
        };
        let Some(new) = self.known(now.file) else {
            return;
        };
        if before.file != now.file {
            new.evidence.pages += weight;
        }
        if is_same_kind {
            if is_tip && request.is_forward {
                new.evidence.at_tip += weight;
            } else {
                new.evidence.rewritten += weight;
            }
        }
        if let Some(in_turn) = in_turn {
            new.evidence.judged += 1;
            new.evidence.in_turn += u64::from(in_turn);
        }
    }

    fn discard(&mut self, t_ns: u64, first: u64, end: u64) {
        if first >= end {
            return;
        }
        self.present.remove(first, end);
        let dead: Vec<u64> = self
            .pages
            .range(first..end)
            .map(|(page, _)| *page)
            .collect();
        let weight = self.weight();
        for page in dead {
            let Some(last) = self.pages.remove(&page) else {
                continue;
            };
            if let Some(file) = self.known(last.file) {
                file.evidence.lifetimes.add_ended(t_ns - last.t_ns, weight);
                file.evidence.deleted += weight;
            }
        }
    }
}

impl KindWrites {
    /// Whether a page is rewritten after about as many writes as the last one; `None` for the
    /// first.
    fn is_in_turn(&mut self, distance: u64) -> Option<bool> {
        let distance = distance.max(1) as f64;
        let before = self.distance.replace(distance)?;
        let ratio = distance / before;
        Some((1.0 / SAME_DISTANCE..=SAME_DISTANCE).contains(&ratio))
    }
}

/// Whether a page is watched: a sample spread evenly by Fibonacci hashing.
fn is_watched(page: u64, thinned: u32) -> bool {
    let hash = page.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    thinned == 0 || hash >> (64 - thinned) == 0
}

#[cfg(test)]
mod tests;
