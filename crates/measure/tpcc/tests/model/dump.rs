//! The rows of the model: loaded into a database, and compared with the rows that it returns.

use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::value::{Decimal, Stamp};
use saiga_tpcc::db::{Session, SqlError};
use saiga_tpcc::population::Sink;
use saiga_tpcc::props::Engine;
use saiga_tpcc::spec::inputs::DistrictKey;
use saiga_tpcc::table::Table;

use super::{Model, dist_info, district_name, warehouse_name};

#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Int(i64),
    Decimal(i64, u32),
    Text(String),
    Time(i64),
    Null,
}

use Cell::{Decimal as Dec, Int, Null, Text, Time};

fn int(value: u32) -> Cell {
    Int(i64::from(value))
}

fn text(value: &str) -> Cell {
    Text(value.to_owned())
}

impl Model {
    /// Loads the model into a database.
    pub(crate) fn load(&self, session: &mut dyn Session) {
        for table in Table::ALL {
            let rows = self.rows(table);
            let mut fill = |sink: &mut dyn Sink<Error = SqlError>| {
                rows.iter().try_for_each(|row| put(row, sink))
            };
            session.load(table, &mut fill).expect("the load succeeds");
        }
    }

    /// The rows in which the database differs from the model.
    pub(crate) fn differences(&self, session: &mut dyn Session) -> Vec<String> {
        let mut all = Vec::new();
        for table in Table::ALL {
            let mut wanted: Vec<String> = self.rows(table).iter().map(|row| shown(row)).collect();
            let mut found = self.found(session, table);
            // The database assigns HIST_ID, so that column is not compared.
            let numbered = |line: &String| line.split_once('|').map(|(_, rest)| rest.to_owned());
            if table == Table::History {
                wanted = wanted.iter().filter_map(numbered).collect();
                found = found.iter().filter_map(numbered).collect();
            }
            wanted.sort();
            found.sort();
            let missing = wanted.iter().filter(|line| !found.contains(line));
            all.extend(missing.map(|line| format!("{}: missing {line}", table.name())));
            let surplus = found.iter().filter(|line| !wanted.contains(line));
            all.extend(surplus.map(|line| format!("{}: surplus {line}", table.name())));
            if wanted.len() != found.len() {
                all.push(format!(
                    "{}: {} rows, not {}",
                    table.name(),
                    found.len(),
                    wanted.len()
                ));
            }
        }
        all
    }

    fn found(&self, session: &mut dyn Session, table: Table) -> Vec<String> {
        let sql = format!(
            "select {} from {}",
            table.columns().join(", "),
            table.name()
        );
        let mut rows = Rows::new();
        session.run(&sql, &mut rows).expect("the table can be read");
        let kinds = kinds(&self.rows(table));
        let engine = session.server().engine;
        (0..rows.len())
            .map(|row| {
                let cells = kinds.iter().enumerate();
                shown(
                    &cells
                        .map(|(at, kind)| cell(&rows, row, at, kind, engine))
                        .collect::<Vec<_>>(),
                )
            })
            .collect()
    }

    fn rows(&self, table: Table) -> Vec<Vec<Cell>> {
        match table {
            Table::Config => vec![vec![text("warehouses"), text("2")]],
            Table::Item => self.item_rows(),
            Table::Warehouse => self.warehouse_rows(),
            Table::District => self.district_rows(),
            Table::Stock => self.stock_rows(),
            Table::Customer => self.customer_rows(),
            Table::History => self.history_rows(),
            Table::Order => self.order_rows(),
            Table::OrderLine => self.line_rows(),
            Table::NewOrder => {
                let row = |(district, o_id): &(DistrictKey, u32)| {
                    vec![int(district.w_id), int(district.d_id), int(*o_id)]
                };
                self.new_orders.iter().map(row).collect()
            }
        }
    }

    fn item_rows(&self) -> Vec<Vec<Cell>> {
        let row = |(i_id, price): (&u32, &i64)| {
            vec![
                int(*i_id),
                text("name"),
                Dec(*price, 2),
                text("ORIGINAL"),
                int(7),
            ]
        };
        self.items.iter().map(row).collect()
    }

    fn warehouse_rows(&self) -> Vec<Vec<Cell>> {
        let row = |(w_id, ytd): (&u32, &i64)| {
            let mut row = vec![int(*w_id), Dec(*ytd, 2), Dec(1234, 4)];
            row.extend(address(&warehouse_name(*w_id)));
            row
        };
        self.warehouses.iter().map(row).collect()
    }

    fn district_rows(&self) -> Vec<Vec<Cell>> {
        let mut all = Vec::new();
        for (key, district) in &self.districts {
            let mut row = vec![int(key.w_id), int(key.d_id)];
            row.extend([Dec(district.ytd, 2), Dec(7, 4), int(district.next_o_id)]);
            row.extend(address(&district_name(*key)));
            all.push(row);
        }
        all
    }

    fn stock_rows(&self) -> Vec<Vec<Cell>> {
        let mut all = Vec::new();
        for ((w_id, i_id), stock) in &self.stocks {
            let mut row = vec![int(*w_id), int(*i_id), Int(stock.quantity), Int(stock.ytd)];
            row.extend([int(stock.orders), int(stock.remote), text("data")]);
            row.extend((1..=10).map(|d_id| Text(dist_info(*w_id, *i_id, d_id))));
            all.push(row);
        }
        all
    }

