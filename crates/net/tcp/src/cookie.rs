//! SYN cookies: a passive open that keeps no state before the last acknowledgement of the
//! handshake.
//!
//! Spec: RFC 4987 §3.6, and Linux (net/ipv4/syncookies.c) for options in the timestamp. The initial
//! sequence number of the answer to a SYN holds the minute, the index of the peer's segment size,
//! and a keyed hash of these, of the addresses and ports, and of the peer's number. The low bits of
//! this side's timestamp hold the other options; a peer without timestamps has none of them.
//!
//! Deliberately absent: when to use cookies. The listener decides, and asks about acknowledgements
//! only while answers with cookies can be on their way.

#[cfg(test)]
mod tests;

use core::hash::Hasher as _;

use saiga_wire::SeqNum;
use saiga_wire::tcp::{Flags, Header, Options, Timestamps};
use siphasher::sip::SipHasher24;

use crate::config::Config;
use crate::context::Context;
use crate::handshake::{Agreed, Start, syn_ack};
use crate::time::{Instant, Micros};
use crate::transmit::NO_PORTS;

/// Segment sizes that a cookie can hold, ascending: the default of IPv4, the least of IPv6, common
/// ones of tunnels, PPPoE and Ethernet, and jumbo frames. A peer's size is rounded down.
const SIZES: [u16; 8] = [536, 1220, 1300, 1400, 1440, 1452, 1460, 8940];

/// Length of a period in microseconds. A cookie is valid in its period and in the next one.
const PERIOD_US: u64 = 60_000_000;
const MOST_AGE: u64 = 1;
/// How long a key makes cookies. Its cookies are valid for two further periods.
const KEY_LIFETIME: Micros = Micros::from_secs(3600);

/// Bits of a cookie: the period, the index of the segment size, and the hash.
const PERIOD_BITS: u32 = 5;
const SIZE_BITS: u32 = 3;
const HASH_BITS: u32 = 32 - PERIOD_BITS - SIZE_BITS;
const HASH_MASK: u32 = (1 << HASH_BITS) - 1;

/// Bits in the timestamp: the shift of windows, selective acknowledgements, ECN.
const MEMO_BITS: u32 = 6;
const MEMO_MASK: u32 = (1 << MEMO_BITS) - 1;
const SHIFT_MASK: u32 = 15;
/// In place of a shift: windows are not scaled.
const UNSCALED: u32 = 15;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;

/// The secret of a listener or of a worker: the key of new cookies and the one before.
#[derive(Clone, Copy)]
pub struct CookieSecret {
    present: [u64; 2],
    last: Option<[u64; 2]>,
    rotated_at: Instant,
}

impl core::fmt::Debug for CookieSecret {
    /// Does not show the keys.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("CookieSecret")
    }
}

/// A handshake that a cookie has brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Baked {
    pub(crate) iss: SeqNum,
    pub(crate) irs: SeqNum,
    /// What is known of the peer's SYN.
    pub(crate) syn: Header,
}

impl CookieSecret {
    /// Takes 128 random bits.
    #[must_use]
    pub const fn new(key: [u64; 2], now: Instant) -> Self {
        Self {
            present: key,
            last: None,
            rotated_at: now,
        }
    }

    /// When the caller should bring a new key, an hour after the last one.
    #[must_use]
    pub fn rotates_at(&self) -> Instant {
        self.rotated_at + KEY_LIFETIME
    }

    /// Takes 128 random bits for new cookies. Cookies of the key before stay valid until they are
    /// too old.
    pub fn rotate(&mut self, key: [u64; 2], now: Instant) {
        self.last = Some(self.present);
        self.present = key;
        self.rotated_at = now;
    }

    /// The answer to the SYN of a peer, without ports. Nothing is kept.
    ///
    /// `flow` holds both addresses and both ports, as for [`crate::IssGenerator::iss`]. The
    /// initial sequence number in `start` is not used; its timestamp offset and buffer must be the
    /// same when the acknowledgement comes.
    #[must_use]
    pub fn syn_ack(
        &self,
        flow: &[u8],
        start: &Start,
        syn: &Header,
        context: &mut Context<'_>,
    ) -> Header {
        context.counters.sync_cookies_sent += 1;
        let kept = Kept::of(context.config, start, syn);
        let iss = iss(&self.present, flow, syn.seq, &kept, period(context.now));
        let start = Start { iss, ..*start };
        let known = kept.syn(syn.seq, syn.options.timestamps);
        let agreed = Agreed::of(context.config, &start, &known, false);
        let echo = syn.options.timestamps.map_or(0, |one| one.value);
        let echo = (syn.seq + 1, echo);
        let mut header = syn_ack(context.config, &start, &agreed, echo, context.now);
        if let (Some(own), Some(memo)) = (&mut header.options.timestamps, kept.memo) {
            own.value = with_memo(own.value, memo);
        }
        header
    }

