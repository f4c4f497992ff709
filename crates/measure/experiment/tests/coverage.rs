//! The interval holds the true median about as often as it claims, by simulation.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use saiga_experiment::stats::RatioSummary;

const EXPERIMENTS: u32 = 20_000;

/// A standard normal value (Box and Muller).
fn normal(rng: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

fn lognormal(rng: &mut fastrand::Rng) -> f64 {
    (0.2 * normal(rng)).exp()
}

/// Ratios of two runs of which one in five is disturbed: heavy tails on both sides.
fn disturbed(rng: &mut fastrand::Rng) -> f64 {
    let scale = if rng.u8(0..5) == 0 { 0.6 } else { 0.05 };
    (scale * normal(rng)).exp()
}

/// Share of experiments whose interval holds the true median, which is one.
fn coverage(pairs: usize, seed: u64, ratio: fn(&mut fastrand::Rng) -> f64) -> f64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut held = 0;
    for _ in 0..EXPERIMENTS {
        let ratios: Vec<f64> = (0..pairs).map(|_| ratio(&mut rng)).collect();
        held += u32::from(RatioSummary::of(&ratios).unwrap().direction() == 0);
    }
    f64::from(held) / f64::from(EXPERIMENTS)
}

#[test]
fn lognormal_ratios_are_covered_at_every_number_of_pairs() {
    for pairs in 6..=30 {
        let share = coverage(pairs, 1, lognormal);
        assert!((0.93..=0.975).contains(&share), "{pairs} pairs: {share}");
    }
}

#[test]
fn disturbed_ratios_are_covered_too() {
    for pairs in [6, 7, 8, 12, 20, 30] {
        let share = coverage(pairs, 2, disturbed);
        assert!((0.93..=0.975).contains(&share), "{pairs} pairs: {share}");
    }
}

/// The t-test rejects a true hypothesis in about one experiment of twenty.
#[test]
fn p_values_keep_their_level() {
    let mut rng = fastrand::Rng::with_seed(3);
    for pairs in [6, 12, 30] {
        let mut rejected = 0;
        for _ in 0..EXPERIMENTS {
            let ratios: Vec<f64> = (0..pairs).map(|_| lognormal(&mut rng)).collect();
            rejected += u32::from(RatioSummary::of(&ratios).unwrap().p_value < 0.05);
        }
        let share = f64::from(rejected) / f64::from(EXPERIMENTS);
        assert!((0.04..=0.06).contains(&share), "{pairs} pairs: {share}");
    }
}
