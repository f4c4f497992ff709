//! `saiga bench tpcc build`, `check` and `destroy`: all steps, and errors for bad input.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use saiga_tpcc::db::Session;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::sqlite::Sqlite;
use saiga_tpcc::props::Url;
use saiga_trials::parity::Arm;
use saiga_trials::{mariadb, postgres};

mod marked;
use marked::{Marked, send, taken_port};

/// Writes a props file and returns its path.
fn props(test: &Marked, name: &str, text: &str) -> String {
    fs::write(test.path(name), text).unwrap();
    test.text(name)
}

/// `saiga bench tpcc STEP --props FILE ...`.
fn tpcc(test: &Marked, step: &str, props: &str, more: &[&str]) -> Command {
    test.saiga(&[&["bench", "tpcc", step, "--props", props], more].concat())
}

/// The message of a command that must fail, without `saiga: ` and the progress before it.
fn refused(test: &Marked, command: &mut Command) -> String {
    let said = test.refused(command);
    said.lines().last().unwrap().to_owned()
}

fn run(path: &Path, sql: &str) {
    let url = Url::parse(&format!("jdbc:sqlite:{}", path.display())).unwrap();
    Sqlite::open(&url)
        .unwrap()
        .run(sql, &mut Rows::new())
        .unwrap();
}

