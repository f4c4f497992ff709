//! A trace as a workload that repeats itself.

use super::classes::Classes;
use super::footprint::{Footprint, Request};
use crate::device::Device;
use crate::trace::Op;
use crate::workload::Workload;

/// Plays the requests in turn, and begins again after the last.
#[derive(Debug)]
pub(super) struct Player {
    /// What holds data at the beginning, then what is written and discarded.
    present: Vec<Step>,
    steps: Vec<Step>,
    written_pages: u64,
    /// Where to go on: the step, and the pages of it that are done.
    next: usize,
    done: u32,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    first: u32,
    pages: u32,
    /// `None` for a discard.
    class: Option<u8>,
}

impl Player {
    pub(super) fn new(footprint: &Footprint, classes: &Classes, trim: bool) -> Self {
        let step = |request: &Request| Step {
            first: request.first,
            pages: request.pages,
            class: (request.op != Op::Discard).then(|| classes.of_file(request.file)),
        };
        let of = |wanted: &dyn Fn(Op) -> bool| {
            let requests = footprint.requests.iter();
            requests
                .filter(|request| wanted(request.op))
                .map(step)
                .collect()
        };
        Self {
            present: of(&|op| op == Op::Present),
            steps: of(&|op| op == Op::Write || (op == Op::Discard && trim)),
            written_pages: footprint.totals().written_pages,
            next: 0,
            done: 0,
        }
    }
}

impl Workload for Player {
    fn period(&self) -> u64 {
        self.written_pages
    }

    fn fill(&mut self, device: &mut Device) {
        for step in &self.present {
            for page in step.first..step.first + step.pages {
                if let Some(class) = step.class {
                    device.write(page, class);
                }
            }
        }
    }

    fn advance(&mut self, device: &mut Device, pages: u64) {
        let mut left = pages;
        while left > 0 {
            let step = self.steps[self.next];
            let first = step.first + self.done;
            let end = step.first + step.pages;
            let Some(class) = step.class else {
                (first..end).for_each(|page| device.trim(page));
                self.finish_step();
                continue;
            };
            let now = u64::from(end - first).min(left);
            left -= now;
            // `now` is at most the pages of a step.
            let now = u32::try_from(now).unwrap_or(u32::MAX);
            (first..first + now).for_each(|page| device.write(page, class));
            self.done += now;
            if self.done == step.pages {
                self.finish_step();
            }
        }
    }
}

impl Player {
    fn finish_step(&mut self) {
        self.done = 0;
        self.next = if self.next + 1 == self.steps.len() {
            0
        } else {
            self.next + 1
        };
    }
}
