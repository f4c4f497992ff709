//! Formats ages, lengths, percentages and changes.

use crate::measure::Age;
use saiga_document::number;
use std::time::Duration;

/// Formats an age: `4.2 s`, `more than 600 s`.
#[must_use]
pub fn age(age: Age) -> String {
    match age {
        Age::Known(seconds) => number::seconds(seconds),
        Age::MoreThan(seconds) => format!("more than {}", number::seconds(seconds)),
    }
}

/// Formats a length in seconds: `5.31 s`, `12 min 07 s`.
pub(crate) fn length(seconds: f64) -> String {
    number::time(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Formats a share given by the user: `0.07` as `7 %`, `0.075` as `7.5 %`.
#[must_use]
pub fn round_percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} %")
}

/// Formats a ratio as a change: `0.787` as `-21.3 %`.
pub(crate) fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_shares_and_changes_have_their_formats() {
        assert_eq!(age(Age::MoreThan(600.0)), "more than 600 s");
        assert_eq!(age(Age::Known(0.5)), "500 ms");
        assert_eq!(change(0.9), "-10.0 %");
        assert_eq!([0.07, 0.075].map(round_percent), ["7 %", "7.5 %"]);
    }
}