    /// Reads the acknowledgement that ends a handshake; `None` if its cookie is forged, too old, or
    /// of another connection.
    pub(crate) fn open(&self, flow: &[u8], header: &Header, now: Instant) -> Option<Baked> {
        let ack = header.ack?;
        if header.flags.contains(Flags::SYN) || header.flags.contains(Flags::RST) {
            return None;
        }
        let (iss, irs) = (ack - 1, header.seq - 1);
        let timestamps = header.options.timestamps;
        let memo = timestamps.map(|one| one.echo & MEMO_MASK);
        let kept = self.keys(now).find_map(|key| {
            let find = |memo| kept_by(key, flow, (iss, irs), memo, now);
            // A peer without timestamps in its SYN may send them all the same.
            find(memo).or_else(|| memo.and_then(|_| find(None)))
        })?;
        Some(Baked {
            iss,
            irs,
            syn: kept.syn(irs, timestamps),
        })
    }

    /// The keys of which cookies can be valid.
    fn keys(&self, now: Instant) -> impl Iterator<Item = &[u64; 2]> {
        let lifetime = Micros(PERIOD_US * (MOST_AGE + 1));
        let is_last_valid = now.since(self.rotated_at) <= lifetime;
        let last = self.last.as_ref().filter(|_| is_last_valid);
        core::iter::once(&self.present).chain(last)
    }
}

/// What a cookie and a timestamp keep of the peer's SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    /// Index in `SIZES`.
    size: u32,
    /// The bits in the timestamp, if the peer has timestamps.
    memo: Option<u32>,
}

impl Kept {
    fn of(config: &Config, start: &Start, syn: &Header) -> Self {
        let agreed = Agreed::of(config, start, syn, false);
        let mss = syn.options.mss.unwrap_or(SIZES[0]);
        // Less than the least size is raised to it; `Config::least_mss` does the same.
        let above = SIZES.iter().filter(|size| **size <= mss).count();
        let size = u32::try_from(above.saturating_sub(1)).unwrap_or(0);
        let shift = if agreed.is_scaled {
            u32::from(agreed.send_shift)
        } else {
            UNSCALED
        };
        let flag = |is_set, bit| if is_set { bit } else { 0 };
        let memo = shift | flag(agreed.has_sack, SACK) | flag(agreed.has_ecn, ECN);
        Self {
            size,
            memo: agreed.has_timestamps.then_some(memo),
        }
    }

    /// The peer's SYN with what was kept of it.
    fn syn(&self, seq: SeqNum, timestamps: Option<Timestamps>) -> Header {
        let memo = self.memo.unwrap_or(UNSCALED);
        let shift = u8::try_from(memo & SHIFT_MASK).unwrap_or(0);
        Header {
            ports: NO_PORTS,
            seq,
            ack: None,
            flags: if memo & ECN != 0 {
                Flags::SYN | Flags::ECE | Flags::CWR
            } else {
                Flags::SYN
            },
            window: 0,
            urgent: None,
            options: Options {
                mss: Some(SIZES[self.size as usize % SIZES.len()]),
                window_scale: (memo & SHIFT_MASK != UNSCALED).then_some(shift),
                sack_permitted: memo & SACK != 0,
                timestamps: timestamps.filter(|_| self.memo.is_some()),
                ..Options::NONE
            },
        }
    }
}

/// The cookie. A keyed number and the peer's number are added, as RFC 6528 does, so that the parts
/// of a cookie cannot be read from it.
fn iss(key: &[u64; 2], flow: &[u8], irs: SeqNum, kept: &Kept, period: u64) -> SeqNum {
    let Kept { size, memo } = *kept;
    let hashed = hash(key, flow, irs, Some((period, size, memo))) & HASH_MASK;
    let low_period = low_half(period) & ((1 << PERIOD_BITS) - 1);
    let packed = low_period << (HASH_BITS + SIZE_BITS) | size << HASH_BITS | hashed;
    irs + hash(key, flow, SeqNum(0), None) + packed
}

/// What a cookie keeps, if `key` made it in this period or in a late one.
fn kept_by(
    key: &[u64; 2],
    flow: &[u8],
    (number, irs): (SeqNum, SeqNum),
    memo: Option<u32>,
    now: Instant,
) -> Option<Kept> {
    let packed = (number - hash(key, flow, SeqNum(0), None)) - irs;
    let size = packed >> HASH_BITS & ((1 << SIZE_BITS) - 1);
    let kept = Kept { size, memo };
    let present = period(now);
    (0..=MOST_AGE)
        .filter_map(|age| present.checked_sub(age))
        .any(|period| iss(key, flow, irs, &kept, period) == number)
        .then_some(kept)
}

fn hash(key: &[u64; 2], flow: &[u8], irs: SeqNum, content: Option<(u64, u32, Option<u32>)>) -> u32 {
    let mut hasher = SipHasher24::new_with_keys(key[0], key[1]);
    hasher.write(flow);
    hasher.write_u32(irs.0);
    if let Some((period, size, memo)) = content {
        hasher.write_u64(period);
        hasher.write_u32(size);
        hasher.write_u32(memo.unwrap_or(u32::MAX));
    }
    low_half(hasher.finish())
}

fn period(now: Instant) -> u64 {
    now.0 / PERIOD_US
}

/// A timestamp whose low bits hold the options. It is not later than `value`, so that timestamps of
/// the connection do not run backwards.
fn with_memo(value: u32, memo: u32) -> u32 {
    let made = value & !MEMO_MASK | memo;
    if SeqNum(made).after(SeqNum(value)) {
        made.wrapping_sub(1 << MEMO_BITS)
    } else {
        made
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is asked for")]
fn low_half(number: u64) -> u32 {
    number as u32
}
