//! Numbers for people.

use std::time::Duration;

/// A number of bytes with a binary unit and three figures: `512 B`, `1.50 KiB`, `34.2 MiB`.
pub(crate) fn bytes(count: u64) -> String {
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
pub(crate) fn time(length: Duration) -> String {
    match length.as_secs() {
        0..120 => format!("{:.2} s", length.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// `1 warehouse`, `2 warehouses`.
pub(crate) fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

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
