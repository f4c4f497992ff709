//! Failures before a run: too few connections, missing privileges.

use std::path::Path;

use crate::bench::Bench;
use crate::books::Books;
use crate::system::{DATABASE, OWNER, System};

pub(crate) fn a_server_without_room_is_named_before_the_start(bench: &Bench) {
    let (few, many) = match &bench.system {
        System::MariaDb(_) => (
            "set global max_connections = 12".to_owned(),
            "set global max_connections = 400".to_owned(),
        ),
        System::Postgres(_) => (
            format!("alter role {OWNER} connection limit 12"),
            format!("alter role {OWNER} connection limit -1"),
        ),
    };
    let (books, out) = (Books::of(bench), bench.fresh_out());
    let database = match &bench.system {
        System::MariaDb(_) => "mysql",
        System::Postgres(_) => "postgres",
    };
    bench.system.admin(database, &[&few]);
    let workers = ["--delivery", "queue", "--delivery-workers", "10"];
    let more = [&workers[..], &["--no-check", "--out", &out]].concat();
    let said = bench.refused(&mut bench.command("run", &more));
    bench.system.admin(database, &[&many]);
    assert!(said.contains(" of 20 connections failed: "), "{said}");
    assert!(said.contains("connections"), "{said}");
    for way_out in ["raise ", "terminals="] {
        assert!(said.contains(way_out), "{said}");
    }
    assert!(!Path::new(&out).exists());
    assert_eq!(Books::of(bench), books);
}

const CLERK: &str = "clerk";
const TABLES: [&str; 9] = [
    "bmsql_config",
    "bmsql_item",
    "bmsql_warehouse",
    "bmsql_district",
    "bmsql_stock",
    "bmsql_customer",
    "bmsql_oorder",
    "bmsql_order_line",
    "bmsql_new_order",
];

pub(crate) fn a_table_without_privileges_is_named(bench: &Bench) {
    let whom = match &bench.system {
        System::MariaDb(_) => format!("{CLERK}@'%'"),
        System::Postgres(_) => CLERK.to_owned(),
    };
    let create = match &bench.system {
        System::MariaDb(_) => format!("create user {whom} identified by 'p'"),
        System::Postgres(_) => format!("create role {CLERK} login password 'p'"),
    };
    let grant = |what: &str, table: &str| format!("grant {what} on {table} to {whom}");
    bench.system.admin(DATABASE, &[&create]);
    for table in TABLES {
        let all = "select, insert, update, delete";
        bench.system.admin(DATABASE, &[&grant(all, table)]);
    }
    bench.props("clerk.conf", CLERK, "p");
    for step in ["run", "check"] {
        let said = bench.refused(&mut bench.command_with("clerk.conf", step, &[]));
        let named = said.contains("bmsql_history") && said.contains("GRANT");
        assert!(named, "{step}: {said}");
    }
    // Payment needs more than SELECT.
    let books = Books::of(bench);
    bench
        .system
        .admin(DATABASE, &[&grant("select", "bmsql_history")]);
    let out = bench.fresh_out();
    let mut command = bench.command_with("clerk.conf", "run", &["--no-check", "--out", &out]);
    let output = command.output().unwrap();
    let record = crate::bench::record(Path::new(&out));
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let [(error, count)] = &record.errors[..] else {
        panic!("{:?}", record.errors)
    };
    assert!(
        error.contains("bmsql_history") || error.contains("history"),
        "{error}"
    );
    assert!(*count > 0);
    assert!(said.contains("bmsql_history"), "{said}");
    books.assert_agreement(bench, &record);
    bench.must_hold();
}
