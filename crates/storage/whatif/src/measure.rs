//! How long the bytes of each file live, from the rows of a trace, one by one.
//!
//! A [`Watcher`] takes rows as they come, from a file or from a recorder, and can be asked at any time. A write of a page is
//! observed until the page is written again or discarded, or until the watching ends: then its life was at least so long.
//!
//! Memory is bounded: above four million pages, also within one row, the watcher goes on with every second one, and counts
//! each twice.

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

/// Pages that are watched at most.
const MOST_PAGES: usize = 4 << 20;
/// Distances between rewrites that differ by less than this factor are those of a ring.
const SAME_DISTANCE: f64 = 1.5;

/// Takes rows and knows what they say of each file.
#[derive(Debug)]
pub struct Watcher {
    page_bytes: u64,
    /// What the watched pages hold.
    pages: BTreeMap<u64, Last>,
    /// What was there before.
    present: Extents,
    files: Vec<File>,
    kinds: HashMap<String, usize>,
    turns: Vec<Turn>,
    /// One page in 2^`thinned` is watched.
    thinned: u32,
    /// Pages that are watched at most.
    most_pages: usize,
    /// When the watching began and ended: with the first row and the last, unless more is known.
    span_ns: Option<[u64; 2]>,
}

/// The last write of a page.
#[derive(Debug, Clone, Copy)]
struct Last {
    t_ns: u64,
    /// `None` for what belongs to no file.
    file: Option<u32>,
    /// Its number among the requests to the file.
    request: u64,
    /// Its number among the page writes to files of the kind.
    turn: u64,
}

#[derive(Debug)]
struct File {
    kind: usize,
    evidence: Evidence,
    /// The pages of its last request.
    request: [u64; 2],
}

/// How files of a kind are written in turn.
#[derive(Debug, Default)]
struct Turn {
    /// Page writes so far.
    writes: u64,
    /// How many of them lay between the last page that was rewritten and its write before.
    distance: Option<f64>,
}

/// A write in pages.
#[derive(Debug, Clone, Copy)]
struct Request {
    t_ns: u64,
    first: u64,
    end: u64,
    /// It begins in the file's request before, or right behind it.
    is_forward: bool,
}

impl Watcher {
    /// A watcher of pages of this size.
    #[must_use]
    pub fn new(page_bytes: u64) -> Self {
        Self {
            page_bytes: page_bytes.max(1),
            pages: BTreeMap::new(),
            present: Extents::default(),
            files: Vec::new(),
            kinds: HashMap::new(),
            turns: Vec::new(),
            thinned: 0,
            most_pages: MOST_PAGES,
            span_ns: None,
        }
    }

    /// All that a trace says; bytes are those that it stands for.
    #[must_use]
    pub fn of(trace: &Trace, page_bytes: u64) -> Self {
        let mut watcher = Self::new(page_bytes);
        for name in &trace.files {
            watcher.file(trace.place(name));
        }
        trace.rows.iter().for_each(|row| watcher.row(&row));
        for file in &mut watcher.files {
            file.evidence.written_bytes = trace.stand_for(file.evidence.written_bytes);
        }
        if let Some(span) = trace.span_ns() {
            watcher.spans(span);
        }
        watcher
    }

    /// The watching began so early and ended so late, although nothing happened then.
    pub fn spans(&mut self, [begin, end]: [u64; 2]) {
        self.span_ns = Some(match self.span_ns {
            None => [begin, end.max(begin)],
            Some([first, last]) => [first.min(begin), last.max(end)],
        });
    }

    /// The next file; rows name it by how many came before it.
    pub fn file(&mut self, place: &str) {
        let next = self.kinds.len();
        let kind = *self.kinds.entry(kind_of(place)).or_insert(next);
        if kind == next {
            self.turns.push(Turn::default());
        }
        self.files.push(File {
            kind,
            evidence: Evidence::default(),
            request: [0, 0],
        });
    }

    /// The next row; its file, if it has one, must be known.
    pub fn row(&mut self, row: &Row) {
        self.spans([row.t_ns; 2]);
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

    /// How long was watched, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.span_ns
            .map_or(0.0, |[begin, end]| (end - begin) as f64 / 1e9)
    }

    /// What is known of each file by now, in the order in which they came.
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
                evidence.lifetimes.goes_on(now - last.t_ns, self.weight());
            }
        }
        all
    }

    /// Pages that each watched one stands for.
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
            turn = self.turns[kind].writes;
            self.turns[kind].writes += end - first;
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
                Some(before) => self.dies(before, last, &request, &mut is_judged),
                None => self.fresh(page, row.file),
            }
            if self.pages.len() > self.most_pages {
                self.thin();
            }
        }
    }

    /// Goes on with half of the pages.
    fn thin(&mut self) {
        self.thinned += 1;
        let thinned = self.thinned;
        self.pages.retain(|page, _| is_watched(*page, thinned));
    }

    /// A page is written that nobody has written before.
    fn fresh(&mut self, page: u64, file: Option<u32>) {
        let (weight, was_there) = (self.weight(), self.present.contains(page));
        if let Some(file) = self.known(file) {
            if was_there {
                file.evidence.rewritten += weight;
            } else {
                file.evidence.pages += weight;
            }
        }
    }

    /// A page is written again.
    fn dies(&mut self, before: Last, now: Last, request: &Request, is_judged: &mut bool) {
        let weight = self.weight();
        let kind = |watcher: &Self, file: Option<u32>| {
            file.and_then(|file| watcher.files.get(file as usize))
                .map(|file| file.kind)
        };
        let [old_kind, new_kind] = [before.file, now.file].map(|file| kind(self, file));
        let is_same_kind = old_kind.is_some() && old_kind == new_kind;
        if let Some(old) = self.known(before.file) {
            old.evidence.lifetimes.ends(now.t_ns - before.t_ns, weight);
            if !is_same_kind {
                old.evidence.deleted += weight;
            }
        }
        let is_tip = before.file == now.file && before.request + 1 == now.request;
        let in_turn = if is_same_kind && !(is_tip && request.is_forward) && !*is_judged {
            *is_judged = true;
            new_kind.and_then(|kind| self.turns[kind].comes_in_turn(now.turn - before.turn))
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
                file.evidence.lifetimes.ends(t_ns - last.t_ns, weight);
                file.evidence.deleted += weight;
            }
        }
    }
}

impl Turn {
    /// Whether a page is rewritten after as many writes as the one before; `None` for the first.
    fn comes_in_turn(&mut self, distance: u64) -> Option<bool> {
        let distance = distance.max(1) as f64;
        let before = self.distance.replace(distance)?;
        let ratio = distance / before;
        Some((1.0 / SAME_DISTANCE..=SAME_DISTANCE).contains(&ratio))
    }
}

/// Whether a page is one of those that are watched: neighbours take turns (Fibonacci hashing).
fn is_watched(page: u64, thinned: u32) -> bool {
    let hash = page.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    thinned == 0 || hash >> (64 - thinned) == 0
}

#[cfg(test)]
mod tests;
