//! Evidence about the writes to a file, or to several.

use super::{Lifetimes, Request};

/// Counts of writes. Each watched page counts for all pages that it represents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    pub written_bytes: u64,
    /// Write requests.
    pub requests: u64,
    /// Requests that began in the previous one or directly after it.
    pub forward: u64,
    /// Those of the forward requests that ended after the previous one.
    pub advances: u64,
    /// Pages that held its data at some time.
    pub pages: u64,
    /// Page writes over data of files of the kind, except at the tip.
    pub rewritten: u64,
    /// Page writes over pages of the previous request: a log whose last page fills.
    pub at_tip: u64,
    /// Pages that died by a discard or by writes of other files.
    pub deleted: u64,
    /// Rewrites whose distance was compared with that of the last rewrite.
    pub judged: u64,
    /// Judged rewrites with about the same distance; in a ring, all of them.
    pub in_turn: u64,
    /// The times of the first and the last write.
    pub written_ns: Option<[u64; 2]>,
    pub lifetimes: Lifetimes,
}

impl Evidence {
    /// Counts a request. Returns whether it continues the previous one.
    pub(super) fn begin(&mut self, request: &Request, before: [u64; 2], bytes: u64) -> bool {
        let [first, end] = before;
        let is_forward = self.requests > 0 && (first..=end).contains(&request.first);
        self.requests += 1;
        self.written_bytes += bytes;
        self.forward += u64::from(is_forward);
        self.advances += u64::from(is_forward && request.end > end);
        self.written_ns = Some([
            self.written_ns.map_or(request.t_ns, |[first, _]| first),
            request.t_ns,
        ]);
        is_forward
    }

    /// Adds the evidence about other files.
    pub fn add(&mut self, other: &Self) {
        let Self {
            written_bytes,
            requests,
            forward,
            advances,
            pages,
            rewritten,
            at_tip,
            deleted,
            judged,
            in_turn,
            written_ns,
            lifetimes,
        } = other;
        self.written_bytes += written_bytes;
        self.requests += requests;
        self.forward += forward;
        self.advances += advances;
        self.pages += pages;
        self.rewritten += rewritten;
        self.at_tip += at_tip;
        self.deleted += deleted;
        self.judged += judged;
        self.in_turn += in_turn;
        self.written_ns = match (self.written_ns, written_ns) {
            (Some([a, b]), Some([c, d])) => Some([a.min(*c), b.max(*d)]),
            (one, other) => one.or(*other),
        };
        self.lifetimes.add(lifetimes);
    }

    /// Returns the sum of several.
    #[must_use]
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|one| sum.add(one));
        sum
    }
}
