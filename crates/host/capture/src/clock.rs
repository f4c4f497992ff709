//! How far the clocks of two captures are apart, from packets that are in both.
//!
//! As in NTP (RFC 5905 §8): a packet that goes from one capture to the other shows the offset plus
//! its travel time, a packet of the other direction shows the offset minus it. The offset lies
//! between the fastest packets of both, and half of their distance is the uncertainty. The fastest
//! twentieth is left out, because its packets may have been stamped late. The result is computed in
//! slices of time, so that clocks that run at different rates are seen.

use std::collections::{HashMap, hash_map};

use crate::{Timestamp, Traffic, segment::Segment};

/// Parts of the common time in which the offset is estimated.
const SLICES: u64 = 8;
/// Difference of the times that two packet sockets give the same packet, each in microseconds.
const NOISE_NS: i128 = 20_000;
/// Packets of each direction without which a slice says nothing.
const FEWEST: usize = 3;
/// One packet of so many may have a wrong time: a capture that is preempted stamps packets late.
const PRECISE: usize = 20;

/// Packets by which two captures are compared. Which packets are kept depends on their hash only,
/// so that two captures keep the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    packets: HashMap<u64, Seen>,
    most: usize,
    /// Larger hashes are not kept.
    largest: u64,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Timestamp,
    /// From the smaller to the larger address.
    is_upward: bool,
    /// A second packet looks the same.
    is_ambiguous: bool,
}

impl Sample {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            packets: HashMap::new(),
            most,
            largest: u64::MAX,
        }
    }

    pub(crate) fn on_segment(&mut self, segment: &Segment<'_>, at: Timestamp) {
        if (segment.length == 0 && !segment.syn) || self.most == 0 {
            return;
        }
        let hash = hash_of(segment);
        if hash > self.largest {
            return;
        }
        match self.packets.entry(hash) {
            hash_map::Entry::Occupied(mut seen) => seen.get_mut().is_ambiguous = true,
            hash_map::Entry::Vacant(place) => {
                let is_upward = segment.from < segment.to;
                place.insert(Seen {
                    at,
                    is_upward,
                    is_ambiguous: false,
                });
            }
        }
        while self.packets.len() > self.most {
            self.largest /= 2;
            let largest = self.largest;
            self.packets.retain(|hash, _| *hash <= largest);
        }
    }
}

/// The finalizer of SplitMix64 over all that identifies a packet.
fn hash_of(segment: &Segment<'_>) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mut z = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let address = |hash, ip| match ip {
        std::net::IpAddr::V4(ip) => mix(hash, u64::from(ip.to_bits())),
        std::net::IpAddr::V6(ip) => {
            let [a, b, c, d, e, f, g, h] = ip.segments().map(u64::from);
            mix(
                mix(hash, a << 48 | b << 32 | c << 16 | d),
                e << 48 | f << 32 | g << 16 | h,
            )
        }
    };
    let ports = u64::from(segment.from.port()) << 16 | u64::from(segment.to.port());
    let hash = address(address(ports, segment.from.ip()), segment.to.ip());
    let hash = mix(
        hash,
        u64::from(segment.seq) << 32 | u64::from(segment.length),
    );
    mix(
        hash,
        u64::from(segment.syn) << 1 | u64::from(segment.ack.is_some()),
    )
}

/// The difference of two clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offset {
    /// What the second clock shows more than the first, in the middle of the common time.
    pub nanoseconds: i64,
    /// The true offset is at most this far away, if the path is not asymmetric by more.
    pub uncertainty_ns: u64,
    /// How much faster the second clock runs, if the time was long enough to see it.
    pub drift_ppm: Option<f64>,
    /// Packets that are in both captures.
    pub packets: usize,
}

/// Two captures cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OffsetError {
    /// No packet is in both captures.
    #[error(
        "no packet is in both captures: capture at the same time, without address translation \
         in between"
    )]
    NothingInCommon,
    /// Packets of one direction are missing.
    #[error("the captures share {upward} packets of one direction and {downward} of the other")]
    OneDirection { upward: usize, downward: usize },
    /// Packets would have arrived before they were sent.
    #[error("the clocks were set or ran unevenly while capturing")]
    Uneven,
}

