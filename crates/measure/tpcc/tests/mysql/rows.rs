//! Tests of statements and their answers, with the text and the binary protocol.

use std::collections::HashSet;

use saiga_tpcc::db::Session;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::{Decimal, Value};

use crate::cases::{self, Case};
use crate::mariadb::{Kind, Server, open, run_sql, shown};
use crate::tables;

const PROTOCOLS: [&str; 2] = ["useServerPrepStmts=true", "useServerPrepStmts=false"];

fn cents(units: i64) -> Value<'static> {
    Value::Decimal(Decimal::cents(units))
}

/// Executes a statement that must succeed.
pub(crate) fn execute(
    session: &mut dyn Session,
    statement: Statement,
    params: &[Value<'_>],
) -> (u64, Rows) {
    let mut rows = Rows::new();
    let done = session.execute(statement, params, &mut rows);
    (
        done.unwrap_or_else(|error| panic!("{statement:?}: {error}")),
        rows,
    )
}

#[test]
fn every_statement_has_the_same_answer_by_both_protocols() {
    let server = Server::shared();
    let mut first = tables::made(server, "alike", PROTOCOLS[0]);
    let mut second = open(&server.url("alike", PROTOCOLS[1]), "root", "").unwrap();
    let all: Vec<Case> = cases::reads().into_iter().chain(cases::changes()).collect();
    let tried: HashSet<Statement> = all.iter().map(|case| case.0).collect();
    assert_eq!(tried.len(), Statement::COUNT);
    for (statement, params, count, expected) in all {
        let mut answers = Vec::new();
        for session in [&mut first, &mut second] {
            // In the second execution, the server does not describe the columns again.
            for _ in 0..2 {
                let (found, rows) = execute(&mut **session, statement, &params);
                assert_eq!(found, count, "{statement:?}");
                let lines: Vec<String> = shown(&rows).iter().map(|row| row.join("|")).collect();
                assert_eq!(lines.join("\n"), expected, "{statement:?}");
                answers.push(format!("{rows:?}"));
                session.rollback().unwrap();
            }
        }
        assert!(
            answers.iter().all(|rows| *rows == answers[0]),
            "{statement:?}: {answers:#?}"
        );
    }
}

#[test]
fn texts_times_and_nulls_are_returned_as_sent() {
    let server = Server::shared();
    tables::made(server, "edges", "");
    let customer = [Value::Int(1), Value::Int(1), Value::Int(1)];
    for protocol in PROTOCOLS {
        for mode in ["", "NO_BACKSLASH_ESCAPES"] {
            let mut session = open(&server.url("edges", protocol), "root", "").unwrap();
            run_sql(&mut *session, &format!("set sql_mode = '{mode}'"));
            for text in [
                "",
                "'",
                "\\",
                "\\'",
                "'; drop table x; --",
                "a\0b\n\t\"?",
                "\u{e4}\u{20ac}",
            ] {
                let params = [&[cents(0), cents(0), Value::Text(text)], &customer[..]].concat();
                execute(&mut *session, Statement::PayCustomerUpdateData, &params);
                let (_, rows) = execute(&mut *session, Statement::PayCustomerData, &customer);
                assert_eq!(rows.text(0, 0), Ok(text), "{protocol} {mode}");
            }
            for (seconds, shown) in [
                (0, "1970-01-01 00:00:00"),
                (951_782_400, "2000-02-29 00:00:00"),
                (-1, "1969-12-31 23:59:59"),
                (4_107_542_399, "2100-02-28 23:59:59"),
            ] {
                let params = [
                    Value::Time(seconds),
                    Value::Int(1),
                    Value::Int(1),
                    Value::Int(2),
                ];
                execute(&mut *session, Statement::DeliverLines, &params);
                let (_, rows) = execute(&mut *session, Statement::StatusLines, &params[1..]);
                assert_eq!(rows.text(1, 4), Ok(shown), "{protocol}");
            }
            let nothing = [Value::Null, Value::Int(1), Value::Int(1), Value::Int(2)];
            execute(&mut *session, Statement::DeliverLines, &nothing);
            let (_, rows) = execute(&mut *session, Statement::StatusLines, &nothing[1..]);
            assert_eq!(rows.is_null(0, 4), Ok(true), "{protocol}");
            session.rollback().unwrap();
        }
    }
}

/// Amounts are never rounded, not even in sums or near the largest value of a column.
#[test]
fn decimals_are_exact() {
    let server = Server::shared();
    let balance = [Value::Int(1), Value::Int(1), Value::Int(1)];
    tables::made(server, "decimals", "");
    for protocol in PROTOCOLS {
        let mut session = open(&server.url("decimals", protocol), "root", "").unwrap();
        let mut expected = -1000;
        for units in [
            10,
            20,
            70,
            -1,
            999_999_997_990,
            -999_999_998_089,
            0,
            -999_999_998_999,
            1,
        ] {
            let params = [&[cents(units)], &balance[..]].concat();
            execute(&mut *session, Statement::DeliverBalance, &params);
            expected += units;
            let (_, rows) = execute(&mut *session, Statement::StatusCustomer, &balance);
            assert_eq!(rows.decimal(0, 3, 2), Ok(expected), "{protocol}");
        }
        session.rollback().unwrap();
    }
}

#[test]
fn a_transaction_starts_implicitly_and_ends_explicitly() {
    let server = Server::shared();
    for (protocol, name) in PROTOCOLS.into_iter().zip(["ends_a", "ends_b"]) {
        let mut session = tables::made(server, name, protocol);
        let mut other = open(&server.url(name, protocol), "root", "").unwrap();
        let place = [Value::Int(1), Value::Int(1)];
        let next_in = |session: &mut dyn Session| {
            let (_, rows) = execute(session, Statement::OrderDistrict, &place);
            session.commit().unwrap();
            rows.int(0, 1).unwrap()
        };
        execute(&mut *session, Statement::OrderNextId, &place);
        session.rollback().unwrap();
        assert_eq!(next_in(&mut *other), 3);
        execute(&mut *session, Statement::OrderNextId, &place);
        session.commit().unwrap();
        assert_eq!(next_in(&mut *other), 4);
        run_sql(&mut *session, "update bmsql_district set d_next_o_id = 9");
        assert_eq!(next_in(&mut *other), 9);
    }
}

#[test]
fn any_sql_can_be_run_and_returns_text() {
    let server = Server::shared();
    let mut session = server.admin();
    let rows = run_sql(
        &mut *session,
        "select 1, -1.50, null, 'x', 1e10, date '2026-01-02', time '-25:00:01', \
         timestamp '2026-01-02 03:04:05.678', 18446744073709551615, repeat('y', 100000)",
    );
    let mut expected: Vec<String> = [
        "1",
        "-1.50",
        "",
        "x",
        "10000000000",
        "2026-01-02",
        "-25:00:01",
        "2026-01-02 03:04:05.678",
    ]
    .map(str::to_owned)
    .to_vec();
    expected.extend(["18446744073709551615".to_owned(), "y".repeat(100_000)]);
    assert_eq!(rows, [expected]);
    let error = session
        .run("select * from\n  mysql.nothing", &mut Rows::new())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "ERROR 1146 (42S02): Table 'mysql.nothing' doesn't exist (in: select * from mysql.nothing)"
    );
    let server = session.server();
    let version = match crate::KIND {
        Kind::MariaDb => "MariaDB 1",
        Kind::MySql => "MySQL 9",
    };
    assert!(server.version.starts_with(version), "{}", server.version);
    assert_eq!(server.isolation, "REPEATABLE-READ");
}

