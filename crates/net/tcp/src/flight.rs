//! The scoreboard: what was sent and is not yet acknowledged.
//!
//! Spec: RFC 2018 §4, RFC 6675 §2, RFC 8985 §5.2. Takes transmissions, acknowledgements and
//! selective acknowledgements; tells which bytes were delivered for the first time, which are in
//! flight and which must be sent again. Ranges that were sent at the same instant share a record
//! until a selective acknowledgement divides them, so that a burst costs one record.
//!
//! The number of records is limited by the bytes in flight: a peer that divides ranges by selective
//! acknowledgements of single bytes is answered as if these acknowledgements had not come.

mod records;
#[cfg(test)]
mod tests;

use core::ops::Range;

use saiga_wire::SeqNum;

use crate::time::Instant;
use records::Records;

/// Records that a connection can always have. A new record beyond the limit is added to the last
/// one.
const LEAST_LIMIT: usize = 1024;
/// Above that, a record for so many bytes: one for each segment of an ordinary path, so that a long
/// and fast one does not lose its selective acknowledgements.
const BYTES_OF_RECORD: u32 = 512;

/// A range that was sent. It begins where the range before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) end: SeqNum,
    /// The last transmission.
    pub(crate) at: Instant,
    pub(crate) state: State,
    /// Whether the range was ever sent again (Karn's algorithm).
    pub(crate) is_retransmitted: bool,
}

/// The state of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Sent, and neither acknowledged nor lost.
    InFlight,
    /// Lost, and not sent again yet.
    Lost,
    /// Selectively acknowledged.
    Sacked,
}

/// A range that was delivered for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) start: SeqNum,
    pub(crate) end: SeqNum,
    /// Its last transmission.
    pub(crate) at: Instant,
    pub(crate) is_retransmitted: bool,
    /// Whether the range had been given up.
    pub(crate) was_lost: bool,
}

/// All ranges from `SND.UNA` to `SND.NXT`, and the sums of their bytes by state.
#[derive(Debug, Clone)]
pub(crate) struct Flight {
    records: Records,
    una: SeqNum,
    in_flight: u32,
    lost: u32,
    sacked: u32,
}

impl Flight {
    pub(crate) fn new(una: SeqNum) -> Self {
        Self {
            records: Records::default(),
            una,
            in_flight: 0,
            lost: 0,
            sacked: 0,
        }
    }

    /// Bytes that are thought to be in the network: the `pipe` of RFC 6675.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Bytes that must be sent again.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Bytes that were selectively acknowledged.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// `SND.UNA`: the start of the first range.
    pub(crate) fn una(&self) -> SeqNum {
        self.una
    }

