//! The peer's window, and when less than a full segment may be sent.
//!
//! Spec: RFC 9293 §3.10.7.4 (update by `SND.WL1` and `SND.WL2`), §3.8.6.2.1 (silly windows), RFC
//! 5681 and RFC 1122 §4.2.3.4 (Nagle's algorithm). As in Linux, Nagle's algorithm holds a small
//! segment only while another small one is not acknowledged (Minshall's variant): a large write
//! then does not wait for the acknowledgement of its full segments.

use saiga_wire::SeqNum;

use super::{Fin, Sender};

/// The window that the peer has announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PeerWindow {
    /// The end of the window, which stays when `SND.UNA` moves: the acknowledgement that announced
    /// it, and `SND.WND` bytes.
    end: SeqNum,
    /// Numbers of the segment that announced it.
    wl1: SeqNum,
    wl2: SeqNum,
    /// The largest window so far (`MAX.SND.WND`).
    largest: u32,
    /// The end of the last segment that was not full.
    small_end: SeqNum,
}

impl PeerWindow {
    pub(super) fn new(size: u32, wl1: SeqNum, una: SeqNum) -> Self {
        Self {
            end: una + size,
            wl1,
            wl2: una,
            largest: size,
            small_end: una,
        }
    }

    pub(super) fn largest(&self) -> u32 {
        self.largest
    }

    /// The window as it was announced: `SND.WND`.
    pub(super) fn size(&self) -> u32 {
        self.end - self.wl2
    }

    /// Takes the window of an acceptable segment unless an older one was delayed. As in Linux, a
    /// segment that acknowledges more is newer, whatever its number: it may carry data again. The
    /// numbers of two equal segments do not tell which is newer; the larger window counts then,
    /// because windows do not shrink (SHLD-14), or a closed one. Returns whether the window
    /// changed.
    pub(super) fn update(&mut self, seq: SeqNum, ack: SeqNum, size: u32) -> bool {
        let is_equal = (self.wl1, self.wl2) == (seq, ack);
        let is_newer = self.wl2.before(ack)
            || self.wl1.before(seq)
            || is_equal && (size > self.size() || size == 0);
        if !is_newer {
            return false;
        }
        let is_changed = self.size() != size;
        (self.wl1, self.wl2) = (seq, ack);
        self.end = ack + size;
        self.largest = self.largest.max(size);
        is_changed
    }

    /// Notes the end of a segment that was not full.
    pub(super) fn on_small_segment(&mut self, end: SeqNum) {
        self.small_end = end;
    }
}

impl Sender {
    /// The end of the window.
    pub(super) fn window_end(&self) -> SeqNum {
        self.window.end
    }

    /// The number of a segment without data: `SND.NXT`, unless the peer has shrunk its window below
    /// that and would drop the segment (RFC 9293 MUST-34). `rounding` is what the scale of the
    /// window hides. As `tcp_acceptable_seq` in Linux.
    pub(crate) fn acceptable_seq(&self, rounding: u32) -> SeqNum {
        let (end, nxt) = (self.window_end().later_of(self.una()), self.nxt());
        if end.before(nxt) && nxt - end >= rounding {
            end
        } else {
            nxt
        }
    }

    /// Bytes of the window that are free.
    pub(super) fn usable_window(&self) -> u32 {
        let (end, nxt) = (self.window_end(), self.nxt());
        if nxt.before(end) { end - nxt } else { 0 }
    }

    /// Bytes that the application has written and that were not sent.
    pub(super) fn unsent(&self) -> u32 {
        let nxt = self.nxt();
        if nxt.before(self.end) {
            self.end - nxt
        } else {
            0
        }
    }

    /// Whether a segment of `length` bytes may be sent, of which `unsent` wait. The rules of RFC
    /// 9293 §3.8.6.2.1: a full segment; all that waits, unless Nagle's algorithm holds it; or half
    /// of the largest window.
    pub(super) fn may_send(&self, length: u32, unsent: u32, is_nodelay: bool) -> bool {
        if length >= u32::from(self.mss) {
            return true;
        }
        let is_all = length == unsent;
        let is_held = !is_nodelay
            && self.fin == Fin::Open
            && self.window.small_end.after(self.una())
            && !self.is_urgent();
        is_all && !is_held || length >= self.window.largest() / 2 && length > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_segment_does_not_change_the_window() {
        let mut window = PeerWindow::new(1000, SeqNum(50), SeqNum(100));
        for (name, seq, ack, size, expected) in [
            ("newer number", 60, 100, 2000, 2000),
            ("older number", 55, 100, 500, 2000),
            ("older number, newer acknowledgement", 55, 150, 3000, 3000),
            ("same number, older acknowledgement", 55, 149, 100, 3000),
            ("equal numbers, smaller", 55, 150, 700, 3000),
            ("equal numbers, closed", 55, 150, 0, 0),
            ("equal numbers, larger", 55, 150, 500, 500),
        ] {
            let before = window.end - window.wl2;
            let is_changed = window.update(SeqNum(seq), SeqNum(ack), size);
            assert_eq!(
                (window.end - window.wl2, is_changed),
                (expected, before != expected),
                "{name}"
            );
        }
        assert_eq!(window.largest(), 3000);
    }
}
