//! Tests the life of one database: it is built, interrupted, resumed, checked and dropped.
//!
//! All steps share one load, because generating the rows of a warehouse takes seconds in a debug
//! build.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use saiga_tpcc::build::{Build, BuildError, BuildOutcome, BuildPart, BuildRequest, Event};
use saiga_tpcc::check::{Check, CheckError, Report, Scope};
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::sqlite::Sqlite;
use saiga_tpcc::db::{ConnectError, Session, SqlError};
use saiga_tpcc::destroy;
use saiga_tpcc::population::{Population, Sink};
use saiga_tpcc::props::Url;
use saiga_tpcc::state::{self, Job, Stage, State};
use saiga_tpcc::table::Table;

const SEED: u64 = 42;
const NOW: i64 = 1_790_000_000;
const WHOLE: BuildRequest = BuildRequest {
    part: BuildPart::Whole,
    warehouses: 1,
    range: None,
    seed: None,
    resume: false,
    by_files: false,
};
const RESUME: BuildRequest = BuildRequest {
    resume: true,
    ..WHOLE
};

fn open(path: &Path) -> Result<Box<dyn Session>, ConnectError> {
    let url = Url::parse(&format!("jdbc:sqlite:{}", path.display())).unwrap();
    Ok(Box::new(Sqlite::open(&url)?))
}

/// Builds a database. Stops the build when `rows` rows have been sent.
fn build(
    path: &Path,
    request: BuildRequest,
    sql: Option<&Path>,
    rows: u64,
) -> Result<BuildOutcome, BuildError> {
    let sent = AtomicU64::new(0);
    Build {
        open: &|| open(path),
        db: "sqlite",
        own_sql: sql,
        request,
        workers: 4,
        fresh_seed: SEED,
        now: NOW,
        owner: "host:999999999",
        stop: &|| sent.load(Ordering::Relaxed) > rows,
        on_event: &|event| {
            if let Event::Rows(more) = event {
                sent.fetch_add(more, Ordering::Relaxed);
            }
        },
    }
    .run()
}

fn check(path: &Path) -> Result<Report, CheckError> {
    let check = Check {
        open: &|| open(path),
        sessions: 2,
        after_load: None,
        scope: Scope::All,
        stop: &|| false,
        on_progress: &|_, _| (),
    };
    check.run()
}

fn number(session: &mut dyn Session, sql: &str) -> i64 {
    let mut rows = Rows::new();
    session.run(sql, &mut rows).unwrap();
    rows.int(0, 0).unwrap()
}

fn run(session: &mut dyn Session, sql: &str) {
    session.run(sql, &mut Rows::new()).unwrap();
}

#[test]
fn one_database_from_its_first_table_to_its_last() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tpcc.db");
    a_stopped_build_is_recognised(&path);
    a_failed_statement_stops_the_build_and_is_named(&path, dir.path());
    a_resumed_build_has_the_rows_of_its_seed(&path);
    every_fault_is_found(&path);
    the_tables_are_dropped(&path);
}

/// ITEM and half of STOCK have 150,000 rows.
fn a_stopped_build_is_recognised(path: &Path) {
    let stopped = build(path, WHOLE, None, 150_000).unwrap_err();
    assert!(matches!(stopped, BuildError::Stopped), "{stopped}");
    let State::InProgress(progress) = state::look(&mut *open(path).unwrap()).unwrap() else {
        panic!("a load was begun");
    };
    assert_eq!(progress.stage, Stage::Rows);
    assert_eq!(progress.jobs[&0], Job::Done);
    assert_eq!(progress.jobs[&1], Job::Taken("host:999999999".to_owned()));
    let refused = build(path, WHOLE, None, u64::MAX).unwrap_err().to_string();
    assert!(
        refused
            .starts_with("the load is incomplete: 0 of 1 warehouses are loaded, warehouse 1 was"),
        "{refused}"
    );
    let said = check(path).unwrap_err().to_string();
    assert!(
        said.starts_with("the load is incomplete: 0 of 1 warehouses are loaded; continue with"),
        "{said}"
    );
}

