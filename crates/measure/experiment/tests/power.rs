//! Compares the expected resolution of a number of pairs with simulations.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod distributions;

use distributions::lognormal;
use saiga_experiment::stats::{Method, RatioSummary, median, resolution};

const EXPERIMENTS: usize = 2_000;
const SEED: u64 = 5;

/// Geometric mean of the simulated half widths, as a fraction.
fn simulated(method: Method, pairs: usize, rng: &mut fastrand::Rng) -> f64 {
    let half = || {
        let ratios: Vec<f64> = (0..pairs).map(|_| lognormal(rng)).collect();
        let summary = RatioSummary::by(method, &ratios).unwrap();
        summary.half_width().unwrap().ln_1p()
    };
    let halves: Vec<f64> = std::iter::repeat_with(half).take(EXPERIMENTS).collect();
    let count = f64::from(u32::try_from(EXPERIMENTS).unwrap());
    (halves.iter().sum::<f64>() / count).exp_m1()
}

#[test]
fn the_formula_agrees_with_simulation() {
    println!("seed {SEED}");
    let mut rng = fastrand::Rng::with_seed(SEED);
    for (method, pairs) in [
        (Method::Fixed, 6),
        (Method::Fixed, 10),
        (Method::Fixed, 25),
        (Method::Fixed, 60),
        (Method::Sequential, 8),
        (Method::Sequential, 12),
        (Method::Sequential, 30),
        (Method::Sequential, 100),
    ] {
        let predicted = resolution(method, pairs, distributions::SPREAD)
            .unwrap()
            .ln_1p();
        let simulated = simulated(method, pairs, &mut rng).ln_1p();
        assert!(
            (predicted / simulated - 1.0).abs() < 0.05,
            "{method:?} {pairs}: predicted {predicted}, simulated {simulated}"
        );
    }
}

/// Half of all experiments stop near the predicted number of pairs, not at twice as many.
#[test]
fn sequential_experiments_stop_near_the_predicted_number_of_pairs() {
    println!("seed {SEED}");
    let (wanted, most) = (0.1, 400);
    let predicted =
        saiga_experiment::stats::pairs_for(Method::Sequential, wanted, distributions::SPREAD, most)
            .unwrap();
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut stop = || {
        let mut ratios = Vec::new();
        loop {
            ratios.push(lognormal(&mut rng));
            let summary = RatioSummary::by(Method::Sequential, &ratios).unwrap();
            if summary.half_width().is_some_and(|half| half <= wanted) {
                return f64::from(u32::try_from(ratios.len()).unwrap());
            }
        }
    };
    let stops: Vec<f64> = std::iter::repeat_with(&mut stop).take(200).collect();
    let middle = median(&stops).unwrap();
    let predicted = f64::from(u32::try_from(predicted).unwrap());
    assert!(
        (0.7 * predicted..=1.1 * predicted).contains(&middle),
        "predicted {predicted}, stopped at {middle}"
    );
}
