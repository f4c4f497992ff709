//! The next segment of a synchronised connection.
//!
//! Selective acknowledgements go in segments of their own, so that a data segment has its full
//! length.

use saiga_wire::SeqNum;
use saiga_wire::tcp::{Flags, Header, Options, SackBlocks, Timestamps};

use super::Open;
use crate::connection::Settings;
use crate::context::Context;
use crate::handshake::timestamp;
use crate::sender::{Limits, Part, Reason};
use crate::transmit::{NO_PORTS, Transmit};

/// Blocks beside timestamps, and without them (RFC 2018 §3).
const BLOCKS: [usize; 2] = [3, 4];

impl Open {
    /// The next segment that is due or allowed.
    pub(crate) fn transmit(
        &mut self,
        most: u32,
        settings: &Settings,
        context: &mut Context<'_>,
    ) -> Option<Transmit> {
        if self.is_ack_due() && self.receiver.has_sack() && self.agreed.has_sack {
            return Some(self.answer(context));
        }
        if core::mem::take(&mut self.idle.is_tail_probe_due) {
            let part = self.sender.produce_probe(context);
            if let Some(part) = part {
                return Some(self.with_data(&part, context));
            }
        }
        let limits = Limits {
            most: most.max(u32::from(self.sender.mss())),
            is_nodelay: settings.is_nodelay,
        };
        if let Some(part) = self.sender.produce(limits, context) {
            return Some(self.with_data(&part, context));
        }
        if core::mem::take(&mut self.idle.is_probe_due) {
            if let Some(part) = self.sender.produce_forced(context) {
                return Some(self.with_data(&part, context));
            }
            // One below the window: the peer must answer with its state (RFC 9293 §3.8.4).
            return Some(self.bare(self.sender.una() - 1, context));
        }
        self.is_ack_due().then(|| self.answer(context))
    }

    /// A segment without data that tells the present state.
    pub(crate) fn answer(&mut self, context: &mut Context<'_>) -> Transmit {
        let seq = self.sender.acceptable_seq(1 << self.agreed.send_shift);
        self.bare(seq, context)
    }

    fn with_data(&mut self, part: &Part, context: &mut Context<'_>) -> Transmit {
        let is_last = part.start + part.length == self.sender.end();
        let mut flags = Flags::NONE;
        if part.length > 0 && is_last {
            flags = flags | Flags::PSH;
        }
        if part.is_fin {
            flags = flags | Flags::FIN;
        }
        if self.agreed.has_ecn && self.sender.take_cwr(part) {
            flags = flags | Flags::CWR;
        }
        let header = self.header(part.start, flags, SackBlocks::NONE, context);
        let is_new_data = part.length > 0 && part.reason != Reason::Retransmission;
        Transmit {
            header,
            offset: part.start - self.sender.una(),
            length: part.length,
            mss: match part.reason {
                Reason::New | Reason::Retransmission => self.sender.mss(),
                Reason::SizeProbe => u16::try_from(part.length).unwrap_or(u16::MAX),
            },
            is_ecn_capable: self.agreed.has_ecn && is_new_data,
        }
    }

    fn bare(&mut self, seq: SeqNum, context: &mut Context<'_>) -> Transmit {
        context.counters.out_segs += 1;
        let sack = if self.agreed.has_sack {
            let room = BLOCKS[usize::from(!self.agreed.has_timestamps)];
            self.receiver.sack(room)
        } else {
            SackBlocks::NONE
        };
        Transmit {
            header: self.header(seq, Flags::NONE, sack, context),
            offset: 0,
            length: 0,
            mss: self.sender.mss(),
            is_ecn_capable: false,
        }
    }

    fn header(
        &mut self,
        seq: SeqNum,
        flags: Flags,
        sack: SackBlocks,
        context: &Context<'_>,
    ) -> Header {
        let echoing = self.agreed.has_ecn && self.receiver.is_echoing();
        let flags = if echoing { flags | Flags::ECE } else { flags };
        let value = timestamp(self.timestamp_offset, context.now);
        let timestamps = self
            .receiver
            .ts_recent()
            .map(|echo| Timestamps { value, echo });
        Header {
            ports: NO_PORTS,
            seq,
            ack: Some(self.receiver.nxt()),
            flags,
            window: self.receiver.announce(),
            urgent: self.sender.urgent_pointer(seq),
            options: Options {
                timestamps,
                sack,
                ..Options::NONE
            },
        }
    }
}