fn a_failed_statement_stops_the_build_and_is_named(path: &Path, dir: &Path) {
    let own = dir.join("sql.sqlite");
    fs::create_dir(&own).unwrap();
    let good =
        "create index bmsql_customer_idx1 on bmsql_customer (c_w_id, c_d_id, c_last, c_first);";
    let file = own.join("indexCreates.sql");
    fs::write(&file, format!("{good}\ncreate index x on nowhere (y);\n")).unwrap();
    let failed = build(path, RESUME, Some(dir), u64::MAX)
        .unwrap_err()
        .to_string();
    let wanted = format!(
        "{}: statement 2 of 2 failed: no such table: main.nowhere",
        file.display()
    );
    assert!(failed.starts_with(&wanted), "{failed}");
    assert!(
        failed.contains("\n  create index x on nowhere (y)\n"),
        "{failed}"
    );
    let State::InProgress(progress) = state::look(&mut *open(path).unwrap()).unwrap() else {
        panic!("a load was begun");
    };
    assert_eq!(progress.stage.to_string(), "indexCreates 1");
    assert!(progress.jobs.is_empty());
    // As if a process was killed after it executed the first statement and before it recorded the
    // progress. The next process finds the index and continues with the second statement.
    run(
        &mut *open(path).unwrap(),
        "update bmsql_config set cfg_value = 'indexCreates 0' where cfg_name = 'saiga_build'",
    );
    let again = build(path, RESUME, Some(dir), u64::MAX).unwrap_err();
    assert_eq!(again.to_string(), failed);
    // The first statement is not executed again. It would fail, because the index exists.
    fs::write(&file, format!("{good}\ncreate unique index bmsql_oorder_idx1 on bmsql_oorder (o_w_id, o_d_id, o_c_id, o_id);\n")).unwrap();
    let done = build(path, RESUME, Some(dir), u64::MAX).unwrap();
    let BuildOutcome::Complete(loaded) = done else {
        panic!("{done:?}")
    };
    assert_eq!(loaded.origin.map(|origin| origin.seed), Some(SEED));
}

fn a_resumed_build_has_the_rows_of_its_seed(path: &Path) {
    let again = build(path, WHOLE, None, u64::MAX).unwrap_err().to_string();
    assert!(
        again.starts_with("the database is already built"),
        "{again}"
    );
    assert!(matches!(
        build(path, RESUME, None, u64::MAX),
        Ok(BuildOutcome::Complete(_))
    ));
    let report = check(path).unwrap();
    assert!(report.after_load);
    assert_eq!(report.findings, []);
    assert_eq!(report.checked.len(), 22);
    let mut session = open(path).unwrap();
    let population = Population::new(SEED, 1, NOW);
    for (table, column, sql) in [
        (Table::Stock, 2, "select sum(s_quantity) from bmsql_stock"),
        (
            Table::OrderLine,
            4,
            "select sum(ol_i_id) from bmsql_order_line",
        ),
    ] {
        let mut sum = Sum {
            column,
            at: 0,
            sum: 0,
        };
        population.write(table, 1, &mut sum).unwrap();
        assert_eq!(number(&mut *session, sql), sum.sum, "{table:?}");
    }
    // The build deleted the rows of the jobs from bmsql_config.
    assert_eq!(
        number(&mut *session, "select count(*) from bmsql_config"),
        7
    );
}

/// A sink that adds up one column of whole numbers.
struct Sum {
    column: usize,
    at: usize,
    sum: i64,
}

impl Sink for Sum {
    type Error = SqlError;

    fn int(&mut self, value: i64) {
        self.sum += if self.at == self.column { value } else { 0 };
        self.at += 1;
    }
    fn decimal(&mut self, _: i64, _: u32) {
        self.at += 1;
    }
    fn text(&mut self, _: &str) {
        self.at += 1;
    }
    fn time(&mut self, _: i64) {
        self.at += 1;
    }
    fn null(&mut self) {
        self.at += 1;
    }
    fn end_row(&mut self) -> Result<(), SqlError> {
        self.at = 0;
        Ok(())
    }
}

