//! Tests of statements and their answers, with every method of sending statements.

use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::{Decimal, Value};
use saiga_tpcc::db::{Session, SqlError};
use saiga_tpcc::props::Engine;
use saiga_tpcc::table::Table;

use crate::server::{Server, TRUST};
use crate::tables::{ODD, make, number, params, run, shown};

/// URL parameters for the different methods of sending.
const WAYS: [&str; 4] = [
    "",
    "?prepareThreshold=0",
    "?defaultRowFetchSize=2&reWriteBatchedInserts=true",
    "?prepareThreshold=0&fetchsize=1&reWriteBatchedInserts=true",
];

type Answer = (Statement, u64, Vec<Vec<String>>);

/// Executes all statements in one transaction and rolls it back.
fn answers(session: &mut dyn Session) -> Vec<Answer> {
    let mut rows = Rows::new();
    let mut of = |statement: Statement| {
        let count = session.execute(statement, &params(statement), &mut rows);
        let count = count.unwrap_or_else(|error| panic!("{statement:?}: {error}"));
        (statement, count, shown(&rows))
    };
    let all = Statement::all().map(&mut of).collect();
    session.rollback().unwrap();
    all
}

#[test]
fn every_statement_has_the_same_answer_by_every_method() {
    let server = Server::start(TRUST, &[]);
    make(server.session("").as_mut());
    let known = answers(server.session(WAYS[0]).as_mut());
    for way in WAYS {
        let mut session = server.session(way);
        for _turn in ["parsed", "known to the server"] {
            assert_eq!(answers(session.as_mut()), known, "{way}");
        }
    }
    let of = |wanted| known.iter().find(|(one, ..)| *one == wanted).unwrap();
    let words = |wanted| of(wanted).2.concat();
    let counts: Vec<u64> = known.iter().map(|(_, count, _)| *count).collect();
    assert!(counts.iter().all(|count| *count >= 1), "{known:?}");
    assert_eq!(
        of(Statement::CustomersNamed).2,
        [["5"], ["4"], ["3"], ["2"], ["1"]]
    );
    assert_eq!(
        words(Statement::OrderCustomer),
        ["0.0000", "BARBARBAR", "GC", "0.0000"]
    );
    assert_eq!(words(Statement::OrderItem), ["-30.15", "text", ODD[3]]);
    assert_eq!(words(Statement::OrderStock)[..2], ["50", ODD[4]]);
    assert_eq!(words(Statement::PayCustomerData), [ODD[0]]);
    // The order that OrderInsert inserted is undelivered.
    assert_eq!(
        words(Statement::StatusOrder),
        ["4", "2026-09-21 14:13:20", ""]
    );
    assert_eq!(of(Statement::StatusLines).1, 3);
    assert_eq!(words(Statement::DeliverSum), ["-213.90"]);
    assert_eq!(of(Statement::DeliverLines).1, 3);
    assert_eq!(words(Statement::LowStock), ["2"]);
}

#[test]
fn values_are_stored_as_sent() {
    let server = Server::start(TRUST, &[]);
    let mut admin = server.session("");
    make(admin.as_mut());
    let mut rows = Rows::new();
    for (turn, way) in WAYS.into_iter().enumerate() {
        let mut session = server.session(way);
        for (at, odd) in ODD.into_iter().enumerate() {
            let id = i64::try_from(100 + 10 * turn + at).unwrap();
            let mut history = [id, 1, 1, 1, 1].map(Value::Int).to_vec();
            let amount = Value::Decimal(Decimal::cents(-7 * id));
            history[0] = Value::Int(1);
            history.extend([Value::Time(-1), amount, Value::Text(odd)]);
            assert_eq!(
                session.execute(Statement::PayHistory, &history, &mut rows),
                Ok(1)
            );
            session.commit().unwrap();
            let found = run(
                admin.as_mut(),
                "select h_data, h_amount, h_date from bmsql_history order by hist_id desc limit 1",
            );
            assert_eq!(found.text(0, 0), Ok(odd));
            assert_eq!(found.decimal(0, 1, 2), Ok(-7 * id));
            assert_eq!(found.text(0, 2), Ok("1969-12-31 23:59:59"));
        }
    }
    // These rows were loaded by COPY.
    let found = run(
        admin.as_mut(),
        "select c_data, c_since from bmsql_customer order by c_id",
    );
    let texts: Vec<String> = (0..5).map(|row| found.shown(row, 0).unwrap()).collect();
    assert_eq!(texts, ODD);
    assert_eq!(found.text(0, 1), Ok("2026-09-21 14:13:20"));
    let nulls = "select count(*) from bmsql_oorder where o_carrier_id is null";
    assert_eq!(number(admin.as_mut(), nulls), 1);
}

