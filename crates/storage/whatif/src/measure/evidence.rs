//! What was seen of a file, or of several.

use super::{Lifetimes, Request};

/// What was seen. Pages are of those that are watched, each counted for all that it stands for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Requests that wrote them.
    pub requests: u64,
    /// Requests that began within the one before, or right behind it.
    pub forward: u64,
    /// Those of them that ended behind it.
    pub advances: u64,
    /// Pages that held its data at some time.
    pub pages: u64,
    /// Page writes over data of files of the kind, but for those at the tip.
    pub rewritten: u64,
    /// Page writes over what the request before had written: a log whose last page fills.
    pub at_tip: u64,
    /// Pages that died by a discard, or because others were written there.
    pub deleted: u64,
    /// Rewrites whose distance from the write before was compared with that of the last rewrite, and those that were
    /// equal: all of them in a ring.
    pub judged: u64,
    /// See `judged`.
    pub in_turn: u64,
    /// The time of the first write and of the last.
    pub written_ns: Option<[u64; 2]>,
    /// How long its pages lived.
    pub lifetimes: Lifetimes,
}

impl Evidence {
    /// Counts a request, and says whether it goes on where the one before was.
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

    /// Adds what was seen of other files.
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

    /// All of several.
    #[must_use]
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|one| sum.add(one));
        sum
    }
}
