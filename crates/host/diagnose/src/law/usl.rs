//! Universal Scalability Law: `X(N) = a N / (1 + s (N - 1) + k N (N - 1))`.
//!
//! `a` is the throughput of one client, `s` the share of serial work (contention), and `k` the cost
//! of keeping clients consistent with each other (crosstalk). The throughput has a peak at
//! `N = sqrt((1 - s) / k)`. Source: N. Gunther, "Guerrilla Capacity Planning", 2007, chapter 4.
//!
//! `N / X` is linear in `1/a`, `s/a` and `k/a`. The fit is the least squares of the relative error
//! with no coefficient below zero; the intervals are those of a bootstrap over the points.

use serde::Serialize;

/// Resamples of the bootstrap. The 95 % interval needs some hundred.
const RESAMPLES: usize = 1000;
/// Points with a different number of clients that a fit of three coefficients needs.
pub const LEAST_LEVELS: usize = 4;

/// A fitted curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Curve {
    /// Requests per second of one client.
    pub rate: f64,
    /// `s`: contention.
    pub contention: f64,
    /// `k`: crosstalk.
    pub crosstalk: f64,
}

/// A curve with 95 % intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    pub curve: Curve,
    /// Low and high end.
    pub contention: [f64; 2],
    /// Low and high end.
    pub crosstalk: [f64; 2],
    /// Low and high end of the clients at the peak; infinite if some resamples have no peak.
    pub peak_clients: Option<[f64; 2]>,
    /// Root mean square of the relative errors.
    pub error: f64,
}

/// What keeps a curve from growing with the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Serial work: the curve becomes flat.
    Contention,
    /// The exchange between clients: the curve falls behind its peak.
    Crosstalk,
    /// The throughput grows in proportion to the clients.
    None,
}

impl Curve {
    /// Requests per second of `clients`.
    #[must_use]
    pub fn at(&self, clients: f64) -> f64 {
        let Self {
            rate,
            contention,
            crosstalk,
        } = self;
        let others = clients - 1.0;
        rate * clients / (1.0 + contention * others + crosstalk * clients * others)
    }

    /// The number of clients with the highest throughput; `None` if the throughput never falls.
    #[must_use]
    pub fn peak_clients(&self) -> Option<f64> {
        let share = (1.0 - self.contention) / self.crosstalk;
        (self.crosstalk > 0.0 && share.is_finite() && share > 0.0).then(|| share.sqrt().max(1.0))
    }

    /// The term that costs most with `clients`; none if both together cost less than a tenth.
    #[must_use]
    pub fn limit_at(&self, clients: f64) -> Limit {
        let others = clients - 1.0;
        let (serial, exchange) = (self.contention * others, self.crosstalk * clients * others);
        if serial + exchange < 0.1 {
            Limit::None
        } else if serial >= exchange {
            Limit::Contention
        } else {
            Limit::Crosstalk
        }
    }
}

/// Fits points of (clients, requests per second). `None` with fewer than [`LEAST_LEVELS`] different
/// numbers of clients. Points that are not positive are left out.
#[must_use]
pub fn fit(points: &[(f64, f64)], seed: u64) -> Option<Fit> {
    let used: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(n, x)| n.is_finite() && x.is_finite() && *n > 0.0 && *x > 0.0)
        .collect();
    let curve = curve(&used, LEAST_LEVELS)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut curves = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let again: Vec<(f64, f64)> = (0..used.len())
            .filter_map(|_| random.choice(&used).copied())
            .collect();
        // A resample with fewer levels than coefficients has no single best curve.
        curves.extend(self::curve(&again, 3));
    }
    let squares = used.iter().map(|(n, x)| (curve.at(*n) / x - 1.0).powi(2));
    Some(Fit {
        contention: interval(curves.iter().map(|one| one.contention))?,
        crosstalk: interval(curves.iter().map(|one| one.crosstalk))?,
        peak_clients: curve.peak_clients().and_then(|_| {
            interval(
                curves
                    .iter()
                    .map(|one| one.peak_clients().unwrap_or(f64::INFINITY)),
            )
        }),
        error: (squares.sum::<f64>() / used.len() as f64).sqrt(),
        curve,
    })
}

/// The middle 95 % of the values.
fn interval(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 40;
    Some([
        *sorted.get(cut)?,
        *sorted.get(sorted.len().checked_sub(cut + 1)?)?,
    ])
}

/// The best curve. Coefficients below zero have no meaning, so the best curve without them is used.
fn curve(points: &[(f64, f64)], least_levels: usize) -> Option<Curve> {
    let mut levels: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if levels.len() < least_levels {
        return None;
    }
    // Which of contention and crosstalk are free; the others are zero.
    let choices = [[true, true], [true, false], [false, true], [false, false]];
    choices
        .into_iter()
        .filter_map(|free| solved(points, free))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(curve, _)| curve)
}

