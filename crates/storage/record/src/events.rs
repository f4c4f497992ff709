//! Events that wait for scans, which assign their bytes to files.

use std::collections::VecDeque;
use std::ops::Range;

use saiga_blocktrace::{Event, Operation};

use crate::map::{Map, Piece, owners};
use crate::scan::Scan;

/// Number of stored scans: two before an event, for deleted files, and two after it.
const SCANS: usize = 5;

/// Events in order of arrival, and the last scans.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents {
    events: Vec<Event>,
    scans: VecDeque<Scan>,
}

impl PendingEvents {
    pub(crate) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn add_scan(&mut self, scan: Scan) {
        if self.scans.len() == SCANS {
            self.scans.pop_front();
        }
        self.scans.push_back(scan);
    }

    /// Takes the events from before the start of the last scan but one, in order of time. That scan
    /// has the files at the time of the event; the last scan has extents that were allocated late.
    pub(crate) fn take_settled(&mut self) -> Vec<Event> {
        let last_but_one = self.scans.iter().rev().nth(1);
        self.take_before(last_but_one.map_or(0, |scan| scan.began_ns))
    }

    /// Takes the events from before an instant, in order of time.
    pub(crate) fn take_before(&mut self, end_ns: u64) -> Vec<Event> {
        let events = std::mem::take(&mut self.events);
        let (mut taken, rest): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| event.t_ns < end_ns);
        self.events = rest;
        // Events of different CPUs are not in order.
        taken.sort_by_key(|event| event.t_ns);
        taken
    }

    /// Returns the certain owners of a written range, by the first scan that began after the write.
    /// A file deleted before that scan is not an owner; another file may have its extents.
    pub(crate) fn certain_owners(&self, event: &Event, range: Range<u64>) -> Vec<Piece> {
        let mut after = (self.scans.iter()).skip_while(|scan| scan.began_ns <= event.t_ns);
        let map = after.next().map(|scan| &*scan.map);
        let map = map.filter(|_| !event.is_metadata);
        owners(range, map.as_slice())
    }

    /// Returns the owners of a range, by the scans around an event.
    ///
    /// A write: its extent was allocated before, so the first scan after the event has the owner.
    /// If the file was deleted in between, an earlier scan has it; if the extent became visible
    /// late, a later scan. A discard: the owner was deleted, so earlier scans come first.
    pub(crate) fn owners(&self, event: &Event, range: Range<u64>) -> Vec<Piece> {
        // Metadata may be in blocks of a file that was just deleted.
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
    use crate::map::OwnedRange;

    fn scan(began_ns: u64, owned: &[(u64, u32)]) -> Scan {
        let owned = owned.iter().map(|(start, file)| OwnedRange {
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
    fn an_event_belongs_to_the_file_at_its_time() {
        let mut pending = PendingEvents::default();
        // File 1 at 0 is deleted, file 2 gets its blocks, and file 3 becomes visible late.
        pending.add_scan(scan(100, &[(0, 1)]));
        pending.add_scan(scan(200, &[(4096, 9)]));
        pending.add_scan(scan(300, &[(0, 2)]));
        pending.add_scan(scan(400, &[(0, 2), (8192, 3)]));
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
            let found = pending.owners(&event(t_ns, operation), range.clone());
            assert_eq!(found, [(range, expected)], "{t_ns} {operation:?} {start}");
        }
        let metadata = Event {
            is_metadata: true,
            ..event(250, Operation::Write)
        };
        assert_eq!(pending.owners(&metadata, 0..4096), [(0..4096, None)]);
        let sure = |t_ns, start: u64| {
            let found = pending.certain_owners(&event(t_ns, Operation::Write), start..start + 4096);
            found[0].1
        };
        assert_eq!([sure(150, 0), sure(250, 0)], [None, Some(2)]);
        assert_eq!([sure(150, 4096), sure(250, 4096)], [Some(9), None]);
        assert!(pending.certain_owners(&metadata, 0..4096)[0].1.is_none());
    }

    #[test]
    fn events_are_settled_after_two_scans_and_in_order() {
        let mut pending = PendingEvents::default();
        for t_ns in [120, 110, 310] {
            pending.push(event(t_ns, Operation::Write));
        }
        assert!(pending.take_settled().is_empty());
        pending.add_scan(scan(200, &[]));
        assert!(pending.take_settled().is_empty());
        pending.add_scan(scan(300, &[]));
        let times: Vec<u64> = pending
            .take_settled()
            .iter()
            .map(|event| event.t_ns)
            .collect();
        assert_eq!(times, [110, 120]);
        assert_eq!(pending.take_before(u64::MAX).len(), 1);
    }
}
