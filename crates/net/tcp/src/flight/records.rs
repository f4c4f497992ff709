//! The records of a scoreboard: the first one in place, and further ones on the heap.
//!
//! Most connections have one range in flight, or none. They need no memory beside their own.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::{Index, IndexMut};

use super::Sent;

/// A queue of records.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    /// `None` if there are no records.
    first: Option<Sent>,
    /// Kept until there are no records: a queue that gets shorter grows again.
    #[expect(clippy::box_collection, reason = "few connections have one at a time")]
    rest: Option<Box<VecDeque<Sent>>>,
}

impl Records {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    pub(super) fn front(&self) -> Option<&Sent> {
        self.first.as_ref()
    }

    pub(super) fn back_mut(&mut self) -> Option<&mut Sent> {
        let last = self.rest.as_mut().and_then(|rest| rest.back_mut());
        last.or(self.first.as_mut())
    }

    pub(super) fn get(&self, index: usize) -> Option<&Sent> {
        match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(index) => self.rest.as_ref()?.get(index),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sent> {
        let rest = self.rest.iter().flat_map(|rest| rest.iter());
        self.first.iter().chain(rest)
    }

    /// Number of records at the front for which `is_before` holds; it holds for none behind them.
    pub(super) fn partition_point(&self, is_before: impl Fn(&Sent) -> bool) -> usize {
        match &self.first {
            Some(first) if is_before(first) => {
                let rest = self.rest.as_ref();
                1 + rest.map_or(0, |rest| rest.partition_point(is_before))
            }
            Some(_) | None => 0,
        }
    }

    pub(super) fn push_back(&mut self, record: Sent) {
        if self.first.is_none() {
            self.first = Some(record);
        } else {
            self.rest.get_or_insert_default().push_back(record);
        }
    }

    pub(super) fn pop_front(&mut self) {
        self.first = self.rest.as_mut().and_then(|rest| rest.pop_front());
        if self.first.is_none() {
            self.rest = None;
        }
    }

    /// Puts a record in front of the one at `index`.
    pub(super) fn insert(&mut self, index: usize, record: Sent) {
        match index.checked_sub(1) {
            Some(index) => self.rest.get_or_insert_default().insert(index, record),
            None => {
                if let Some(first) = self.first.replace(record) {
                    self.rest.get_or_insert_default().push_front(first);
                }
            }
        }
    }

    /// Removes `count` records behind the one at `index`.
    pub(super) fn remove_behind(&mut self, index: usize, count: usize) {
        if let Some(rest) = &mut self.rest {
            rest.drain(index..index + count);
        }
    }
}

impl Index<usize> for Records {
    type Output = Sent;

    fn index(&self, index: usize) -> &Sent {
        self.get(index).expect("a record at the index")
    }
}

impl IndexMut<usize> for Records {
    fn index_mut(&mut self, index: usize) -> &mut Sent {
        let record = match index.checked_sub(1) {
            None => self.first.as_mut(),
            Some(index) => self.rest.as_mut().and_then(|rest| rest.get_mut(index)),
        };
        record.expect("a record at the index")
    }
}
