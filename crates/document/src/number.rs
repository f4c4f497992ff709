//! Numbers as text: measured values, ratios, shares, sizes and durations.
//!
//! Numbers have three to four significant digits, commas between thousands, and never an exponent;
//! a value that is not finite becomes a dash. Measured values and ratios have no unit, because the
//! heading of their column states it; sizes, shares and durations have one.

use std::time::Duration;

/// A measured value: `1,180,000`, `151.3`, `0.762`.
pub fn value(number: f64) -> String {
    let size = number.abs();
    if !number.is_finite() {
        "–".to_owned()
    } else if size >= 100_000.0 {
        grouped(&format!("{:.0}", (number / 100.0).round() * 100.0))
    } else if size >= 1_000.0 {
        grouped(&format!("{number:.0}"))
    } else {
        format!("{number:.*}", decimals(size))
    }
}

/// A ratio: `41.7`, `7.86`, `0.176`, `0.0252`.
pub fn ratio(number: f64) -> String {
    fixed(number, ratio_places(number))
}

/// An interval of ratios, both ends with the decimals of the more precise end: `7.09–8.31`.
pub fn interval([low, high]: [f64; 2]) -> String {
    let places = ratio_places(low).max(ratio_places(high));
    format!("{}–{}", fixed(low, places), fixed(high, places))
}

fn ratio_places(number: f64) -> usize {
    match number.abs() {
        size if size >= 99.5 => 0,
        size if size >= 9.95 => 1,
        size if size >= 0.995 => 2,
        size if size >= 0.0995 => 3,
        _ => 4,
    }
}

fn fixed(number: f64, places: usize) -> String {
    if number.is_finite() {
        grouped(&format!("{number:.places$}"))
    } else {
        "–".to_owned()
    }
}

/// A whole number with commas: `100,000`.
pub fn whole(number: u64) -> String {
    grouped(&number.to_string())
}

/// A number of bytes in binary units with three significant digits: `512 B`, `1.50 KiB`,
/// `34.2 GiB`.
pub fn bytes(count: impl Into<u128>) -> String {
    const UNITS: [&str; 8] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    let count = count.into();
    if count < 1024 {
        return format!("{count} B");
    }
    // Integer hundredths of the unit: 1,048,575 bytes never become "1024 KiB".
    let mut units = UNITS.into_iter();
    let (mut hundredths, mut unit) = (count.saturating_mul(100) / 1024, units.next());
    while hundredths >= 102_400 && units.len() > 0 {
        hundredths /= 1024;
        unit = units.next();
    }
    let (whole, part, unit) = (hundredths / 100, hundredths % 100, unit.unwrap_or_default());
    match whole {
        0..10 => format!("{whole}.{part:02} {unit}"),
        10..100 => format!("{whole}.{} {unit}", part / 10),
        _ => format!("{whole} {unit}"),
    }
}

/// A number of bytes in the largest decimal unit of which it is a multiple, or else as [`bytes`]:
/// `512 kB`, `1 GB`, `32.0 MiB`.
pub fn round_bytes(count: u128) -> String {
    for (unit, name) in [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")] {
        if count > 0 && count.is_multiple_of(unit) {
            return format!("{} {name}", count / unit);
        }
    }
    bytes(count)
}

