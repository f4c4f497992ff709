//! Payment (§2.5.2.2).

use super::{Outcome, Work, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::{Decimal, Value};
use crate::spec::inputs::{Payment, Place};

/// C_CREDIT of [`Statement::PayCustomer`].
const CREDIT: usize = 10;
/// The length of C_DATA.
const DATA_LENGTH: usize = 500;

impl Work<'_> {
    pub(super) fn payment(&mut self, input: &Payment) -> Result<Outcome, SqlError> {
        let amount = Value::Decimal(Decimal::cents(i64::from(input.amount_cents)));
        let data = self.pay_into(input.place, amount)?;
        let c_id = self.customer(input.home, &input.customer)?;
        self.pay_by(input, c_id, amount)?;
        let (place, home) = (input.place, input.home);
        let history = [
            int(c_id),
            int(home.d_id),
            int(home.w_id),
            int(place.d_id),
            int(place.w_id),
            Value::Time(self.now),
            amount,
            Value::Text(&data),
        ];
        self.send_for_one(Statement::PayHistory, &history)?;
        Ok(Outcome::Committed)
    }

    /// Warehouse and district get the money; H_DATA, which is made of their names.
    fn pay_into(&mut self, place: Place, amount: Value<'_>) -> Result<String, SqlError> {
        let (w_id, d_id) = (int(place.w_id), int(place.d_id));
        self.send_for_one(Statement::PayWarehouse, &[amount, w_id])?;
        self.send_for_one(Statement::PayWarehouseRead, &[w_id])?;
        let mut data = self.rows.text(0, 0)?.to_owned();
        self.send_for_one(Statement::PayDistrict, &[amount, w_id, d_id])?;
        self.send_for_one(Statement::PayDistrictRead, &[w_id, d_id])?;
        data.push_str("    ");
        data.push_str(self.rows.text(0, 0)?);
        Ok(data)
    }

    /// The customer's balance; with bad credit the payment is noted in C_DATA.
    fn pay_by(&mut self, input: &Payment, c_id: u32, amount: Value<'_>) -> Result<(), SqlError> {
        let Place { w_id, d_id } = input.home;
        let customer = [int(w_id), int(d_id), int(c_id)];
        let [w_id, d_id, c] = customer;
        self.send_for_one(Statement::PayCustomer, &customer)?;
        if self.rows.text(0, CREDIT)? != "BC" {
            let update = [amount, amount, w_id, d_id, c];
            return self.send_for_one(Statement::PayCustomerUpdate, &update);
        }
        self.send_for_one(Statement::PayCustomerData, &customer)?;
        let data = noted(input, c_id, self.rows.text(0, 0)?);
        let update = [amount, amount, Value::Text(&data), w_id, d_id, c];
        self.send_for_one(Statement::PayCustomerUpdateData, &update)
    }
}

/// C_DATA with the payment before what was there; the end is cut off. The data are ASCII.
fn noted(input: &Payment, c_id: u32, before: &str) -> String {
    let (home, place) = (input.home, input.place);
    let mut data = format!(
        "{c_id} {} {} {} {} {} {before}",
        home.d_id,
        home.w_id,
        place.d_id,
        place.w_id,
        Decimal::cents(i64::from(input.amount_cents)),
    );
    let end = (0..=DATA_LENGTH)
        .rev()
        .find(|at| data.is_char_boundary(*at));
    data.truncate(end.unwrap_or(0));
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::inputs::Customer;

    #[test]
    fn a_payment_is_noted_before_the_rest_and_500_characters_stay() {
        let input = Payment {
            place: Place { w_id: 1, d_id: 2 },
            home: Place { w_id: 3, d_id: 4 },
            customer: Customer::Id(5),
            amount_cents: 123_405,
        };
        assert_eq!(noted(&input, 5, "old"), "5 4 3 2 1 1234.05 old");
        let long = noted(&input, 5, &"x".repeat(500));
        assert_eq!(long.len(), 500);
        assert!(long.starts_with("5 4 3 2 1 1234.05 x") && long.ends_with('x'));
    }
}
