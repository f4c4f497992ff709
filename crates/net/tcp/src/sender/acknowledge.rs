//! What an acknowledgement delivered, and what follows from that.
//!
//! Spec: RFC 9293 §3.10.7.4 (ACK), RFC 6298 §3 and RFC 7323 §4.1 (round-trip times), RFC 2883 §5
//! (duplicates), RFC 3168 §6.1.2 (ECN-Echo). The order matters: deliveries first, by ascending
//! numbers, so that a hole that this very acknowledgement fills does not look like reordering; then
//! losses; then the window.

use saiga_wire::SeqNum;
use saiga_wire::tcp::{SackBlock, SackBlocks};

use super::Sender;
use crate::context::Context;
use crate::flight::Delivered;
use crate::time::{Instant, Micros};
use crate::tlp;

/// The acknowledgement part of a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack<'a> {
    /// `SEG.ACK`, between `SND.UNA` and `SND.NXT`, or older.
    pub(crate) number: SeqNum,
    /// `SEG.SEQ`.
    pub(crate) seq: SeqNum,
    /// The window in bytes.
    pub(crate) window: u32,
    pub(crate) sack: &'a SackBlocks,
    /// When the echoed timestamp was sent, in milliseconds of this side's timestamps, and the
    /// present one.
    pub(crate) echo: Option<Echo>,
    /// Whether the segment has data, SYN or FIN: then it is not a duplicate acknowledgement.
    pub(crate) has_data: bool,
    /// Whether the peer has seen congestion (ECE).
    pub(crate) is_congested: bool,
}

/// A timestamp of this side that came back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Echo {
    /// The timestamp, and the one of now.
    pub(crate) value: u32,
    pub(crate) now: u32,
    /// The offset of this side's timestamps.
    pub(crate) offset: u32,
}

impl Echo {
    /// Whether the echoed segment was sent before `at`.
    pub(super) fn is_before(&self, at: Instant) -> bool {
        let sent = crate::handshake::timestamp(self.offset, at);
        SeqNum(self.value).before(SeqNum(sent))
    }

    fn age(&self) -> Micros {
        Micros::from_millis(u64::from(self.now.wrapping_sub(self.value)))
    }
}

/// What one acknowledgement delivered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    /// `FlightSize` of RFC 5681 before the acknowledgement.
    flight_size: u32,
    /// Bytes that were delivered for the first time.
    pub(super) delivered: u32,
    /// The last transmission of delivered data that was sent only once.
    newest: Option<Instant>,
    /// Whether data up to this number was delivered by its first transmission.
    pub(super) original_end: Option<SeqNum>,
    /// Whether the acknowledgement moved `SND.UNA`.
    pub(super) is_advance: bool,
    pub(super) is_duplicate: bool,
    /// Whether the window, not the application, limited what was in flight.
    pub(super) is_limited: bool,
    /// Whether the peer has seen congestion.
    pub(super) is_congested: bool,
}

/// What the caller must know.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// Bytes that were acknowledged, without the FIN.
    pub(crate) acked: u32,
    /// Whether the segment moved `SND.UNA` or opened the window.
    pub(crate) is_progress: bool,
}

impl Sender {
    /// Takes an acceptable acknowledgement.
    pub(crate) fn on_ack(&mut self, ack: &Ack<'_>, context: &mut Context<'_>) -> Progress {
        if ack.sack.is_empty() {
            return self.on_credible_ack(ack, context);
        }
        let sack = self.credible(ack.sack);
        let ack = Ack {
            sack: &sack,
            ..*ack
        };
        self.on_credible_ack(&ack, context)
    }

    fn on_credible_ack(&mut self, ack: &Ack<'_>, context: &mut Context<'_>) -> Progress {
        let (una, nxt) = (self.una(), self.nxt());
        let was_closed = self.usable_window() == 0;
        // An older acknowledgement than the last one says nothing of the window.
        let is_changed =
            !ack.number.before(una) && self.window.update(ack.seq, ack.number, ack.window);
        let duplicate = duplicate_block(ack, una);
        let mut tally = Tally {
            flight_size: nxt - una,
            is_advance: ack.number.after(una),
            is_limited: self.is_limited(una),
            is_congested: ack.is_congested,
            is_duplicate: ack.number == una
                && !ack.has_data
                && !is_changed
                && !self.flight.is_empty(),
            ..Tally::default()
        };
        self.unanswered = 0;
        self.deliver(ack, context.now, &mut tally);
        self.limited_at = self.limited_at.later_of(self.una() - 1);
        if let Some(block) = &duplicate {
            context.counters.dsack_recv += 1;
            self.rack.on_dsack(self.una(), nxt);
            self.on_duplicate(block, context);
        }
        let rtt = self.sample(ack, &tally, context.now);
        // A backed off time-out stays until there is a sample (RFC 6298 §5, Karn's algorithm).
        if tally.is_advance {
            self.retries = 0;
            self.forget_urgent();
            self.resize_after_progress(self.una() - una, context);
        }
        self.on_probe_answer(ack, &tally, duplicate, context);
        self.react_to_congestion(ack, &tally, context);
        self.recover(ack, &tally, rtt, context);
        self.arm(&tally, context);
        Progress {
            acked: self.bytes_of(una, self.una()),
            is_progress: tally.is_advance || was_closed && self.usable_window() > 0,
        }
    }

