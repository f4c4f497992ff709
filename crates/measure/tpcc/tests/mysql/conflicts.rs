//! Tests of transactions that conflict with each other.

use std::thread;

use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::{Decimal, Value};
use saiga_tpcc::db::{Session, SqlError};

use crate::mariadb::{Server, open, run_sql};
use crate::tables;

fn update(session: &mut dyn Session, item: i64) -> Result<u64, SqlError> {
    let params = [50, 1, 0, 1, item].map(Value::Int);
    session.execute(Statement::OrderStockUpdate, &params, &mut Rows::new())
}

/// Each session holds one row and waits for the other's: the server aborts one of them.
#[test]
fn a_deadlock_is_a_conflict_and_the_transaction_can_be_retried() {
    let server = Server::shared();
    for (name, params) in [
        ("deadlock_a", "useServerPrepStmts=true"),
        ("deadlock_b", ""),
    ] {
        let mut first = tables::made(server, name, params);
        let mut second = open(&server.url(name, params), "root", "").unwrap();
        assert_eq!(update(&mut *first, 1), Ok(1));
        assert_eq!(update(&mut *second, 2), Ok(1));
        let other = thread::spawn(move || {
            let outcome = update(&mut *second, 1);
            // Releases the locks if this session was not aborted. The other session may wait for
            // them.
            second.rollback().unwrap();
            outcome
        });
        let here = update(&mut *first, 2);
        first.rollback().unwrap();
        let outcomes = [here, other.join().unwrap()];
        let conflicts: Vec<&SqlError> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
        let [SqlError::Conflict { said }] = conflicts[..] else {
            panic!("{outcomes:?}")
        };
        assert!(said.starts_with("ERROR 1213 (40001): Deadlock"), "{said}");
        assert_eq!(
            (update(&mut *first, 2), update(&mut *first, 1)),
            (Ok(1), Ok(1))
        );
        first.commit().unwrap();
    }
}

#[test]
fn a_lock_wait_timeout_is_a_conflict() {
    let server = Server::shared();
    for (name, params) in [("wait_a", "useServerPrepStmts=true"), ("wait_b", "")] {
        let mut holder = tables::made(server, name, params);
        let mut waiter = open(&server.url(name, params), "root", "").unwrap();
        run_sql(&mut *waiter, "set innodb_lock_wait_timeout = 1");
        assert_eq!(update(&mut *holder, 1), Ok(1));
        let queue = [1, 1, 9].map(Value::Int);
        let queued = waiter.execute(Statement::OrderQueue, &queue, &mut Rows::new());
        assert_eq!(queued, Ok(1));
        let error = update(&mut *waiter, 1).unwrap_err();
        let SqlError::Conflict { said } = &error else {
            panic!("{error:?}")
        };
        assert!(
            said.starts_with("ERROR 1205 (HY000): Lock wait timeout"),
            "{said}"
        );
        // The server has undone only the statement. The caller must roll back the transaction.
        waiter.rollback().unwrap();
        holder.commit().unwrap();
        let left = "select count(*) from bmsql_new_order where no_o_id = 9";
        assert_eq!(run_sql(&mut *waiter, left), [["0"]]);
        // `run` rolls back the transaction itself.
        assert_eq!(update(&mut *holder, 1), Ok(1));
        let both =
            "update bmsql_new_order, bmsql_stock set no_o_id = 9, s_ytd = 1 where s_i_id = 1";
        let error = waiter.run(both, &mut Rows::new()).unwrap_err();
        assert!(matches!(error, SqlError::Conflict { .. }), "{error:?}");
        holder.rollback().unwrap();
        waiter.commit().unwrap();
        assert_eq!(run_sql(&mut *waiter, left), [["0"]]);
    }
}

/// An error that would recur in a retry is not a conflict.
#[test]
fn a_duplicate_row_is_refused() {
    let server = Server::shared();
    let mut session = tables::made(server, "twice", "useServerPrepStmts=true");
    let queue = [1, 1, 2].map(Value::Int);
    let error = session
        .execute(Statement::OrderQueue, &queue, &mut Rows::new())
        .unwrap_err();
    let SqlError::Refused { code, sql, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(code, "1062");
    assert!(sql.starts_with("insert into bmsql_new_order"), "{sql}");
    let amount = Value::Decimal(Decimal::cents(99_999_999));
    let params = [3, 1, 1, 1, 1, 1].map(Value::Int);
    let history = [&params[1..], &[Value::Time(0), amount, Value::Text("")]].concat();
    let error = session
        .execute(Statement::PayHistory, &history, &mut Rows::new())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("Out of range value for column 'h_amount'"),
        "{error}"
    );
}

/// The session gets the customer's row only after another payment was committed. It must keep the
/// record of that payment. At REPEATABLE READ, plain SELECT statements read the snapshot of the
/// transaction's first SELECT. (MariaDB 11.8 would refuse the transaction because of
/// `innodb_snapshot_isolation`.)
#[test]
fn a_payment_is_recorded_in_front_of_the_one_before_it() {
    let server = Server::start(&["--loose-innodb-snapshot-isolation=OFF"]);
    for (name, params) in [("noted_a", "useServerPrepStmts=true"), ("noted_b", "")] {
        let mut late = tables::made(&server, name, params);
        let mut early = open(&server.url(name, params), "root", "").unwrap();
        for session in [&mut late, &mut early] {
            run_sql(
                &mut **session,
                "set session transaction isolation level repeatable read",
            );
        }
        let mut rows = Rows::new();
        let warehouse = [Value::Int(1)];
        let read = late.execute(Statement::PayWarehouseRead, &warehouse, &mut rows);
        assert_eq!(read, Ok(1));
        let customer = [1, 1, 2].map(Value::Int);
        let cents = Value::Decimal(Decimal::cents(5));
        let noted = [&[cents, cents, Value::Text("early")], &customer[..]].concat();
        let done = early.execute(Statement::PayCustomerUpdateData, &noted, &mut rows);
        assert_eq!(done, Ok(1));
        early.commit().unwrap();
        for statement in [Statement::PayCustomer, Statement::PayCustomerData] {
            assert_eq!(late.execute(statement, &customer, &mut rows), Ok(1));
        }
        assert_eq!(rows.text(0, 0), Ok("early"), "{name}");
        late.rollback().unwrap();
    }
}