#[test]
fn a_missing_privilege_is_named() {
    let server = Server::shared();
    let mut owner = tables::made(server, "rights", "");
    run_sql(&mut *owner, "create user reader@'%' identified by 'r'");
    run_sql(&mut *owner, "grant select on rights.* to reader@'%'");
    for protocol in PROTOCOLS {
        let mut session = open(&server.url("rights", protocol), "reader", "r").unwrap();
        let mut rows = Rows::new();
        let place = [Value::Int(1), Value::Int(1)];
        let error = session
            .execute(Statement::OrderNextId, &place, &mut rows)
            .unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("UPDATE command denied to user 'reader'"),
            "{said}"
        );
        assert!(said.contains("GRANT it to the user of user="), "{said}");
        assert!(said.contains("(in: update bmsql_district"), "{said}");
    }
}

#[test]
fn status_counters_are_numbers() {
    let server = Server::shared();
    let mut session = server.admin();
    let before = crate::mariadb::counters(&mut *session);
    session.commit().unwrap();
    let after = crate::mariadb::counters(&mut *session);
    assert!(after["Com_commit"] > before["Com_commit"]);
    for name in [
        "Questions",
        "Innodb_row_lock_waits",
        "Innodb_data_written",
        "Threads_running",
    ] {
        assert!(after.contains_key(name), "{name}: {after:?}");
    }
}
