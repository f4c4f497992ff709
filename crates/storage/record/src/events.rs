//! Events that wait until it is known whose bytes they are.

use std::collections::VecDeque;
use std::ops::Range;

use saiga_blocktrace::{Event, Operation};

use crate::map::{Map, Piece, owners};
use crate::scan::Scan;

/// Scans that are kept: two before an event, for files that were deleted, and two behind it.
const SCANS: usize = 5;

/// Events in the order in which they came, and what the last scans saw.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    events: Vec<Event>,
    scans: VecDeque<Scan>,
}

impl Waiting {
    pub(crate) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn learn(&mut self, scan: Scan) {
        if self.scans.len() == SCANS {
            self.scans.pop_front();
        }
        self.scans.push_back(scan);
    }

    /// Takes what happened before the last scan but one began, in order of time: the last one has seen what got its
    /// place late, the one before what was there.
    pub(crate) fn ripe(&mut self) -> Vec<Event> {
        let last_but_one = self.scans.iter().rev().nth(1);
        self.before(last_but_one.map_or(0, |scan| scan.began_ns))
    }

    /// Takes what happened before an instant, in order of time.
    pub(crate) fn before(&mut self, end_ns: u64) -> Vec<Event> {
        let events = std::mem::take(&mut self.events);
        let (mut ripe, rest): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| event.t_ns < end_ns);
        self.events = rest;
        // CPUs overtake one another.
        ripe.sort_by_key(|event| event.t_ns);
        ripe
    }

    /// The owners of a range that was written, as far as there is no doubt: by the first scan that began after it. A file
    /// that was gone by then is not among them; its place may have been another's.
    pub(crate) fn sure_owners(&self, event: &Event, range: Range<u64>) -> Vec<Piece> {
        let mut after = (self.scans.iter()).skip_while(|scan| scan.began_ns <= event.t_ns);
        let map = after.next().map(|scan| &*scan.map);
        let map = map.filter(|_| !event.is_metadata);
        owners(range, map.as_slice())
    }

    /// The owners of a range, by what the scans around an event saw.
    ///
    /// What is written had its place before: the first scan that began after it knows, unless the file was deleted in
    /// between, then the one before it does, or it became visible late. What is discarded belonged to a file that is gone.
    pub(crate) fn owners(&self, event: &Event, range: Range<u64>) -> Vec<Piece> {
        // It may lie where a file was until a moment ago.
        if event.is_metadata {
            return vec![(range, None)];
        }
        let after = self
            .scans
            .partition_point(|scan| scan.began_ns <= event.t_ns);
        let (old, new) = (
            self.scans.iter().take(after).rev(),
            self.scans.iter().skip(after),
        );
        let maps: Vec<&Map> = match event.operation {
            Operation::Write => {
                let mut new = new;
                let first = new.next();
                first
                    .into_iter()
                    .chain(old)
                    .chain(new)
                    .map(|scan| &*scan.map)
                    .collect()
            }
            Operation::Discard => old.chain(new).map(|scan| &*scan.map).collect(),
        };
        owners(range, &maps)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use saiga_blocktrace::Device;

    use super::*;
    use crate::map::Owned;

    fn scan(began_ns: u64, owned: &[(u64, u32)]) -> Scan {
        let owned = owned.iter().map(|(start, file)| Owned {
            start: *start,
            end: start + 4096,
            file: *file,
            is_written: true,
        });
        Scan {
            began_ns,
            map: Arc::new(Map::new(owned.collect())),
        }
    }

    fn event(t_ns: u64, operation: Operation) -> Event {
        Event {
            t_ns,
            device: Device { major: 7, minor: 0 },
            address: 0,
            len: 4096,
            operation,
            hint: None,
            is_metadata: false,
            pid: None,
        }
    }

    #[test]
    fn an_event_belongs_to_what_was_there_around_its_time() {
        let mut waiting = Waiting::default();
        // File 1 was at 0 and is deleted; file 2 comes to that place; file 3 becomes visible late.
        waiting.learn(scan(100, &[(0, 1)]));
        waiting.learn(scan(200, &[(4096, 9)]));
        waiting.learn(scan(300, &[(0, 2)]));
        waiting.learn(scan(400, &[(0, 2), (8192, 3)]));
        for (t_ns, operation, start, expected) in [
            (150, Operation::Write, 0, Some(1)),
            (150, Operation::Write, 4096, Some(9)),
            (250, Operation::Write, 0, Some(2)),
            (350, Operation::Write, 0, Some(2)),
            (250, Operation::Write, 8192, Some(3)),
            (250, Operation::Discard, 0, Some(1)),
            (450, Operation::Discard, 0, Some(2)),
            (250, Operation::Write, 1 << 20, None),
        ] {
            let range = start..start + 4096;
            let found = waiting.owners(&event(t_ns, operation), range.clone());
            assert_eq!(found, [(range, expected)], "{t_ns} {operation:?} {start}");
        }
        let metadata = Event {
            is_metadata: true,
            ..event(250, Operation::Write)
        };
        assert_eq!(waiting.owners(&metadata, 0..4096), [(0..4096, None)]);
        let sure = |t_ns, start: u64| {
            let found = waiting.sure_owners(&event(t_ns, Operation::Write), start..start + 4096);
            found[0].1
        };
        assert_eq!([sure(150, 0), sure(250, 0)], [None, Some(2)]);
        assert_eq!([sure(150, 4096), sure(250, 4096)], [Some(9), None]);
        assert!(waiting.sure_owners(&metadata, 0..4096)[0].1.is_none());
    }

    #[test]
    fn events_are_ripe_after_two_scans_and_in_order() {
        let mut waiting = Waiting::default();
        for t_ns in [120, 110, 310] {
            waiting.push(event(t_ns, Operation::Write));
        }
        assert!(waiting.ripe().is_empty());
        waiting.learn(scan(200, &[]));
        assert!(waiting.ripe().is_empty());
        waiting.learn(scan(300, &[]));
        let times: Vec<u64> = waiting.ripe().iter().map(|event| event.t_ns).collect();
        assert_eq!(times, [110, 120]);
        assert_eq!(waiting.before(u64::MAX).len(), 1);
    }
}
