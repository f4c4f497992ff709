//! `saiga bench sql`: the record, and the errors when its servers cannot run.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use marked::{Marked, send, taken_port};
use rustix::process::Signal;
use saiga_experiment::result::Run;
use saiga_process::account::Account;
use saiga_process::proc;
use saiga_trials::witness::await_true;

const ENGINES: [&str; 2] = ["mariadb", "postgres"];

/// Runs 0.1 s on kernel TCP, unless `more` overrides that.
fn bench(test: &Marked, engine: &str, more: &[&str]) -> Command {
    let mut saiga = test.saiga(&["bench", "sql", "--engine", engine]);
    if !more.contains(&"--seconds") {
        saiga.args(["--seconds", "0.1"]);
    }
    saiga.args(more);
    saiga
}

#[test]
fn one_run_is_recorded() {
    for (engine, cell) in ENGINES.into_iter().zip([
        "mariadb-read-write-c3-one-core",
        "postgres-tpcb-c3-one-core",
    ]) {
        let test = Marked::with_real_library();
        let more = ["-t", "read-write", "-c", "3", "--placement", "one-core"];
        let said = test.said(bench(&test, engine, &more).arg("--json"));
        assert_eq!(said.code, Some(0), "{said:?}");
        let run: Run = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!((run.cell.as_str(), run.arm.as_str()), (cell, "saiga"));
        assert_eq!(run.rejected, None);
        assert!((run.metrics["upgraded_sockets"] - 3.0).abs() < 1e-9);
        assert!(run.metrics["throughput_ops_s"] > 0.0 && run.metrics["server_cpu_us_per_op"] > 0.0);
        test.assert_nothing_left();
    }
}

#[test]
fn the_text_record_names_cell_and_arm() {
    let test = Marked::new();
    let more = ["--arm", "unix", "--reconnect", "-c", "2"];
    let said = test.said(&mut bench(&test, "postgres", &more));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout
            .starts_with("postgres-churn-c2-unpinned unix: 0."),
        "{}",
        said.stdout
    );
    for metric in ["throughput_ops_s", "server_cpu_us_per_op", "foreign_cpu_s"] {
        assert!(said.stdout.contains(metric), "{}", said.stdout);
    }
    test.assert_nothing_left();
}

/// The kill comes while a load of 15 minutes is running.
#[test]
fn nothing_survives_a_kill() {
    for (engine, tool) in ENGINES.into_iter().zip(["sysbench", "pgbench"]) {
        let test = Marked::new();
        let mut saiga = bench(&test, engine, &["--seconds", "1000", "--arm", "kernel"]);
        saiga.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = saiga.spawn().unwrap();
        let loads = |pid: &u32| proc::name(*pid) == tool;
        let (pid, is_served) = (child.id(), || test.servers() > 0);
        await_true(
            || is_served() && test.processes_but(pid).iter().any(loads),
            || format!("no load: {:?}", child.try_wait()),
        );
        send(&child, Signal::KILL);
        child.wait().unwrap();
        test.wait_until_gone();
    }
}

/// A shell script in place of a program; `REAL` is the path of that program.
fn with_stub(test: &Marked, saiga: &mut Command, program: &str, script: &str) {
    let write = |program: &str, script: &str| {
        let real = real(program);
        let script = script.replace("REAL", &real);
        let version = format!("[ \"$1\" = --version ] && exec {real} --version");
        test.script(
            &format!("stubs/{program}"),
            &format!("#!/bin/sh\n{version}\n{script}\n"),
        );
    };
    // PostgreSQL's tools are looked for beside its server.
    write("postgres", "exec REAL \"$@\"");
    write(program, script);
    saiga.env("PATH", format!("{}:/usr/bin:/bin", test.text("stubs")));
}

/// Debian installs PostgreSQL's programs outside of PATH.
fn real(program: &str) -> String {
    let folders = fs::read_dir("/usr/lib/postgresql").unwrap().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.extend(["/usr/bin", "/usr/sbin"].map(PathBuf::from));
    let mut paths = folders.iter().map(|folder| folder.join(program));
    let found = paths.rfind(|path| path.exists()).unwrap();
    found.display().to_string()
}

