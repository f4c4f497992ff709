//! Distributions of ratios as in real experiments; the median of each is 1.
#![allow(dead_code, reason = "each test uses some of them")]

use std::f64::consts::TAU;

use fastrand::Rng;

/// Standard deviation of the logarithms of [`lognormal`] ratios.
pub(crate) const SPREAD: f64 = 0.2;

/// A function that draws one ratio.
pub(crate) type Draw = fn(&mut Rng) -> f64;

/// All distributions by name.
pub(crate) const ALL: [(&str, Draw); 5] = [
    ("lognormal", lognormal),
    ("disturbed", disturbed),
    ("skewed", skewed),
    ("two modes", two_modes),
    ("discrete", discrete),
];

/// A standard normal value (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (TAU * rng.f64()).cos()
}

/// Ratios of undisturbed runs.
pub(crate) fn lognormal(rng: &mut Rng) -> f64 {
    (SPREAD * normal(rng)).exp()
}

/// Ratios of two runs of which one in five is disturbed: heavy tails on both sides.
pub(crate) fn disturbed(rng: &mut Rng) -> f64 {
    let scale = if rng.u8(0..5) == 0 { 0.6 } else { 0.05 };
    (scale * normal(rng)).exp()
}

/// A long tail on one side: an exponential distribution, shifted so that the median of the
/// logarithms is zero.
pub(crate) fn skewed(rng: &mut Rng) -> f64 {
    let exponential = -(1.0 - rng.f64()).ln();
    (0.2 * (exponential - std::f64::consts::LN_2)).exp()
}

/// Bimodal ratios as of MariaDB: each run is in a slow mode, a fifth slower, with a probability of
/// 0.4.
pub(crate) fn two_modes(rng: &mut Rng) -> f64 {
    let mut run = || {
        let slow = if rng.u8(0..10) < 4 { 0.8f64.ln() } else { 0.0 };
        slow + 0.01 * normal(rng)
    };
    (run() - run()).exp()
}

/// Two modes with the median in the gap between them: the worst case for an interpolated end.
pub(crate) fn split_modes(rng: &mut Rng) -> f64 {
    let mode = if rng.bool() { 0.1 } else { -0.1 };
    (mode + 0.01 * normal(rng)).exp()
}

/// Ties: ratios on a coarse grid, a quarter of them exactly 1.
pub(crate) fn discrete(rng: &mut Rng) -> f64 {
    [0.9, 0.95, 0.95, 1.0, 1.0, 1.05, 1.05, 1.1][rng.usize(0..8)]
}