/// Faults that are made together, each with the rule that finds it and the example.
const FAULTS: [(&str, &str, &str); 14] = [
    (
        "delete from bmsql_item where i_id = 100000",
        "bmsql_item: count(*) is 100000",
        "99999",
    ),
    (
        "update bmsql_item set i_price = 0.5 where i_id = 7",
        "bmsql_item: min(i_price) is from 1 to 100",
        "0.5",
    ),
    (
        "update bmsql_item set i_data = replace(i_data, 'ORIGINAL', 'COPIED') where i_id < 20000",
        "bmsql_item: sum(case when i_data like '%ORIGINAL%' then 1 else 0 end) is 9.5 to 10.5 % of its rows",
        "",
    ),
    (
        "update bmsql_stock set s_quantity = 9 where s_i_id = 3",
        "bmsql_stock: min(s_quantity) is from 10 to 100",
        "warehouse 1: 9",
    ),
    (
        "update bmsql_customer set c_balance = -11 where c_d_id = 4 and c_id = 9",
        "bmsql_customer: min(c_balance) is -10",
        "warehouse 1, district 4: -11",
    ),
    (
        "update bmsql_customer set c_last = 'BARBARBAR' where c_d_id = 5 and c_id = 9",
        "bmsql_customer: count(distinct case when c_id <= 1000 then c_last end) is 1000",
        "warehouse 1, district 5: 999",
    ),
    (
        "update bmsql_customer set c_middle = 'XX' where c_d_id = 5 and c_id = 9",
        "bmsql_customer: sum(case when c_middle = 'OE' then 1 else 0 end) is 3000",
        "warehouse 1, district 5: 2999",
    ),
    (
        "delete from bmsql_history where h_d_id = 6",
        "bmsql_history has rows of every warehouse and district",
        "warehouse 1, district 6",
    ),
    (
        "update bmsql_oorder set o_c_id = 1 where o_d_id = 2 and o_id = (select max(o_id) from bmsql_oorder where o_d_id = 2 and o_c_id > 1)",
        "bmsql_oorder: count(distinct o_c_id) is 3000",
        "warehouse 1, district 2: 2999",
    ),
    (
        "update bmsql_oorder set o_carrier_id = 11 where o_d_id = 3 and o_id = 5",
        "bmsql_oorder: max(o_carrier_id) is from 1 to 10",
        "warehouse 1, district 3: 11",
    ),
    (
        "update bmsql_order_line set ol_quantity = 6 where ol_d_id = 7 and ol_o_id = 5",
        "bmsql_order_line: max(ol_quantity) is 5",
        "warehouse 1, district 7: 6",
    ),
    (
        "update bmsql_order_line set ol_delivery_d = 5 where ol_d_id = 8 and ol_o_id = 5 and ol_number = 2",
        "OL_DELIVERY_D of delivered orders = O_ENTRY_D",
        "ol_w_id 1, ol_d_id 8, ol_o_id 5, ol_number 2, ol_delivery_d 5, o_entry_d 1790000000",
    ),
    (
        "delete from bmsql_new_order where no_d_id = 9 and no_o_id = 2101",
        "bmsql_new_order: count(*) is 900",
        "warehouse 1, district 9: 899",
    ),
    (
        "insert into bmsql_district select 2, d_id, d_ytd, d_tax, d_next_o_id, d_name, d_street_1, \
         d_street_2, d_city, d_state, d_zip from bmsql_district where d_w_id = 1 and d_id = 1",
        "bmsql_district has rows of these warehouses and districts only",
        "warehouse 2",
    ),
];

fn every_fault_is_found(path: &Path) {
    let whole = path.with_extension("whole");
    fs::copy(path, &whole).unwrap();
    {
        let mut session = open(path).unwrap();
        for (fault, _, _) in FAULTS {
            run(&mut *session, fault);
        }
    }
    let report = check(path).unwrap();
    for (fault, rule, example) in FAULTS {
        let mut found = report
            .findings
            .iter()
            .filter(|finding| finding.rule == rule);
        let Some(finding) = found.next() else {
            panic!("{fault}: {:#?}", report.findings)
        };
        assert!(
            finding.count >= 1 && finding.examples.len() <= 2,
            "{finding:?}"
        );
        let shown = finding
            .examples
            .iter()
            .any(|shown| shown.starts_with(example));
        assert!(shown || example.is_empty(), "{fault}: {finding:?}");
    }
    // Fewer rules hold after a run. The rules that still hold are checked.
    for run_does in [
        "update bmsql_district set d_next_o_id = 3002 where d_id = 1",
        "delete from bmsql_new_order where no_d_id = 10",
    ] {
        run(&mut *open(path).unwrap(), run_does);
    }
    let report = check(path).unwrap();
    assert!(!report.after_load);
    let still: Vec<&str> = report
        .findings
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect();
    for rule in [
        "bmsql_item: count(*) is 100000",
        "bmsql_history has rows of every warehouse and district",
    ] {
        assert!(still.contains(&rule), "{rule}: {still:?}");
    }
    for rule in [
        "bmsql_customer: min(c_balance) is -10",
        "bmsql_new_order has rows of every warehouse and district",
    ] {
        assert!(!still.contains(&rule), "{rule}: {still:?}");
    }
    fs::rename(&whole, path).unwrap();
}

