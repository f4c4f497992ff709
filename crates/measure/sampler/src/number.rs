//! Formats the numbers of a series file with a limited number of digits.

use std::fmt::Write;

/// Appends `value` to `text`, with three decimals below 10, one below 1000, and none above.
///
/// A tick of the kernel's CPU clock is 1 % of a second, so more digits would be noise.
pub(crate) fn push(text: &mut String, value: f64) {
    let size = value.abs();
    let decimals = if size >= 1000.0 {
        0
    } else if size >= 10.0 {
        1
    } else {
        3
    };
    let start = text.len();
    // Writing into a string cannot fail.
    let _ = write!(text, "{value:.decimals$}");
    if decimals > 0 {
        let used = text[start..].trim_end_matches('0').trim_end_matches('.');
        let end = start + used.len();
        text.truncate(end);
    }
    if &text[start..] == "-0" {
        text.replace_range(start.., "0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_size() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0001, "0"),
            (0.0126, "0.013"),
            (9.5, "9.5"),
            (37.04, "37"),
            (99.96, "100"),
            (100.0, "100"),
            (1234.5678, "1235"),
            (-12.34, "-12.3"),
            (24_684_084.0, "24684084"),
        ] {
            let mut out = String::from("x");
            push(&mut out, value);
            assert_eq!(&out[1..], text, "{value}");
        }
    }
}
