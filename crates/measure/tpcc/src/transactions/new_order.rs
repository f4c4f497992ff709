//! New-Order (§2.4.2.2).
//!
//! Order lines are processed in the order of their stock keys, so that two orders cannot deadlock
//! (§2.4.2 leaves the order free). The line with an unused item comes last, because all other
//! work must be done before the rollback (§2.4.2.3). Stock updates and order lines are
//! written as two batches, as in BenchmarkSQL. If two lines take from the same stock, the second
//! line starts from the quantity that the first line left; in BenchmarkSQL it does not.

use super::{Outcome, Transaction, int, unexpected};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::{Decimal, Value};
use crate::spec::inputs::{DistrictKey, Line, NewOrder, UNUSED_ITEM};

/// An order line with the values that were read for it.
#[derive(Debug, Clone, Copy)]
struct PricedLine {
    /// OL_NUMBER: position in the input, from 1.
    number: u32,
    line: Line,
    /// S_QUANTITY after this line.
    left: i64,
    amount_cents: i64,
    /// Range of S_DIST_xx in the buffer of all texts.
    dist: (usize, usize),
}

/// Column of S_DIST_01 in the answer of [`Statement::OrderStock`].
const DIST_01: usize = 2;

impl Transaction<'_> {
    pub(super) fn new_order(&mut self, input: &NewOrder) -> Result<Outcome, SqlError> {
        let o_id = self.open_order(input)?;
        let (mut all, mut texts) = (Vec::with_capacity(input.lines.len()), String::new());
        for (number, line) in in_order_of_stock(&input.lines) {
            let left = all.last().and_then(|before| left_by(before, line));
            all.extend(self.find(input.district, number, line, left, &mut texts)?);
        }
        self.take_from_stock(input.district, &all)?;
        self.write_lines(input.district, o_id, &all, &texts)?;
        if all.len() == input.lines.len() {
            Ok(Outcome::Committed)
        } else {
            Ok(Outcome::RolledBack)
        }
    }

    /// Inserts the order and returns its number.
    fn open_order(&mut self, input: &NewOrder) -> Result<u32, SqlError> {
        let DistrictKey { w_id, d_id } = input.district;
        let key = [int(w_id), int(d_id)];
        let c_id = int(input.c_id);
        self.send_for_one(Statement::OrderCustomer, &[key[0], key[1], c_id])?;
        self.send_for_one(Statement::OrderDistrict, &key)?;
        let o_id = self.id(1)?;
        self.send_for_one(Statement::OrderNextId, &key)?;
        let order = [
            key[0],
            key[1],
            int(o_id),
            c_id,
            Value::Time(self.now),
            int(u32::try_from(input.lines.len()).unwrap_or(u32::MAX)),
            int(u32::from(input.is_all_local())),
        ];
        self.send_for_one(Statement::OrderInsert, &order)?;
        self.send_for_one(Statement::OrderQueue, &order[..3])?;
        Ok(o_id)
    }

    /// Reads the item and the stock of a line. Returns `None` for the unused item. `left` is the
    /// quantity that the previous line left in the same stock. S_DIST_xx is appended to `texts`.
    fn find(
        &mut self,
        district: DistrictKey,
        number: u32,
        line: Line,
        left: Option<i64>,
        texts: &mut String,
    ) -> Result<Option<PricedLine>, SqlError> {
        let item = [int(line.i_id)];
        if line.i_id == UNUSED_ITEM {
            // No other item may be missing: its order would be rolled back as if the input demanded
            // it.
            return match self.send(Statement::OrderItem, &item)? {
                0 => Ok(None),
                count => Err(unexpected(Statement::OrderItem, &item, count, "none")),
            };
        }
        self.send_for_one(Statement::OrderItem, &item)?;
        let price_cents = self.rows.decimal(0, 0, 2)?;
        self.send_for_one(
            Statement::OrderStock,
            &[int(line.supply_w_id), int(line.i_id)],
        )?;
        let stock = left.map_or_else(|| self.rows.int(0, 0), Ok)?;
        let from = texts.len();
        texts.push_str(self.rows.text(0, DIST_01 + district.d_id as usize - 1)?);
        Ok(Some(PricedLine {
            number,
            line,
            left: quantity_after(stock, i64::from(line.quantity)),
            amount_cents: price_cents * i64::from(line.quantity),
            dist: (from, texts.len()),
        }))
    }

    fn take_from_stock(
        &mut self,
        district: DistrictKey,
        all: &[PricedLine],
    ) -> Result<(), SqlError> {
        let update = |priced: &PricedLine| {
            let Line {
                i_id,
                supply_w_id,
                quantity,
            } = priced.line;
            let is_remote = u32::from(supply_w_id != district.w_id);
            [
                Value::Int(priced.left),
                int(quantity),
                int(is_remote),
                int(supply_w_id),
                int(i_id),
            ]
        };
        let updates: Vec<Value<'_>> = all.iter().flat_map(update).collect();
        self.send_batch(Statement::OrderStockUpdate, &updates)
    }

    fn write_lines(
        &mut self,
        district: DistrictKey,
        o_id: u32,
        all: &[PricedLine],
        texts: &str,
    ) -> Result<(), SqlError> {
        let insert = |priced: &PricedLine| {
            let Line {
                i_id,
                supply_w_id,
                quantity,
            } = priced.line;
            [
                int(district.w_id),
                int(district.d_id),
                int(o_id),
                int(priced.number),
                int(i_id),
                int(supply_w_id),
                int(quantity),
                Value::Decimal(Decimal::cents(priced.amount_cents)),
                Value::Text(&texts[priced.dist.0..priced.dist.1]),
            ]
        };
        let inserts: Vec<Value<'_>> = all.iter().flat_map(insert).collect();
        self.send_batch(Statement::OrderLine, &inserts)
    }
}

