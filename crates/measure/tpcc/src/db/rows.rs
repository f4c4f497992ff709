//! The rows that a statement selects, in a buffer that is reused.

use super::SqlError;

/// Rows of fields, in the server's order. A session pushes the fields of a row, then ends the row.
#[derive(Debug, Default)]
pub struct Rows {
    fields: Vec<Field>,
    text: String,
    columns: usize,
    rows: usize,
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Null,
    Int(i64),
    Real(f64),
    /// Start and end of the string in `text`.
    Text(usize, usize),
}

impl Rows {
    /// Creates an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all rows and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.text.clear();
        (self.columns, self.rows) = (0, 0);
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of fields per row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Appends a NULL field.
    pub fn push_null(&mut self) {
        self.fields.push(Field::Null);
    }

    /// Appends an integer field.
    pub fn push_int(&mut self, value: i64) {
        self.fields.push(Field::Int(value));
    }

    /// Appends a floating-point field.
    pub fn push_real(&mut self, value: f64) {
        self.fields.push(Field::Real(value));
    }

    /// Appends a text field, or a number in text form. Invalid UTF-8 is replaced.
    pub fn push_text(&mut self, value: &[u8]) {
        let from = self.text.len();
        match std::str::from_utf8(value) {
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.push_str(&String::from_utf8_lossy(value)),
        }
        self.fields.push(Field::Text(from, self.text.len()));
    }

    /// Completes the row. The first row sets the number of columns.
    pub fn end_row(&mut self) {
        if self.rows == 0 {
            self.columns = self.fields.len();
        }
        self.rows += 1;
        debug_assert_eq!(self.fields.len(), self.rows * self.columns);
    }

    /// Whether a field is NULL.
    ///
    /// # Errors
    /// [`SqlError::Unexpected`] if the field does not exist.
    pub fn is_null(&self, row: usize, column: usize) -> Result<bool, SqlError> {
        Ok(matches!(self.field(row, column)?, Field::Null))
    }

    /// An integer field.
    ///
    /// # Errors
    /// [`SqlError::Unexpected`] if the field does not exist or is not a whole number.
    pub fn int(&self, row: usize, column: usize) -> Result<i64, SqlError> {
        match self.field(row, column)? {
            Field::Int(value) => Some(value),
            Field::Real(value) => whole(value),
            Field::Text(from, to) => self.text[from..to].trim().parse().ok(),
            Field::Null => None,
        }
        .ok_or_else(|| self.wrong(row, column, "a whole number"))
    }

    /// A decimal field in units of 10^-`scale`. Further digits in a text must be zero.
    ///
    /// # Errors
    /// [`SqlError::Unexpected`] if the field does not exist or is not such a number.
    pub fn decimal(&self, row: usize, column: usize, scale: u32) -> Result<i64, SqlError> {
        let one = 10i64.pow(scale.min(9));
        match self.field(row, column)? {
            Field::Int(value) => value.checked_mul(one),
            Field::Real(value) => whole((value * one as f64).round()),
            Field::Text(from, to) => units(self.text[from..to].trim(), scale),
            Field::Null => None,
        }
        .ok_or_else(|| self.wrong(row, column, "a decimal number"))
    }

    /// A text field.
    ///
    /// # Errors
    /// [`SqlError::Unexpected`] if the field does not exist or is not a text.
    pub fn text(&self, row: usize, column: usize) -> Result<&str, SqlError> {
        match self.field(row, column)? {
            Field::Text(from, to) => Ok(&self.text[from..to]),
            Field::Null | Field::Int(_) | Field::Real(_) => Err(self.wrong(row, column, "a text")),
        }
    }

    /// A field of any type as text; empty for NULL.
    ///
    /// # Errors
    /// [`SqlError::Unexpected`] if the field does not exist.
    pub fn shown(&self, row: usize, column: usize) -> Result<String, SqlError> {
        Ok(match self.field(row, column)? {
            Field::Null => String::new(),
            Field::Int(value) => value.to_string(),
            Field::Real(value) => value.to_string(),
            Field::Text(from, to) => self.text[from..to].to_owned(),
        })
    }

