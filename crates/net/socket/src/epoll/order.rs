//! The order in which a set reports: the order in which connections became ready.
//!
//! Channels found with events in one check are sorted by the times at which their peers woke us. If
//! the peer of a channel has used TCP (`tcp_use.rs`) since the kernel was last polled, the kernel
//! is polled before the channel is reported. Peers may lie: their times affect only the order, and
//! one system call for each wait.

#![expect(unsafe_code, reason = "lists of pool records")]

use super::{EpollSet, Interest, SetSegment};
use crate::clock;
use crate::links::Link;
use core::ptr;
use core::sync::atomic::Ordering;
use saiga_channel::layout::SlotIndex;
use saiga_channel::segment::Segment;

/// Runs of up to 2^20 registrations, which is more than a set can hold.
const RUNS: usize = 20;

impl EpollSet {
    /// Notes when the peer of a segment with events last used TCP. The caller holds the lock.
    pub(crate) fn note_peer_tcp(&self, entry: &SetSegment) {
        let segment = entry.link().and_then(Link::segment);
        let by_tcp = segment.map_or(0, Segment::peer_by_tcp);
        if by_tcp > self.peer_by_tcp.load(Ordering::Relaxed) {
            // A future time, announced or false, would make the kernel be polled again and again.
            let by_tcp = by_tcp.min(clock::ticks());
            self.peer_by_tcp.store(by_tcp, Ordering::Relaxed);
        }
    }

    /// Whether the kernel must be polled before a channel of the ready list is reported: it may
    /// have an earlier event. The caller holds the lock.
    pub(crate) fn must_poll_kernel(&self) -> bool {
        self.peer_by_tcp.load(Ordering::Relaxed) >= self.asked.load(Ordering::Relaxed)
    }

    /// Records that the kernel has reported everything up to `at` (ticks). The caller holds the
    /// lock.
    pub(crate) fn note_kernel_polled(&self, at: u64) {
        if at > self.asked.load(Ordering::Relaxed) {
            self.asked.store(at, Ordering::Relaxed);
        }
    }

    /// Sorts the part of the ready list behind `last`; all of it if `last` is null. The caller
    /// holds the lock.
    pub(crate) fn sort_behind(&self, last: *mut Interest) {
        // SAFETY: list members are pool records.
        let head = match unsafe { last.as_ref() } {
            Some(last) => &last.next_ready,
            None => &self.first_ready,
        };
        let mut at = head.load(Ordering::Relaxed);
        let mut runs: [*mut Interest; RUNS] = [ptr::null_mut(); RUNS];
        // SAFETY: list members are pool records; the next one is read before the link changes.
        while let Some(one) = unsafe { at.as_ref() } {
            let mut run = at;
            at = one.next_ready.swap(ptr::null_mut(), Ordering::Relaxed);
            one.wakeup_at.store(self.wakeup_at(one), Ordering::Relaxed);
            for slot in &mut runs {
                if slot.is_null() {
                    *slot = run;
                    break;
                }
                run = merge(core::mem::replace(slot, ptr::null_mut()), run);
            }
        }
        let sorted = runs
            .into_iter()
            .fold(ptr::null_mut(), |later, run| merge(run, later));
        head.store(sorted, Ordering::Relaxed);
        let mut end = sorted;
        // SAFETY: as above.
        while let Some(one) = unsafe { end.as_ref() } {
            self.last_ready.store(end, Ordering::Relaxed);
            end = one.next_ready.load(Ordering::Relaxed);
        }
    }

    /// When the peer last woke us for a registration's channel (ticks); 0: not known.
    fn wakeup_at(&self, interest: &Interest) -> u64 {
        let index = interest.segment.load(Ordering::Relaxed) as usize;
        let entry = self.segments().get(index);
        let segment = entry.and_then(SetSegment::link).and_then(Link::segment);
        let slot = SlotIndex::stored(interest.slot.load(Ordering::Relaxed));
        segment.map_or(0, |s| s.peer_wakeup_at(slot))
    }
}

/// Merges two sorted lists; equal elements keep their order.
fn merge(mut one: *mut Interest, mut two: *mut Interest) -> *mut Interest {
    let mut first = ptr::null_mut();
    let mut last: Option<&Interest> = None;
    loop {
        // SAFETY: list members are pool records.
        let left = unsafe { one.as_ref() };
        // SAFETY: as above.
        let right = unsafe { two.as_ref() };
        let time = |i: &Interest| i.wakeup_at.load(Ordering::Relaxed);
        let (taken, rest) = match (left, right) {
            (Some(l), Some(r)) if time(r) < time(l) => (r, &mut two),
            (Some(l), _) => (l, &mut one),
            (None, Some(r)) => (r, &mut two),
            (None, None) => return first,
        };
        match last {
            Some(last) => last.next_ready.store(*rest, Ordering::Relaxed),
            None => first = *rest,
        }
        *rest = taken.next_ready.load(Ordering::Relaxed);
        last = Some(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::POOL;

    /// A list of registrations with these times; the second numbers identify them.
    fn list(of: &[(u64, u64)]) -> *mut Interest {
        of.iter().rev().fold(ptr::null_mut(), |rest, (time, name)| {
            let one = POOL.take().expect("few are in use");
            one.wakeup_at.store(*time, Ordering::Relaxed);
            one.data.store(*name, Ordering::Relaxed);
            one.next_ready.store(rest, Ordering::Relaxed);
            ptr::from_ref(one).cast_mut()
        })
    }

    fn names(mut at: *mut Interest) -> Vec<u64> {
        let mut names = Vec::new();
        // SAFETY: list members are pool records.
        while let Some(one) = unsafe { at.as_ref() } {
            names.push(one.data.load(Ordering::Relaxed));
            at = one.next_ready.load(Ordering::Relaxed);
        }
        names
    }

    #[test]
    fn lists_are_joined_by_time_and_equals_keep_their_order() {
        let one = || list(&[(1, 10), (3, 11), (3, 12), (9, 13)]);
        let two = || list(&[(0, 20), (3, 21), (4, 22)]);
        assert_eq!(names(merge(one(), two())), [20, 10, 11, 12, 21, 22, 13]);
        assert_eq!(names(merge(two(), one())), [20, 10, 21, 11, 12, 22, 13]);
        assert_eq!(names(merge(one(), ptr::null_mut())), [10, 11, 12, 13]);
        assert_eq!(names(merge(ptr::null_mut(), two())), [20, 21, 22]);
    }
}