/// The least squares with the free coefficients, and the sum of the squares; `None` if a
/// coefficient is negative.
fn solved(points: &[(f64, f64)], free: [bool; 2]) -> Option<(Curve, f64)> {
    // Rows of the linear system, divided by N / X so that errors are relative.
    let row = |&(n, x): &(f64, f64)| {
        let weight = x / n;
        let [contention, crosstalk] = free.map(f64::from);
        [
            weight,
            weight * (n - 1.0) * contention,
            weight * n * (n - 1.0) * crosstalk,
        ]
    };
    let mut normal = [[0.0; 4]; 3];
    for row in points.iter().map(row) {
        for (line, left) in normal.iter_mut().zip(row) {
            for (sum, right) in line.iter_mut().zip(row.into_iter().chain([1.0])) {
                *sum += left * right;
            }
        }
    }
    for (index, free) in free.into_iter().enumerate() {
        if !free {
            normal[index + 1][index + 1] = 1.0;
        }
    }
    let [base, contention, crosstalk] = eliminated(normal)?;
    if base <= 0.0 || contention < 0.0 || crosstalk < 0.0 {
        return None;
    }
    let squares = points.iter().map(row).map(|row| {
        let sum = row[0] * base + row[1] * contention + row[2] * crosstalk;
        (sum - 1.0).powi(2)
    });
    let curve = Curve {
        rate: 1.0 / base,
        contention: contention / base,
        crosstalk: crosstalk / base,
    };
    Some((curve, squares.sum()))
}

/// Gauss-Jordan elimination with pivots; `None` if the system is singular.
fn eliminated(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    // The columns differ by powers of N: each is scaled to one for the choice of pivots.
    let scale = [0, 1, 2].map(|at: usize| rows[at][at].abs().sqrt());
    if scale.iter().any(|one| *one <= 0.0 || !one.is_finite()) {
        return None;
    }
    for (line, &own) in rows.iter_mut().zip(&scale) {
        for (value, by) in line.iter_mut().zip(scale.iter().chain([&1.0])) {
            *value /= own * by;
        }
    }
    for at in 0..3 {
        let pivot = (at..3).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, pivot);
        let divisor = rows[at][at];
        if divisor.abs() < 1e-12 {
            return None;
        }
        let line = rows[at].map(|value| value / divisor);
        for (index, other) in rows.iter_mut().enumerate() {
            let factor = if index == at { 0.0 } else { other[at] };
            for (value, own) in other.iter_mut().zip(line) {
                *value -= factor * own;
            }
        }
        rows[at] = line;
    }
    let mut solution = [0.0; 3];
    for ((value, row), by) in solution.iter_mut().zip(rows).zip(scale) {
        *value = row[3] / by;
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(curve: Curve, levels: &[f64]) -> Vec<(f64, f64)> {
        levels.iter().map(|n| (*n, curve.at(*n))).collect()
    }

    /// Coefficients of a database on 32 cores, of the order that Gunther gives for one.
    const DATABASE: Curve = Curve {
        rate: 995.6,
        contention: 0.026_7,
        crosstalk: 0.000_769,
    };

    #[test]
    fn exact_points_give_their_curve_and_its_peak() {
        let fit = fit(
            &points(DATABASE, &[1.0, 4.0, 8.0, 16.0, 32.0, 48.0, 64.0]),
            7,
        )
        .unwrap();
        assert!((fit.curve.rate - 995.6).abs() < 0.01);
        assert!((fit.curve.contention - 0.026_7).abs() < 1e-6);
        assert!((fit.curve.crosstalk - 0.000_769).abs() < 1e-8);
        assert!(fit.error < 1e-6);
        let peak = fit.curve.peak_clients().unwrap();
        assert!((peak - 35.58).abs() < 0.01);
        assert_eq!(fit.curve.limit_at(64.0), Limit::Crosstalk);
        assert_eq!(fit.curve.limit_at(8.0), Limit::Contention);
    }

    #[test]
    fn the_intervals_contain_the_truth_under_noise() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut noisy = Vec::new();
        for n in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
            for _ in 0..5 {
                noisy.push((n, DATABASE.at(n) * (0.97 + 0.06 * random.f64())));
            }
        }
        let fit = fit(&noisy, 7).unwrap();
        let holds = |[low, high]: [f64; 2], value: f64| low <= value && value <= high;
        assert!(holds(fit.contention, DATABASE.contention), "{fit:?}");
        assert!(holds(fit.crosstalk, DATABASE.crosstalk), "{fit:?}");
        assert!(holds(fit.peak_clients.unwrap(), 35.58), "{fit:?}");
        assert!(fit.error < 0.03);
    }

    #[test]
    fn a_straight_line_has_neither_peak_nor_limit() {
        let line: Vec<(f64, f64)> = [1.0, 2.0, 3.0, 50.0].map(|n| (n, 10.0 * n)).to_vec();
        let fit = fit(&line, 7).unwrap();
        assert!((fit.curve.rate - 10.0).abs() < 1e-9);
        assert_eq!(fit.curve.limit_at(50.0), Limit::None);
        assert_eq!(fit.peak_clients, None);
    }

    #[test]
    fn superlinear_points_have_no_negative_coefficient() {
        let steep: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0].map(|n: f64| (n, n.powf(1.2))).to_vec();
        let fit = fit(&steep, 7).unwrap();
        assert!(fit.curve.contention >= 0.0 && fit.curve.crosstalk >= 0.0);
    }

    #[test]
    fn three_levels_are_not_enough() {
        let few = points(DATABASE, &[1.0, 2.0, 4.0, 4.0, 4.0]);
        assert_eq!(fit(&few, 7), None);
        assert_eq!(fit(&[(0.0, 1.0), (f64::NAN, 2.0)], 7), None);
    }
}
