//! Parameter values of statements.

use std::fmt;

/// A parameter value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A whole number.
    Int(i64),
    /// An exact decimal number.
    Decimal(Decimal),
    /// A string.
    Text(&'a str),
    /// A date and time without a time zone, as the number of seconds since 1970-01-01 00:00:00.
    Time(i64),
    /// SQL NULL.
    Null,
}

/// A decimal number, `units` times 10^-`scale`: 1234 with scale 2 is 12.34.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// The number without its decimal point.
    pub units: i64,
    /// Digits after the decimal point, at most 9.
    pub scale: u32,
}

impl Decimal {
    /// An amount of money in cents.
    #[must_use]
    pub fn cents(units: i64) -> Self {
        Self { units, scale: 2 }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.units < 0 { "-" } else { "" };
        let one = 10u64.pow(self.scale.min(9));
        let (whole, rest) = (
            self.units.unsigned_abs() / one,
            self.units.unsigned_abs() % one,
        );
        match self.scale.min(9) {
            0 => write!(f, "{sign}{whole}"),
            scale => write!(f, "{sign}{whole}.{rest:0width$}", width = scale as usize),
        }
    }
}

/// Date and time of day of a [`Value::Time`]. Displayed in the form that all systems accept:
/// `2026-11-20 17:00:59`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Year, month from 1, day from 1.
    pub date: (i64, u32, u32),
    /// Hour, minute, second.
    pub time: (u32, u32, u32),
}

impl Stamp {
    /// Converts seconds since 1970.
    #[must_use]
    pub fn of(seconds: i64) -> Self {
        let of_day = u32::try_from(seconds.rem_euclid(86_400)).unwrap_or(0);
        Self {
            date: date_of(seconds.div_euclid(86_400)),
            time: (of_day / 3600, of_day / 60 % 60, of_day % 60),
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), (hour, minute, second)) = (self.date, self.time);
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )
    }
}

/// The Gregorian date `days` after 1970-01-01. The computation starts years in March, so that a
/// leap day is the last day of its year.
fn date_of(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468; // Days since 0000-03-01.
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, turn) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let small = |n: i64| u32::try_from(n).unwrap_or(0);
    (era * 400 + year + turn, small(month), small(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_exactly() {
        let text = |units, scale| Decimal { units, scale }.to_string();
        assert_eq!(text(1234, 2), "12.34");
        assert_eq!(text(-5, 2), "-0.05");
        assert_eq!(text(-1000, 2), "-10.00");
        assert_eq!(
            (text(7, 4), text(42, 0)),
            ("0.0007".to_owned(), "42".to_owned())
        );
        assert_eq!(
            Decimal::cents(i64::MIN).to_string(),
            "-92233720368547758.08"
        );
    }

    #[test]
    fn stamps_follow_the_calendar() {
        let text = |seconds| Stamp::of(seconds).to_string();
        assert_eq!(text(0), "1970-01-01 00:00:00");
        assert_eq!(text(-1), "1969-12-31 23:59:59");
        assert_eq!(text(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(text(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(text(951_868_800), "2000-03-01 00:00:00");
        assert_eq!(text(1_763_690_459), "2025-11-21 02:00:59");
        assert_eq!(text(4_107_542_400), "2100-03-01 00:00:00");
    }
}
