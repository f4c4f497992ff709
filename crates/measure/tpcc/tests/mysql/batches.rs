//! Tests how many statements are sent for a batch.

use saiga_tpcc::db::Session;
use saiga_tpcc::db::SqlError;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::{Decimal, Value};

use crate::mariadb::{Server, run_sql};
use crate::tables;

/// The settings that operators' guides recommend.
const BOTH: &str = "useServerPrepStmts=true&rewriteBatchedStatements=true";

/// Parameters of `count` lines of order 3.
fn lines(count: i64) -> Vec<Value<'static>> {
    let line = |at| {
        let ints = [1, 1, 3, at, 1, 1, 5].map(Value::Int);
        ints.into_iter()
            .chain([Value::Decimal(Decimal::cents(at)), Value::Text("info")])
    };
    (1..=count).flat_map(line).collect()
}

fn stock() -> Vec<Value<'static>> {
    stock_of(&[1, 2])
}

/// Parameters that update the stock of these items: quantity 91 after an order of five.
fn stock_of(items: &[i64]) -> Vec<Value<'static>> {
    let update = |item: &i64| [91, 5, 0, 1, *item].map(Value::Int);
    items.iter().flat_map(update).collect()
}

/// A status counter of the session.
fn counted(session: &mut dyn Session, name: &str) -> u64 {
    let rows = run_sql(session, &format!("show session status like '{name}'"));
    rows[0][1].parse().expect("a counter")
}

