//! Keying and think times, and the limits of response times (TPC-C §5.2.5).

use std::time::Duration;

use fastrand::Rng;

use super::deck::Kind;

impl Kind {
    /// How long the input takes to key in (§5.2.5.2).
    #[must_use]
    pub fn keying_time(self) -> Duration {
        Duration::from_secs(match self {
            Self::NewOrder => 18,
            Self::Payment => 3,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 2,
        })
    }

    /// The mean of the think time (§5.2.5.7).
    #[must_use]
    pub fn mean_think_time(self) -> Duration {
        Duration::from_secs(match self {
            Self::NewOrder | Self::Payment => 12,
            Self::OrderStatus => 10,
            Self::Delivery | Self::StockLevel => 5,
        })
    }

    /// A think time: negative exponential, cut at ten times its mean (§5.2.5.4).
    pub fn think_time(self, rng: &mut Rng) -> Duration {
        let mean = self.mean_think_time().as_secs_f64();
        // From (0, 1]: the logarithm of zero is none.
        let r = 1.0 - rng.f64();
        Duration::from_secs_f64((-r.ln() * mean).clamp(0.0, 10.0 * mean))
    }

    /// What nine of ten response times must stay below (§5.2.5.3).
    #[must_use]
    pub fn response_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::NewOrder | Self::Payment | Self::OrderStatus | Self::Delivery => 5,
            Self::StockLevel => 20,
        })
    }
}

/// What nine of ten deliveries must be done in after they were queued (§5.2.5.3, §2.7.2.2).
pub const DELIVERY_LIMIT: Duration = Duration::from_secs(80);

/// The most New-Orders per minute that a warehouse can give with these times (§4.2.2): a higher
/// figure is of a run without them.
pub const MOST_TPMC_PER_WAREHOUSE: f64 = 12.86;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_have_their_mean_and_an_end() {
        let mut rng = Rng::with_seed(5);
        let times: Vec<f64> = (0..200_000)
            .map(|_| Kind::OrderStatus.think_time(&mut rng).as_secs_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((9.9..10.1).contains(&mean), "{mean}");
        let most = times.iter().copied().fold(0.0, f64::max);
        assert!((80.0..=100.0).contains(&most), "{most}");
        // Half of an exponential distribution is below ln 2 of its mean.
        let below = times.iter().filter(|t| **t < 6.931).count();
        assert!((99_000..101_000).contains(&below), "{below}");
    }
}
