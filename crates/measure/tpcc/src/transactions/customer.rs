//! Selects the customer of a Payment or an Order-Status (§2.5.2.2, §2.6.2.2).

use super::{Transaction, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::Value;
use crate::spec::inputs::{Customer, DistrictKey};

impl Transaction<'_> {
    /// The C_ID of the customer. If several customers have the last name, selects the middle one in
    /// the order of first names, rounded up.
    pub(super) fn customer(
        &mut self,
        home: DistrictKey,
        selection: &Customer,
    ) -> Result<u32, SqlError> {
        let name = match selection {
            Customer::Id(c_id) => return Ok(*c_id),
            Customer::LastName(name) => name,
        };
        let params = [int(home.w_id), int(home.d_id), Value::Text(name)];
        let found = self.send(Statement::CustomersNamed, &params)?;
        if found == 0 {
            let DistrictKey { w_id, d_id } = home;
            let what = format!("no customer of warehouse {w_id}, district {d_id} is named {name}");
            return Err(SqlError::Unexpected { what });
        }
        let middle = self.rows.int(self.rows.len().div_ceil(2) - 1, 0)?;
        u32::try_from(middle).map_err(|_| SqlError::Unexpected {
            what: format!("{middle} is not a C_ID"),
        })
    }
}
