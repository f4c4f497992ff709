//! Values in PostgreSQL's text format.

use bytes::BufMut;

use crate::db::value::{Decimal, Stamp};

/// Digits of the longest number.
const DIGITS: usize = 20;

/// Appends an integer.
pub(super) fn put_int(value: i64, out: &mut impl BufMut) {
    if value < 0 {
        out.put_u8(b'-');
    }
    put_digits(value.unsigned_abs(), 1, out);
}

/// Appends a decimal number with all digits after its decimal point.
pub(super) fn put_decimal(value: Decimal, out: &mut impl BufMut) {
    let scale = value.scale.min(9);
    let one = 10u64.pow(scale);
    if value.units < 0 {
        out.put_u8(b'-');
    }
    put_digits(value.units.unsigned_abs() / one, 1, out);
    if scale > 0 {
        out.put_u8(b'.');
        put_digits(value.units.unsigned_abs() % one, scale as usize, out);
    }
}

/// Appends a date and time: `2026-11-20 17:00:59`.
pub(super) fn put_stamp(seconds: i64, out: &mut impl BufMut) {
    let Stamp { date, time } = Stamp::of(seconds);
    let (year, month, day) = date;
    put_digits(year.unsigned_abs(), 4, out);
    for (before, part) in [
        (b'-', month),
        (b'-', day),
        (b' ', time.0),
        (b':', time.1),
        (b':', time.2),
    ] {
        out.put_u8(before);
        put_digits(part.into(), 2, out);
    }
}

/// Appends a number with at least `width` digits.
fn put_digits(value: u64, width: usize, out: &mut impl BufMut) {
    let (mut digits, mut at, mut rest) = ([b'0'; DIGITS], DIGITS, value);
    while rest > 0 {
        at -= 1;
        // The remainder of a division by ten is one digit.
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    out.put_slice(&digits[at.min(DIGITS - width.min(DIGITS))..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(put: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        /// Compares with `Display`, which has tests of its own.
        #[test]
        fn values_are_written_as_they_are_shown(
            value in any::<i64>(), scale in 0u32..=9, seconds in -30_000_000_000i64..200_000_000_000,
        ) {
            let decimal = Decimal { units: value, scale };
            prop_assert_eq!(text(|out| put_int(value, out)), value.to_string());
            prop_assert_eq!(text(|out| put_decimal(decimal, out)), decimal.to_string());
            let stamp = Stamp::of(seconds).to_string();
            prop_assert_eq!(text(|out| put_stamp(seconds, out)), stamp);
        }
    }

    #[test]
    fn the_ends_of_the_scale() {
        assert_eq!(text(|out| put_int(i64::MIN, out)), "-9223372036854775808");
        assert_eq!(text(|out| put_int(0, out)), "0");
        assert_eq!(text(|out| put_decimal(Decimal::cents(-5), out)), "-0.05");
        assert_eq!(
            text(|out| put_stamp(951_782_399, out)),
            "2000-02-28 23:59:59"
        );
    }
}
