//! Payment (§2.5.2.2).

use super::{Outcome, Transaction, int};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::{Decimal, Value};
use crate::spec::inputs::{DistrictKey, Payment};

/// Index of the column C_CREDIT in the result of [`Statement::PayCustomer`].
const CREDIT: usize = 10;
/// Limit on C_DATA, counted in bytes; the column has 500 characters.
const DATA_LENGTH: usize = 500;

impl Transaction<'_> {
    pub(super) fn payment(&mut self, input: &Payment) -> Result<Outcome, SqlError> {
        let amount = Value::Decimal(Decimal::cents(i64::from(input.amount_cents)));
        let data = self.pay_into(input.district, amount)?;
        let c_id = self.customer(input.home, &input.customer)?;
        self.pay_by(input, c_id, amount)?;
        let (district, home) = (input.district, input.home);
        let history = [
            int(c_id),
            int(home.d_id),
            int(home.w_id),
            int(district.d_id),
            int(district.w_id),
            Value::Time(self.now),
            amount,
            Value::Text(&data),
        ];
        self.send_for_one(Statement::PayHistory, &history)?;
        Ok(Outcome::Committed)
    }

    /// Adds the amount to the totals of the warehouse and the district. Returns H_DATA, which
    /// consists of the names of both.
    fn pay_into(&mut self, district: DistrictKey, amount: Value<'_>) -> Result<String, SqlError> {
        let (w_id, d_id) = (int(district.w_id), int(district.d_id));
        self.send_for_one(Statement::PayWarehouse, &[amount, w_id])?;
        self.send_for_one(Statement::PayWarehouseRead, &[w_id])?;
        let mut data = self.rows.text(0, 0)?.to_owned();
        self.send_for_one(Statement::PayDistrict, &[amount, w_id, d_id])?;
        self.send_for_one(Statement::PayDistrictRead, &[w_id, d_id])?;
        data.push_str("    ");
        data.push_str(self.rows.text(0, 0)?);
        Ok(data)
    }

    /// Updates the customer. If the customer has bad credit, C_DATA also records the payment.
    fn pay_by(&mut self, input: &Payment, c_id: u32, amount: Value<'_>) -> Result<(), SqlError> {
        let DistrictKey { w_id, d_id } = input.home;
        let customer = [int(w_id), int(d_id), int(c_id)];
        let [w_id, d_id, c] = customer;
        self.send_for_one(Statement::PayCustomer, &customer)?;
        if self.rows.text(0, CREDIT)? != "BC" {
            let update = [amount, amount, w_id, d_id, c];
            return self.send_for_one(Statement::PayCustomerUpdate, &update);
        }
        self.send_for_one(Statement::PayCustomerData, &customer)?;
        let data = with_payment(input, c_id, self.rows.text(0, 0)?);
        let update = [amount, amount, Value::Text(&data), w_id, d_id, c];
        self.send_for_one(Statement::PayCustomerUpdateData, &update)
    }
}

/// Returns the new C_DATA: the payment, then the old text, truncated to [`DATA_LENGTH`].
fn with_payment(input: &Payment, c_id: u32, before: &str) -> String {
    let (home, district) = (input.home, input.district);
    let mut data = format!(
        "{c_id} {} {} {} {} {} {before}",
        home.d_id,
        home.w_id,
        district.d_id,
        district.w_id,
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
            district: DistrictKey { w_id: 1, d_id: 2 },
            home: DistrictKey { w_id: 3, d_id: 4 },
            customer: Customer::Id(5),
            amount_cents: 123_405,
        };
        assert_eq!(with_payment(&input, 5, "old"), "5 4 3 2 1 1234.05 old");
        let long = with_payment(&input, 5, &"x".repeat(500));
        assert_eq!(long.len(), 500);
        assert!(long.starts_with("5 4 3 2 1 1234.05 x") && long.ends_with('x'));
    }
}
