//! Counts live pages over the course of a trace: written or present, and not discarded since.

use super::footprint::Request;
use super::sample::borders;
use crate::trace::Op;

/// Live pages while a trace is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LivePages {
    /// The mean over all page writes of a repetition.
    pub mean: f64,
    /// The maximum at any time, including the first repetition.
    pub most: u32,
}

impl LivePages {
    /// Walks the requests twice: later repetitions start with the pages that the first one leaves.
    ///
    /// A trace of few lines may have billions of pages, so the walk is over ranges between the ends
    /// of requests, not over pages.
    pub(super) fn of(requests: &[Request]) -> Self {
        let last = requests.first().map_or(0, |request| request.first);
        let borders = borders(requests.iter(), last);
        let mut walk = Walk {
            is_live: vec![false; borders.len()],
            borders,
            live: 0,
            most: 0,
        };
        for request in requests.iter().filter(|one| one.op() == Op::Present) {
            walk.apply(request);
        }
        let (mut sum, mut written) = (0.0, 0_u64);
        for is_counted in [false, true] {
            for request in requests.iter().filter(|one| one.op() != Op::Present) {
                let of_request = walk.apply(request);
                if is_counted && request.op() == Op::Write {
                    sum += of_request;
                    written += u64::from(request.pages);
                }
            }
        }
        Self {
            mean: sum / written.max(1) as f64,
            most: walk.most,
        }
    }
}

struct Walk {
    /// The ends of ranges.
    borders: Vec<u32>,
    /// Whether the pages of each range are live.
    is_live: Vec<bool>,
    live: u32,
    most: u32,
}

impl Walk {
    /// Applies a request. Returns the sum of the live pages after each of its pages.
    fn apply(&mut self, request: &Request) -> f64 {
        let end = request.first + request.pages;
        let is_written = request.op() != Op::Discard;
        let mut sum = 0.0;
        let mut at = self.borders.partition_point(|it| *it < request.first);
        while let [first, next, ..] = self.borders[at..]
            && first < end
        {
            let pages = next - first;
            let was_live = std::mem::replace(&mut self.is_live[at], is_written);
            let before = f64::from(self.live);
            let count = f64::from(pages);
            match (was_live, is_written) {
                (false, true) => {
                    self.live += pages;
                    sum += count * before + count * (count + 1.0) / 2.0;
                }
                (true, false) => self.live -= pages,
                (true, true) | (false, false) => sum += count * before,
            }
            self.most = self.most.max(self.live);
            at += 1;
        }
        sum
    }
}