#[test]
fn all_steps_run_without_a_server() {
    let test = Marked::new();
    let out = test.text("out");
    let said = test.said(&mut test.saiga(&["bench", "tpcc", "--out", &out]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains(": complete, 1 warehouse, seed "),
        "{said:?}"
    );
    assert!(said.stdout.contains("as loaded; 22 checks"), "{said:?}");
    assert!(said.stdout.ends_with("all rules hold\n"), "{said:?}");
    for step in [
        "tableCreates",
        "indexCreates",
        "foreignKeys",
        "extraHistID",
        "buildFinish",
    ] {
        let line = format!("saiga: {step}: sql.sqlite/{step}.sql (built in)\n");
        assert!(said.stderr.contains(&line), "{said:?}");
    }
    let file = test.path("out/tpcc.db");
    let text = format!("conn=jdbc:sqlite:{}\nwarehouses=1\n", file.display());
    let props_file = props(&test, "one.conf", &text);
    finds_violations(&test, &file, &props_file);
    does_not_overwrite_tables(&test, &file, &props_file);
    is_dropped_after_confirmation(&test, &file, &props_file);
    test.assert_nothing_left();
}

fn finds_violations(test: &Marked, file: &Path, props_file: &str) {
    run(file, "update bmsql_warehouse set w_ytd = w_ytd + 0.01");
    let said = test.said(&mut tpcc(test, "check", props_file, &[]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains(": 2 rules are violated\n"), "{said:?}");
    let finding = "  3.3.2.1  W_YTD = sum(D_YTD)\n      w_id 1, w_ytd ";
    assert!(said.stdout.contains(finding), "{said:?}");
    let said = test.said(&mut tpcc(test, "check", props_file, &["--json"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    let report: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    // After a run, the rules for freshly loaded tables are not checked.
    assert_eq!(report["after_load"], false);
    assert_eq!(report["checked"].as_array().unwrap().len(), 20);
    let found: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["clause"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["3.3.2.1", "3.3.2.8"]);
    run(file, "update bmsql_warehouse set w_ytd = w_ytd - 0.01");
}

fn does_not_overwrite_tables(test: &Marked, file: &Path, props_file: &str) {
    let said = refused(test, &mut tpcc(test, "build", props_file, &[]));
    let name = format!("saiga: sqlite file {}: ", file.display());
    assert_eq!(
        said,
        format!(
            "{name}the database is already built (warehouses: 1); destroy it first to build it \
             again"
        )
    );
    let text = format!("conn=jdbc:sqlite:{}\nwarehouses=2\n", file.display());
    let more = props(test, "two.conf", &text);
    let said = refused(test, &mut tpcc(test, "check", &more, &[]));
    assert_eq!(
        said,
        format!(
            "{name}1 warehouse is loaded, but warehouses= is 2; correct the props file, or \
             destroy and build again"
        )
    );
    let said = refused(test, &mut tpcc(test, "build", &more, &["--resume"]));
    assert!(said.contains("the database is already built"), "{said}");
}

fn is_dropped_after_confirmation(test: &Marked, file: &Path, props_file: &str) {
    let said = refused(test, &mut tpcc(test, "destroy", props_file, &[]));
    let name = format!("sqlite file {}: ", file.display());
    let what = "the 10 tables of TPC-C with 1 warehouse";
    assert_eq!(
        said,
        format!("saiga: {name}this would drop {what}; confirm with --yes")
    );
    let said = test.said(&mut tpcc(test, "destroy", props_file, &["--yes"]));
    let how = "by sql.sqlite/tableDrops.sql (built in)";
    assert_eq!(
        (said.code, said.stdout),
        (Some(0), format!("{name}dropped {what}, {how}\n"))
    );
    let said = test.said(&mut tpcc(test, "destroy", props_file, &["--yes"]));
    assert_eq!(
        (said.code, said.stdout),
        (Some(0), format!("{name}no tables exist\n"))
    );
    let said = refused(test, &mut tpcc(test, "check", props_file, &[]));
    assert_eq!(
        said,
        format!(
            "saiga: {name}there are no tables; `saiga bench tpcc build` creates and loads them"
        )
    );
    // Tables of another tool do not matter, unless one has the name of a TPC-C table.
    run(file, "create table warehouse (w_id integer)");
    let said = refused(test, &mut tpcc(test, "check", props_file, &[]));
    assert!(
        said.contains("the database has tables of another TPC-C tool (warehouse)"),
        "{said}"
    );
    run(file, "create table bmsql_stock (s_i_id integer)");
    for step in ["build", "check", "destroy"] {
        let said = refused(test, &mut tpcc(test, step, props_file, &[]));
        let wanted = "the database has bmsql_stock, but no bmsql_config: neither Saiga nor BenchmarkSQL created it";
        assert!(said.contains(wanted), "{step}: {said}");
    }
}

/// Ctrl-C while rows are loaded.
#[test]
fn a_stopped_load_prints_how_to_continue() {
    let test = Marked::new();
    let file = test.path("tpcc.db");
    let text = format!("conn=jdbc:sqlite:{}\nwarehouses=500\n", file.display());
    let props_file = props(&test, "props.conf", &text);
    let mut command = tpcc(&test, "build", &props_file, &["--seed", "5"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line == "saiga: rows: 500 warehouses, 1 worker, seed 5"));
    send(&child, Signal::INT);
    let wanted = format!(
        "saiga: sqlite file {}: stopped; loaded rows are kept: continue with --resume, or drop \
         them with destroy",
        file.display()
    );
    assert_eq!(lines.last(), Some(wanted));
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let said = refused(&test, &mut tpcc(&test, "check", &props_file, &[]));
    assert!(
        said.contains("the load is incomplete: 0 of 500 warehouses are loaded; continue with"),
        "{said}"
    );
    let said = refused(&test, &mut tpcc(&test, "build", &props_file, &[]));
    assert!(said.contains("the load is incomplete: 0 of 500"), "{said}");
    let said = refused(
        &test,
        &mut tpcc(&test, "build", &props_file, &["--resume", "--seed", "6"]),
    );
    assert!(
        said.ends_with(
            "the load in the database has seed 5, not 6; leave --seed out to continue it"
        ),
        "{said}"
    );
    let said = test.said(&mut tpcc(&test, "destroy", &props_file, &["--yes"]));
    let wanted = "dropped the 10 tables of TPC-C, an incomplete load of 500 warehouses";
    assert!(said.stdout.contains(wanted), "{said:?}");
    test.assert_nothing_left();
}

/// Runs `saiga` in a directory `small` on a file system of its own with this many MiB.
fn in_small_folder(test: &Marked, mib: u32, saiga: &Command) -> Command {
    let folder = test.path("small");
    fs::create_dir_all(&folder).unwrap();
    let script = format!("mount -t tmpfs -o size={mib}m none \"$0\" && cd \"$0\" && exec \"$@\"");
    let mut command = test.saiga(&[]);
    let environment: Vec<_> = command
        .get_envs()
        .map(|(key, value)| (key.to_owned(), value.unwrap().to_owned()))
        .collect();
    command = Command::new("unshare");
    command.env_clear().envs(environment).stdin(Stdio::null());
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(folder);
    command.arg(saiga.get_program()).args(saiga.get_args());
    command
}

#[test]
fn a_full_disk_is_named_with_the_table() {
    let test = Marked::new();
    let load = props(
        &test,
        "load.conf",
        "conn=jdbc:sqlite:tpcc.db\nwarehouses=1\n",
    );
    let said = refused(
        &test,
        &mut in_small_folder(&test, 6, &tpcc(&test, "build", &load, &[])),
    );
    assert!(
        said.starts_with("saiga: sqlite file tpcc.db: bmsql_item: database or disk is full"),
        "{said}"
    );
    assert!(
        said.ends_with("rows that were loaded before are kept: continue with --resume"),
        "{said}"
    );
    let files = "conn=jdbc:sqlite:tpcc.db\nwarehouses=1\nfileLocation=./\n";
    let files = props(&test, "files.conf", files);
    // Listed after saiga has ended: incomplete files must be removed.
    let mut saiga = in_small_folder(&test, 6, &tpcc(&test, "build", &files, &[]));
    let said = refused(&test, &mut saiga);
    assert!(
        said.starts_with("saiga: sqlite file tpcc.db: cannot write ./"),
        "{said}"
    );
    assert!(
        said.contains(".csv.part: No space left on device"),
        "{said}"
    );
}

/// Without --seed, each host would use another random seed.
#[test]
fn a_part_of_the_files_needs_a_seed() {
    let test = Marked::new();
    let text =
        "conn=jdbc:sqlite:tpcc.db\nwarehouses=2\nfileLocation=./\nloadidbegin=2\nloadidend=2\n";
    let file = props(&test, "part.conf", text);
    let said = refused(&test, &mut tpcc(&test, "build", &file, &[]));
    assert!(
        said.starts_with("saiga: sqlite file tpcc.db: warehouses 2 to 2 of 2 are a part"),
        "{said}"
    );
    assert!(
        said.ends_with("give the same --seed for all parts"),
        "{said}"
    );
}

#[test]
fn all_problems_of_a_props_file_are_reported_together() {
    let test = Marked::new();
    let bad = props(
        &test,
        "bad.conf",
        "warehouses=x\nterminal=3\nloadWorkers=0\n",
    );
    let said = refused(&test, &mut tpcc(&test, "build", &bad, &[]));
    assert_eq!(
        said,
        format!(
            "saiga: {bad}: conn is missing; line 1: warehouses is \"x\", not a whole number from \
             1; line 2: unknown key terminal (did you mean terminals?); line 3: loadWorkers is \
             \"0\", not a whole number from 1 to 10000"
        )
    );
    let said = refused(&test, &mut tpcc(&test, "check", "/no/such/file", &[]));
    assert!(
        said.starts_with("saiga: cannot read /no/such/file: No such file"),
        "{said}"
    );
    let program = test.text("bin/saiga");
    let said = refused(&test, &mut tpcc(&test, "check", &program, &[]));
    assert!(
        said.starts_with(&format!("saiga: {program}: line ")),
        "{said}"
    );
    let text = format!("conn=jdbc:sqlite:{}\nwarehouses=1\n", test.text("none.db"));
    let one = props(&test, "one.conf", &text);
    for (arguments, wanted) in [
        (
            &["--sql", "/no/folder"][..],
            "--sql /no/folder: the directory has neither sql.sqlite nor sql.common",
        ),
        (
            &["--only", "load"],
            "the file does not exist; create it with `saiga bench tpcc build`",
        ),
    ] {
        let said = refused(&test, &mut tpcc(&test, "build", &one, arguments));
        assert!(said.ends_with(wanted), "{said}");
    }
    let said = refused(&test, &mut tpcc(&test, "destroy", &one, &["--yes"]));
    assert!(
        said.ends_with("the file does not exist; create it with `saiga bench tpcc build`"),
        "{said}"
    );
    let part = format!(
        "conn=jdbc:sqlite:{}\nwarehouses=9\nloadidbegin=1\nloadidend=4\n",
        test.text("none.db")
    );
    let part = props(&test, "part.conf", &part);
    let said = refused(&test, &mut tpcc(&test, "build", &part, &[]));
    assert!(
        said.contains("warehouses 1 to 4 of 9 are a part of a load"),
        "{said}"
    );
    assert!(!test.path("none.db").exists());
}

/// A server that is down, and a user or database that does not exist.
#[test]
fn login_failures_of_postgres_are_named() {
    let test = Marked::new();
    is_down(&test, "postgresql");
    let server = postgres::Server::start(Arm::Kernel, &[]);
    let system = format!("postgresql://127.0.0.1:{}", server.port);
    accepts_login(&test, &system, "postgres", "postgres");
    test.assert_nothing_left();
}

#[test]
fn login_failures_of_mariadb_are_named() {
    let test = Marked::new();
    is_down(&test, "mysql");
    let server = mariadb::Server::start(mariadb::Kind::MariaDb, Arm::Kernel, &[]);
    let system = format!("mysql://127.0.0.1:{}", server.port);
    accepts_login(&test, &system, "root", "trial");
    test.assert_nothing_left();
}

fn is_down(test: &Marked, system: &str) {
    let (held, port) = taken_port();
    drop(held);
    let text = format!("conn=jdbc:{system}://127.0.0.1:{port}/t\nuser=u\nwarehouses=1\n");
    let down = props(test, "down.conf", &text);
    for step in ["build", "check", "destroy"] {
        let said = refused(test, &mut tpcc(test, step, &down, &[]));
        let wanted = format!("127.0.0.1:{port}: Connection refused");
        assert!(said.contains(&wanted), "{said}");
        assert!(
            said.ends_with("is the server running, and on this port?"),
            "{said}"
        );
    }
}

fn accepts_login(test: &Marked, system: &str, user: &str, database: &str) {
    let said = |user: &str, database: &str| {
        let text =
            format!("conn=jdbc:{system}/{database}\nuser={user}\npassword=wrong\nwarehouses=1\n");
        let file = props(test, "server.conf", &text);
        refused(test, &mut tpcc(test, "check", &file, &[]))
    };
    let stranger = said("stranger", database);
    assert!(
        stranger.contains("rejects user \"stranger\": "),
        "{stranger}"
    );
    assert!(
        stranger.ends_with("check user= and password="),
        "{stranger}"
    );
    let text = format!("conn=jdbc:{system}/nowhere\nuser={user}\nwarehouses=1\n");
    let file = props(test, "server.conf", &text);
    let nowhere = refused(test, &mut tpcc(test, "build", &file, &[]));
    assert!(
        nowhere.contains("has no database \"nowhere\" for this user: "),
        "{nowhere}"
    );
    assert!(
        nowhere.ends_with("create it, or correct conn="),
        "{nowhere}"
    );
    let text = format!("conn=jdbc:{system}/{database}\nuser={user}\nwarehouses=1\n");
    let file = props(test, "server.conf", &text);
    let empty = refused(test, &mut tpcc(test, "check", &file, &[]));
    assert!(
        empty.ends_with("there are no tables; `saiga bench tpcc build` creates and loads them"),
        "{empty}"
    );
}
