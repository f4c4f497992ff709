//! Parameters for each statement, and the expected answer with the rows of `tables`.

use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::{Decimal, Value};

use crate::tables::NOW;

/// A statement, its parameters, the number of rows that it finds or changes, and their fields.
pub(crate) type Case = (Statement, Vec<Value<'static>>, u64, &'static str);

use Statement as S;
use Value::{Int, Null, Text, Time};

/// S_QUANTITY, S_DATA and S_DIST_xx.
const STOCK: &str = "20|data|twenty-four characters!!|twenty-four characters!!|twenty-four characters!!|\
    twenty-four characters!!|twenty-four characters!!|twenty-four characters!!|\
    twenty-four characters!!|twenty-four characters!!|twenty-four characters!!|\
    twenty-four characters!!";
const INFO: &str = "twenty-four characters!!";

fn cents(units: i64) -> Value<'static> {
    Value::Decimal(Decimal::cents(units))
}

fn ints(list: &[i64]) -> Vec<Value<'static>> {
    list.iter().map(|int| Int(*int)).collect()
}

fn joined(first: &[Value<'static>], then: &[i64]) -> Vec<Value<'static>> {
    [first, &ints(then)].concat()
}

/// Statements that select rows.
pub(crate) fn reads() -> Vec<Case> {
    vec![
        (
            S::OrderCustomer,
            ints(&[1, 1, 1]),
            1,
            "0.0500|BARBARBAR|GC|0.0765",
        ),
        (S::OrderDistrict, ints(&[1, 1]), 1, "0.1234|3"),
        (S::OrderItem, ints(&[2]), 1, "2.02|item|ORIGINAL"),
        (S::OrderStock, ints(&[1, 2]), 1, STOCK),
        (
            S::PayWarehouseRead,
            ints(&[1]),
            1,
            "name|street|other|city|ST|123411111",
        ),
        (
            S::PayDistrictRead,
            ints(&[1, 1]),
            1,
            "name|street|other|city|ST|123411111",
        ),
        (
            S::CustomersNamed,
            vec![Int(1), Int(1), Text("BARBARBAR")],
            2,
            "2\n1",
        ),
        (
            S::PayCustomer,
            ints(&[1, 1, 2]),
            1,
            "adam|OE|BARBARBAR|street|other|city|ST|123411111|0123456789012345|\
             2026-11-20 17:00:59|BC|50000.00|0.0500|-10.00",
        ),
        (
            S::PayCustomerData,
            ints(&[1, 1, 2]),
            1,
            "it's a \\ tab\tand a line\n.",
        ),
        (
            S::StatusCustomer,
            ints(&[1, 1, 1]),
            1,
            "zoe|OE|BARBARBAR|-10.00",
        ),
        (
            S::StatusOrder,
            ints(&[1, 1, 2]),
            1,
            "2|2026-11-20 17:00:59|",
        ),
        (
            S::StatusLines,
            ints(&[1, 1, 1]),
            2,
            "1|1|5|0.00|2026-11-20 17:00:59\n2|1|5|0.00|2026-11-20 17:00:59",
        ),
        (S::DeliverOldest, ints(&[1, 1]), 1, "2"),
        (S::DeliverCustomer, ints(&[1, 1, 2]), 1, "2"),
        (S::DeliverSum, ints(&[1, 1, 2]), 1, "19998.03"),
        (S::LowStock, ints(&[1, 1, 15]), 1, "1"),
    ]
}

/// Statements that change rows.
pub(crate) fn changes() -> Vec<Case> {
    let order = [Int(1), Int(1), Int(3), Null, Time(NOW), Int(5), Int(1)];
    let line = [&ints(&[1, 1, 3, 1, 2, 1, 5])[..], &[cents(-1), Text(INFO)]].concat();
    let history = [
        &ints(&[1, 1, 1, 1, 1])[..],
        &[Time(NOW), cents(700), Text("data")],
    ]
    .concat();
    vec![
        (S::OrderNextId, ints(&[1, 1]), 1, ""),
        (S::OrderInsert, order.to_vec(), 1, ""),
        (S::OrderQueue, ints(&[1, 1, 3]), 1, ""),
        (S::OrderStockUpdate, ints(&[-5, 5, 1, 1, 2]), 1, ""),
        (S::OrderLine, line, 1, ""),
        (S::PayWarehouse, joined(&[cents(10)], &[1]), 1, ""),
        (S::PayDistrict, joined(&[cents(10)], &[1, 1]), 1, ""),
        (
            S::PayCustomerUpdate,
            joined(&[cents(7), cents(7)], &[1, 1, 1]),
            1,
            "",
        ),
        (
            S::PayCustomerUpdateData,
            joined(&[cents(7), cents(7), Text("new")], &[1, 1, 1]),
            1,
            "",
        ),
        (S::PayHistory, history, 1, ""),
        (S::DeliverTake, ints(&[1, 1, 2]), 1, ""),
        (S::DeliverOrder, ints(&[7, 1, 1, 2]), 1, ""),
        // In the second execution the rows already have this date. They are counted as found, too.
        (S::DeliverLines, joined(&[Time(NOW)], &[1, 1, 1]), 2, ""),
        (S::DeliverBalance, joined(&[cents(1)], &[1, 1, 2]), 1, ""),
    ]
}
