//! Numbers for people: one way for each kind of number, for pages, rules and whoever prints them.

use std::time::Duration;

use crate::measure::Age;

/// A number of bytes with a binary unit and three figures: `512 B`, `1.50 KiB`, `34.2 MiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    // Hundredths of the unit, in integers: no rounding surprises at the boundaries.
    let mut hundredths = u128::from(count) * 100 / 1024;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while hundredths >= 102_400 {
        hundredths /= 1024;
        unit = units.next().unwrap_or(unit);
    }
    let (whole, part) = (hundredths / 100, hundredths % 100);
    match whole {
        0..10 => format!("{whole}.{part:02} {unit}"),
        10..100 => format!("{whole}.{} {unit}", part / 10),
        _ => format!("{whole} {unit}"),
    }
}

/// A length of time: `0.02 s`, `5.31 s`, `12 min 07 s`.
#[must_use]
pub fn time(length: Duration) -> String {
    match length.as_secs() {
        0..120 => format!("{:.2} s", length.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// Two figures, or all before the point: `0.31`, `4.2`, `310`.
pub(crate) fn number(value: f64) -> String {
    let digits = if value == 0.0 || value >= 9.95 {
        0
    } else if value >= 0.995 {
        1
    } else if value >= 0.0995 {
        2
    } else {
        3
    };
    format!("{value:.digits$}")
}

/// An age or another measured time in two figures: `12 ms`, `4.2 s`, `12 min`, `3.1 h`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.000_999 => format!("{} µs", number(s * 1e6)),
        s if s < 0.999 => format!("{} ms", number(s * 1e3)),
        s if s < 999.0 => format!("{} s", number(s)),
        s if s < 7200.0 => format!("{} min", number(s / 60.0)),
        s if s < 172_800.0 => format!("{} h", number(s / 3600.0)),
        s => format!("{} days", number(s / 86_400.0)),
    }
}

/// How long pages live: `4.2 s`, `more than 600 s`.
#[must_use]
pub fn age(age: Age) -> String {
    match age {
        Age::Known(s) => seconds(s),
        Age::MoreThan(s) => format!("more than {}", seconds(s)),
    }
}

/// How long a trace is, from seconds.
pub(crate) fn length(seconds: f64) -> String {
    time(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// `21.3 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `-21.3 %`.
pub(crate) fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_figures_and_units_that_suit_them() {
        for (value, expected) in [
            (0.0, "0"),
            (0.304, "0.30"),
            (4.23, "4.2"),
            (310.4, "310"),
            (0.0123, "0.012"),
        ] {
            assert_eq!(number(value), expected);
        }
        for (value, expected) in [
            (0.000_01, "10 µs"),
            (0.012, "12 ms"),
            (600.0, "600 s"),
            (3000.0, "50 min"),
            (1e6, "12 days"),
        ] {
            assert_eq!(seconds(value), expected);
        }
        assert_eq!(age(Age::MoreThan(600.0)), "more than 600 s");
        assert_eq!([percent(0.213), change(0.9)], ["21.3 %", "-10.0 %"]);
    }

    #[test]
    fn bytes_have_three_figures() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10 * 1024, "10.0 KiB"),
            (1_048_575, "1023 KiB"),
            (1 << 20, "1.00 MiB"),
            (150 << 30, "150 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(bytes(count), expected, "{count}");
        }
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        for (milliseconds, expected) in [
            (20, "0.02 s"),
            (119_990, "119.99 s"),
            (127_000, "2 min 07 s"),
        ] {
            assert_eq!(time(Duration::from_millis(milliseconds)), expected);
        }
    }
}
