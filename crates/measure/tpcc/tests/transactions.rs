//! Compares transactions on SQLite, PostgreSQL and MariaDB with a model of the database, by rows.

#[path = "support/mariadb.rs"]
mod mariadb;
mod model;
#[path = "support/postgres.rs"]
mod postgres;

use model::{Model, Script};
use saiga_tpcc::consistency::CONDITIONS;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::sqlite::Sqlite;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::Value;
use saiga_tpcc::db::{Session, SqlError};
use saiga_tpcc::props::Url;
use saiga_tpcc::script::{self, Step};
use saiga_tpcc::spec::inputs::{
    Customer, DistrictKey, Input, Line, NewOrder, OrderStatus, UNUSED_ITEM,
};
use saiga_tpcc::transactions::{Outcome, Performer};

/// `make soak` also tests MySQL.
const KIND: mariadb::Kind = mariadb::Kind::MariaDb;

/// Number of transactions that are compared.
const COUNT: i64 = 400;
const START: i64 = 1_790_500_000;

/// Creates the tables, loads the model, performs the same transactions on both, and compares.
fn agrees_with_the_model(session: &mut dyn Session, seed: u64) {
    let mut model = Model::new(seed);
    build(session, &model);
    assert_eq!(
        model.differences(session),
        [""; 0],
        "seed {seed}: after the load"
    );
    let (mut script, mut performer) = (Script::new(seed), Performer::default());
    for number in 0..COUNT {
        let (input, now) = (script.next(), START + number);
        let wanted = model.perform(&input, now);
        let ended = performer.perform(session, &input, now);
        assert_eq!(
            ended,
            Ok(wanted),
            "seed {seed}, transaction {number}: {input:?}"
        );
    }
    assert_eq!(model.differences(session), [""; 0], "seed {seed}");
    reads_agree(session, &model, &mut script);
    let mut rows = Rows::new();
    for condition in CONDITIONS.iter().filter(|one| !one.after_load_only) {
        session
            .run(condition.violations, &mut rows)
            .expect("the database answers");
        assert_eq!(
            rows.int(0, 0),
            Ok(0),
            "seed {seed}: condition {}",
            condition.number
        );
    }
}

fn build(session: &mut dyn Session, model: &Model) {
    let db = session.server().engine.name();
    let run = |session: &mut dyn Session, step| {
        for sql in script::find(None, db, step)
            .expect("the database answers")
            .statements
        {
            session
                .run(&sql, &mut Rows::new())
                .expect("the database answers");
        }
    };
    run(session, Step::TableDrops);
    run(session, Step::TableCreates);
    model.load(session);
    for step in Step::AFTER_LOAD {
        run(session, step);
    }
}

/// Compares the answers of the read-only transactions.
fn reads_agree(session: &mut dyn Session, model: &Model, script: &mut Script) {
    let mut rows = Rows::new();
    let int = |value: u32| Value::Int(i64::from(value));
    for _ in 0..50 {
        let level = script.stock_level();
        let district = [int(level.district.w_id), int(level.district.d_id)];
        let asked = [district[0], district[1], int(level.threshold)];
        session
            .execute(Statement::LowStock, &asked, &mut rows)
            .expect("the database answers");
        assert_eq!(rows.int(0, 0), Ok(model.low_stock(&level)), "{level:?}");
        let status = script.order_status();
        let (c_id, o_id, carrier, lines) = model.last_order(&status);
        let OrderStatus { district, customer } = &status;
        let district = [int(district.w_id), int(district.d_id)];
        if let Customer::LastName(name) = customer {
            let named = [district[0], district[1], Value::Text(name)];
            session
                .execute(Statement::CustomersNamed, &named, &mut rows)
                .expect("the database answers");
            assert_eq!(rows.int(rows.len().div_ceil(2) - 1, 0), Ok(i64::from(c_id)));
        }
        let asked = [district[0], district[1], int(c_id)];
        session
            .execute(Statement::StatusOrder, &asked, &mut rows)
            .expect("the database answers");
        assert_eq!(rows.int(0, 0), Ok(i64::from(o_id)), "{status:?}");
        assert_eq!(rows.is_null(0, 2), Ok(carrier.is_none()), "{status:?}");
        let asked = [district[0], district[1], int(o_id)];
        session
            .execute(Statement::StatusLines, &asked, &mut rows)
            .expect("the database answers");
        let found: Vec<[i64; 4]> = (0..rows.len())
            .map(|row| {
                let whole = |column| rows.int(row, column).expect("the database answers");
                [
                    whole(0),
                    whole(1),
                    whole(2),
                    rows.decimal(row, 3, 2).expect("the database answers"),
                ]
            })
            .collect();
        assert_eq!(found, lines, "{status:?}");
    }
    session.commit().expect("the database answers");
}

