//! Urgent data of this side: where it ends, and the pointer in segments before that.
//!
//! Spec: RFC 9293 §3.8.5, RFC 6093. As in Linux (`tcp_transmit_skb` in net/ipv4/tcp_output.c), the
//! pointer names the byte behind the last urgent one, a pointer that does not fit is 65,535 near
//! the end of what was sent, and Nagle's algorithm does not hold urgent data.

use saiga_wire::SeqNum;

use super::{Fin, Sender};

impl Sender {
    /// Adds bytes that the application has written, of which the last one is urgent.
    pub(crate) fn on_write_urgent(&mut self, bytes: u32) {
        self.on_write(bytes);
        if self.fin == Fin::Open && bytes > 0 {
            self.urgent = self.end;
        }
    }

    /// Whether urgent data waits for its acknowledgement.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent.after(self.una())
    }

    /// `SND.UNA` has moved. Without this, an old end would be a later one after two gibibytes.
    pub(super) fn forget_urgent(&mut self) {
        self.urgent = self.urgent.later_of(self.una());
    }

    /// The urgent pointer of a segment that begins at `seq` and that counts as sent.
    pub(crate) fn urgent_pointer(&self, seq: SeqNum) -> Option<u16> {
        if !self.is_urgent() || !seq.before(self.urgent) {
            return None;
        }
        let is_near_end = (seq + u32::from(u16::MAX)).after(self.nxt());
        let far = is_near_end.then_some(u16::MAX);
        u16::try_from(self.urgent - seq).ok().or(far)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SenderStart;
    use super::*;
    use crate::congestion::Algorithm;
    use crate::time::Instant;

    const UNA: SeqNum = SeqNum(u32::MAX - 9);

    fn sender() -> Sender {
        Sender::new(&SenderStart {
            una: UNA,
            mss: 1000,
            has_sack: true,
            algorithm: Algorithm::Cubic,
            window: 8000,
            wl1: SeqNum(0),
            rtt: None,
            syn_retries: 0,
            now: Instant(0),
        })
    }

    #[test]
    fn the_pointer_names_the_byte_behind_the_last_urgent_one() {
        let mut sender = sender();
        sender.on_write(100);
        assert_eq!(sender.urgent_pointer(UNA), None);
        sender.on_write_urgent(50);
        sender.on_write(1000);
        assert_eq!(sender.urgent_pointer(UNA), Some(150));
        assert_eq!(sender.urgent_pointer(UNA + 149), Some(1));
        assert_eq!(sender.urgent_pointer(UNA + 150), None);
        // More of it moves the pointer.
        sender.on_write_urgent(1);
        assert_eq!(sender.urgent_pointer(UNA), Some(1151));
    }

    #[test]
    fn a_pointer_that_does_not_fit_is_the_largest_one() {
        let mut sender = sender();
        sender.on_write_urgent(70_000);
        assert_eq!(sender.urgent_pointer(UNA), Some(u16::MAX));
        sender.flight.on_send(UNA + 65_535, Instant(0));
        assert_eq!(sender.urgent_pointer(UNA), None);
        assert_eq!(sender.urgent_pointer(UNA + 1), Some(u16::MAX));
        assert_eq!(sender.urgent_pointer(UNA + 4465), Some(65_535));
        assert_eq!(sender.urgent_pointer(UNA + 4466), Some(65_534));
    }

    #[test]
    fn urgent_data_ends_with_its_acknowledgement() {
        let mut sender = sender();
        sender.on_write_urgent(10);
        sender.flight.on_send(UNA + 10, Instant(0));
        assert!(sender.is_urgent());
        sender.flight.acknowledge(UNA + 10, |_| {});
        sender.forget_urgent();
        assert!(!sender.is_urgent());
        // Two gibibytes later, the old end must not be ahead again.
        let far = 1 << 30;
        for turn in 1..4 {
            sender.flight.on_send(UNA + turn * far, Instant(0));
            sender.flight.acknowledge(UNA + turn * far, |_| {});
            sender.forget_urgent();
            assert!(!sender.is_urgent(), "{turn}");
        }
    }

    #[test]
    fn nothing_is_urgent_after_a_close() {
        let mut sender = sender();
        sender.on_close();
        sender.on_write_urgent(10);
        assert!(!sender.is_urgent());
    }
}