    fn field(&self, row: usize, column: usize) -> Result<Field, SqlError> {
        let at = row * self.columns + column;
        let found = (column < self.columns)
            .then(|| self.fields.get(at))
            .flatten();
        found.copied().ok_or_else(|| SqlError::Unexpected {
            what: format!(
                "the answer has {} rows of {} columns; row {row}, column {column} is missing",
                self.rows, self.columns
            ),
        })
    }

    fn wrong(&self, row: usize, column: usize, wanted: &str) -> SqlError {
        let found = self.shown(row, column).unwrap_or_default();
        let what = format!("row {row}, column {column} of the answer is {found:?}, not {wanted}");
        SqlError::Unexpected { what }
    }
}

/// Converts a float that is a whole number below 9e15. Larger floats may be inexact.
fn whole(value: f64) -> Option<i64> {
    let exact = value.fract() == 0.0 && value.abs() < 9e15;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and far below 2^63"
    )]
    exact.then_some(value as i64)
}

/// Parses a decimal number: `-12.34` with scale 2 is -1234.
fn units(text: &str, scale: u32) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (before.is_empty() && behind.is_empty()) || !all_digits(before) || !all_digits(behind) {
        return None;
    }
    let kept = scale as usize;
    if behind.bytes().skip(kept).any(|digit| digit != b'0') {
        return None;
    }
    let padded = behind
        .bytes()
        .take(kept)
        .chain(std::iter::repeat(b'0'))
        .take(kept);
    before.bytes().chain(padded).try_fold(0i64, |sum, digit| {
        let digit = i64::from(digit - b'0');
        sum.checked_mul(10)?
            .checked_add(if is_negative { -digit } else { digit })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fill: impl Fn(&mut Rows)) -> Rows {
        let mut rows = Rows::new();
        fill(&mut rows);
        rows.end_row();
        rows
    }

    #[test]
    fn numbers_are_read_from_whatever_a_system_sends() {
        let rows = row(|rows| {
            rows.push_int(3001);
            rows.push_text(b"3001");
            rows.push_real(3001.0);
            rows.push_text(b"-12.3");
            rows.push_real(-12.3);
            rows.push_text(b".0500");
            rows.push_null();
        });
        for column in 0..3 {
            assert_eq!(rows.int(0, column), Ok(3001));
            assert_eq!(rows.decimal(0, column, 2), Ok(300_100));
        }
        assert_eq!(
            (rows.decimal(0, 3, 2), rows.decimal(0, 4, 2)),
            (Ok(-1230), Ok(-1230))
        );
        assert_eq!(
            (rows.decimal(0, 5, 2), rows.decimal(0, 5, 4)),
            (Ok(5), Ok(500))
        );
        assert_eq!(rows.is_null(0, 6), Ok(true));
        assert!(rows.int(0, 6).is_err() && rows.int(0, 3).is_err());
    }

    #[test]
    fn what_is_no_number_is_named_with_its_place() {
        for bad in [
            "",
            "-",
            ".",
            "1.2.3",
            "1e3",
            "0.005",
            "99999999999999999999",
        ] {
            let rows = row(|rows| rows.push_text(bad.as_bytes()));
            let said = rows.decimal(0, 0, 2).unwrap_err().to_string();
            assert_eq!(
                said,
                format!("row 0, column 0 of the answer is {bad:?}, not a decimal number")
            );
        }
        let rows = row(|rows| rows.push_text(b"x"));
        let said = rows.text(1, 0).unwrap_err().to_string();
        assert_eq!(
            said,
            "the answer has 1 rows of 1 columns; row 1, column 0 is missing"
        );
        assert!(rows.text(0, 1).is_err());
    }

    #[test]
    fn a_buffer_is_used_again() {
        let mut rows = row(|rows| rows.push_text(b"old"));
        rows.clear();
        assert!(rows.is_empty() && rows.text(0, 0).is_err());
        for name in ["BAR", "\u{fc}"] {
            rows.push_text(name.as_bytes());
            rows.push_int(1);
            rows.end_row();
        }
        assert_eq!(
            (rows.len(), rows.columns(), rows.text(1, 0)),
            (2, 2, Ok("\u{fc}"))
        );
    }
}
