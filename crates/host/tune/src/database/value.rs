//! Compares values of settings that are written differently: `150G` and `161061273600`, `ON` and
//! `1`, 16384 pages of 8 KiB and `128MB`.

/// A value in one form.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(f64),
    Text(String),
}

/// Whether two values are the same. `unit` is that of a running value without a suffix, such as
/// `8kB` in PostgreSQL's `pg_settings`.
#[must_use]
pub fn is_same(running: &str, unit: Option<&str>, wanted: &str) -> bool {
    read(running, unit) == read(wanted, None)
        || (unit.is_some() && read(running, unit) == read(wanted, unit))
}

/// Whether a running value is a number above a wanted one. A wanted value without a suffix has the
/// unit of the running one.
#[must_use]
pub fn is_higher(running: &str, unit: Option<&str>, wanted: &str) -> bool {
    matches!(
        (read(running, unit), read(wanted, unit)),
        (Value::Number(running), Value::Number(wanted)) if running > wanted
    )
}

/// Whether a value is a number of bytes above `limit`.
#[must_use]
pub fn exceeds(text: &str, unit: Option<&str>, limit: u64) -> bool {
    is_higher(text, unit, &format!("{limit}B"))
}

/// A whole number, with or without a suffix: `2048M` is 2147483648.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and far below 2^53"
)]
pub(super) fn number(text: &str) -> Option<u64> {
    match read(text, None) {
        Value::Number(number) if number >= 0.0 => Some(number as u64),
        Value::Number(_) | Value::Text(_) => None,
    }
}

fn read(text: &str, unit: Option<&str>) -> Value {
    let text = text.trim().trim_matches('\'').trim();
    match text.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" => return Value::Number(1.0),
        "off" | "no" | "false" => return Value::Number(0.0),
        _ => {}
    }
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    let (number, suffix) = text.split_at(digits.unwrap_or(text.len()));
    let Ok(number) = number.parse::<f64>() else {
        return Value::Text(text.to_ascii_lowercase());
    };
    let suffix = match suffix.trim() {
        "" => unit.unwrap_or(""),
        suffix => suffix,
    };
    match factor(suffix) {
        Some(factor) => Value::Number(number * factor),
        None => Value::Text(text.to_ascii_lowercase()),
    }
}

/// Bytes or milliseconds of a unit; units of time and of size are never compared with each other.
fn factor(unit: &str) -> Option<f64> {
    // PostgreSQL gives the size of a block as the unit: `8kB`.
    let digits = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let (count, unit) = unit.split_at(digits);
    let count: f64 = if count.is_empty() {
        1.0
    } else {
        count.parse().ok()?
    };
    let of_unit = match unit {
        "" | "B" | "b" => 1.0,
        "k" | "K" | "kB" | "kb" | "KB" => 1024.0,
        "m" | "M" | "MB" | "mb" => 1_048_576.0,
        "g" | "G" | "GB" | "gb" => 1_073_741_824.0,
        "T" | "TB" | "t" | "tb" => 1_099_511_627_776.0,
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Some(count * of_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_numbers_are_found() {
        for (running, unit, wanted, is) in [
            ("1000", None, "200", true),
            ("200", None, "200", false),
            ("100", None, "200", false),
            ("2097152", Some("8kB"), "8GB", true),
            ("2097152", Some("8kB"), "16GB", false),
            ("300", Some("ms"), "200", true),
            ("O_DIRECT", None, "200", false),
        ] {
            assert_eq!(is_higher(running, unit, wanted), is, "{running} {wanted}");
        }
        assert!(exceeds("150G", None, 1 << 34));
        assert!(!exceeds("8GB", Some("8kB"), 1 << 34));
    }

    #[test]
    fn values_are_compared_by_their_meaning() {
        for (running, unit, wanted) in [
            ("161061273600", None, "150G"),
            ("ON", None, "1"),
            ("0", None, "off"),
            ("O_DIRECT", None, "o_direct"),
            ("16384", Some("8kB"), "128MB"),
            ("2097152", Some("kB"), "2GB"),
            ("300", Some("s"), "5min"),
            ("0.9", None, "0.90"),
            ("'all'", None, "all"),
            ("900", None, "900"),
            ("200", Some("ms"), "200"),
        ] {
            assert!(
                is_same(running, unit, wanted),
                "{running} {unit:?} {wanted}"
            );
        }
        for (running, unit, wanted) in [
            ("134217728", None, "150G"),
            ("16384", Some("8kB"), "129MB"),
            ("2", None, "ON"),
            ("fsync", None, "O_DIRECT"),
            ("16,2,(nobind)", None, "812,4,(cpubind:0-27)"),
        ] {
            assert!(
                !is_same(running, unit, wanted),
                "{running} {unit:?} {wanted}"
            );
        }
    }
}
