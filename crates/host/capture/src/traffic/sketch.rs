//! A histogram that costs what it holds: a few bytes for each of its used buckets.
//!
//! Thousands of windows have one each. Sixteen buckets per power of two put a value at most six
//! percent from its bucket's middle.

/// Log2 of the buckets per power of two.
const FINE: u32 = 4;
const PER_OCTAVE: u64 = 1 << FINE;

/// Used buckets in order, with their counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Sketch(Vec<(u16, u32)>);

impl Sketch {
    /// Adds a value. Returns whether that took another bucket.
    pub(super) fn add(&mut self, value: u64) -> bool {
        let bucket = bucket_of(value);
        match self.0.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(place) => {
                let count = &mut self.0[place].1;
                *count = count.saturating_add(1);
                false
            }
            Err(place) => {
                self.0.insert(place, (bucket, 1));
                true
            }
        }
    }

    /// The value below which `share` of the values are.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        let total: u64 = self.0.iter().map(|(_, count)| u64::from(*count)).sum();
        let wanted = share * total as f64;
        let mut below = 0;
        let bucket = self.0.iter().find(|(_, count)| {
            below += u64::from(*count);
            below as f64 >= wanted
        });
        bucket
            .or(self.0.last())
            .map(|(bucket, _)| middle_of(*bucket))
    }
}

fn bucket_of(value: u64) -> u16 {
    let exponent = value.max(1).ilog2();
    let bucket = match exponent.checked_sub(FINE) {
        None => value,
        Some(shift) => {
            let octave = u64::from(shift + 1);
            octave * PER_OCTAVE + ((value >> shift) - PER_OCTAVE)
        }
    };
    u16::try_from(bucket).expect("61 octaves of 16 buckets")
}

fn middle_of(bucket: u16) -> u64 {
    let (octave, place) = (
        u64::from(bucket) / PER_OCTAVE,
        u64::from(bucket) % PER_OCTAVE,
    );
    match octave.checked_sub(1) {
        None => place,
        Some(shift) => {
            let low = (PER_OCTAVE + place) << shift;
            low + (1_u64 << shift) / 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_near_its_values() {
        for value in [0, 1, 15, 16, 17, 1_000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let middle = middle_of(bucket_of(value));
            assert!(middle.abs_diff(value) <= value / 16, "{value}: {middle}");
        }
    }

    #[test]
    fn quantiles_of_a_hundred_values() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.quantile(0.5), None);
        let buckets = (1..=100).filter(|value| sketch.add(value * 1_000)).count();
        assert!(buckets < 100, "{buckets}");
        let near = |share, expected: u64| {
            let value = sketch.quantile(share).expect("there are values");
            assert!(
                value.abs_diff(expected) <= expected / 16,
                "{share}: {value}"
            );
        };
        near(0.5, 50_000);
        near(0.99, 99_000);
        near(1.0, 100_000);
    }
}
