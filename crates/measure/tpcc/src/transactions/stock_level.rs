//! Stock-Level (§2.8.2.2), as one statement.

use super::{Outcome, Work, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::spec::inputs::StockLevel;

impl Work<'_> {
    pub(super) fn stock_level(&mut self, input: StockLevel) -> Result<Outcome, SqlError> {
        let place = input.place;
        let params = [int(place.w_id), int(place.d_id), int(input.threshold)];
        self.send_for_one(Statement::LowStock, &params)?;
        self.id(0)?;
        Ok(Outcome::Committed)
    }
}
