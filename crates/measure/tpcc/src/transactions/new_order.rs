//! New-Order (§2.4.2.2).
//!
//! Lines are worked on in the order of their stock, so that two orders cannot wait for each other
//! (§2.4.2 leaves the order free); the one without an item comes last, because all other work is
//! to be done before it is undone (§2.4.2.3). Stocks and lines are written as two batches, as
//! BenchmarkSQL does. Where two lines take from one stock the second one sees what the first
//! one left, which BenchmarkSQL forgets.

use super::{Outcome, Work, int, unexpected};
use crate::db::SqlError;
use crate::db::statement::Statement;
use crate::db::value::{Decimal, Value};
use crate::spec::inputs::{Line, NewOrder, Place, UNUSED_ITEM};

/// A line with what was found for it.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// OL_NUMBER, its place in the input from one.
    number: u32,
    line: Line,
    /// S_QUANTITY, when it is taken.
    left: i64,
    amount_cents: i64,
    /// S_DIST_xx, where it lies among all of them.
    dist: (usize, usize),
}

/// The first S_DIST_xx of [`Statement::OrderStock`].
const DIST_01: usize = 2;

impl Work<'_> {
    pub(super) fn new_order(&mut self, input: &NewOrder) -> Result<Outcome, SqlError> {
        let o_id = self.open_order(input)?;
        let (mut all, mut texts) = (Vec::with_capacity(input.lines.len()), String::new());
        for (number, line) in in_order_of_stock(&input.lines) {
            let left = all.last().and_then(|before| left_by(before, line));
            all.extend(self.find(input.place, number, line, left, &mut texts)?);
        }
        self.take_from_stock(input.place, &all)?;
        self.write_lines(input.place, o_id, &all, &texts)?;
        if all.len() == input.lines.len() {
            Ok(Outcome::Committed)
        } else {
            Ok(Outcome::RolledBack)
        }
    }

    /// Gives the order its number and enters it.
    fn open_order(&mut self, input: &NewOrder) -> Result<u32, SqlError> {
        let Place { w_id, d_id } = input.place;
        let place = [int(w_id), int(d_id)];
        let c_id = int(input.c_id);
        self.send_for_one(Statement::OrderCustomer, &[place[0], place[1], c_id])?;
        self.send_for_one(Statement::OrderDistrict, &place)?;
        let o_id = self.id(1)?;
        self.send_for_one(Statement::OrderNextId, &place)?;
        let order = [
            place[0],
            place[1],
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

    /// Item and stock of a line; `None` when its item is the unused one. `left` is what the line
    /// before leaves of the same stock. The district's text goes behind `texts`.
    fn find(
        &mut self,
        place: Place,
        number: u32,
        line: Line,
        left: Option<i64>,
        texts: &mut String,
    ) -> Result<Option<Found>, SqlError> {
        let item = [int(line.i_id)];
        if line.i_id == UNUSED_ITEM {
            // An item that is missing otherwise would make the rollback look as if it were wanted.
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
        texts.push_str(self.rows.text(0, DIST_01 + place.d_id as usize - 1)?);
        Ok(Some(Found {
            number,
            line,
            left: after(stock, i64::from(line.quantity)),
            amount_cents: price_cents * i64::from(line.quantity),
            dist: (from, texts.len()),
        }))
    }

    fn take_from_stock(&mut self, place: Place, all: &[Found]) -> Result<(), SqlError> {
        let update = |found: &Found| {
            let Line {
                i_id,
                supply_w_id,
                quantity,
            } = found.line;
            let is_remote = u32::from(supply_w_id != place.w_id);
            [
                Value::Int(found.left),
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
        place: Place,
        o_id: u32,
        all: &[Found],
        texts: &str,
    ) -> Result<(), SqlError> {
        let insert = |found: &Found| {
            let Line {
                i_id,
                supply_w_id,
                quantity,
            } = found.line;
            [
                int(place.w_id),
                int(place.d_id),
                int(o_id),
                int(found.number),
                int(i_id),
                int(supply_w_id),
                int(quantity),
                Value::Decimal(Decimal::cents(found.amount_cents)),
                Value::Text(&texts[found.dist.0..found.dist.1]),
            ]
        };
        let inserts: Vec<Value<'_>> = all.iter().flat_map(insert).collect();
        self.send_batch(Statement::OrderLine, &inserts)
    }
}

/// Lines with their numbers, by supplying warehouse and item, without an item last.
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

/// What the line before leaves, when it takes from the same stock.
fn left_by(before: &Found, line: Line) -> Option<i64> {
    let same = |of: Line| (of.supply_w_id, of.i_id);
    (same(before.line) == same(line)).then_some(before.left)
}

/// S_QUANTITY after a line: it stays at ten or more, and 91 are added where it would not.
fn after(stock: i64, quantity: i64) -> i64 {
    if stock >= quantity + 10 {
        stock - quantity
    } else {
        stock - quantity + 91
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §2.4.2.2; BenchmarkSQL adds 91 without taking the quantity.
    #[test]
    fn stock_is_filled_up_when_fewer_than_ten_would_be_left() {
        assert_eq!(
            (after(100, 10), after(20, 10), after(19, 10)),
            (90, 10, 100)
        );
        assert_eq!((after(10, 1), after(11, 1)), (100, 10));
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
