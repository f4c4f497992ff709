//! Whether a recovery was needless: the peer reports every retransmission as a duplicate.
//!
//! Spec: RFC 2883 §5 and RFC 3708, as Linux does (`undo_marker` and `undo_retrans` in
//! net/ipv4/tcp_input.c): bytes are counted, not matched. The reports mostly come after the end of
//! the recovery, so the count outlives it.
//!
//! Deliberately absent: Eifel (timestamps) and F-RTO, which need no count, see `sender/recovery`.

use saiga_wire::SeqNum;
use saiga_wire::tcp::SackBlock;

/// Retransmissions of the last recovery that the peer has not reported as duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Undo {
    /// `SND.UNA` when the recovery began, and the end of what it has sent again: other duplicates,
    /// such as later tail loss probes, say nothing about it.
    marker: SeqNum,
    end: SeqNum,
    /// Bytes.
    retransmitted: u32,
}

impl Undo {
    pub(crate) fn new(una: SeqNum) -> Self {
        Self {
            marker: una,
            end: una,
            retransmitted: 0,
        }
    }

    /// Counts a retransmission of the recovery.
    pub(crate) fn on_retransmit(&mut self, start: SeqNum, end: SeqNum) {
        self.retransmitted = self.retransmitted.saturating_add(end - start);
        self.end = self.end.later_of(end);
    }

    /// Takes a report of a duplicate. Returns whether it is the last one that was missing.
    pub(crate) fn on_duplicate(&mut self, block: &SackBlock) -> bool {
        let start = block.left.later_of(self.marker);
        let end = block.right.earlier_of(self.end);
        if self.retransmitted == 0 || !start.before(end) {
            return false;
        }
        self.retransmitted = self.retransmitted.saturating_sub(end - start);
        self.retransmitted == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock {
            left: SeqNum(left),
            right: SeqNum(right),
        }
    }

    #[test]
    fn the_last_duplicate_of_all_retransmissions_counts() {
        let mut undo = Undo::new(SeqNum(1000));
        assert!(!undo.on_duplicate(&block(1000, 2000)), "nothing was sent");
        undo.on_retransmit(SeqNum(1000), SeqNum(2000));
        undo.on_retransmit(SeqNum(3000), SeqNum(3500));
        assert!(!undo.on_duplicate(&block(1000, 2000)));
        assert!(undo.on_duplicate(&block(3000, 3500)));
        assert!(!undo.on_duplicate(&block(3000, 3500)), "only once");
    }

    #[test]
    fn duplicates_of_what_the_recovery_did_not_send_do_not_count() {
        let mut undo = Undo::new(SeqNum(1000));
        undo.on_retransmit(SeqNum(1000), SeqNum(2000));
        assert!(!undo.on_duplicate(&block(0, 1000)), "before the recovery");
        assert!(!undo.on_duplicate(&block(2000, 9000)), "after it");
        assert!(!undo.on_duplicate(&block(500, 1500)), "half of it");
        assert!(undo.on_duplicate(&block(1500, 2500)));
    }

    #[test]
    fn a_segment_that_was_sent_twice_needs_two_reports() {
        let (start, end) = (SeqNum(u32::MAX - 99), SeqNum(900));
        let mut undo = Undo::new(start);
        undo.on_retransmit(start, end);
        undo.on_retransmit(start, end);
        assert!(!undo.on_duplicate(&block(start.0, end.0)));
        assert!(undo.on_duplicate(&block(start.0, end.0)));
    }
}