/// Parameters of `count` order lines.
fn lines(count: i64) -> Vec<Value<'static>> {
    let line = |number: i64| {
        let mut all = [1, 1, 3, 100 + number, 1, 1, 5].map(Value::Int).to_vec();
        all.extend([Value::Decimal(Decimal::cents(-number)), Value::Text(ODD[2])]);
        all
    };
    (0..count).flat_map(line).collect()
}

#[test]
fn a_batch_has_the_effect_of_its_statements() {
    let server = Server::start(TRUST, &[]);
    make(server.session("").as_mut());
    let count = "select count(*) from bmsql_order_line where ol_number >= 100";
    for way in WAYS {
        let mut session = server.session(way);
        for size in [0, 1, 10, 15, 255, 256, 257, 1300] {
            assert_eq!(
                session.batch(Statement::OrderLine, &lines(size)),
                Ok(size.unsigned_abs()),
                "{way}"
            );
            session.commit().unwrap();
            assert_eq!(number(session.as_mut(), count), size, "{way}");
            run(
                session.as_mut(),
                "delete from bmsql_order_line where ol_number >= 100",
            );
        }
        let update = |quantity, item| [quantity, 1, 0, 1, item].map(Value::Int);
        let both = [update(91, 1), update(92, 5), update(93, 777)].concat();
        assert_eq!(session.batch(Statement::OrderStockUpdate, &both), Ok(2));
        session.commit().unwrap();
        let stock = "select sum(s_quantity) from bmsql_stock where s_i_id in (1, 5)";
        assert_eq!(number(session.as_mut(), stock), 183);
        // A duplicate row undoes the whole batch.
        let twice = [lines(3), lines(1)].concat();
        let error = session.batch(Statement::OrderLine, &twice).unwrap_err();
        assert!(
            matches!(&error, SqlError::Refused { code, .. } if code == "23505"),
            "{error}"
        );
        session.rollback().unwrap();
        assert_eq!(number(session.as_mut(), count), 0);
    }
}

#[test]
fn transactions_end_with_commit_or_rollback() {
    let server = Server::start(TRUST, &[]);
    make(server.session("").as_mut());
    let mut rows = Rows::new();
    for way in WAYS {
        let mut session = server.session(way);
        let next = "select d_next_o_id from bmsql_district where d_id = 1";
        let before = number(session.as_mut(), next);
        // No transaction is open.
        assert_eq!((session.commit(), session.rollback()), (Ok(()), Ok(())));
        let mut step = |session: &mut dyn Session| {
            let params = [1, 1].map(Value::Int);
            session.execute(Statement::OrderNextId, &params, &mut rows)
        };
        assert_eq!(step(session.as_mut()), Ok(1));
        session.rollback().unwrap();
        assert_eq!(number(session.as_mut(), next), before);
        assert_eq!(step(session.as_mut()), Ok(1));
        let refused = session.run("select 1", &mut Rows::new());
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("a transaction is open")
        );
        session.commit().unwrap();
        assert_eq!(number(session.as_mut(), next), before + 1);
        // A failed transaction can only be rolled back. The session is usable after that.
        let twice = session.execute(
            Statement::OrderQueue,
            &[1, 1, 3].map(Value::Int),
            &mut Rows::new(),
        );
        assert!(twice.unwrap_err().to_string().contains("SQLSTATE 23505"));
        assert!(
            session
                .commit()
                .unwrap_err()
                .to_string()
                .contains("roll it back")
        );
        session.rollback().unwrap();
        assert_eq!(step(session.as_mut()), Ok(1));
        session.rollback().unwrap();
    }
}

#[test]
fn sql_of_the_user_runs_outside_of_transactions() {
    let server = Server::start(TRUST, &[]);
    let mut session = server.session("");
    let mut rows = Rows::new();
    let several = "create table a (b int); insert into a values (1), (2); select b, null from a";
    session.run(several, &mut rows).unwrap();
    assert_eq!(shown(&rows), [["1", ""], ["2", ""]]);
    assert_eq!(session.run("update a set b = 3", &mut rows), Ok(2));
    assert!(rows.is_empty());
    assert_eq!(session.run("", &mut rows), Ok(0));
    let notice = "do $$ begin for i in 1..2000 loop raise notice 'a notice %', i; end loop; end $$";
    session.run(notice, &mut rows).unwrap();
    let error = session.run("select * from nowhere", &mut rows).unwrap_err();
    assert_eq!(
        error.to_string(),
        "relation \"nowhere\" does not exist (SQLSTATE 42P01) (in: select * from nowhere)"
    );
    for copy in ["copy a from stdin", "copy a to stdout"] {
        let error = session.run(copy, &mut rows).unwrap_err();
        assert!(error.to_string().contains("SQLSTATE 0A000"), "{error}");
        assert_eq!(number(session.as_mut(), "select count(*) from a"), 2);
    }
    let error = session
        .run("begin; insert into a values (9)", &mut rows)
        .unwrap_err();
    assert!(error.to_string().contains("left open"), "{error}");
    assert_eq!(number(session.as_mut(), "select count(*) from a"), 2);
    let error = session.run("select '\0'", &mut rows).unwrap_err();
    assert!(matches!(error, SqlError::Unexpected { .. }));
    assert_eq!(number(session.as_mut(), "select count(*) from a"), 2);
}

