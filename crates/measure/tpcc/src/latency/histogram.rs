//! Latencies as an HDR histogram in microseconds.
//!
//! Files contain histograms in HdrHistogram's V2 encoding in base64, which other tools can read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer as De, Serialize, Serializer as Ser};

/// A histogram of durations in microseconds, exact to a fixed number of significant digits (3 by
/// default).
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::with_digits(3)
    }
}

impl Latencies {
    /// A histogram exact to `digits` significant digits, from 1 to 5.
    #[must_use]
    pub fn with_digits(digits: u8) -> Self {
        // The constructor fails only for other numbers of digits.
        let histogram = Histogram::new(digits.clamp(1, 5));
        Self(histogram.unwrap_or_else(|_| unreachable!("digits are within 1 to 5")))
    }

    /// Adds a duration. A duration beyond the range of the histogram counts as the longest one in
    /// range.
    pub fn record(&mut self, us: u64) {
        if self.0.record(us).is_err() {
            self.0.saturating_record(us);
        }
    }

    /// Adds all values of another histogram.
    pub fn add(&mut self, other: &Self) {
        // Histograms grow when needed, so the values of any other histogram fit.
        let _ = self.0.add(&other.0);
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in microseconds that a fraction `quantile` (0 to 1) of the values does not
    /// exceed; `None` if the histogram is empty.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> Option<u64> {
        let highest = self.max_us()?;
        // The upper end of a bucket may lie above every recorded value.
        Some(self.0.value_at_quantile(quantile).min(highest))
    }

    /// Number of values from `low_us` to `high_us`, to the precision of the buckets.
    #[must_use]
    pub fn between(&self, low_us: u64, high_us: u64) -> u64 {
        let inside = self.0.iter_recorded().filter(|one| {
            let middle = self.0.median_equivalent(one.value_iterated_to());
            (low_us..=high_us).contains(&middle)
        });
        inside.map(|one| one.count_at_value()).sum()
    }

    #[must_use]
    pub fn max_us(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.max())
    }

    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean())
    }

    /// Removes all values and keeps the allocation.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    fn to_base64(&self) -> Result<String, String> {
        let mut bytes = Vec::new();
        match V2Serializer::new().serialize(&self.0, &mut bytes) {
            Ok(_) => Ok(STANDARD.encode(bytes)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn from_base64(text: &str) -> Result<Self, String> {
        let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice());
        let mut histogram: Histogram<u64> = histogram.map_err(|error| error.to_string())?;
        histogram.auto(true);
        Ok(Self(histogram))
    }
}

impl Serialize for Latencies {
    fn serialize<S: Ser>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_base64().map_err(S::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: De<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_for_small_values() {
        let mut latencies = Latencies::default();
        assert_eq!(
            (latencies.quantile_us(0.5), latencies.max_us()),
            (None, None)
        );
        for us in 1..=1000 {
            latencies.record(us);
        }
        assert_eq!(latencies.quantile_us(0.5), Some(500));
        assert_eq!(latencies.quantile_us(0.99), Some(990));
        assert_eq!(latencies.quantile_us(1.0), Some(1000));
        assert_eq!(latencies.mean_us(), Some(500.5));
    }

    #[test]
    fn a_sum_of_parts_is_the_whole_even_after_a_round_trip_through_json() {
        let (mut whole, mut parts) = (
            Latencies::default(),
            [Latencies::default(), Latencies::default()],
        );
        for n in 0..5000u64 {
            let us = n * n + 7;
            whole.record(us);
            parts[(n % 2) as usize].record(us);
        }
        let [first, second] = parts.map(|part| {
            let text = serde_json::to_string(&part).unwrap();
            serde_json::from_str::<Latencies>(&text).unwrap()
        });
        let mut sum = first;
        sum.add(&second);
        assert_eq!(sum, whole);
        assert!(serde_json::from_str::<Latencies>("\"AAAA\"").is_err());
    }
}
