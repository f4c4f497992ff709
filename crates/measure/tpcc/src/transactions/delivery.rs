//! Delivery (§2.7.4.2): the oldest order of each district, all in one transaction.

use super::{Outcome, Work, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::{Decimal, Value};
use crate::spec::DISTRICTS;
use crate::spec::inputs::{Delivery, Place};

/// How often an order may be taken by somebody else before we take one.
const MAX_TRIES: u32 = 100;

impl Work<'_> {
    pub(super) fn delivery(&mut self, input: Delivery) -> Result<Outcome, SqlError> {
        let (w_id, mut orders) = (input.w_id, Vec::with_capacity(DISTRICTS as usize));
        for d_id in 1..=DISTRICTS {
            let place = Place { w_id, d_id };
            if let Some(o_id) = self.take_oldest(place)? {
                self.deliver(place, o_id, input.carrier_id)?;
                orders.push((d_id, o_id));
            }
        }
        let skipped = DISTRICTS - u32::try_from(orders.len()).unwrap_or(DISTRICTS);
        Ok(Outcome::Delivered { orders, skipped })
    }

    /// Whoever deletes the oldest one has it; `None` when none waits.
    fn take_oldest(&mut self, place: Place) -> Result<Option<u32>, SqlError> {
        let (w_id, d_id) = (int(place.w_id), int(place.d_id));
        for _ in 0..MAX_TRIES {
            if self.send(Statement::DeliverOldest, &[w_id, d_id])? == 0 {
                return Ok(None);
            }
            let o_id = self.id(0)?;
            if self.send(Statement::DeliverTake, &[w_id, d_id, int(o_id)])? == 1 {
                return Ok(Some(o_id));
            }
        }
        Err(SqlError::Conflict {
            said: format!("others took the oldest order of {place:?} {MAX_TRIES} times"),
        })
    }

    fn deliver(&mut self, place: Place, o_id: u32, carrier_id: u32) -> Result<(), SqlError> {
        let order = [int(place.w_id), int(place.d_id), int(o_id)];
        let [w_id, d_id, o] = order;
        self.send_for_one(Statement::DeliverOrder, &[int(carrier_id), w_id, d_id, o])?;
        self.send_for_one(Statement::DeliverWhose, &order)?;
        let c_id = int(self.id(0)?);
        self.send(
            Statement::DeliverLines,
            &[Value::Time(self.now), w_id, d_id, o],
        )?;
        self.send_for_one(Statement::DeliverSum, &order)?;
        let sum = Value::Decimal(Decimal::cents(self.rows.decimal(0, 0, 2)?));
        self.send_for_one(Statement::DeliverBalance, &[sum, w_id, d_id, c_id])
    }
}