    /// The blocks that a peer can mean: of what was sent, and as in Linux
    /// (`tcp_is_sackblock_valid` in net/ipv4/tcp_input.c) not older than a window.
    fn credible(&self, blocks: &SackBlocks) -> SackBlocks {
        if !self.has_sack {
            return SackBlocks::NONE;
        }
        let oldest = self.una() - self.largest_window();
        let is_credible = |block: &&SackBlock| {
            block.left.before(block.right)
                && block.right.at_or_before(self.nxt())
                && block.left.at_or_after(oldest)
        };
        blocks
            .as_slice()
            .iter()
            .filter(is_credible)
            .copied()
            .collect()
    }

    /// Removes what was acknowledged from the scoreboard.
    fn deliver(&mut self, ack: &Ack<'_>, now: Instant, tally: &mut Tally) {
        let Self {
            flight,
            rack,
            min_rtt,
            ..
        } = self;
        let least = min_rtt.get();
        let mut each = |one: Delivered| {
            let is_echo_older = ack.echo.is_some_and(|echo| echo.is_before(one.at));
            rack.on_delivered(&one, is_echo_older, least, now);
            note(tally, &one);
        };
        if ack.number.after(flight.una()) {
            flight.acknowledge(ack.number, &mut each);
        }
        if ack.sack.is_empty() {
            return;
        }
        for block in ascending(ack.sack) {
            flight.sack(block.left, block.right, &mut each);
        }
    }

    /// Takes a round-trip time: of data that was sent once (Karn's algorithm), or else by the
    /// timestamp of a segment that moved `SND.UNA` (RFC 7323 §4.1).
    fn sample(&mut self, ack: &Ack<'_>, tally: &Tally, now: Instant) -> Option<Micros> {
        let by_time = tally.newest.map(|at| now.since(at));
        let echo = ack.echo.filter(|_| tally.is_advance);
        let sample = by_time.or_else(|| echo.map(|echo| echo.age()))?;
        // RFC 7323 appendix G: an acknowledgement for every second segment in flight.
        let expected = (self.nxt() - self.una()) / (2 * u32::from(self.mss));
        self.rtt.on_sample(sample, expected);
        if by_time.is_some() {
            self.min_rtt.on_sample(sample, now);
        }
        by_time
    }

    /// Whether the congestion window limits the load: data had to wait for it in this round trip,
    /// or, in slow start, more than half of it is in use.
    fn is_limited(&self, una: SeqNum) -> bool {
        self.limited_at.at_or_after(una)
            || self.congestion.is_slow_start() && 2 * self.pipe() > self.congestion.cwnd()
    }

    /// Asks whether a tail loss probe repaired a loss (RFC 8985 §7.4).
    fn on_probe_answer(
        &mut self,
        ack: &Ack<'_>,
        tally: &Tally,
        duplicate: Option<SackBlock>,
        context: &mut Context<'_>,
    ) {
        let answer = self.tlp.on_ack(&tlp::Ack {
            ack: ack.number,
            is_dsack_of_probe: duplicate.is_some_and(|block| Some(block.right) == self.tlp.end()),
            is_duplicate: tally.is_duplicate,
            has_sack: !ack.sack.is_empty(),
        });
        if answer == tlp::Answer::Repaired {
            context.counters.loss_probe_recovery += 1;
            self.reduce_once(tally);
        }
    }

    /// Reduces the window for ECN-Echo, once in a round trip (RFC 3168 §6.1.2).
    fn react_to_congestion(&mut self, ack: &Ack<'_>, tally: &Tally, context: &mut Context<'_>) {
        if self
            .reduced_until
            .is_some_and(|until| self.una().at_or_after(until))
        {
            self.reduced_until = None;
        }
        if ack.is_congested && self.reduced_until.is_none() && self.recovery.is_normal() {
            context.counters.ecn_reductions += 1;
            self.reduce_once(tally);
            self.reduced_until = Some(self.nxt());
        }
    }

    /// Reduces the window without a recovery.
    fn reduce_once(&mut self, tally: &Tally) {
        self.must_send_cwr = true;
        self.congestion.on_congestion(tally.flight_size);
        self.congestion.set_cwnd(self.congestion.ssthresh());
        self.congestion.confirm();
    }
}

/// Adds a delivered range.
fn note(tally: &mut Tally, one: &Delivered) {
    tally.delivered += one.end - one.start;
    if one.is_retransmitted {
        return;
    }
    tally.newest = tally.newest.max(Some(one.at));
    let end = tally
        .original_end
        .map_or(one.end, |end| end.later_of(one.end));
    tally.original_end = Some(end);
}

/// The block that reports a duplicate: below the acknowledgement, or inside the second block (RFC
/// 2883 §5).
fn duplicate_block(ack: &Ack<'_>, una: SeqNum) -> Option<SackBlock> {
    let (first, rest) = ack.sack.as_slice().split_first()?;
    let number = ack.number.later_of(una);
    let is_inside = rest
        .first()
        .is_some_and(|second| !first.left.before(second.left) && !first.right.after(second.right));
    (first.right.at_or_before(number) || is_inside).then_some(*first)
}

/// The blocks by ascending numbers.
fn ascending(blocks: &SackBlocks) -> impl Iterator<Item = SackBlock> {
    let mut sorted = [SackBlock::default(); SackBlocks::MAX];
    let count = blocks.len();
    sorted[..count].copy_from_slice(blocks.as_slice());
    let origin = sorted[0].left;
    sorted[..count].sort_unstable_by_key(|block| (block.left - origin).cast_signed());
    sorted.into_iter().take(count)
}