/// The seed `from`, and 30 more in `make soak`. Each seed is printed before it is used.
fn seeds(from: u64) -> impl Iterator<Item = u64> {
    let is_soak = std::env::var("SAIGA_SOAK").is_ok_and(|value| value == "1");
    let more = if is_soak { 30 } else { 0 };
    let all = std::iter::once(from).chain((1..=more).map(move |turn| 1000 * turn + from));
    all.inspect(|seed| println!("seed {seed}"))
}

#[test]
fn sqlite_agrees_with_the_model() {
    for seed in (1..=3).flat_map(seeds) {
        let url = Url::parse("jdbc:sqlite::memory:").unwrap();
        agrees_with_the_model(&mut Sqlite::open(&url).unwrap(), seed);
    }
}

/// Tested with prepared statements and with text, and with separate and combined INSERTs.
#[test]
fn postgres_agrees_with_the_model() {
    let server = postgres::Server::start("host all all 127.0.0.1/32 trust\n", &[]);
    for (seed, params) in [
        (4, ""),
        (5, "?prepareThreshold=0"),
        (6, "?reWriteBatchedInserts=true&defaultRowFetchSize=2"),
    ] {
        for seed in seeds(seed) {
            agrees_with_the_model(&mut *server.session(params), seed);
        }
    }
}

#[test]
fn mariadb_agrees_with_the_model() {
    a_server_agrees_with_the_model(KIND);
}

#[cfg(feature = "soak")]
#[test]
fn mysql_agrees_with_the_model() {
    a_server_agrees_with_the_model(mariadb::Kind::MySql);
}

/// Tested with text and with prepared statements, and with separate and combined INSERTs.
fn a_server_agrees_with_the_model(kind: mariadb::Kind) {
    let server = mariadb::Server::start_of(kind, &[]);
    for (seed, params) in [
        (7, ""),
        (8, "useServerPrepStmts=true"),
        (9, "useServerPrepStmts=true&rewriteBatchedStatements=true"),
        (10, "rewriteBatchedStatements=true"),
    ] {
        let database = format!("model_{seed}");
        server.database(&database);
        let mut session =
            mariadb::open(&server.url(&database, params), "root", "").expect("root may log in");
        for seed in seeds(seed) {
            agrees_with_the_model(&mut *session, seed);
        }
    }
}

/// Only the unused item may cause a rollback. With an incomplete ITEM table many orders would end
/// early, and the throughput would be too high.
#[test]
fn a_missing_item_is_not_taken_for_the_unused_one() {
    let url = Url::parse("jdbc:sqlite::memory:").unwrap();
    let mut session = Sqlite::open(&url).unwrap();
    build(&mut session, &Model::new(1));
    let mut order = |sql: &str, last: u32| {
        session.run(sql, &mut Rows::new()).unwrap();
        let line = |i_id| Line {
            i_id,
            supply_w_id: 1,
            quantity: 1,
        };
        let input = Input::NewOrder(NewOrder {
            district: DistrictKey { w_id: 1, d_id: 1 },
            c_id: 1,
            lines: [1, 2, 4, 5, last].map(line).to_vec(),
        });
        Performer::default().perform(&mut session, &input, START)
    };
    assert_eq!(
        order("delete from bmsql_item where i_id = 3", UNUSED_ITEM),
        Ok(Outcome::RolledBack)
    );
    let mut is_refused = |sql: &str, last: u32, wanted: &str| {
        let ended = order(sql, last);
        let Err(SqlError::Unexpected { what }) = &ended else {
            panic!("{ended:?}")
        };
        assert!(what.contains(wanted), "{what}");
        assert!(what.contains("run `saiga bench tpcc check`"), "{what}");
    };
    is_refused("select 1", 3, "found or changed 0 rows, not one");
    let copy = format!(
        "insert into bmsql_item select {UNUSED_ITEM}, i_name, i_price, i_data, i_im_id \
         from bmsql_item where i_id = 1"
    );
    is_refused(&copy, UNUSED_ITEM, "found or changed 1 rows, not none");
}