    /// `SND.NXT`: the end of the last range. Each byte of all ranges is in one of the sums.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.una + self.in_flight + self.lost + self.sacked
    }

    /// The records with their starts, by ascending sequence numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SeqNum, &Sent)> {
        let mut start = self.una;
        self.records.iter().map(move |record| {
            let from = start;
            start = record.end;
            (from, record)
        })
    }

    /// Adds bytes that were sent for the first time, up to `end`.
    pub(crate) fn on_send(&mut self, end: SeqNum, now: Instant) {
        let is_full = self.is_full();
        self.in_flight += end - self.nxt();
        if let Some(last) = self.records.back_mut() {
            let is_alike = last.state == State::InFlight && !last.is_retransmitted;
            if is_alike && (last.at == now || is_full) {
                last.end = end;
                last.at = now;
                return;
            }
        }
        self.records.push_back(Sent {
            end,
            at: now,
            state: State::InFlight,
            is_retransmitted: false,
        });
    }

    /// The first lost range, at most `limit` bytes of it.
    pub(crate) fn next_lost(&self, limit: u32) -> Option<(SeqNum, SeqNum)> {
        if self.lost == 0 {
            return None;
        }
        let (start, record) = self
            .iter()
            .find(|(_, record)| record.state == State::Lost)?;
        let length = (record.end - start).min(limit);
        Some((start, start + length))
    }

    /// Marks a range as sent again. It must lie within one record.
    pub(crate) fn on_retransmit(&mut self, start: SeqNum, end: SeqNum, now: Instant) {
        let Some(index) = self.isolate(start, end) else {
            return;
        };
        self.set_state(index, State::InFlight);
        let record = &mut self.records[index];
        record.at = now;
        record.is_retransmitted = true;
    }

    /// Removes everything before `una`; tells `each` the ranges that were delivered by that.
    pub(crate) fn acknowledge(&mut self, una: SeqNum, mut each: impl FnMut(Delivered)) {
        while let Some(first) = self.records.front().copied() {
            if !self.una.before(una) {
                break;
            }
            let start = self.una;
            let end = if first.end.after(una) { una } else { first.end };
            *self.sum_of(first.state) -= end - start;
            if first.state != State::Sacked {
                each(delivered(start, end, &first));
            }
            if end == first.end {
                self.records.pop_front();
            }
            self.una = end;
        }
        self.una = una;
    }

    /// Marks a range as selectively acknowledged; tells `each` the parts that were not yet.
    pub(crate) fn sack(&mut self, start: SeqNum, end: SeqNum, mut each: impl FnMut(Delivered)) {
        let start = start.later_of(self.una);
        let end = end.earlier_of(self.nxt());
        if !start.before(end) || self.is_sacked(start, end) {
            return;
        }
        let Some(first) = self.divide(start) else {
            return;
        };
        // Without room for the second cut, the record across `end` stays as it is.
        let _cut = self.divide(end);
        let (mut index, mut from) = (first, start);
        while let Some(record) = self.records.get(index).copied() {
            if record.end.after(end) {
                break;
            }
            if record.state != State::Sacked {
                each(delivered(from, record.end, &record));
                self.set_state(index, State::Sacked);
            }
            from = record.end;
            index += 1;
        }
        self.merge_sacked(first..index);
    }

    /// Whether a range is inside one record that is selectively acknowledged: most blocks repeat
    /// what is known.
    fn is_sacked(&self, start: SeqNum, end: SeqNum) -> bool {
        let index = self.index_of(start);
        let record = index.and_then(|index| self.records.get(index));
        record.is_some_and(|record| record.state == State::Sacked && !end.after(record.end))
    }

    /// Gives up the ranges in flight for which `is_lost` says so.
    pub(crate) fn mark_lost(&mut self, mut is_lost: impl FnMut(SeqNum, &Sent) -> bool) {
        let mut start = self.una;
        for index in 0..self.records.len() {
            let record = self.records[index];
            if record.state == State::InFlight && is_lost(start, &record) {
                self.set_state(index, State::Lost);
            }
            start = record.end;
        }
    }

    /// Gives up the first `bytes` of what is in flight, of a peer without selective
    /// acknowledgements.
    pub(crate) fn lose_first(&mut self, bytes: u32) {
        self.lose(self.una, self.una + bytes);
    }

    /// Gives up a range, of which the part from its start to the end of a record counts.
    pub(crate) fn lose(&mut self, start: SeqNum, end: SeqNum) {
        let end = end.earlier_of(self.nxt());
        let Some(index) = self.isolate(start, end) else {
            return;
        };
        if self.records[index].state == State::InFlight {
            self.set_state(index, State::Lost);
        }
    }

    /// Whether the byte at `at` is lost and not sent again yet.
    pub(crate) fn is_lost(&self, at: SeqNum) -> bool {
        let record = self.index_of(at).and_then(|index| self.records.get(index));
        record.is_some_and(|record| record.state == State::Lost)
    }

    /// Whether anything that was sent again is neither acknowledged nor lost.
    pub(crate) fn has_retransmissions_out(&self) -> bool {
        let is_out = |record: &Sent| record.state == State::InFlight && record.is_retransmitted;
        self.records.iter().any(is_out)
    }

    /// Takes all losses back: the ranges are in flight.
    pub(crate) fn find_lost(&mut self) {
        for index in 0..self.records.len() {
            if self.records[index].state == State::Lost {
                self.set_state(index, State::InFlight);
            }
        }
    }

    /// Forgets all selective acknowledgements, because the peer has dropped what it acknowledged
    /// (RFC 2018 §8): the ranges are lost.
    pub(crate) fn forget_sacks(&mut self) {
        for index in 0..self.records.len() {
            if self.records[index].state == State::Sacked {
                self.set_state(index, State::Lost);
            }
        }
    }

    /// Whether the first range is selectively acknowledged: then the peer must have acknowledged
    /// it, so it has dropped data.
    pub(crate) fn has_reneged(&self) -> bool {
        let first = self.records.front();
        first.is_some_and(|first| first.state == State::Sacked)
    }

    /// Moves the bytes of a record from one sum to another.
    fn set_state(&mut self, index: usize, state: State) {
        let start = self.start_of(index);
        let record = self.records[index];
        let bytes = record.end - start;
        *self.sum_of(record.state) -= bytes;
        *self.sum_of(state) += bytes;
        self.records[index].state = state;
    }

    fn is_full(&self) -> bool {
        let in_proportion = (self.nxt() - self.una) / BYTES_OF_RECORD;
        let in_proportion = usize::try_from(in_proportion).unwrap_or(usize::MAX);
        self.records.len() >= LEAST_LIMIT.max(in_proportion)
    }

    fn sum_of(&mut self, state: State) -> &mut u32 {
        match state {
            State::InFlight => &mut self.in_flight,
            State::Lost => &mut self.lost,
            State::Sacked => &mut self.sacked,
        }
    }

    fn start_of(&self, index: usize) -> SeqNum {
        match index.checked_sub(1) {
            None => self.una,
            Some(before) => self.records[before].end,
        }
    }

    /// Index of the record that holds the byte `at`.
    fn index_of(&self, at: SeqNum) -> Option<usize> {
        let before = at - self.una;
        let index = self
            .records
            .partition_point(|record| record.end - self.una <= before);
        (index < self.records.len()).then_some(index)
    }

    /// Makes a record begin at `at`; returns its index. `None` if there is no room for a further
    /// record, or `at` is the end.
    fn divide(&mut self, at: SeqNum) -> Option<usize> {
        let index = self.index_of(at)?;
        if self.start_of(index) == at {
            return Some(index);
        }
        if self.is_full() {
            return None;
        }
        let record = self.records[index];
        self.records.insert(index, Sent { end: at, ..record });
        Some(index + 1)
    }

    /// Makes one record of a range inside a record; returns its index.
    fn isolate(&mut self, start: SeqNum, end: SeqNum) -> Option<usize> {
        let index = self.divide(start).or_else(|| self.index_of(start))?;
        // If there is no room, the whole record counts as sent again: it is lost later, not sooner.
        let _next = self.divide(end);
        Some(index)
    }

    /// Makes one record of a range of records that are selectively acknowledged and their
    /// neighbours that are, too.
    fn merge_sacked(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let is_sacked = |index: usize| {
            let record = self.records.get(index);
            record.is_some_and(|record| record.state == State::Sacked)
        };
        let first = match range.start.checked_sub(1) {
            Some(before) if is_sacked(before) => before,
            Some(_) | None => range.start,
        };
        let last = if is_sacked(range.end) {
            range.end
        } else {
            range.end - 1
        };
        self.records[first] = self.records[last];
        self.records.remove_behind(first, last - first);
    }
}

fn delivered(start: SeqNum, end: SeqNum, record: &Sent) -> Delivered {
    Delivered {
        start,
        end,
        at: record.at,
        is_retransmitted: record.is_retransmitted,
        was_lost: record.state == State::Lost,
    }
}
