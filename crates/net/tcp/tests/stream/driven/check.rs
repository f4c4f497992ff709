//! What must hold after each operation.

use saiga_tcp::{StateName, Transmit};
use saiga_wire::tcp::{Flags, Header};

use super::host::{Host, LEAST_SEGMENT};

impl Host {
    /// Remembers the largest window of any segment, also of those that do not count.
    pub(super) fn note_window(&mut self, header: &Header) {
        let ack = header.ack.unwrap_or(self.iss + 1);
        let at = i64::from((ack - (self.iss + 1)).cast_signed());
        let edge = at + (i64::from(header.window) << self.shift);
        self.edge = self.edge.max(edge);
    }

    /// What must hold for each segment that leaves.
    pub(super) fn check(&mut self, transmit: &Transmit) {
        let Transmit {
            header,
            offset,
            length,
            mss,
            is_ecn_capable,
        } = transmit;
        // RFC 3168 §6.1.4 and §6.1.5: only new data.
        assert!(!is_ecn_capable || *length > 0);
        let waiting = self.written - self.acked;
        assert!(offset + length <= waiting, "bytes that were not written");
        assert!(*length == 0 || u32::from(*mss) >= LEAST_SEGMENT);
        assert!(*length > 0 || !is_ecn_capable, "only data can be marked");
        let end = header.seq + *length;
        let at = i64::from((end - (self.iss + 1)).cast_signed());
        assert!(
            *length == 0 || at <= self.edge,
            "{at} is behind {}",
            self.edge
        );
        let is_syn = header.flags.contains(Flags::SYN);
        let is_rst = header.flags.contains(Flags::RST);
        if *length > 0 {
            assert_eq!(header.seq, self.iss + 1 + self.acked + *offset);
            assert!(!is_syn && !is_rst);
        }
        if let Some(pointer) = header.urgent.filter(|pointer| *pointer < u16::MAX) {
            let urgent = header.seq + u32::from(pointer);
            assert!(!urgent.after(self.iss + 1 + self.written));
        }
        if is_rst {
            return;
        }
        if let Some(ack) = header.ack {
            let is_forward = self.last_ack.is_none_or(|last| last.at_or_before(ack));
            assert!(is_forward, "the acknowledgement went back");
            self.last_ack = Some(ack);
            self.peer.nxt = ack;
        }
        let fin = u32::from(header.flags.contains(Flags::FIN));
        self.peer.end = self.peer.end.later_of(end + fin);
        if let Some(timestamps) = header.options.timestamps {
            self.peer.timestamp = timestamps.value;
        }
    }

    /// A timer must run while the peer owes an answer.
    pub(super) fn check_timer(&mut self) {
        let is_waiting = match self.connection.state() {
            StateName::SynSent
            | StateName::SynReceived
            | StateName::FinWait1
            | StateName::Closing
            | StateName::LastAck
            | StateName::TimeWait => true,
            StateName::Established | StateName::CloseWait => self.written > self.acked,
            StateName::FinWait2 | StateName::Closed => false,
        };
        let timeout = self.next_timeout();
        assert!(timeout.is_some() || !is_waiting, "waits for ever");
        assert!(
            timeout.is_none() || !self.is_closed,
            "a timer after the end"
        );
    }
}
