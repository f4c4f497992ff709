//! Order-Status (§2.6.2.2).

use super::{Outcome, Transaction, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::spec::inputs::{DistrictKey, OrderStatus};

impl Transaction<'_> {
    pub(super) fn order_status(&mut self, input: &OrderStatus) -> Result<Outcome, SqlError> {
        let DistrictKey { w_id, d_id } = input.district;
        let c_id = self.customer(input.district, &input.customer)?;
        let customer = [int(w_id), int(d_id), int(c_id)];
        self.send_for_one(Statement::StatusCustomer, &customer)?;
        self.send_for_one(Statement::StatusOrder, &customer)?;
        let o_id = self.id(0)?;
        let lines = self.send(Statement::StatusLines, &[int(w_id), int(d_id), int(o_id)])?;
        if lines == 0 {
            let what = format!("order {o_id} of warehouse {w_id}, district {d_id} has no line");
            return Err(SqlError::Unexpected { what });
        }
        Ok(Outcome::Committed)
    }
}
