//! Which customer is meant (§2.5.2.2, §2.6.2.2).

use super::{Work, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::Value;
use crate::spec::inputs::{Customer, Place};

impl Work<'_> {
    /// C_ID. Of several with one last name it is the middle one by first name, rounded up.
    pub(super) fn customer(&mut self, home: Place, by: &Customer) -> Result<u32, SqlError> {
        let name = match by {
            Customer::Id(c_id) => return Ok(*c_id),
            Customer::LastName(name) => name,
        };
        let params = [int(home.w_id), int(home.d_id), Value::Text(name)];
        let found = self.send(Statement::CustomersNamed, &params)?;
        if found == 0 {
            let Place { w_id, d_id } = home;
            let what = format!("no customer of warehouse {w_id}, district {d_id} is named {name}");
            return Err(SqlError::Unexpected { what });
        }
        let middle = self.rows.int(self.rows.len().div_ceil(2) - 1, 0)?;
        u32::try_from(middle).map_err(|_| SqlError::Unexpected {
            what: format!("{middle} is not a C_ID"),
        })
    }
}
