//! The receive half of a synchronised connection: which segments are acceptable, what they add, and
//! what the next acknowledgement says.
//!
//! Spec: RFC 9293 §3.10.7.4 and §3.8.6.2.2, RFC 5681 §4.2, RFC 7323 §4.3 and §5, RFC 3168 §6.1.3.
//!
//! - `acceptable`: the window test, and old timestamps
//! - `acknowledgement`: when an acknowledgement is due, and the window in it

mod acceptable;
mod acknowledgement;

pub(crate) use acceptable::Verdict;

use saiga_wire::SeqNum;
use saiga_wire::tcp::{Flags, SackBlock, SackBlocks};

use crate::assembly::Assembly;
use crate::context::{Arrival, Context};
use crate::time::{Instant, OptionalInstant};

/// The state of the receive half.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    assembly: Assembly,
    /// Shift of the announced windows.
    shift: u8,
    /// Size of the caller's buffer, and the first byte in it that the application has not read.
    buffer: u32,
    read: SeqNum,
    /// The right edge of the largest window that was announced.
    edge: SeqNum,
    /// Number of the peer's FIN, once it has come, and whether all before it has.
    fin: Option<SeqNum>,
    is_finished: bool,
    /// The peer's segment size: how much data makes an acknowledgement due.
    peer_mss: u16,
    /// Whether timestamps are in use; then `TS.Recent` and the second in which it was set.
    has_timestamps: bool,
    ts_recent: u32,
    ts_recent_at: u32,
    /// `Last.ACK.sent`.
    last_ack: SeqNum,
    /// When an acknowledgement is due; instant zero stands for now.
    due: OptionalInstant,
    /// Acknowledgements that are sent at once at the begin of a connection.
    quick: u8,
    /// Bytes since the last acknowledgement.
    unacked: u32,
    echo: CongestionEcho,
    /// The end of urgent data; not after `read` if there is none ahead.
    urgent: SeqNum,
}

/// Whether acknowledgements echo congestion (ECE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CongestionEcho {
    /// The handshake did not agree on ECN.
    Never,
    Off,
    On,
}

/// What a new receiver knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiverStart {
    /// `RCV.NXT`: one above the peer's initial sequence number.
    pub(crate) nxt: SeqNum,
    pub(crate) buffer: u32,
    pub(crate) shift: u8,
    pub(crate) peer_mss: u16,
    pub(crate) ts_recent: Option<u32>,
    pub(crate) has_ecn: bool,
    pub(crate) now: Instant,
}

/// What a segment has added.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Added {
    /// Bytes that are now readable.
    pub(crate) readable: u32,
    /// Whether the peer's FIN is reached by this segment.
    pub(crate) is_finished: bool,
}

impl Receiver {
    pub(crate) fn new(start: &ReceiverStart) -> Self {
        Self {
            assembly: Assembly::new(start.nxt),
            shift: start.shift,
            buffer: start.buffer,
            read: start.nxt,
            // The window of the SYN was not scaled.
            edge: start.nxt + start.buffer.min(u32::from(u16::MAX)),
            fin: None,
            is_finished: false,
            peer_mss: start.peer_mss,
            has_timestamps: start.ts_recent.is_some(),
            ts_recent: start.ts_recent.unwrap_or(0),
            ts_recent_at: start.now.whole_seconds(),
            last_ack: start.nxt,
            due: OptionalInstant::NONE,
            quick: acknowledgement::QUICK,
            unacked: 0,
            echo: if start.has_ecn {
                CongestionEcho::Off
            } else {
                CongestionEcho::Never
            },
            urgent: start.nxt,
        }
    }

