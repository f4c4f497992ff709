//! Congestion avoidance and reduction of CUBIC.
//!
//! Spec: RFC 9438 §4. The window grows along a cubic function of the time since the last reduction:
//! fast while it is far from the window at which loss occurred, slowly near it. Where NewReno would
//! be faster, CUBIC follows it (§4.3).
//!
//! Units: windows are bytes, times are ticks of 1/1024 s, in integers. `C` is 0.4 and `beta` 0.7.

use crate::time::{Instant, Micros};

/// Ticks in a second, as a power of two.
const TICKS: u32 = 10;
/// 128 s: at this distance from `K`, the function has moved by 838,000 segments, which is more than
/// a window can have.
const FARTHEST: u64 = 128 << TICKS;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cubic {
    /// The window before the last reduction, or less by fast convergence (§4.7). 0 before any.
    w_max: u32,
    /// The window just before the last reduction.
    cwnd_prior: u32,
    epoch: Option<Epoch>,
    /// What the window of NewReno would be, in bytes, and the remainder of its growth.
    w_est: u32,
    est_left: u32,
    /// The remainder of the growth of the window.
    left: u32,
}

/// A stage of congestion avoidance (§4.2). Times are ticks, which wrap after 48 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Epoch {
    start: u32,
    /// The last time at which the window could grow; a pause moves `start`.
    active: u32,
    /// Ticks from `start` until the window reaches `w_max`.
    k: u32,
}

impl Cubic {
    /// Grows the window for acknowledged bytes.
    pub(super) fn grow(
        &mut self,
        cwnd: u32,
        bytes: u32,
        mss: u32,
        srtt: Micros,
        now: Instant,
    ) -> u32 {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(cwnd, mss, now),
        };
        self.epoch = Some(Epoch {
            active: clock(now),
            ..epoch
        });
        self.grow_estimate(cwnd, bytes, mss);
        let elapsed = u64::from(clock(now).wrapping_sub(epoch.start));
        if self.at(elapsed, epoch, mss) < self.w_est {
            // §4.3: the Reno-friendly region.
            return cwnd.max(self.w_est);
        }
        // §4.2: the target lies a round trip ahead, at most half of the window above it.
        let most = cwnd.saturating_add(cwnd / 2);
        let target = self.at(elapsed + ticks(srtt), epoch, mss).clamp(cwnd, most);
        // §4.4 and §4.5: (target - cwnd) / cwnd for each acknowledged byte.
        let due = u64::from(target - cwnd) * u64::from(bytes) + u64::from(self.left);
        let (growth, left) = divided(due, cwnd);
        self.left = left;
        cwnd.saturating_add(growth)
    }

    /// Begins a stage with the present window.
    fn begin(&mut self, cwnd: u32, mss: u32, now: Instant) -> Epoch {
        // §4.8: without a reduction before, or after a time-out, the plateau is here.
        self.w_max = self.w_max.max(cwnd);
        self.w_est = cwnd;
        (self.est_left, self.left) = (0, 0);
        // K³ = (w_max - cwnd) / C, with w_max and cwnd in segments and K in seconds.
        let missing = u64::from(self.w_max - cwnd);
        let k = cube_root(((missing * 5) << (3 * TICKS - 1)) / u64::from(mss));
        Epoch {
            start: clock(now),
            active: clock(now),
            k,
        }
    }

    /// `W_cubic` at a number of ticks since the start of the stage (§4.2 figure 1).
    fn at(&self, elapsed: u64, epoch: Epoch, mss: u32) -> u32 {
        let k = u64::from(epoch.k);
        let distance = elapsed.abs_diff(k).min(FARTHEST);
        // 0.4 segments for each cubic second. The cube is shifted in two steps, because the product
        // would not fit otherwise.
        let per_cubic_second = u64::from(mss) * 2 / 5;
        let moved = ((distance.pow(3) >> TICKS) * per_cubic_second) >> (2 * TICKS);
        let moved = u32::try_from(moved).unwrap_or(u32::MAX);
        if elapsed >= k {
            self.w_max.saturating_add(moved)
        } else {
            self.w_max.saturating_sub(moved)
        }
    }

    /// §4.3 figure 4: `alpha` segments for each window, with `alpha = 3 (1 - beta) / (1 + beta)`,
    /// or one once the window before the reduction is reached.
    fn grow_estimate(&mut self, cwnd: u32, bytes: u32, mss: u32) {
        let alpha = if self.w_est < self.cwnd_prior {
            [9, 17]
        } else {
            [1, 1]
        };
        let bytes = u64::from(bytes) * u64::from(mss) * alpha[0] / alpha[1];
        let (growth, left) = divided(bytes + u64::from(self.est_left), cwnd);
        self.est_left = left;
        self.w_est = self.w_est.saturating_add(growth);
    }

    /// §5.8: time in which the application limits the load does not count.
    pub(super) fn pause(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            let now = clock(now);
            epoch.start = epoch.start.wrapping_add(now.wrapping_sub(epoch.active));
            epoch.active = now;
        }
    }

    /// §4.6 and §4.7: remembers the window and returns the new `ssthresh`.
    pub(super) fn reduce(&mut self, cwnd: u32, in_flight: u32) -> u32 {
        self.w_max = if cwnd < self.w_max {
            // Fast convergence: 0.85 of the window releases bandwidth for new flows.
            per_mille(cwnd, 850)
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        per_mille(in_flight, 700)
    }

    /// §4.8: the next stage begins at its plateau.
    pub(super) fn on_timeout(&mut self) {
        self.w_max = 0;
        self.epoch = None;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the clock wraps")]
fn clock(now: Instant) -> u32 {
    ticks(Micros(now.0)) as u32
}

/// Quotient and remainder.
fn divided(number: u64, divisor: u32) -> (u32, u32) {
    let divisor = u64::from(divisor);
    let whole = u32::try_from(number / divisor).unwrap_or(u32::MAX);
    (whole, u32::try_from(number % divisor).unwrap_or(0))
}

fn ticks(span: Micros) -> u64 {
    (span.0 << TICKS) / 1_000_000
}

fn per_mille(value: u32, part: u64) -> u32 {
    u32::try_from(u64::from(value) * part / 1000).unwrap_or(u32::MAX)
}

/// The largest number whose third power is at most `value`.
fn cube_root(value: u64) -> u32 {
    let mut root = 0_u64;
    for bit in (0..22).rev() {
        let candidate = root | 1 << bit;
        if candidate.checked_pow(3).is_some_and(|cube| cube <= value) {
            root = candidate;
        }
    }
    u32::try_from(root).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_rounded_down() {
        for (value, root) in [
            (0, 0),
            (1, 1),
            (7, 1),
            (8, 2),
            (26, 2),
            (27, 3),
            (1_000_000_000, 1000),
            (999_999_999, 999),
            (u64::MAX, 2_642_245),
        ] {
            assert_eq!(cube_root(value), root, "{value}");
        }
    }
}
