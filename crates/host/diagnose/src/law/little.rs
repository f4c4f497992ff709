//! Little's law and the interactive response time law: `N = X (R + Z)`.
//!
//! Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", 1961; E. Lazowska et al.,
//! "Quantitative System Performance", 1984, chapter 3.

/// Requests inside the measured path: `X R`. `throughput` in requests per second, `response` in
/// milliseconds.
#[must_use]
pub fn inside(throughput: f64, response_ms: f64) -> f64 {
    throughput * response_ms / 1000.0
}

/// Share of the `clients` whose request is inside the measured path: `X R / N`.
#[must_use]
pub fn area_ratio(clients: f64, throughput: f64, response_ms: f64) -> f64 {
    inside(throughput, response_ms) / clients
}

/// Time that a client spends outside the measured path for each request, in milliseconds:
/// `Z = N / X - R`. Think time, the load generator, and connecting are outside.
#[must_use]
pub fn outside_ms(clients: f64, throughput: f64, response_ms: f64) -> f64 {
    clients / throughput * 1000.0 - response_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stages of a payment system's tuning: clients, transactions per second, milliseconds, and
    /// the published ratio and time outside.
    const STAGES: [(f64, f64, f64, f64, f64); 7] = [
        (5000.0, 5344.0, 904.0, 0.966, 32.0),
        (5000.0, 8221.0, 585.0, 0.962, 23.0),
        (5000.0, 10074.0, 460.0, 0.927, 36.0),
        (5000.0, 12679.0, 338.0, 0.857, 56.0),
        (8000.0, 12487.0, 567.0, 0.885, 74.0),
        (6000.0, 14742.0, 356.0, 0.875, 51.0),
        (5000.0, 9856.0, 499.0, 0.984, 8.0),
    ];

    #[test]
    fn stages_of_a_payment_system_have_their_published_ratios() {
        for (n, x, r, ratio, outside) in STAGES {
            assert!((area_ratio(n, x, r) - ratio).abs() < 0.0006, "{n} {x} {r}");
            assert!((outside_ms(n, x, r) - outside).abs() < 0.6, "{n} {x} {r}");
        }
    }

    #[test]
    fn the_fix_of_one_bottleneck_fills_the_next_hop() {
        assert!((inside(10000.0, 287.0) - 2870.0).abs() < 1e-9);
        assert!((inside(13000.0, 373.0) - 4849.0).abs() < 1e-9);
    }
}