    /// `RCV.NXT`.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.assembly.nxt()
    }

    /// The number of the next byte: `RCV.NXT` without the FIN.
    pub(crate) fn data_nxt(&self) -> SeqNum {
        self.assembly.nxt() - u32::from(self.is_finished)
    }

    /// Whether the peer's FIN and all bytes before it have come.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Bytes that have come and that the application has not read.
    pub(crate) fn unread(&self) -> u32 {
        self.data_nxt() - self.read
    }

    /// `TS.Recent`.
    pub(crate) fn ts_recent(&self) -> Option<u32> {
        self.has_timestamps.then_some(self.ts_recent)
    }

    /// The selective acknowledgements of the next segment.
    pub(crate) fn sack(&mut self, room: usize) -> SackBlocks {
        self.assembly.sack(room)
    }

    /// Whether a segment should carry selective acknowledgements.
    pub(crate) fn has_sack(&self) -> bool {
        self.assembly.has_sack()
    }

    /// Takes the data and the FIN of an acceptable segment; tells `place` which bytes of its
    /// payload are new. The FIN has a number of its own behind the data, so that selective
    /// acknowledgements cover it, as Linux does. What ends more than `room` bytes behind the first
    /// unread one is treated as lost: the caller has no memory for it.
    pub(crate) fn on_data(
        &mut self,
        arrival: &Arrival<'_>,
        room: u32,
        mut place: impl FnMut(SackBlock),
        context: &mut Context<'_>,
    ) -> Added {
        self.note_congestion(arrival);
        let header = arrival.header;
        let start = header.seq;
        let end = start + arrival.length;
        let edge = if room < self.edge - self.read {
            self.read + room
        } else {
            self.edge
        };
        let has_fin = header.flags.contains(Flags::FIN) && self.takes_fin(end, edge);
        if has_fin && self.fin.is_none() {
            self.fin = Some(end);
            self.assembly.cut(end);
        }
        let limit = self.fin.map_or(edge, |fin| fin.earlier_of(edge));
        let cut = end.earlier_of(limit);
        let before = self.data_nxt();
        let past = cut + u32::from(has_fin);
        if start.before(past) {
            let place = |block: SackBlock| {
                let right = block.right.earlier_of(cut);
                if block.left.before(right) {
                    place(SackBlock { right, ..block });
                }
            };
            let inserted = self.assembly.insert(start, past, place);
            let waits = inserted.is_out_of_order && inserted.advanced == 0;
            context.counters.ofo_queue += u64::from(waits);
            if arrival.length > 0 {
                context.counters.out_of_window_bytes += u64::from(end - cut);
                self.on_inserted(&inserted, arrival.length, context);
            }
        } else if arrival.length > 0 && self.window() == 0 {
            // A probe of the window: the peer learns that it is still closed.
            self.acknowledge_now();
        }
        let is_complete = self.fin.is_some_and(|fin| self.assembly.nxt().after(fin));
        let is_now_finished = !self.is_finished && is_complete;
        self.is_finished = is_complete;
        if header.flags.contains(Flags::FIN) || is_now_finished {
            self.acknowledge_now();
        }
        Added {
            readable: self.data_nxt() - before,
            is_finished: is_now_finished,
        }
    }

    /// Whether a FIN with this number is not behind `edge`, and the first one. What has come from
    /// above it is not data: forged data must not keep the peer's FIN away.
    fn takes_fin(&self, end: SeqNum, edge: SeqNum) -> bool {
        let is_within = !end.after(edge);
        match self.fin {
            Some(fin) => fin == end && is_within,
            None => is_within && !end.before(self.assembly.nxt()),
        }
    }

    /// Notes urgent data (RFC 9293 §3.8.5). As Linux does, the pointer names the byte behind the
    /// last urgent one (RFC 6093 §3.1). Returns whether it is news.
    pub(crate) fn on_urgent(&mut self, arrival: &Arrival<'_>) -> bool {
        let Some(pointer) = arrival.header.urgent.filter(|_| !self.is_finished) else {
            return false;
        };
        let end = arrival.header.seq + u32::from(pointer);
        let is_news = end.after(self.urgent.later_of(self.read));
        if is_news {
            self.urgent = end;
        }
        is_news
    }

    /// Bytes up to the end of urgent data that the application has not read.
    pub(crate) fn urgent_ahead(&self) -> Option<u32> {
        let is_ahead = self.urgent.after(self.read);
        is_ahead.then(|| self.urgent - self.read)
    }

    /// RFC 3168 §6.1.3: echoes congestion until the sender says that it has reduced its window.
    fn note_congestion(&mut self, arrival: &Arrival<'_>) {
        if self.echo == CongestionEcho::Never {
            return;
        }
        if arrival.header.flags.contains(Flags::CWR) {
            self.echo = CongestionEcho::Off;
        }
        if arrival.is_congested {
            self.echo = CongestionEcho::On;
            self.acknowledge_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::counters::Counters;
    use crate::transmit::reset;
    use saiga_wire::tcp::Header;

    /// Bytes of each segment here, as a device that merges segments could give.
    const BYTES: u32 = 1 << 20;

    /// Half of the sequence numbers later, its end is not ahead again.
    #[test]
    fn urgent_data_that_was_read_stays_read() {
        let mut receiver = Receiver::new(&ReceiverStart {
            nxt: SeqNum(100),
            buffer: BYTES,
            shift: 5,
            peer_mss: 1460,
            ts_recent: None,
            has_ecn: false,
            now: Instant(0),
        });
        let (config, mut counters) = (Config::default(), Counters::default());
        let mut context = Context {
            now: Instant(1_000_000),
            config: &config,
            counters: &mut counters,
        };
        for step in 0..3 << 10 {
            receiver.announce();
            let header = Header {
                flags: Flags::NONE,
                urgent: (step == 0).then_some(10),
                ..reset(receiver.nxt(), Some(SeqNum(0)))
            };
            let arrival = Arrival {
                header: &header,
                length: BYTES,
                is_congested: false,
            };
            assert_eq!(receiver.on_urgent(&arrival), step == 0);
            let added = receiver.on_data(&arrival, u32::MAX, |_| {}, &mut context);
            assert_eq!(added.readable, BYTES);
            receiver.on_read(BYTES);
            assert_eq!(receiver.urgent_ahead(), None, "after {step} MiB");
        }
    }

    /// Bytes without memory are sent again, and the FIN behind them, too.
    #[test]
    fn bytes_beyond_the_room_are_lost() {
        let mut receiver = Receiver::new(&ReceiverStart {
            nxt: SeqNum(100),
            buffer: 1000,
            shift: 0,
            peer_mss: 100,
            ts_recent: None,
            has_ecn: false,
            now: Instant(0),
        });
        let (config, mut counters) = (Config::default(), Counters::default());
        let mut context = Context {
            now: Instant(1_000_000),
            config: &config,
            counters: &mut counters,
        };
        let header = Header {
            flags: Flags::FIN,
            ..reset(SeqNum(100), Some(SeqNum(0)))
        };
        let arrival = Arrival {
            header: &header,
            length: 300,
            is_congested: false,
        };
        for (room, readable, is_finished, nxt) in [
            (0, 0, false, 100),
            (200, 200, false, 300),
            (200, 0, false, 300),
            (299, 99, false, 399),
            (300, 1, true, 401),
            (300, 0, false, 401),
        ] {
            let mut placed = 0;
            let place = |block: SackBlock| placed += block.right - block.left;
            let added = receiver.on_data(&arrival, room, place, &mut context);
            assert_eq!(added.readable, readable, "room for {room}");
            assert_eq!(placed, readable, "room for {room}");
            assert_eq!(added.is_finished, is_finished, "room for {room}");
            assert_eq!(receiver.nxt(), SeqNum(nxt), "room for {room}");
        }
    }
}
