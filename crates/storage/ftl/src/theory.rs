//! Closed forms of write amplification in the limit of many large units.
//!
//! Desnoyers, "Analytic Modeling of SSD Write Performance" (SYSTOR 2012), and Xiang and Kurkoski
//! (2011): FIFO victims under uniform random writes, which greedy victims approach from below as
//! units grow. Over-provisioning is relative to the data in use.

/// A share of the pages with its share of the writes, both from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    pub pages: f64,
    pub writes: f64,
}

/// FIFO under uniform random writes: A = a / (a + W0(-a e^-a)), a = 1 + OP.
#[must_use]
pub fn uniform(over_provisioning: f64) -> f64 {
    let a = 1.0 + over_provisioning;
    a / (a + lambert_w0(-a * (-a).exp()))
}

/// FIFO with one frontier for all data, whose parts are written at different rates.
///
/// A page is programmed again every T / A host writes unless it has been overwritten: the root A
/// of A = sum f / (1 - e^(-f T / (r U A))).
#[must_use]
pub fn fifo(over_provisioning: f64, shares: &[Share]) -> f64 {
    let programmed = |waf: f64| -> f64 {
        let turn = (1.0 + over_provisioning) / waf;
        let one = |share: &Share| {
            let rate = share.writes / share.pages;
            share.writes / -(-rate * turn).exp_m1()
        };
        let written = shares.iter().filter(|share| share.writes > 0.0);
        written.map(one).sum()
    };
    // The difference changes its sign at the root.
    let (mut low, mut high) = (1.0, 1e6);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if programmed(middle) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The least write amplification of two separate streams, with the best division of the spare
/// space: min of f A(OP1) + (1 - f) A(OP2). Greedy victims do not find that division.
#[must_use]
pub fn two_streams_at_best(over_provisioning: f64, hot: Share) -> f64 {
    let waf = |part: f64| {
        let one = |share: Share, part: f64| {
            share.writes * uniform(over_provisioning * part / share.pages)
        };
        let cold = Share {
            pages: 1.0 - hot.pages,
            writes: 1.0 - hot.writes,
        };
        one(hot, part) + one(cold, 1.0 - part)
    };
    // Convex in the part of the hot stream: ternary search.
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..200 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if waf(left) < waf(right) {
            high = right;
        } else {
            low = left;
        }
    }
    waf(low)
}

/// The principal branch of Lambert's W for -1/e <= x < 0: W e^W = x with W >= -1.
fn lambert_w0(x: f64) -> f64 {
    // Between the branch point and zero, w e^w rises: bisection finds the root.
    let (mut low, mut high) = (-1.0, 0.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle * middle.exp() < x {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published values with three decimals.
    #[test]
    fn uniform_has_the_published_values() {
        for (over_provisioning, expected) in [
            (0.07, 7.817),
            (0.10, 5.677),
            (0.15, 4.016),
            (0.20, 3.188),
            (0.28, 2.481),
            (0.30, 2.364),
            (0.50, 1.716),
        ] {
            let found = uniform(over_provisioning);
            assert!(
                (found - expected).abs() < 0.0006,
                "{over_provisioning}: {found}"
            );
        }
    }

    #[test]
    fn shares_that_are_alike_are_uniform() {
        for over_provisioning in [0.07, 0.28] {
            let half = Share {
                pages: 0.5,
                writes: 0.5,
            };
            let found = fifo(over_provisioning, &[half, half]);
            assert!((found - uniform(over_provisioning)).abs() < 1e-9, "{found}");
        }
    }

    #[test]
    fn two_streams_have_the_known_optimum() {
        for (over_provisioning, pages, writes, expected) in [
            (0.07, 0.1, 0.9, 3.27),
            (0.15, 0.2, 0.8, 2.83),
            (0.15, 0.1, 0.9, 1.93),
            (0.28, 0.1, 0.9, 1.41),
        ] {
            let found = two_streams_at_best(over_provisioning, Share { pages, writes });
            assert!((found - expected).abs() < 0.006, "{found} {expected}");
        }
    }
}
