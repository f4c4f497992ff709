//! Delivery (§2.7.4.2): delivers the oldest order of each district, in one transaction.

use super::{Outcome, Transaction, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::{Decimal, Value};
use crate::spec::DISTRICTS;
use crate::spec::inputs::{Delivery, DistrictKey};

/// Number of attempts to take an order of a district before the transaction fails as a conflict.
const MAX_ATTEMPTS: u32 = 100;

impl Transaction<'_> {
    pub(super) fn delivery(&mut self, input: Delivery) -> Result<Outcome, SqlError> {
        let (w_id, mut orders) = (input.w_id, Vec::with_capacity(DISTRICTS as usize));
        for d_id in 1..=DISTRICTS {
            let district = DistrictKey { w_id, d_id };
            if let Some(o_id) = self.take_oldest(district)? {
                self.deliver(district, o_id, input.carrier_id)?;
                orders.push((d_id, o_id));
            }
        }
        let skipped = DISTRICTS - u32::try_from(orders.len()).unwrap_or(DISTRICTS);
        Ok(Outcome::Delivered { orders, skipped })
    }

    /// Deletes the oldest undelivered order from NEW-ORDER and returns its number. Several sessions
    /// may read the same order; the session that deletes it also delivers it. Returns `None` if the
    /// district has no undelivered order.
    fn take_oldest(&mut self, district: DistrictKey) -> Result<Option<u32>, SqlError> {
        let (w_id, d_id) = (int(district.w_id), int(district.d_id));
        for _ in 0..MAX_ATTEMPTS {
            if self.send(Statement::DeliverOldest, &[w_id, d_id])? == 0 {
                return Ok(None);
            }
            let o_id = self.id(0)?;
            if self.send(Statement::DeliverTake, &[w_id, d_id, int(o_id)])? == 1 {
                return Ok(Some(o_id));
            }
        }
        Err(SqlError::Conflict {
            said: format!(
                "other transactions took the oldest order of warehouse {}, district {} {MAX_ATTEMPTS} times",
                district.w_id, district.d_id
            ),
        })
    }

    fn deliver(
        &mut self,
        district: DistrictKey,
        o_id: u32,
        carrier_id: u32,
    ) -> Result<(), SqlError> {
        let order = [int(district.w_id), int(district.d_id), int(o_id)];
        let [w_id, d_id, o] = order;
        self.send_for_one(Statement::DeliverOrder, &[int(carrier_id), w_id, d_id, o])?;
        self.send_for_one(Statement::DeliverCustomer, &order)?;
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
