//! Plays a trace as a repeating workload.

use super::footprint::{Footprint, Request};
use super::oracle::Assignment;
use crate::device::Device;
use crate::trace::Op;
use crate::workload::Workload;

/// Plays the requests in order, and starts again after the last.
#[derive(Debug)]
pub(super) struct Player<'a> {
    requests: &'a [Request],
    /// The class of each file; the class of data without a file is last.
    of_file: Vec<u8>,
    written_pages: u64,
    /// The position: the request, and its completed pages.
    next: usize,
    done: u32,
    /// Whether the device receives discards.
    trim: bool,
    /// The logical pages on a device that has fewer than the trace touches.
    page_map: Option<PageMap>,
    /// Classes by page write instead of by file, and the position in them.
    by_write: Option<(Assignment, usize)>,
}

impl<'a> Player<'a> {
    /// Creates a player for a device of `logical_pages`.
    pub(super) fn new(
        footprint: &'a Footprint,
        class_of: &dyn Fn(Option<u32>) -> u8,
        trim: bool,
        logical_pages: u32,
    ) -> Self {
        let files = (0..).zip(&footprint.files);
        let of_file = files.map(|(file, _)| class_of(Some(file)));
        let page_map = (logical_pages < footprint.pages())
            .then(|| PageMap::new(footprint.pages(), logical_pages));
        Self {
            requests: &footprint.requests,
            of_file: of_file.chain([class_of(None)]).collect(),
            written_pages: footprint.totals().written_pages,
            next: 0,
            done: 0,
            trim,
            page_map,
            by_write: None,
        }
    }

    /// Sets classes by page write instead of by file.
    pub(super) fn set_classes(&mut self, assignment: Assignment) {
        self.by_write = Some((assignment, 0));
    }

    fn class(&self, request: &Request) -> u8 {
        let last = self.of_file.len() - 1;
        self.of_file[request.file().map_or(last, |file| file as usize)]
    }

    fn write(&mut self, device: &mut Device, page: u32, class: u8) {
        let page = match &mut self.page_map {
            Some(page_map) => page_map.assign(page),
            None => page,
        };
        device.write(page, class);
    }

    fn discard(&mut self, device: &mut Device, page: u32) {
        let page = match &mut self.page_map {
            Some(page_map) => page_map.release(page),
            None => Some(page),
        };
        if let Some(page) = page.filter(|_| self.trim) {
            device.trim(page);
        }
    }
}

impl Workload for Player<'_> {
    fn period(&self) -> u64 {
        self.written_pages
    }

    fn fill(&mut self, device: &mut Device) {
        let present = |request: &&Request| request.op() == Op::Present;
        for request in self.requests.iter().filter(present) {
            let class = self.class(request);
            for page in request.first..request.first + request.pages {
                let by_write = self.by_write.as_ref();
                let class = by_write.map_or(class, |(it, _)| it.of_present[page as usize]);
                self.write(device, page, class);
            }
        }
    }

    fn advance(&mut self, device: &mut Device, pages: u64) {
        let mut left = pages;
        while left > 0 {
            let request = self.requests[self.next];
            let first = request.first + self.done;
            let end = request.first + request.pages;
            match request.op() {
                Op::Write => {}
                Op::Present => {
                    self.finish_request();
                    continue;
                }
                Op::Discard => {
                    if self.trim || self.page_map.is_some() {
                        (first..end).for_each(|page| self.discard(device, page));
                    }
                    self.finish_request();
                    continue;
                }
            }
            let class = self.class(&request);
            let now = u64::from(end - first).min(left);
            left -= now;
            // Never fails: `now` is at most the pages of a request.
            let now = u32::try_from(now).unwrap_or(u32::MAX);
            for page in first..first + now {
                let class = self.by_write.as_mut().map_or(class, |(it, done)| {
                    let class = it.of_write[*done];
                    *done = if *done + 1 == it.of_write.len() {
                        0
                    } else {
                        *done + 1
                    };
                    class
                });
                self.write(device, page, class);
            }
            self.done += now;
            if self.done == request.pages {
                self.finish_request();
            }
        }
    }
}

impl Player<'_> {
    fn finish_request(&mut self) {
        self.done = 0;
        self.next = if self.next + 1 == self.requests.len() {
            0
        } else {
            self.next + 1
        };
    }
}

/// Maps pages of the trace to logical pages of a smaller device: a page is assigned at a write and
/// released at a discard, like blocks of deleted files in a file system.
#[derive(Debug)]
struct PageMap {
    /// By page of the trace; [`NOWHERE`] for a page without data.
    of_page: Vec<u32>,
    free: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl PageMap {
    fn new(pages: u32, logical_pages: u32) -> Self {
        Self {
            of_page: vec![NOWHERE; pages as usize],
            free: (0..logical_pages).rev().collect(),
        }
    }

    fn assign(&mut self, page: u32) -> u32 {
        let number = &mut self.of_page[page as usize];
        if *number == NOWHERE {
            #[expect(
                clippy::expect_used,
                reason = "the device has at least as many pages as are live at a time"
            )]
            let free = self.free.pop().expect("a free logical page");
            *number = free;
        }
        *number
    }

    /// Releases a page and returns its logical page.
    fn release(&mut self, page: u32) -> Option<u32> {
        let number = std::mem::replace(&mut self.of_page[page as usize], NOWHERE);
        let is_known = number != NOWHERE;
        is_known.then(|| {
            self.free.push(number);
            number
        })
    }
}
