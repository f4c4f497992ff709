//! Numbers of bytes for people.

/// A number of bytes in binary units, three figures: `512 B`, `1.50 KiB`, `34.2 GiB`.
#[must_use]
pub fn bytes(count: u128) -> String {
    const UNITS: [&str; 8] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    if count < 1024 {
        return format!("{count} B");
    }
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

/// The step of a counter in the unit in which it is whole: `512 kB`, `1 GB`, `32.0 MiB`.
#[must_use]
pub fn step(count: u128) -> String {
    for (unit, name) in [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")] {
        if count > 0 && count.is_multiple_of(unit) {
            return format!("{} {name}", count / unit);
        }
    }
    bytes(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_figures() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.50 KiB"),
            (10 << 30, "10.0 GiB"),
            (1 << 90, "1024 YiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn steps_are_whole() {
        for (count, expected) in [
            (1, "1 B"),
            (4096, "4.00 KiB"),
            (512_000, "512 kB"),
            (32 << 20, "32.0 MiB"),
            (1_000_000_000, "1 GB"),
        ] {
            assert_eq!(step(count), expected);
        }
    }
}
