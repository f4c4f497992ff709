//! `saiga compare sql` with real servers: complete results, bad input, no processes left.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::process::Stdio;

use marked::{Marked, send, taken_port};
use rustix::process::Signal;
use saiga_experiment::result::{ExperimentResult, Run};
use saiga_trials::witness::await_true;

/// The metrics of every run with lasting connections.
const METRICS: [&str; 6] = [
    "throughput_ops_s",
    "latency_p50_us",
    "latency_p99_us",
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
    "total_cpu_us_per_op",
];

/// Two arms, one pair, 0.1 s, without a limit on foreign CPU use.
const SMALL: [&str; 8] = [
    "--pairs",
    "1",
    "--seconds",
    "0.1",
    "--max-foreign",
    "100",
    "--seed",
    "1",
];

fn result_of(test: &Marked, engine: &str, cells: &[&str]) -> ExperimentResult {
    let mut saiga = test.saiga(&["compare", "sql", "--engine", engine, "--full"]);
    saiga.args(SMALL).args(["--out", &test.text("out")]);
    for cell in cells {
        saiga.args(["--only", cell]);
    }
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(0), "{said:?}");
    test.assert_nothing_left();
    test.result()
}

/// Checks that every arm has all metrics, and that only Saiga's runs were accelerated.
fn assert_complete(result: &ExperimentResult, cells: &[&str]) {
    let arms: Vec<&str> = result.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(arms, ["kernel", "unix", "saiga"]);
    for cell in cells {
        for arm in &arms {
            let of = |run: &&Run| run.cell == *cell && run.arm == *arm;
            let run = result.runs.iter().rfind(of).unwrap();
            assert_eq!(run.rejected, None, "{cell} {arm}");
            let churn = cell.contains("churn");
            for metric in METRICS
                .iter()
                .filter(|name| !(churn && name.contains("latency")))
            {
                assert!(
                    run.metrics[*metric] > 0.0,
                    "{cell} {arm} {metric}: {:?}",
                    run.metrics
                );
            }
            let share = run.metrics.get("channel_share");
            assert_eq!(share.is_some(), *arm == "saiga" && !churn, "{cell} {arm}");
            assert!(share.is_none_or(|share| *share > 0.9), "{cell}: {share:?}");
        }
    }
    let durability = result
        .warnings
        .iter()
        .any(|one| one.text.contains("no operation waits for a disk"));
    assert!(durability, "{:?}", result.warnings);
}

/// Checks the program versions in the result, and the cells of one engine.
fn is_compared_completely(engine: &str, programs: [&str; 2], cells: [&str; 3]) {
    let result = result_of(&Marked::with_real_library(), engine, &cells);
    assert_complete(&result, &cells);
    for program in programs {
        assert!(result.versions.contains_key(program), "{program}");
    }
}

#[test]
fn mariadb_is_compared_completely() {
    let cells = [
        "mariadb-point-select-c16-unpinned",
        "mariadb-read-write-c1-unpinned",
        "mariadb-churn-c4-unpinned",
    ];
    is_compared_completely("mariadb", ["mariadbd", "sysbench"], cells);
}

#[test]
fn postgres_is_compared_completely() {
    let cells = [
        "postgres-select-c16-unpinned",
        "postgres-tpcb-c1-unpinned",
        "postgres-churn-c4-unpinned",
    ];
    is_compared_completely("postgres", ["postgres", "pgbench"], cells);
}

/// The library of this installation accelerates nothing, so its runs are not valid.
#[test]
fn runs_that_are_not_accelerated_do_not_count() {
    let test = Marked::with_library();
    let mut saiga = test.saiga(&[
        "compare",
        "sql",
        "--engine",
        "postgres",
        "--arms",
        "kernel,saiga",
    ]);
    saiga
        .args(SMALL)
        .args(["--only", "select-c1-unpinned", "--out", &test.text("out")]);
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr
            .contains("no pair of runs is valid (not accelerated: "),
        "{}",
        said.stderr
    );
    test.assert_nothing_left();
}

