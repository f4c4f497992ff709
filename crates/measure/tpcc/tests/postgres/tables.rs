//! A few rows for every table, and parameters with which every statement finds rows.

use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::{Decimal, Value};
use saiga_tpcc::db::{Session, SqlError};
use saiga_tpcc::population::Sink;
use saiga_tpcc::script::{self, Step};
use saiga_tpcc::table::Table;

/// The date of the load, 2026-09-21 14:13:20.
pub(crate) const NOW: i64 = 1_790_000_000;
/// Texts that incorrect escaping would corrupt.
pub(crate) const ODD: [&str; 5] = [
    "it's",
    "back\\slash \\N",
    "tab\there",
    "line\r\nend",
    "\u{fc}\u{4e2d}\u{1f600}",
];

/// Executes SQL that must succeed.
pub(crate) fn run(session: &mut dyn Session, sql: &str) -> Rows {
    let mut rows = Rows::new();
    session
        .run(sql, &mut rows)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows
}

/// The number that a query returns.
pub(crate) fn number(session: &mut dyn Session, sql: &str) -> i64 {
    run(session, sql).int(0, 0).unwrap()
}

/// Creates the tables, loads them, and adds keys and foreign keys.
pub(crate) fn make(session: &mut dyn Session) {
    steps(session, &[Step::TableCreates]);
    for table in Table::ALL {
        session.load(table, &mut |sink| fill(table, sink)).unwrap();
    }
    steps(session, &Step::AFTER_LOAD);
}

pub(crate) fn steps(session: &mut dyn Session, steps: &[Step]) {
    for step in steps {
        for sql in script::find(None, "postgres", *step).unwrap().statements {
            run(session, &sql);
        }
    }
}

/// Writes the rows of a table: one warehouse, two districts, five items, five customers with the
/// same name, three orders.
fn fill(table: Table, sink: &mut dyn Sink<Error = SqlError>) -> Result<(), SqlError> {
    let count = match table {
        Table::Config | Table::Warehouse => 1,
        Table::District => 2,
        Table::Item | Table::Stock | Table::Customer | Table::History => 5,
        Table::Order => 3,
        Table::OrderLine => 6,
        Table::NewOrder => 1,
    };
    for at in 0..count {
        for column in table.columns() {
            value(table, column, at, sink);
        }
        sink.end_row()?;
    }
    Ok(())
}

/// Writes a value for a column: numbers that fit keys and references, or a text.
fn value(table: Table, column: &str, at: i64, sink: &mut dyn Sink<Error = SqlError>) {
    let texts = [
        "name", "first", "street", "city", "data", "last", "value", "dist",
    ];
    let place = usize::try_from(at).unwrap();
    match column {
        "o_carrier_id" if at == 2 => sink.null(),
        "ol_delivery_d" if at >= 4 => sink.null(),
        "c_last" => sink.text("BARBARBAR"),
        "c_first" => sink.text(["e", "d", "c", "b", "a"][place]),
        "c_data" | "s_data" | "i_data" => sink.text(ODD[place]),
        "c_credit" => sink.text("GC"),
        "d_id" | "s_i_id" | "i_id" | "c_id" | "h_c_id" | "o_id" | "hist_id" => sink.int(at + 1),
        "ol_o_id" => sink.int(at / 2 + 1),
        "ol_number" => sink.int(at % 2 + 1),
        "ol_i_id" => sink.int(at % 5 + 1),
        "no_o_id" => sink.int(3),
        "d_next_o_id" => sink.int(4),
        "s_quantity" => sink.int(10 * (at + 1)),
        _ if column.ends_with("_tax") || column.ends_with("discount") => sink.decimal(-at, 4),
        _ if ["ytd", "amount", "balance", "credit_lim", "price", "payment"]
            .iter()
            .any(|part| column.ends_with(part) && table != Table::Stock) =>
        {
            sink.decimal(-1005 * at, 2);
        }
        _ if ["since", "date", "_d"]
            .iter()
            .any(|part| column.ends_with(part)) =>
        {
            sink.time(NOW)
        }
        _ if texts.iter().any(|part| column.contains(part)) => sink.text("text"),
        _ if ["zip", "state", "phone", "middle"]
            .iter()
            .any(|part| column.ends_with(part)) =>
        {
            sink.text("ab");
        }
        _ => sink.int(1),
    }
}

/// Parameters of a statement; all refer to order 3 and customer 1 of the first district.
pub(crate) fn params(statement: Statement) -> Vec<Value<'static>> {
    let int = Value::Int;
    let cents = |units| Value::Decimal(Decimal::cents(units));
    match statement {
        Statement::OrderDistrict
        | Statement::OrderNextId
        | Statement::PayDistrictRead
        | Statement::DeliverOldest => vec![int(1), int(1)],
        Statement::OrderStock => vec![int(1), int(5)],
        Statement::OrderItem => vec![int(4)],
        Statement::PayWarehouseRead => vec![int(1)],
        Statement::OrderInsert => {
            let mut all = [1, 1, 4, 1].map(int).to_vec();
            all.extend([Value::Time(NOW), int(2), Value::Null]);
            all
        }
        Statement::OrderQueue => vec![int(1), int(1), int(2)],
        Statement::OrderStockUpdate => vec![int(9), int(1), int(0), int(1), int(1)],
        Statement::OrderLine => {
            let mut all = [1, 1, 3, 3, 1, 1, 5].map(int).to_vec();
            all.extend([cents(-12_345), Value::Text(ODD[0])]);
            all
        }
        Statement::PayWarehouse => vec![cents(-5), int(1)],
        Statement::PayDistrict => vec![cents(5), int(1), int(1)],
        Statement::CustomersNamed => vec![int(1), int(1), Value::Text("BARBARBAR")],
        Statement::PayCustomerUpdate => vec![cents(7), cents(7), int(1), int(1), int(1)],
        Statement::PayCustomerUpdateData => {
            let mut all = vec![cents(7), cents(7), Value::Text(ODD[1])];
            all.extend([1, 1, 1].map(int));
            all
        }
        Statement::PayHistory => {
            let mut all = [1, 1, 1, 1, 1].map(int).to_vec();
            all.extend([Value::Time(NOW), cents(-1), Value::Text(ODD[4])]);
            all
        }
        Statement::DeliverOrder => [7, 1, 1, 3].map(int).to_vec(),
        Statement::DeliverLines => vec![Value::Time(-1), int(1), int(1), int(3)],
        Statement::DeliverBalance => vec![cents(-100), int(1), int(1), int(1)],
        Statement::LowStock => [1, 1, 25].map(int).to_vec(),
        Statement::OrderCustomer
        | Statement::PayCustomer
        | Statement::PayCustomerData
        | Statement::StatusCustomer => [1, 1, 1].map(int).to_vec(),
        Statement::StatusOrder => vec![int(1), int(1), int(1)],
        Statement::StatusLines
        | Statement::DeliverTake
        | Statement::DeliverCustomer
        | Statement::DeliverSum => [1, 1, 3].map(int).to_vec(),
    }
}

/// The fields of all rows as text.
pub(crate) fn shown(rows: &Rows) -> Vec<Vec<String>> {
    let row = |row| (0..rows.columns()).map(move |column| rows.shown(row, column).unwrap());
    (0..rows.len()).map(|at| row(at).collect()).collect()
}