/// Estimates the difference of the clocks of two captures.
///
/// # Errors
/// Fails if the captures do not share packets of both directions, or a clock was set.
pub fn offset(first: &Traffic, second: &Traffic) -> Result<Offset, OffsetError> {
    let mut pairs = pairs(first, second);
    pairs.sort_unstable_by_key(|pair| pair.at);
    let upward = pairs.iter().filter(|pair| pair.is_upward).count();
    let downward = pairs.len() - upward;
    if pairs.is_empty() {
        return Err(OffsetError::NothingInCommon);
    }
    if upward == 0 || downward == 0 {
        return Err(OffsetError::OneDirection { upward, downward });
    }
    let outward = median(&pairs, true) >= median(&pairs, false);
    let (start, end) = (pairs[0].at, pairs[pairs.len() - 1].at);
    let slice_ns = (end - start) / SLICES + 1;
    let slices: Vec<_> = pairs
        .chunk_by(|a, b| (a.at - start) / slice_ns == (b.at - start) / slice_ns)
        .filter_map(|slice| Bounds::of(slice, outward, FEWEST))
        .collect();
    let whole = || {
        let bounds = Bounds::of(&pairs, outward, 1).filter(Bounds::is_possible);
        bounds.map(|bounds| (bounds.middle(), bounds.width() / 2, None))
    };
    let estimate = if slices.len() >= 3 && slices.iter().all(Bounds::is_possible) {
        Some(line(&slices, start.midpoint(end)))
    } else {
        whole()
    };
    let (middle, uncertainty, drift_ppm) = estimate.ok_or(OffsetError::Uneven)?;
    Ok(Offset {
        nanoseconds: i64::try_from(middle).unwrap_or(if middle < 0 { i64::MIN } else { i64::MAX }),
        uncertainty_ns: u64::try_from(uncertainty).unwrap_or(u64::MAX),
        drift_ppm,
        packets: pairs.len(),
    })
}

/// A packet that is in both captures.
struct Pair {
    at: u64,
    /// The second capture's time less the first's.
    difference: i128,
    is_upward: bool,
}

fn pairs(first: &Traffic, second: &Traffic) -> Vec<Pair> {
    let common = first.sample.packets.iter().filter_map(|(hash, a)| {
        let b = second.sample.packets.get(hash)?;
        let difference = i128::from(b.at.0) - i128::from(a.at.0);
        let pair = Pair {
            at: a.at.0,
            difference,
            is_upward: a.is_upward,
        };
        (!a.is_ambiguous && !b.is_ambiguous).then_some(pair)
    });
    common.collect()
}

fn median(pairs: &[Pair], is_upward: bool) -> i128 {
    let of_direction = pairs.iter().filter(|pair| pair.is_upward == is_upward);
    let mut differences: Vec<_> = of_direction.map(|pair| pair.difference).collect();
    let middle = differences.len() / 2;
    *differences.select_nth_unstable(middle).1
}

/// The offset is not above the differences of packets that left the first capture, and not below
/// those of packets that came to it.
struct Bounds {
    at: u64,
    low: i128,
    high: i128,
}

impl Bounds {
    fn of(pairs: &[Pair], outward: bool, fewest: usize) -> Option<Self> {
        let sorted = |outward| {
            let of_direction = pairs.iter().filter(|pair| pair.is_upward == outward);
            let mut all: Vec<i128> = of_direction.map(|pair| pair.difference).collect();
            all.sort_unstable();
            all
        };
        let (inward, outward) = (sorted(!outward), sorted(outward));
        if inward.len().min(outward.len()) < fewest {
            return None;
        }
        let (first, last) = (pairs.first()?.at, pairs.last()?.at);
        Some(Self {
            at: first.midpoint(last),
            low: inward[inward.len() - 1 - inward.len() / PRECISE],
            high: outward[outward.len() / PRECISE],
        })
    }

    fn is_possible(&self) -> bool {
        self.low <= self.high + NOISE_NS
    }

    fn middle(&self) -> i128 {
        self.low.midpoint(self.high)
    }

    fn width(&self) -> i128 {
        (self.high - self.low).abs()
    }
}

/// The line of least squares through the middles: its value at `at`, the largest half of a width,
/// and its slope.
fn line(slices: &[Bounds], at: u64) -> (i128, i128, Option<f64>) {
    let origin = slices[0].middle();
    let x = |slice: &Bounds| slice.at as f64 - at as f64;
    let y = |slice: &Bounds| (slice.middle() - origin) as f64;
    let count = slices.len() as f64;
    let (mean_x, mean_y) = (
        slices.iter().map(x).sum::<f64>() / count,
        slices.iter().map(y).sum::<f64>() / count,
    );
    let spread: f64 = slices.iter().map(|slice| (x(slice) - mean_x).powi(2)).sum();
    let joint: f64 = slices
        .iter()
        .map(|slice| (x(slice) - mean_x) * (y(slice) - mean_y))
        .sum();
    let slope = if spread > 0.0 { joint / spread } else { 0.0 };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float to an integer saturates"
    )]
    let middle = (mean_y - slope * mean_x) as i128 + origin;
    let uncertainty = slices.iter().map(Bounds::width).max().unwrap_or(0) / 2;
    (middle, uncertainty, Some(slope * 1e6))
}