/// Lines with their numbers, by supplying warehouse and item; the unused item comes last.
fn in_order_of_stock(lines: &[Line]) -> Vec<(u32, Line)> {
    let mut all: Vec<(u32, Line)> = (1..).zip(lines.iter().copied()).collect();
    all.sort_by_key(|(number, line)| {
        (
            line.i_id == UNUSED_ITEM,
            line.supply_w_id,
            line.i_id,
            *number,
        )
    });
    all
}

/// The quantity that the previous line left, if both take from the same stock.
fn left_by(before: &PricedLine, line: Line) -> Option<i64> {
    let same = |of: Line| (of.supply_w_id, of.i_id);
    (same(before.line) == same(line)).then_some(before.left)
}

/// S_QUANTITY after a line: if fewer than ten would be left, 91 are added.
fn quantity_after(stock: i64, quantity: i64) -> i64 {
    if stock >= quantity + 10 {
        stock - quantity
    } else {
        stock - quantity + 91
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §2.4.2.2. BenchmarkSQL adds 91 without subtracting the quantity.
    #[test]
    fn stock_is_filled_up_when_fewer_than_ten_would_be_left() {
        assert_eq!(
            (
                quantity_after(100, 10),
                quantity_after(20, 10),
                quantity_after(19, 10)
            ),
            (90, 10, 100)
        );
        assert_eq!((quantity_after(10, 1), quantity_after(11, 1)), (100, 10));
    }

    #[test]
    fn lines_go_by_their_stock_and_the_unused_item_comes_last() {
        let line = |i_id, supply_w_id| Line {
            i_id,
            supply_w_id,
            quantity: 1,
        };
        let lines = [
            line(9, 1),
            line(5, 2),
            line(7, 1),
            line(9, 1),
            line(UNUSED_ITEM, 1),
        ];
        let numbers: Vec<u32> = in_order_of_stock(&lines).iter().map(|(n, _)| *n).collect();
        assert_eq!(numbers, [3, 1, 4, 2, 5]);
    }
}