/// The run time of a command: `0.02 s`, `5.31 s`, `12 min 07 s`.
pub fn time(duration: Duration) -> String {
    match duration.as_secs() {
        0..120 => format!("{:.2} s", duration.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// A measured duration with two significant digits: `12 ms`, `4.2 s`, `12 min`, `3.1 h`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.000_999 => format!("{} µs", two_figures(s * 1e6)),
        s if s < 0.999 => format!("{} ms", two_figures(s * 1e3)),
        s if s < 999.0 => format!("{} s", two_figures(s)),
        s if s < 7200.0 => format!("{} min", two_figures(s / 60.0)),
        s if s < 172_800.0 => format!("{} h", two_figures(s / 3600.0)),
        s => format!("{} days", two_figures(s / 86_400.0)),
    }
}

/// Two significant digits, or all digits before the decimal point: `0.31`, `4.2`, `310`.
pub fn two_figures(value: f64) -> String {
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

/// A count and a regular English noun: `1 warehouse`, `2 warehouses`.
pub fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A share (1.0 is everything) as a percentage with one decimal: `1.4 %`.
pub fn percent(share: f64) -> String {
    if share.is_finite() {
        format!("{:.1} %", share * 100.0)
    } else {
        "–".to_owned()
    }
}

fn decimals(size: f64) -> usize {
    match size {
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    }
}

fn grouped(digits: &str) -> String {
    let (whole, rest) = digits
        .split_once('.')
        .map_or((digits, None), |(w, r)| (w, Some(r)));
    let (sign, whole) = whole
        .strip_prefix('-')
        .map_or(("", whole), |whole| ("-", whole));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_about_four_digits() {
        for (number, text) in [
            (1_180_034.4, "1,180,000"),
            (151_328.0, "151,300"),
            (17_930.4, "17,930"),
            (999.96, "1000.0"),
            (151.34, "151.3"),
            (51.754, "51.75"),
            (0.7624, "0.762"),
            (0.0, "0.000"),
            (-4.5, "-4.500"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(value(number), text);
        }
    }

    #[test]
    fn ratios_keep_three_digits_on_both_sides_of_one() {
        for (number, text) in [
            (1234.0, "1,234"),
            (41.66, "41.7"),
            (7.857, "7.86"),
            (1.0, "1.00"),
            (0.1764, "0.176"),
            (0.02523, "0.0252"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(ratio(number), text);
        }
        assert_eq!(interval([7.1, 8.3]), "7.10–8.30");
        assert_eq!(interval([0.9764, 1.03]), "0.976–1.030");
    }

    #[test]
    fn whole_numbers_and_shares() {
        assert_eq!(whole(100_000), "100,000");
        assert_eq!(percent(0.0142), "1.4 %");
        assert_eq!(counted(1u32, "warehouse"), "1 warehouse");
        assert_eq!(counted(0u32, "warehouse"), "0 warehouses");
    }

    #[test]
    fn bytes_have_three_figures() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10 << 10, "10.0 KiB"),
            (1_048_575, "1023 KiB"),
            (1 << 20, "1.00 MiB"),
            (150 << 30, "150 GiB"),
            (u128::from(u64::MAX), "15.9 EiB"),
            (1 << 90, "1024 YiB"),
        ] {
            assert_eq!(bytes(count), expected, "{count}");
        }
    }

    #[test]
    fn round_sizes_have_decimal_units() {
        for (count, expected) in [
            (1, "1 B"),
            (4096, "4.00 KiB"),
            (512_000, "512 kB"),
            (32 << 20, "32.0 MiB"),
            (1_000_000_000, "1 GB"),
        ] {
            assert_eq!(round_bytes(count), expected);
        }
    }

    #[test]
    fn the_unit_of_a_duration_follows_its_length() {
        for (milliseconds, expected) in [
            (20, "0.02 s"),
            (119_990, "119.99 s"),
            (127_000, "2 min 07 s"),
        ] {
            assert_eq!(time(Duration::from_millis(milliseconds)), expected);
        }
        for (value, expected) in [
            (0.000_01, "10 µs"),
            (0.012, "12 ms"),
            (4.23, "4.2 s"),
            (600.0, "600 s"),
            (3000.0, "50 min"),
            (1e6, "12 days"),
        ] {
            assert_eq!(seconds(value), expected);
        }
    }

    #[test]
    fn small_numbers_have_two_figures() {
        for (value, expected) in [
            (0.0, "0"),
            (0.304, "0.30"),
            (4.23, "4.2"),
            (310.4, "310"),
            (0.0123, "0.012"),
        ] {
            assert_eq!(two_figures(value), expected);
        }
    }
}
