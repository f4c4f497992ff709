//! Numbers as people read them.
//!
//! Three to four significant digits, commas between thousands, never an exponent; a value
//! that is not finite becomes a dash. Deliberately absent: units, which stand in headings.

/// A measured value: `1,180,000`, `151.3`, `0.762`.
pub(crate) fn value(number: f64) -> String {
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
pub(crate) fn ratio(number: f64) -> String {
    fixed(number, ratio_places(number))
}

/// An interval of ratios, both ends to the finer one's precision: `7.09–8.31`.
pub(crate) fn interval([low, high]: [f64; 2]) -> String {
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
pub(crate) fn whole(number: u64) -> String {
    grouped(&number.to_string())
}

/// A size in memory: `7.8 GiB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    for (size, unit) in UNITS {
        if number >= size {
            let tenths = number / (size / 10);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{number} bytes")
}

/// A share: `1.4 %`.
pub(crate) fn percent(share: f64) -> String {
    if share.is_finite() {
        format!("{:.1} %", share * 100.0)
    } else {
        "–".to_owned()
    }
}

/// The middle of some numbers, the mean of the middle two when their count is even.
pub(crate) fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        Some(upper)
    } else {
        Some((sorted[middle - 1] + upper) / 2.0)
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
    fn sizes_and_shares() {
        assert_eq!(bytes(8_326_418_432), "7.7 GiB");
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(whole(100_000), "100,000");
        assert_eq!(percent(0.0142), "1.4 %");
    }

    #[test]
    fn the_median_of_even_counts_is_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