/// Faults, and the messages after `saiga: `.
#[test]
fn a_failing_program_is_quoted_and_all_processes_end() {
    let install = "echo looking; echo no room >&2; exit 3";
    let dies = "case \"$*\" in *--bootstrap*|*--single*|*--boot*|*--check*) exec REAL \"$@\";; esac\n\
                echo looking; echo no luck >&2; exit 1";
    let silent = "echo going; exit 7";
    let not_yet = "case $1 in -i) exec REAL \"$@\";; esac; echo going; exit 7";
    let cases = [
        (
            ("mariadb", "mariadb-install-db", install),
            "mariadb-install-db failed (exit status: 3); its output: looking | no room",
        ),
        (
            ("postgres", "initdb", install),
            "initdb failed (exit status: 3); its output: looking | no room",
        ),
        (
            ("mariadb", "mariadbd", dies),
            "mariadbd ended before it was ready; its output: looking | no luck",
        ),
        (
            ("postgres", "postgres", dies),
            "postgres ended before it was ready; its output: looking | no luck",
        ),
        (
            ("mariadb", "sysbench", silent),
            "sysbench failed (exit status: 7); its output: going",
        ),
        (
            ("postgres", "pgbench", not_yet),
            "bench sql: pgbench ended early (exit status: 7): going",
        ),
    ];
    for ((engine, program, script), wanted) in cases {
        let test = Marked::new();
        let mut saiga = bench(&test, engine, &["--arm", "kernel"]);
        with_stub(&test, &mut saiga, program, script);
        let said = test.refused(&mut saiga);
        assert_eq!(said, format!("saiga: {wanted}\n"), "{program}");
    }
}

/// As root, the servers run as another user, who needs access to the directory; other users run the
/// servers themselves.
#[test]
fn a_directory_that_the_servers_user_cannot_reach_is_named() {
    for engine in ENGINES {
        let test = Marked::new();
        let closed = test.path("tmp");
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
        let mut saiga = bench(&test, engine, &["--arm", "kernel"]);
        if !Account::is_root() {
            assert_eq!(test.said(&mut saiga).code, Some(0));
            continue;
        }
        let said = test.refused(&mut saiga);
        let user = if engine == "mariadb" {
            "mysql"
        } else {
            "postgres"
        };
        let (start, end) = (
            format!("saiga: the user {user}, as which "),
            format!("/{engine}; set TMPDIR to a folder that all users can write to\n"),
        );
        assert!(said.starts_with(&start) && said.ends_with(&end), "{said}");
    }
}

#[test]
fn more_connections_than_open_files_are_refused() {
    let test = Marked::new();
    let more = ["--arm", "kernel", "-c", "4000000000"];
    let said = test.refused(&mut bench(&test, "postgres", &more));
    assert!(
        said.starts_with("saiga: -c 4000000000 needs 4000000050 open files, but the limit is "),
        "{said}"
    );
}

/// The port is free when it is checked, but taken when the server binds it.
#[test]
fn a_port_taken_after_the_check_is_named() {
    let (_stranger, taken) = taken_port();
    let (free, port) = taken_port();
    drop(free);
    let scripts = [
        ("mariadbd", format!("exec REAL \"$@\" --port={taken}")),
        (
            "postgres",
            format!(
                "case \"$*\" in *port=*) exec REAL \"$@\" -c port={taken};; esac\nexec REAL \"$@\""
            ),
        ),
    ];
    for (engine, (program, script)) in ENGINES.into_iter().zip(scripts) {
        let test = Marked::new();
        let mut saiga = bench(&test, engine, &["--arm", "kernel", "--port", &port]);
        with_stub(&test, &mut saiga, program, &script);
        let said = test.refused(&mut saiga);
        let wanted =
            format!("saiga: port {port} on 127.0.0.1 is in use; choose another with --port");
        assert!(said.starts_with(&wanted), "{engine}: {said}");
    }
}
