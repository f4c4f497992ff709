//! How many pages of a trace hold data: those that were written or present, and have not been
//! discarded since.

use super::footprint::Request;
use super::sample::borders;
use crate::trace::Op;

/// Pages that hold data while a trace is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LivePages {
    /// The mean over all page writes of a repetition.
    pub mean: f64,
    /// The most at any time, the first repetition included.
    pub most: u32,
}

impl LivePages {
    /// Walks the requests twice: what the first repetition leaves is where each further one begins.
    ///
    /// A trace of few lines may have thousands of millions of pages, so stretches between the ends
    /// of requests are looked at, and not pages.
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
            walk.enter(request);
        }
        let (mut sum, mut written) = (0.0, 0_u64);
        for is_counted in [false, true] {
            for request in requests.iter().filter(|one| one.op() != Op::Present) {
                let of_request = walk.enter(request);
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
    /// Where stretches begin and end.
    borders: Vec<u32>,
    /// By stretch: whether its pages hold data.
    is_live: Vec<bool>,
    live: u32,
    most: u32,
}

impl Walk {
    /// The sum of the live pages after each page of the request, one after another.
    fn enter(&mut self, request: &Request) -> f64 {
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
