//! A database with one warehouse, one district, two customers and two orders.

use saiga_tpcc::db::Session;
use saiga_tpcc::db::SqlError;
use saiga_tpcc::population::Sink;
use saiga_tpcc::script::{self, Step};
use saiga_tpcc::table::Table;

use crate::mariadb::{Server, open, run_sql};

/// The date of the load, 2026-11-20 17:00:59.
pub(crate) const NOW: i64 = 1_795_194_059;

/// A field of a row.
enum Field {
    Int(i64),
    Cents(i64),
    Parts(i64),
    Text(&'static str),
    Now,
    Null,
}
use Field::{Cents, Int, Now, Null, Parts, Text};

/// Creates and loads a database. Returns a session with it.
pub(crate) fn made(server: &Server, name: &str, params: &str) -> Box<dyn Session> {
    server.database(name);
    let mut session = open(&server.url(name, params), "root", "").expect("root may log in");
    create(&mut *session);
    for table in Table::ALL {
        let loaded = session.load(table, &mut |sink| write(table, sink));
        loaded.unwrap_or_else(|error| panic!("{table:?}: {error}"));
    }
    session
}

pub(crate) fn create(session: &mut dyn Session) {
    for step in [Step::TableCreates, Step::IndexCreates] {
        let script = script::find(None, "mysql", step).expect("the script is built in");
        for statement in &script.statements {
            run_sql(session, statement);
        }
    }
}

/// Writes the rows of a table to a sink.
pub(crate) fn write(table: Table, sink: &mut dyn Sink<Error = SqlError>) -> Result<(), SqlError> {
    for row in rows(table) {
        assert_eq!(row.len(), table.columns().len(), "{table:?}");
        for field in row {
            match field {
                Int(int) => sink.int(int),
                Cents(units) => sink.decimal(units, 2),
                Parts(units) => sink.decimal(units, 4),
                Text(text) => sink.text(text),
                Now => sink.time(NOW),
                Null => sink.null(),
            }
        }
        sink.end_row()?;
    }
    Ok(())
}

fn rows(table: Table) -> Vec<Vec<Field>> {
    match table {
        Table::Config => vec![vec![Text("warehouses"), Text("1")]],
        Table::Item => (1..=2)
            .map(|id| {
                vec![
                    Int(id),
                    Text("item"),
                    Cents(id * 101),
                    Text("ORIGINAL"),
                    Int(7),
                ]
            })
            .collect(),
        Table::Warehouse => vec![
            [Int(1), Cents(30_000_000), Parts(765)]
                .into_iter()
                .chain(place())
                .collect(),
        ],
        Table::District => vec![
            [Int(1), Int(1), Cents(3_000_000), Parts(1234), Int(3)]
                .into_iter()
                .chain(place())
                .collect(),
        ],
        Table::Stock => (1..=2).map(stock).collect(),
        Table::Customer => (1..=2).map(customer).collect(),
        Table::History => (1..=2)
            .map(|id| {
                let ids = [Int(id), Int(id), Int(1), Int(1), Int(1), Int(1)];
                ids.into_iter()
                    .chain([Now, Cents(1000), Text("history")])
                    .collect()
            })
            .collect(),
        Table::Order => (1..=2)
            .map(|id| {
                let carrier = if id == 1 { Int(7) } else { Null };
                vec![
                    Int(1),
                    Int(1),
                    Int(id),
                    Int(id),
                    carrier,
                    Int(2),
                    Int(1),
                    Now,
                ]
            })
            .collect(),
        Table::OrderLine => (1..=2)
            .flat_map(|order| (1..=2).map(move |at| line(order, at)))
            .collect(),
        Table::NewOrder => vec![vec![Int(1), Int(1), Int(2)]],
    }
}

fn place() -> [Field; 6] {
    [
        Text("name"),
        Text("street"),
        Text("other"),
        Text("city"),
        Text("ST"),
        Text("123411111"),
    ]
}

fn stock(id: i64) -> Vec<Field> {
    let head = [
        Int(1),
        Int(id),
        Int(10 * id),
        Int(0),
        Int(0),
        Int(0),
        Text("data"),
    ];
    let of_districts = (0..10).map(|_| Text("twenty-four characters!!"));
    head.into_iter().chain(of_districts).collect()
}

fn customer(id: i64) -> Vec<Field> {
    let first = if id == 1 { "zoe" } else { "adam" };
    let credit = if id == 1 { "GC" } else { "BC" };
    vec![
        Int(1),
        Int(1),
        Int(id),
        Parts(500),
        Text(credit),
        Text("BARBARBAR"),
        Text(first),
        Cents(5_000_000),
        Cents(-1000),
        Cents(1000),
        Int(1),
        Int(0),
        Text("street"),
        Text("other"),
        Text("city"),
        Text("ST"),
        Text("123411111"),
        Text("0123456789012345"),
        Now,
        Text("OE"),
        Text(
            r"it's a \ tab	and a line
.",
        ),
    ]
}

fn line(order: i64, at: i64) -> Vec<Field> {
    let (delivered, amount) = if order == 1 {
        (Now, Cents(0))
    } else {
        (Null, Cents(999_900 + at))
    };
    vec![
        Int(1),
        Int(1),
        Int(order),
        Int(at),
        Int(at),
        delivered,
        amount,
        Int(1),
        Int(5),
        Text("twenty-four characters!!"),
    ]
}