#[test]
fn a_failed_load_leaves_no_rows() {
    let server = Server::start(TRUST, &[]);
    let mut session = server.session("");
    make(session.as_mut());
    let count = "select count(*) from bmsql_new_order";
    let order = |sink: &mut dyn saiga_tpcc::population::Sink<Error = SqlError>, id| {
        [1, 1, id].into_iter().for_each(|value| sink.int(value));
        sink.end_row()
    };
    let wrong = || SqlError::Unexpected {
        what: "no more rows".to_owned(),
    };
    let error = session.load(Table::NewOrder, &mut |sink| {
        order(sink, 1)?;
        Err(wrong())
    });
    assert_eq!(error, Err(wrong()));
    assert_eq!(number(session.as_mut(), count), 1);
    // The server finds a duplicate in the second row, long before the last row is written.
    let mut written = 0;
    let error = session.load(Table::NewOrder, &mut |sink| {
        order(sink, 3)?;
        loop {
            written += 1;
            order(sink, 3)?;
        }
    });
    let error = error.unwrap_err();
    assert!(
        matches!(&error, SqlError::Refused { code, .. } if code == "23505"),
        "{error}"
    );
    assert!(
        error.to_string().contains("copy bmsql_new_order"),
        "{error}"
    );
    // The last value of the row is missing.
    let error = session.load(Table::NewOrder, &mut |sink| {
        sink.int(1);
        sink.end_row()
    });
    assert!(error.unwrap_err().to_string().contains("SQLSTATE 22P04"));
    assert_eq!(number(session.as_mut(), count), 1);
    run(session.as_mut(), "drop table bmsql_new_order");
    let error = session.load(Table::NewOrder, &mut |sink| order(sink, 1));
    assert!(error.unwrap_err().to_string().contains("SQLSTATE 42P01"));
    assert_eq!(number(session.as_mut(), "select 1"), 1);
}

#[test]
fn a_wrong_number_of_parameters_is_not_sent() {
    let server = Server::start(TRUST, &[]);
    let mut session = server.session("");
    let mut rows = Rows::new();
    let error = session
        .execute(Statement::OrderItem, &[], &mut rows)
        .unwrap_err();
    assert!(matches!(error, SqlError::Unexpected { .. }), "{error}");
    let two = [Value::Int(1), Value::Int(2)];
    let error = session
        .execute(Statement::OrderItem, &two, &mut rows)
        .unwrap_err();
    assert!(error.to_string().contains("several rows"), "{error}");
    let error = session.batch(Statement::OrderQueue, &two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "OrderQueue takes a multiple of 3 parameters, not 2"
    );
    assert_eq!(number(session.as_mut(), "select 1"), 1);
}

#[test]
fn server_version_and_counters_are_read() {
    let server = Server::start(TRUST, &["default_transaction_isolation=serializable"]);
    let mut session = server.session("");
    let known = session.server().clone();
    assert_eq!(known.engine, Engine::Postgres);
    assert_eq!(known.isolation, "serializable");
    let version = run(session.as_mut(), "show server_version");
    let number = version.shown(0, 0).unwrap();
    let number = number.split(' ').next().unwrap();
    assert_eq!(known.version, format!("PostgreSQL {number}"));
    make(session.as_mut());
    // The server adds the counts of a session to its totals when the session ends or flushes them.
    let inserted = |session: &mut dyn Session| {
        run(session, "select pg_stat_force_next_flush()");
        let counters = session.status().unwrap();
        let of = |name: &str| counters.iter().find(|(one, _)| one == name).unwrap().1;
        assert!(of("pg_stat_bgwriter.buffers_alloc") >= 0.0, "{counters:?}");
        assert!(
            counters.iter().all(|(name, _)| !name.contains("datid")),
            "{counters:?}"
        );
        (
            of("pg_stat_database.tup_inserted"),
            of("pg_stat_wal.wal_records"),
        )
    };
    let before = inserted(session.as_mut());
    let params = params(Statement::PayHistory);
    let mut rows = Rows::new();
    assert_eq!(
        session.execute(Statement::PayHistory, &params, &mut rows),
        Ok(1)
    );
    session.commit().unwrap();
    let after = inserted(session.as_mut());
    assert!(
        after.0 > before.0 && after.1 > before.1,
        "{before:?} {after:?}"
    );
}
