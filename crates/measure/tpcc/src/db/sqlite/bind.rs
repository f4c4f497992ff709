//! Parameter values in the types of SQLite.

use rusqlite::types::{Null, ToSqlOutput, Value as Stored};
use rusqlite::{Statement as Prepared, ToSql};

use crate::db::value::{Decimal, Value};

/// Binds all parameters in order.
pub(super) fn all(prepared: &mut Prepared<'_>, params: &[Value<'_>]) -> rusqlite::Result<()> {
    let places = 1..;
    places
        .zip(params)
        .try_for_each(|(place, value)| match value {
            Value::Int(value) | Value::Time(value) => prepared.raw_bind_parameter(place, value),
            Value::Decimal(value) => prepared.raw_bind_parameter(place, Real(*value)),
            Value::Text(value) => prepared.raw_bind_parameter(place, value),
            Value::Null => prepared.raw_bind_parameter(place, Null),
        })
}

/// A decimal number as SQLite stores it: the nearest floating-point number.
pub(super) struct Real(pub(super) Decimal);

impl ToSql for Real {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let Decimal { units, scale } = self.0;
        // Amounts are far below 2^53 units, so both operands are exact and the quotient is nearest.
        let one = 10f64.powi(i32::try_from(scale).unwrap_or(0));
        Ok(ToSqlOutput::Owned(Stored::Real(units as f64 / one)))
    }
}
