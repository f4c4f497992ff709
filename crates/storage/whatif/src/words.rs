//! Numbers for people.

use crate::measure::Age;

/// `512 B`, `1.5 KiB`, `34 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = count as f64;
    let mut unit = "B";
    for larger in UNITS {
        if value < 1000.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{} {unit}", number(value))
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

/// `12 ms`, `4.2 s`, `12 min`, `3.1 h`.
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

/// `4.2 s`, `more than 600 s`.
pub(crate) fn age(age: Age) -> String {
    match age {
        Age::Known(s) => seconds(s),
        Age::MoreThan(s) => format!("more than {}", seconds(s)),
    }
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
            (512, "512 B"),
            (1536, "1.5 KiB"),
            (40 << 20, "40 MiB"),
            (1024 << 20, "1.0 GiB"),
        ] {
            assert_eq!(bytes(value), expected);
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
}
