//! Keying times, think times and response time limits (TPC-C §5.2.5).

use std::time::Duration;

use fastrand::Rng;

use super::deck::Kind;

impl Kind {
    /// Keying time of the input (§5.2.5.2).
    #[must_use]
    pub fn keying_time(self) -> Duration {
        Duration::from_secs(match self {
            Self::NewOrder => 18,
            Self::Payment => 3,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 2,
        })
    }

    /// Mean think time (§5.2.5.7).
    #[must_use]
    pub fn mean_think_time(self) -> Duration {
        Duration::from_secs(match self {
            Self::NewOrder | Self::Payment => 12,
            Self::OrderStatus => 10,
            Self::Delivery | Self::StockLevel => 5,
        })
    }

    /// Draws a think time: exponentially distributed, truncated at ten times its mean (§5.2.5.4).
    pub fn think_time(self, rng: &mut Rng) -> Duration {
        let mean = self.mean_think_time().as_secs_f64();
        // In (0, 1], because the logarithm of zero is not finite.
        let r = 1.0 - rng.f64();
        Duration::from_secs_f64((-r.ln() * mean).clamp(0.0, 10.0 * mean))
    }

    /// Limit of the 90th percentile of the response time (§5.2.5.3).
    #[must_use]
    pub fn response_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::NewOrder | Self::Payment | Self::OrderStatus | Self::Delivery => 5,
            Self::StockLevel => 20,
        })
    }
}

/// Limit of the 90th percentile of the time from queueing to completion of a deferred Delivery
/// (§5.2.5.3, §2.7.2.2).
pub const DELIVERY_LIMIT: Duration = Duration::from_secs(80);

/// Largest possible number of New-Orders per minute and warehouse with the specified keying and
/// think times (§4.2.2). A higher result means that the run did not keep these times.
pub const MAX_TPMC_PER_WAREHOUSE: f64 = 12.86;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_have_their_mean_and_their_maximum() {
        let mut rng = Rng::with_seed(5);
        let times: Vec<f64> = (0..200_000)
            .map(|_| Kind::OrderStatus.think_time(&mut rng).as_secs_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((9.9..10.1).contains(&mean), "{mean}");
        let most = times.iter().copied().fold(0.0, f64::max);
        assert!((80.0..=100.0).contains(&most), "{most}");
        // Half of the values of an exponential distribution lie below ln 2 of its mean.
        let below = times.iter().filter(|t| **t < 6.931).count();
        assert!((99_000..101_000).contains(&below), "{below}");
    }
}
