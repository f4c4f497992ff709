//! Tests of loads with LOAD DATA and with INSERT.

use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::{Session, SqlError};
use saiga_tpcc::population::Population;
use saiga_tpcc::table::Table;

use crate::mariadb::{Server, open, run_sql};
use crate::tables;

/// A server that allows `LOAD DATA LOCAL`, and one that does not and accepts only small packets.
fn servers() -> [Server; 2] {
    [
        Server::start(&[]),
        Server::start(&["--local-infile=0", "--max-allowed-packet=16K"]),
    ]
}

fn checksums(session: &mut dyn Session) -> Vec<Vec<String>> {
    let names = Table::ALL.map(Table::name).join(", ");
    let rows = run_sql(session, &format!("checksum table {names}"));
    rows.into_iter().map(|row| row[1..].to_vec()).collect()
}

#[test]
fn both_methods_load_the_same_rows() {
    let population = Population::new(7, 1, tables::NOW);
    let (mut sums, mut slow) = (Vec::new(), Vec::new());
    let servers = servers();
    for server in &servers {
        let mut session = tables::made(server, "same", "");
        let text = "select c_data from bmsql_customer where c_id = 1";
        assert_eq!(
            run_sql(&mut *session, text),
            [["it's a \\ tab\tand a line\n."]]
        );
        run_sql(&mut *session, "delete from bmsql_district");
        run_sql(&mut *session, "delete from bmsql_item");
        session
            .load(Table::Item, &mut |sink| {
                population.write_common(Table::Item, sink)
            })
            .unwrap();
        for table in [Table::District, Table::Order, Table::NewOrder] {
            session
                .load(table, &mut |sink| population.write(table, 7, sink))
                .unwrap();
        }
        let counts =
            "select (select count(*) from bmsql_item), (select count(*) from bmsql_oorder)";
        assert_eq!(run_sql(&mut *session, counts), [["100000", "30002"]]);
        sums.push(checksums(&mut *session));
        slow.push(session.slow_load().is_some());
    }
    assert_eq!(slow, [false, true]);
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn a_failed_load_leaves_no_rows_and_a_usable_session() {
    for server in &servers() {
        let mut session = tables::made(server, "fails", "");
        let mut other = open(&server.url("fails", ""), "root", "").unwrap();
        let before = checksums(&mut *other);
        let own = SqlError::Unexpected {
            what: "the filler's own".to_owned(),
        };
        let population = Population::new(7, 1, tables::NOW);
        let failed = session.load(Table::Order, &mut |sink| {
            population.write(Table::Order, 7, sink)?;
            Err(own.clone())
        });
        assert_eq!(failed, Err(own));
        assert_eq!(checksums(&mut *other), before);
        for (what, code, fill) in [
            ("a duplicate key", "1062", config as fn(&str) -> [String; 2]),
            ("a text that is too long", "1406", long),
        ] {
            let failed = session.load(Table::Config, &mut |sink| {
                for name in ["first", "warehouses", "last"] {
                    for text in fill(name) {
                        sink.text(&text);
                    }
                    sink.end_row()?;
                }
                Ok(())
            });
            let Err(SqlError::Refused {
                code: found,
                said,
                sql,
            }) = failed
            else {
                panic!("{what}: {failed:?}")
            };
            // LOAD DATA truncates the text with warning 1265.
            assert!(found == code || found == "1265", "{what}: {said}");
            assert!(said.contains(&format!("ERROR {found}")), "{said}");
            assert!(
                sql.contains("into") && sql.contains("bmsql_config"),
                "{sql}"
            );
            assert_eq!(checksums(&mut *other), before, "{what}");
        }
        let settings = "select @@foreign_key_checks, @@unique_checks, @@autocommit";
        assert_eq!(run_sql(&mut *session, settings), [["1", "1", "0"]]);
        session
            .load(Table::Config, &mut |sink| {
                sink.text("new");
                sink.null();
                sink.end_row()
            })
            .unwrap();
        let value = "select cfg_value is null from bmsql_config where cfg_name = 'new'";
        assert_eq!(run_sql(&mut *other, value), [["1"]]);
    }
}

fn config(name: &str) -> [String; 2] {
    [name.to_owned(), "1".to_owned()]
}

fn long(name: &str) -> [String; 2] {
    [format!("{name}2"), "x".repeat(51)]
}

#[test]
fn a_missing_table_is_named() {
    for server in &servers() {
        server.database("missing");
        let mut session = open(&server.url("missing", ""), "root", "").unwrap();
        for table in [Table::Config, Table::Item] {
            let failed = session.load(table, &mut |sink| tables::write(table, sink));
            let said = failed.unwrap_err().to_string();
            let expected = format!("ERROR 1146 (42S02): Table 'missing.{}'", table.name());
            assert!(said.starts_with(&expected), "{said}");
        }
        assert_eq!(session.run("select 1", &mut Rows::new()), Ok(1));
    }
}

/// Several sessions load warehouses at the same time, starting with empty tables.
#[test]
fn loads_into_one_empty_table_do_not_wait_for_each_other() {
    for server in &servers() {
        server.database("parallel");
        let mut first = open(&server.url("parallel", ""), "root", "").unwrap();
        let mut second = open(&server.url("parallel", ""), "root", "").unwrap();
        tables::create(&mut *first);
        run_sql(&mut *second, "set innodb_lock_wait_timeout = 1");
        let population = Population::new(7, 2, tables::NOW);
        first
            .load(Table::Order, &mut |sink| {
                population.write(Table::Order, 1, sink)?;
                second.load(Table::Order, &mut |sink| {
                    population.write(Table::Order, 2, sink)
                })
            })
            .unwrap();
        let counts = "select o_w_id, count(*) from bmsql_oorder group by o_w_id";
        assert_eq!(
            run_sql(&mut *first, counts),
            [["1", "30000"], ["2", "30000"]]
        );
    }
}