/// Executes a batch. Returns the increase of `counter`, and the number of changed rows.
fn taken(
    session: &mut dyn Session,
    counter: &str,
    statement: Statement,
    params: &[Value<'_>],
) -> (u64, u64) {
    let before = counted(session, counter);
    let changed = session
        .batch(statement, params)
        .expect("the batch succeeds");
    (counted(session, counter) - before, changed)
}

#[test]
fn only_inserts_are_combined_and_only_on_request() {
    let server = Server::shared();
    for (name, params, counter, inserts) in [
        ("fold_a", BOTH, "Com_stmt_execute", 1),
        ("fold_b", "useServerPrepStmts=true", "Com_stmt_execute", 15),
        ("fold_c", "rewriteBatchedStatements=true", "Com_insert", 1),
        ("fold_d", "", "Com_insert", 15),
    ] {
        let mut session = tables::made(server, name, params);
        let folded = taken(&mut *session, counter, Statement::OrderLine, &lines(15));
        assert_eq!(folded, (inserts, 15), "{params}");
        let sum = "select count(*), sum(ol_amount), max(ol_number) from bmsql_order_line where ol_o_id = 3";
        assert_eq!(run_sql(&mut *session, sum), [["15", "1.20", "15"]]);
        let counter = counter.replace("insert", "update");
        let updated = taken(
            &mut *session,
            &counter,
            Statement::OrderStockUpdate,
            &stock(),
        );
        assert_eq!(updated, (2, 2), "{params}");
        let stock = "select sum(s_quantity), sum(s_ytd), sum(s_order_cnt) from bmsql_stock";
        assert_eq!(run_sql(&mut *session, stock), [["182", "10", "2"]]);
    }
}

#[test]
fn a_combined_statement_is_prepared_once_per_number_of_rows() {
    let server = Server::shared();
    let mut session = tables::made(server, "prepared", BOTH);
    let before = counted(&mut *session, "Com_stmt_prepare");
    for count in [5, 15, 5, 15, 1, 1] {
        assert_eq!(
            session.batch(Statement::OrderLine, &lines(count)),
            Ok(count.cast_unsigned())
        );
        session.rollback().unwrap();
    }
    assert_eq!(counted(&mut *session, "Com_stmt_prepare") - before, 3);
}

#[test]
fn a_batch_larger_than_any_of_tpcc_is_sent_completely() {
    let server = Server::shared();
    let mut session = tables::made(server, "large", BOTH);
    assert_eq!(session.batch(Statement::OrderLine, &lines(300)), Ok(300));
    let count = "select count(*) from bmsql_order_line where ol_o_id = 3";
    assert_eq!(run_sql(&mut *session, count), [["300"]]);
    assert_eq!(session.batch(Statement::OrderLine, &[]), Ok(0));
}

#[test]
fn a_wrong_number_of_values_is_not_sent() {
    let server = Server::shared();
    let mut session = tables::made(server, "misfit", "rewriteBatchedStatements=true");
    let error = session
        .batch(Statement::OrderLine, &lines(2)[1..])
        .unwrap_err();
    let SqlError::Unexpected { what } = error else {
        panic!("{error}")
    };
    assert_eq!(what, "17 values for OrderLine, 1 times");
    assert_eq!(session.batch(Statement::OrderLine, &lines(2)), Ok(2));
}

#[test]
fn updates_sent_together_are_counted_together() {
    let server = Server::shared();
    let mut session = tables::made(server, "at_once", BOTH);
    let updates = stock_of(&[1, 2, 1, 7, 2]);
    // Item 7 does not exist.
    let changed = session.batch(Statement::OrderStockUpdate, &updates);
    assert_eq!(changed, Ok(4));
    session.commit().unwrap();
    let stock = "select s_i_id, s_quantity, s_ytd, s_order_cnt from bmsql_stock order by s_i_id";
    let wanted = [["1", "91", "10", "2"], ["2", "91", "10", "2"]];
    assert_eq!(run_sql(&mut *session, stock), wanted);
}

/// An update in the middle fails. The batch returns its error. Answers to the following updates are
/// not mistaken for answers to later statements.
#[test]
fn a_failed_update_in_a_batch_leaves_a_usable_session() {
    let server = Server::shared();
    let mut session = tables::made(server, "amid", BOTH);
    // One text value in a column of numbers. MariaDB's bulk command requires one type per column.
    for others in [Value::Int(5), Value::Text("5")] {
        let mut updates = stock_of(&[1, 2, 1, 2, 1]);
        (updates[10], updates[16]) = (Value::Int(i64::MAX), others);
        let error = session
            .batch(Statement::OrderStockUpdate, &updates)
            .unwrap_err();
        let SqlError::Refused { code, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(code, "1264");
        session.rollback().unwrap();
        let mut rows = Rows::new();
        let place = [Value::Int(1), Value::Int(2)];
        let found = session.execute(Statement::OrderStock, &place, &mut rows);
        assert_eq!((found, rows.int(0, 0)), (Ok(1), Ok(20)));
        updates[10] = Value::Int(91);
        let changed = session.batch(Statement::OrderStockUpdate, &updates);
        assert_eq!(changed, Ok(5));
        session.rollback().unwrap();
    }
}

/// `max_prepared_stmt_count` applies to all sessions of a server together.
#[test]
fn statements_the_server_does_not_prepare_are_sent_as_text() {
    let server = Server::start(&["--max-prepared-stmt-count=2"]);
    let mut session = tables::made(&server, "full", BOTH);
    let mut rows = Rows::new();
    for turn in 1..=2 {
        let place = [Value::Int(1), Value::Int(2)];
        for (statement, params) in [
            (Statement::OrderStock, &place[..]),
            (Statement::OrderItem, &place[1..]),
            (Statement::OrderDistrict, &[Value::Int(1), Value::Int(1)]),
        ] {
            assert_eq!(session.execute(statement, params, &mut rows), Ok(1));
        }
        assert_eq!(rows.int(0, 1), Ok(3), "a number, as text, too");
        let lines = lines(5);
        assert_eq!(session.batch(Statement::OrderLine, &lines), Ok(5));
        assert_eq!(
            session.batch(Statement::OrderStockUpdate, &stock_of(&[1, 2, 1, 2])),
            Ok(4)
        );
        session.rollback().unwrap();
        // Refused statements are not counted.
        assert_eq!(counted(&mut *session, "Com_stmt_prepare"), 2, "turn {turn}");
    }
}
