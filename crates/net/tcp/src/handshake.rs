//! What both sides agree on in the handshake, and the options of a SYN.
//!
//! Spec: RFC 9293 §3.7.1 (segment size), RFC 7323 §2.2 and §3.2, RFC 2018 §2, RFC 3168 §6.1.1. An
//! option holds only if both SYNs have it.

use saiga_wire::SeqNum;
use saiga_wire::tcp::{Flags, Header, Options, SackBlocks, Timestamps};

use crate::config::Config;
use crate::time::Instant;
use crate::transmit::NO_PORTS;

/// Segment size of a peer whose SYN has no such option, by the version of IP (RFC 9293 MUST-15).
const DEFAULT_MSS_V4: u16 = 536;
/// Bytes of the timestamps option with its padding.
const TIMESTAMPS_BYTES: u16 = 12;
/// Largest shift of a window (RFC 7323 §2.3).
const MOST_SHIFT: u8 = 14;

/// What the caller chooses for a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Initial sequence number, from [`crate::IssGenerator::iss`].
    pub iss: SeqNum,
    /// From [`crate::IssGenerator::timestamp_offset`].
    pub timestamp_offset: u32,
    /// Size of the receive buffer in bytes.
    pub buffer: u32,
}

impl Start {
    /// The shift of the windows that this side announces: the least one with which the buffer can
    /// be announced.
    pub(crate) fn shift(&self) -> u8 {
        (0..MOST_SHIFT)
            .find(|shift| self.buffer >> shift <= u32::from(u16::MAX))
            .unwrap_or(MOST_SHIFT)
    }

    /// The timestamp of an instant: milliseconds (RFC 7323 §5.4 allows 1 ms to 1 s).
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        timestamp(self.timestamp_offset, now)
    }

    /// The window of a SYN, which is never scaled.
    fn unscaled_window(&self) -> u16 {
        u16::try_from(self.buffer).unwrap_or(u16::MAX)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "timestamps wrap every 49 days"
)]
pub(crate) fn timestamp(offset: u32, now: Instant) -> u32 {
    offset.wrapping_add((now.0 / 1000) as u32)
}

/// The result of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Bytes of payload in a full segment: the peer's segment size without options that each
    /// segment has.
    pub(crate) mss: u16,
    /// Whether both sides scale windows; a shift can be 0.
    pub(crate) is_scaled: bool,
    /// Shift of the windows that the peer announces.
    pub(crate) send_shift: u8,
    /// Shift of the windows that this side announces.
    pub(crate) recv_shift: u8,
    pub(crate) has_timestamps: bool,
    pub(crate) has_sack: bool,
    pub(crate) has_ecn: bool,
}

impl Agreed {
    /// Reads the peer's SYN, which `is_answer` to this side's SYN or not.
    pub(crate) fn of(config: &Config, start: &Start, syn: &Header, is_answer: bool) -> Self {
        let options = &syn.options;
        let has_timestamps = config.has_timestamps && options.timestamps.is_some();
        let peer_mss = options.mss.unwrap_or(DEFAULT_MSS_V4);
        let mss = peer_mss.min(config.mss).max(config.least_mss);
        let taken = if has_timestamps { TIMESTAMPS_BYTES } else { 0 };
        let shift = options.window_scale.filter(|_| config.has_window_scale);
        Self {
            mss: mss - taken,
            is_scaled: shift.is_some(),
            send_shift: shift.map_or(0, |shift| shift.min(MOST_SHIFT)),
            recv_shift: shift.map_or(0, |_| start.shift()),
            has_timestamps,
            has_sack: config.has_sack && options.sack_permitted,
            has_ecn: config.has_ecn && has_ecn(syn.flags, is_answer),
        }
    }
}

impl Agreed {
    /// Bytes of the options that each segment has.
    pub(crate) fn option_bytes(&self) -> u16 {
        if self.has_timestamps {
            TIMESTAMPS_BYTES
        } else {
            0
        }
    }
}

/// A SYN asks for ECN by ECE and CWR; its answer agrees by ECE alone (RFC 3168 §6.1.1).
fn has_ecn(flags: Flags, is_answer: bool) -> bool {
    let both = Flags::ECE | Flags::CWR;
    let set = if flags.contains(both) {
        both
    } else if flags.contains(Flags::ECE) {
        Flags::ECE
    } else {
        Flags::NONE
    };
    set == if is_answer { Flags::ECE } else { both }
}

/// This side's SYN.
pub(crate) fn syn(config: &Config, start: &Start, now: Instant) -> Header {
    let timestamps = Timestamps {
        value: start.timestamp(now),
        echo: 0,
    };
    Header {
        ports: NO_PORTS,
        seq: start.iss,
        ack: None,
        flags: if config.has_ecn {
            Flags::SYN | Flags::ECE | Flags::CWR
        } else {
            Flags::SYN
        },
        window: start.unscaled_window(),
        urgent: None,
        options: Options {
            mss: Some(config.mss),
            window_scale: config.has_window_scale.then_some(start.shift()),
            sack_permitted: config.has_sack,
            timestamps: config.has_timestamps.then_some(timestamps),
            sack: SackBlocks::NONE,
            malformed: false,
        },
    }
}

/// The answer to the peer's SYN: only what the peer has offered. `echo` is the timestamp of its
/// SYN.
pub(crate) fn syn_ack(
    config: &Config,
    start: &Start,
    agreed: &Agreed,
    (ack, echo): (SeqNum, u32),
    now: Instant,
) -> Header {
    let offered = syn(config, start, now);
    let timestamps = Timestamps {
        value: start.timestamp(now),
        echo,
    };
    Header {
        ack: Some(ack),
        flags: if agreed.has_ecn {
            Flags::SYN | Flags::ECE
        } else {
            Flags::SYN
        },
        options: Options {
            window_scale: offered.options.window_scale.filter(|_| agreed.is_scaled),
            sack_permitted: agreed.has_sack,
            timestamps: agreed.has_timestamps.then_some(timestamps),
            ..offered.options
        },
        ..offered
    }
}
