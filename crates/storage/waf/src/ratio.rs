//! The write amplification factor, flash writes divided by host writes, and its bounds.
//!
//! A counter that grows in steps of `s` bytes is less than `s` off at each end of a window, always
//! in the same direction, so that the difference is less than `s` off. A counter of single bytes is
//! exact. The bounds of the factor are the extreme quotients within these errors. A single step of
//! host writes may be close to no write: then there is no upper bound.

/// Writes in a window of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes written by the host.
    pub host: u128,
    /// Bytes written to flash.
    pub media: u128,
    /// `host` is off by less than this in either direction; 0 if it is exact.
    pub host_error: u128,
    /// `media` is off by less than this; 0 if it is exact.
    pub media_error: u128,
}

/// A write amplification factor with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waf {
    /// Flash writes per host write.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound; `None` if there may have been almost no host writes.
    pub high: Option<f64>,
    /// Whether a counter made fewer than fifty steps, too few for a comparison.
    pub is_coarse: bool,
}

/// A window with fewer steps of a counter is coarse.
const FEW_STEPS: u128 = 50;

/// Returns the error of the difference of two readings of a counter with steps of `step` bytes.
pub(crate) fn error_of(step: u128) -> u128 {
    if step > 1 { step } else { 0 }
}

impl Written {
    /// Adds a window that does not follow directly: errors add up.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            host: self.host + other.host,
            media: self.media + other.media,
            host_error: self.host_error + other.host_error,
            media_error: self.media_error + other.media_error,
        }
    }

    /// Adds the window that follows directly: the errors at the common end cancel out.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            host: self.host + next.host,
            media: self.media + next.media,
            host_error: self.host_error.max(next.host_error),
            media_error: self.media_error.max(next.media_error),
        }
    }

    /// Returns the factor; `None` without host writes.
    #[must_use]
    pub fn waf(self) -> Option<Waf> {
        let Self {
            host,
            media,
            host_error,
            media_error,
        } = self;
        let few = |count, error: u128| count < FEW_STEPS * error;
        let least_host = host.saturating_sub(host_error);
        Some(Waf {
            value: divided(media, host)?,
            low: divided(media.saturating_sub(media_error), host + host_error)?,
            high: divided(media + media_error, least_host),
            is_coarse: few(host, host_error) || few(media, media_error),
        })
    }
}

fn divided(dividend: u128, divisor: u128) -> Option<f64> {
    (divisor > 0).then(|| dividend as f64 / divisor as f64)
}

/// Formats a quotient like `bc` with scale=5: truncated, without a zero before the point.
///
/// `None` where `bc` prints "Divide by zero".
pub(crate) fn bc_scale_5(dividend: u128, divisor: u128) -> Option<String> {
    let whole = dividend.checked_div(divisor)?;
    let mut rest = dividend % divisor;
    let mut digits = String::new();
    for _ in 0..5 {
        // No overflow: counters and their sums are far below 2^128.
        rest *= 10;
        digits.push_str(&(rest / divisor).to_string());
        rest %= divisor;
    }
    Some(match (whole, digits.as_str()) {
        (0, "00000") => "0".to_owned(),
        (0, digits) => format!(".{digits}"),
        (whole, digits) => format!("{whole}.{digits}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(host: u128, media: u128, host_error: u128, media_error: u128) -> Written {
        Written {
            host,
            media,
            host_error,
            media_error,
        }
    }

    #[test]
    fn exact_counters_have_no_error_and_idle_windows_no_factor() {
        let waf = written(1000, 1500, 0, 0).waf().unwrap();
        assert_eq!(
            (waf.value, waf.low, waf.high, waf.is_coarse),
            (1.5, 1.5, Some(1.5), false)
        );
        assert_eq!(written(0, 0, 0, 0).waf(), None);
        assert_eq!(written(0, 1 << 30, 512_000, 0).waf(), None);
    }

    #[test]
    fn a_gigabyte_step_needs_fifty_gigabytes() {
        let step = 1_000_000_000;
        let of = |host: u128, media: u128| {
            written(host * step, media * step, step, step)
                .waf()
                .unwrap()
        };
        assert!(of(49, 100).is_coarse);
        assert!(of(100, 49).is_coarse);
        assert!(!of(50, 50).is_coarse);
        let waf = of(100, 150);
        assert!((waf.low - 149.0 / 101.0).abs() < 1e-6, "{waf:?}");
        assert!(
            waf.high
                .is_some_and(|high| (high - 151.0 / 99.0).abs() < 1e-6)
        );
        // Two segments, one of which may have had almost no host writes.
        let both = written(step, step, step, step).and(written(0, step, step, 0));
        assert_eq!(both.waf().unwrap().high, None);
    }

    /// All but one byte of a single step may be the error, so that any bound would be meaningless.
    #[test]
    fn one_step_of_host_writes_has_no_upper_bound() {
        let step = 1_000_000_000;
        let waf = written(step, 2 * step, step, step).waf().unwrap();
        assert_eq!((waf.value, waf.low, waf.high), (2.0, 0.5, None));
        let two = written(2 * step, 2 * step, step, step).waf().unwrap();
        assert_eq!(two.high, Some(3.0));
    }

    #[test]
    fn bc_truncates_and_leaves_the_leading_zero_out() {
        for (dividend, divisor, expected) in [
            (3, 2, Some("1.50000")),
            (2, 3, Some(".66666")),
            (0, 7, Some("0")),
            (1, 1_000_000, Some("0")),
            (12, 12, Some("1.00000")),
            (1_999_999, 1_000_000, Some("1.99999")),
            (5, 0, None),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(
                bc_scale_5(dividend, divisor),
                expected,
                "{dividend}/{divisor}"
            );
        }
    }

    proptest! {
        /// Draws the true writes first; the bounds from the rounded counters must include their
        /// factor.
        #[test]
        fn the_truth_lies_within_the_bounds(
            step in prop_oneof![Just(1_u128), Just(4096), Just(512_000), Just(1_000_000_000)],
            before in [0_u128..1 << 50, 0_u128..1 << 50],
            grown in [1_u128..1 << 40, 1_u128..1 << 40],
            rounds_up in any::<bool>(),
        ) {
            let shown = |bytes: u128| if rounds_up { bytes.div_ceil(step) } else { bytes / step };
            let seen = [0, 1].map(|n| (shown(before[n] + grown[n]) - shown(before[n])) * step);
            if let Some(waf) = written(seen[0], seen[1], error_of(step), error_of(step)).waf() {
                let truth = grown[1] as f64 / grown[0] as f64;
                prop_assert!(waf.low <= truth * (1.0 + 1e-12));
                prop_assert!(waf.high.is_none_or(|high| truth <= high * (1.0 + 1e-12)));
            }
        }
    }
}