    fn customer_rows(&self) -> Vec<Vec<Cell>> {
        let mut all = Vec::new();
        for ((district, c_id), customer) in &self.customers {
            let credit = if customer.has_bad_credit { "BC" } else { "GC" };
            let mut row = vec![
                int(district.w_id),
                int(district.d_id),
                int(*c_id),
                Dec(500, 4),
            ];
            row.extend([text(credit), text(&customer.last), text(&customer.first)]);
            row.extend([
                Dec(5_000_000, 2),
                Dec(customer.balance, 2),
                Dec(customer.ytd_payment, 2),
            ]);
            row.extend([int(customer.payments), int(customer.deliveries)]);
            row.extend(address("").into_iter().skip(1));
            row.extend([text("0123456789012345"), Time(1_790_000_000), text("OE")]);
            row.push(text(&customer.data));
            all.push(row);
        }
        all
    }

    fn history_rows(&self) -> Vec<Vec<Cell>> {
        let mut all = Vec::new();
        for (hist_id, one) in (1..).zip(&self.history) {
            let (home, district) = (one.home, one.district);
            let mut row = vec![Int(hist_id), int(one.c_id), int(home.d_id), int(home.w_id)];
            row.extend([
                int(district.d_id),
                int(district.w_id),
                Time(one.date),
                Dec(one.amount, 2),
            ]);
            row.push(text(&one.data));
            all.push(row);
        }
        all
    }

    fn order_rows(&self) -> Vec<Vec<Cell>> {
        let mut all = Vec::new();
        for ((district, o_id), order) in &self.orders {
            let mut row = vec![
                int(district.w_id),
                int(district.d_id),
                int(*o_id),
                int(order.c_id),
            ];
            row.push(order.carrier.map_or(Null, int));
            row.push(int(
                u32::try_from(order.lines.len()).expect("the number is small")
            ));
            row.extend([int(u32::from(order.is_all_local)), Time(order.entered)]);
            all.push(row);
        }
        all
    }

    fn line_rows(&self) -> Vec<Vec<Cell>> {
        let mut all = Vec::new();
        for ((district, o_id), order) in &self.orders {
            for (number, line) in (1..).zip(&order.lines) {
                let dist_info = dist_info(line.supply_w_id, line.i_id, district.d_id);
                let mut row = vec![
                    int(district.w_id),
                    int(district.d_id),
                    int(*o_id),
                    int(number),
                ];
                row.extend([int(line.i_id), line.delivered.map_or(Null, Time)]);
                row.extend([
                    Dec(line.amount, 2),
                    int(line.supply_w_id),
                    int(line.quantity),
                ]);
                row.push(Text(dist_info));
                all.push(row);
            }
        }
        all
    }
}

fn address(name: &str) -> Vec<Cell> {
    let city = ["street 1", "street 2", "city", "CA", "123456789"].map(text);
    std::iter::once(text(name)).chain(city).collect()
}

fn put(row: &[Cell], sink: &mut dyn Sink<Error = SqlError>) -> Result<(), SqlError> {
    for cell in row {
        match cell {
            Int(value) => sink.int(*value),
            Dec(units, scale) => sink.decimal(*units, *scale),
            Text(value) => sink.text(value),
            Time(seconds) => sink.time(*seconds),
            Null => sink.null(),
        }
    }
    sink.end_row()
}

/// One value of each column, which shows the column's type; `Null` if the column has no value.
fn kinds(rows: &[Vec<Cell>]) -> Vec<Cell> {
    let columns = rows.first().map_or(0, Vec::len);
    let kind = |at: usize| rows.iter().map(|row| &row[at]).find(|cell| **cell != Null);
    (0..columns)
        .map(|at| kind(at).cloned().unwrap_or(Null))
        .collect()
}

fn cell(rows: &Rows, row: usize, at: usize, kind: &Cell, engine: Engine) -> Cell {
    if rows.is_null(row, at).expect("the column is there") {
        return Null;
    }
    match kind {
        Int(_) | Null => Int(rows.int(row, at).expect("a number")),
        Dec(_, scale) => Dec(rows.decimal(row, at, *scale).expect("a decimal"), *scale),
        Time(_) if engine == Engine::Sqlite => Time(rows.int(row, at).expect("seconds")),
        Time(_) => {
            let shown = rows.shown(row, at).expect("the column is there");
            Text(shown.chars().take(19).collect())
        }
        Text(_) => text(rows.text(row, at).expect("a text")),
    }
}

fn shown(row: &[Cell]) -> String {
    let one = |cell: &Cell| match cell {
        Int(value) => value.to_string(),
        Dec(units, scale) => Decimal {
            units: *units,
            scale: *scale,
        }
        .to_string(),
        Text(value) => value.clone(),
        Time(seconds) => Stamp::of(*seconds).to_string(),
        Null => "-".to_owned(),
    };
    row.iter().map(one).collect::<Vec<_>>().join("|")
}