fn the_tables_are_dropped(path: &Path) {
    let mut session = open(path).unwrap();
    let plan = destroy::plan(&mut *session, None, "sqlite", "host:1")
        .unwrap()
        .unwrap();
    assert!(matches!(plan.state, State::Complete(_)));
    plan.drop_all(&mut *session).unwrap();
    assert_eq!(
        number(
            &mut *session,
            "select count(*) from sqlite_master where name like 'bmsql%'"
        ),
        0
    );
    assert!(
        destroy::plan(&mut *session, None, "sqlite", "host:1")
            .unwrap()
            .is_none()
    );
    run(&mut *session, "create table bmsql_item (i_id integer)");
    let refused = destroy::plan(&mut *session, None, "sqlite", "host:1")
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("the database has bmsql_item, but no bmsql_config"),
        "{refused}"
    );
}

#[test]
fn each_job_has_at_most_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tpcc.db");
    let tables = BuildRequest {
        part: BuildPart::Tables,
        warehouses: 3,
        ..WHOLE
    };
    assert!(matches!(
        build(&path, tables, None, u64::MAX),
        Ok(BuildOutcome::Tables(_))
    ));
    let mut session = open(&path).unwrap();
    assert_eq!(state::take(&mut *session, 1, "a:1"), Ok(true));
    assert_eq!(state::take(&mut *session, 1, "b:2"), Ok(false));
    assert_eq!(state::done(&mut *session, 1, "b:2"), Ok(false));
    assert_eq!(state::take(&mut *session, 4, "a:1"), Ok(false));
    assert_eq!(state::done(&mut *session, 1, "a:1"), Ok(true));
    assert_eq!(state::take(&mut *session, 3, "c:3"), Ok(true));
    let finish = BuildRequest {
        part: BuildPart::Finish,
        ..tables
    };
    let said = build(&path, finish, None, u64::MAX)
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with(
            "rows are missing: 1 of 3 warehouses is loaded, 2 jobs are not begun, warehouse 3 was \
             begun by process c:3"
        ),
        "{said}"
    );
}

#[test]
fn errors_before_the_load_say_how_to_continue() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tpcc.db");
    fs::create_dir(dir.path().join("sql.common")).unwrap();
    let file = dir.path().join("sql.common/tableCreates.sql");
    let said = |text: &str| {
        fs::write(&file, text).unwrap();
        build(&path, WHOLE, Some(dir.path()), 0)
            .unwrap_err()
            .to_string()
    };
    let bad = said("create table bmsql_config (cfg_name text, cfg_value text);\ncreate tabel x;\n");
    assert!(bad.contains("statement 2 of 2 failed"), "{bad}");
    assert!(
        bad.ends_with("destroy the tables, and build again"),
        "{bad}"
    );
    let torn = said("");
    assert!(
        torn.contains("are missing; if they exist, GRANT")
            && torn.ends_with("if not, destroy the rest, then build again"),
        "{torn}"
    );
    let mut session = open(&path).unwrap();
    let plan = destroy::plan(&mut *session, None, "sqlite", "host:1")
        .unwrap()
        .unwrap();
    plan.drop_all(&mut *session).unwrap();
    let few = said("create table bmsql_config (cfg_name text, cfg_value text);\n");
    assert!(
        few.ends_with("does not create all tables; drop those that exist, then correct the file"),
        "{few}"
    );
}

#[test]
fn events_are_reported_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tpcc.db");
    let reported = Mutex::new(Vec::new());
    let tables = BuildRequest {
        part: BuildPart::Tables,
        ..WHOLE
    };
    let build = Build {
        open: &|| open(&path),
        db: "sqlite",
        own_sql: None,
        request: tables,
        workers: 1,
        fresh_seed: SEED,
        now: NOW,
        owner: "host:1",
        stop: &|| false,
        on_event: &|event| {
            let text = match event {
                Event::Step { step, source } => format!("{} {source}", step.name()),
                Event::StepDone { statements, .. } => format!("{statements} statements"),
                other @ (Event::Loading { .. }
                | Event::SlowLoad(_)
                | Event::Rows(_)
                | Event::Warehouse(_)
                | Event::Loaded { .. }) => format!("{other:?}"),
            };
            reported.lock().unwrap().push(text);
        },
    };
    build.run().unwrap();
    let wanted = [
        "tableCreates sql.sqlite/tableCreates.sql (built in)",
        "10 statements",
    ];
    assert_eq!(reported.into_inner().unwrap(), wanted);
}