/// While PostgreSQL's backends are running: Ctrl-C, then SIGKILL.
#[test]
fn nothing_survives_an_interrupt_or_a_kill() {
    for signal in [Signal::INT, Signal::KILL] {
        let test = Marked::new();
        let mut saiga = test.saiga(&["compare", "sql", "--engine", "postgres"]);
        saiga.args([
            "--arms",
            "kernel,unix",
            "--only",
            "select-c16-unpinned",
            "--seconds",
            "100",
        ]);
        saiga.args(["--out", &test.text("out")]);
        let mut child = saiga
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The postmaster, its four helpers, and sixteen backends.
        await_true(
            || test.servers() >= 21,
            || format!("{} servers; {:?}", test.servers(), child.try_wait()),
        );
        send(&child, signal);
        let code = child.wait().unwrap().code();
        test.wait_until_gone();
        if signal == Signal::INT {
            assert_eq!(code, Some(2));
            test.assert_nothing_left();
        }
    }
}

#[test]
fn errors_exit_with_2() {
    let (_taken, port) = taken_port();
    let test = Marked::new();
    let out = test.text("out");
    let lost = format!("port {port} on 127.0.0.1 is in use");
    for (more, message) in [
        (&[][..], "give --engine mariadb, --engine postgres, or"),
        (
            &["--engine", "oracle"],
            "invalid value 'oracle' for '--engine",
        ),
        (
            &["--engine", "mariadb", "--requests", "9"],
            "unexpected argument '--requests'",
        ),
        (
            &["--engine", "mariadb", "--topology", "replica"],
            "unexpected argument '--topology'",
        ),
        (
            &["--cluster", "--dry-run"],
            "unexpected argument '--cluster'",
        ),
        (
            &["--engine", "postgres", "-c", "9", "-d", "3"],
            "unexpected argument '-c'",
        ),
        (
            &["--engine", "postgres", "--threads", "2"],
            "unexpected argument '--threads'",
        ),
        (&["--engine", "mariadb"], "libsaiga.so is neither at"),
        (
            &["--engine", "postgres", "--arms", "kernel,unix"],
            "give --out DIR",
        ),
        // The port is checked for both arms before the first run.
        (
            &[
                "--engine",
                "postgres",
                "--arms",
                "kernel,kernel",
                "--only",
                "c1-unpinned",
                "--out",
                &out,
                "--port",
                &port,
            ],
            &lost,
        ),
    ] {
        test.assert_refused(&[&["compare", "sql"][..], more].concat(), message);
    }
}

#[test]
fn a_missing_load_generator_is_named_with_its_package() {
    let test = Marked::new();
    let mut saiga = test.saiga(&[
        "compare",
        "sql",
        "--engine",
        "mariadb",
        "--arms",
        "kernel,unix",
    ]);
    saiga
        .env("PATH", test.path("nowhere"))
        .args(["--out", &test.text("out")]);
    assert_eq!(
        test.refused(&mut saiga),
        "saiga: sysbench is not installed (not found in PATH); on Debian: apt-get install \
         sysbench\n"
    );
    assert!(
        !test.path("out").exists(),
        "nothing is made before it can be used"
    );
}

#[test]
fn a_dry_run_prints_the_commands_and_runs_none() {
    let test = Marked::with_library();
    let mut saiga = test.saiga(&["compare", "sql", "--dry-run", "--pairs", "1", "--full"]);
    let said = test.said(saiga.env("PATH", test.path("nowhere")));
    assert_eq!(said.code, Some(0), "{said:?}");
    let preload = format!("LD_PRELOAD={}", test.text("lib/saiga/libsaiga.so"));
    for wanted in [
        "216 cells x 3 arms",
        &preload,
        "-b tpcb-like -c 256",
        "--threads=64",
        "-C -n",
    ] {
        let wanted = wanted.replace("216 cells", &format!("{} cells", cells_here()));
        assert!(said.stdout.contains(&wanted), "{wanted}");
    }
}

/// Expected number of cells: with one core there is no second placement and only one hog.
fn cells_here() -> usize {
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores > 1 { 216 } else { 72 }
}
