//! Ratios around one as experiments show them. One is the median of each.
#![allow(dead_code, reason = "each test uses some of them")]

use std::f64::consts::TAU;

use fastrand::Rng;

/// The deviation of the logarithms of [`lognormal`] ratios.
pub(crate) const SPREAD: f64 = 0.2;

/// Draws a ratio.
pub(crate) type Draw = fn(&mut Rng) -> f64;

/// Every distribution with its name.
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

/// Quiet runs.
pub(crate) fn lognormal(rng: &mut Rng) -> f64 {
    (SPREAD * normal(rng)).exp()
}

/// Ratios of two runs of which one in five is disturbed: heavy tails on both sides.
pub(crate) fn disturbed(rng: &mut Rng) -> f64 {
    let scale = if rng.u8(0..5) == 0 { 0.6 } else { 0.05 };
    (scale * normal(rng)).exp()
}

/// A long tail on one side only: exponential, moved so that its median is zero.
pub(crate) fn skewed(rng: &mut Rng) -> f64 {
    let exponential = -(1.0 - rng.f64()).ln();
    (0.2 * (exponential - std::f64::consts::LN_2)).exp()
}

/// MariaDB's: each run is in its slow mode, a fifth slower, with a chance of 0.4.
pub(crate) fn two_modes(rng: &mut Rng) -> f64 {
    let mut run = || {
        let slow = if rng.u8(0..10) < 4 { 0.8f64.ln() } else { 0.0 };
        slow + 0.01 * normal(rng)
    };
    (run() - run()).exp()
}

/// Two modes and nothing between them, where the median lies: the worst that can happen to an
/// interpolated end.
pub(crate) fn split_modes(rng: &mut Rng) -> f64 {
    let mode = if rng.bool() { 0.1 } else { -0.1 };
    (mode + 0.01 * normal(rng)).exp()
}

/// Ratios on a coarse grid, a quarter of them exactly one: ties.
pub(crate) fn discrete(rng: &mut Rng) -> f64 {
    [0.9, 0.95, 0.95, 1.0, 1.0, 1.05, 1.05, 1.1][rng.usize(0..8)]
}
