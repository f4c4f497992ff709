//! Stock-Level (§2.8.2.2) as a single statement.

use super::{Outcome, Transaction, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::spec::inputs::StockLevel;

impl Transaction<'_> {
    pub(super) fn stock_level(&mut self, input: StockLevel) -> Result<Outcome, SqlError> {
        let district = input.district;
        let params = [int(district.w_id), int(district.d_id), int(input.threshold)];
        self.send_for_one(Statement::LowStock, &params)?;
        self.id(0)?;
        Ok(Outcome::Committed)
    }
}
