//! `saiga compare redis` and `saiga bench redis` with real servers: results, signals, leftovers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};

use marked::{Marked, pid, send, taken_port};
use rustix::process::{Signal, kill_process};
use saiga_experiment::result::{ExperimentResult, Run, Verdict};
use saiga_experiment::stats::RatioSummary;
use saiga_trials::witness::await_true;

const SMALL: [&str; 10] = [
    "compare",
    "redis",
    "--only",
    "set-c1-two",
    "--requests",
    "300",
    "--max-foreign",
    "100",
    "--seed",
    "1",
];

/// The values of one arm in one cell, by pair.
fn values(result: &ExperimentResult, cell: &str, arm: &str, metric: &str) -> Vec<f64> {
    let of = |run: &&Run| run.cell == cell && run.arm == arm && run.rejected.is_none();
    let mut runs: Vec<&Run> = result.runs.iter().filter(of).collect();
    runs.sort_by_key(|run| run.pair);
    runs.iter().map(|run| run.metrics[metric]).collect()
}

/// Kernel TCP is compared with itself. Of such comparisons, one in twenty shows a difference at 95
/// %; the test therefore fails only for a difference at the level of 1 in 10,000.
#[test]
fn kernel_against_itself_shows_no_difference() {
    let test = Marked::new();
    let cells = [
        "--only",
        "set-c50-one-core",
        "--only",
        "set-c50-p16-two-cores",
    ];
    let pace = [
        "--pairs",
        "6",
        "--seconds",
        "0.2",
        "--max-foreign",
        "100",
        "--arms",
        "kernel,kernel",
    ];
    let mut saiga = test.saiga(&["compare", "redis"]);
    let said = test.said(
        saiga
            .args(cells)
            .args(pace)
            .args(["--out", &test.text("out")]),
    );
    assert_eq!(said.code, Some(0), "{said:?}");

    let result = test.result();
    assert_eq!(
        result
            .arms
            .iter()
            .map(|arm| arm.name.as_str())
            .collect::<Vec<_>>(),
        ["kernel", "kernel (again)"]
    );
    let counted = result
        .runs
        .iter()
        .filter(|run| run.rejected.is_none())
        .count();
    assert_eq!((result.cells.len(), counted), (2, 24));
    for cell in &result.cells {
        for metric in ["throughput_ops_s", "server_cpu_us_per_op"] {
            let (a, b) = (
                values(&result, &cell.id, "kernel", metric),
                values(&result, &cell.id, "kernel (again)", metric),
            );
            let ratios: Vec<f64> = b.iter().zip(a).map(|(b, a)| b / a).collect();
            let summary = RatioSummary::of(&ratios).unwrap();
            assert!(
                summary.p_value > 1e-4,
                "{metric} in {}: {ratios:?}",
                cell.id
            );
        }
    }
    assert!(
        said.stdout.ends_with("out/report.html\n"),
        "{}",
        said.stdout
    );
    assert!(test.path("out/report.html").is_file());
    test.assert_nothing_left();
}

#[test]
fn an_unmet_expectation_exits_with_1() {
    let test = Marked::new();
    let mut saiga = test.saiga(&SMALL);
    saiga.args([
        "--pairs",
        "1",
        "--arms",
        "unix,kernel",
        "--expect",
        "faster",
        "--json",
    ]);
    let said = test.said(saiga.args(["--out", &test.text("out")]));
    assert_eq!(said.code, Some(1), "{said:?}");
    let printed = ExperimentResult::from_json(&said.stdout).unwrap();
    assert_eq!(printed.comparisons[0].verdict, Verdict::NoDifferenceShown);
    assert_eq!((printed.seed, printed.runs.len()), (Some(1), 2));
    assert!(said.stderr.contains("expected faster"), "{}", said.stderr);
    test.assert_nothing_left();
}

/// The library of this installation accelerates nothing, so its runs are not valid.
#[test]
fn runs_that_are_not_accelerated_do_not_count() {
    let test = Marked::with_library();
    let mut saiga = test.saiga(&SMALL);
    saiga.args([
        "--pairs",
        "4",
        "--arms",
        "kernel,saiga",
        "--out",
        &test.text("out"),
    ]);
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr
            .contains("no pair of runs is valid (not accelerated: "),
        "{}",
        said.stderr
    );
    let result = test.result();
    let saiga: Vec<_> = result
        .runs
        .iter()
        .filter(|run| run.arm == "saiga")
        .collect();
    assert_eq!(saiga.len(), 3, "given up after three");
    assert!(saiga.iter().all(|run| run.rejected.is_some()));
    assert!(result.headline.is_empty());
    test.assert_nothing_left();
}

#[test]
fn another_build_of_the_library_is_an_arm_named_after_its_file() {
    let test = Marked::with_library();
    let before = test.path("before.so");
    std::fs::copy(test.path("lib/saiga/libsaiga.so"), &before).unwrap();
    let before = before.to_str().unwrap();
    let words = ["compare", "redis", "--dry-run", "--pairs", "1"];
    let words = [&words[..], &["--arms", "kernel,saiga", "--library", before]].concat();
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    let server = format!("# arm before\nenv LD_PRELOAD={before} redis-server --port");
    assert!(said.stdout.contains(&server), "{}", said.stdout);

    let twice = format!("--library {before}: an arm named before exists already; rename the file");
    test.assert_refused(&[&words[..], &["--library", before]].concat(), &twice);
}

#[test]
fn files_that_cannot_be_preloaded_are_refused_before_the_start() {
    let test = Marked::with_library();
    let out = test.text("out");
    let [absent, folder, notes, spaced] =
        ["absent.so", "lib/saiga", "notes.so", "my build.so"].map(|name| test.text(name));
    std::fs::write(&notes, "no library").unwrap();
    std::fs::copy(test.path("lib/saiga/libsaiga.so"), &spaced).unwrap();
    let strange = "not a readable shared library; give the libsaiga.so of a build";
    for (library, message) in [
        (absent.as_str(), "No such file or directory"),
        (&folder, strange),
        (&notes, strange),
        (&spaced, "LD_PRELOAD cannot hold the path "),
    ] {
        let message = format!("--library {library}: {message}");
        for workload in [&["redis"][..], &["sql", "--engine", "mariadb"]] {
            let words = ["--out", &out, "--library", library];
            test.assert_refused(&[&["compare"][..], workload, &words].concat(), &message);
            assert!(!test.path("out").exists(), "{message}");
        }
    }
    test.assert_nothing_left();
}

#[test]
fn a_dry_run_prints_the_commands_and_runs_none() {
    let test = Marked::with_library();
    let mut saiga = test.saiga(&["compare", "redis", "--dry-run", "--pairs", "1", "--full"]);
    // PATH is empty, so that no program can be started.
    let said = test.said(saiga.env("PATH", test.path("nowhere")));
    assert_eq!(said.code, Some(0), "{said:?}");
    let library = test.text("lib/saiga/libsaiga.so");
    let server = format!("env LD_PRELOAD={library} redis-server --port {{port}} --bind 127.0.0.1");
    assert!(said.stdout.contains(&server), "{}", said.stdout);
    assert!(
        said.stdout
            .contains("redis-benchmark -s {dir}/redis.sock -t get -c 200")
    );
    assert!(said.stdout.contains("-k 0 --csv") && said.stdout.contains("--threads 2"));
}

/// Starts an endless comparison and waits for the end of its first visit.
fn started(test: &Marked) -> (Child, BufReader<ChildStderr>) {
    let mut saiga = test.saiga(&SMALL);
    saiga.args([
        "--pairs",
        "1000",
        "--arms",
        "kernel,unix",
        "--out",
        &test.text("out"),
    ]);
    let mut child = saiga
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("2 of 2000 runs") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended early");
    }
    (child, stderr)
}

#[test]
fn an_interrupt_stops_everything_and_keeps_finished_runs() {
    for signal in [Signal::INT, Signal::TERM] {
        let test = Marked::new();
        let (mut child, stderr) = started(&test);
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(2));
        let last = stderr.lines().last().unwrap().unwrap();
        assert!(
            last.contains("interrupted; the finished runs are in"),
            "{last}"
        );
        let result = test.result();
        assert!(
            result.runs.len() >= 2 && result.runs.len() < 2000,
            "{}",
            result.runs.len()
        );
        assert!(result.interrupted.is_some());
        assert!(
            result.warnings[0].text.contains("interrupted"),
            "{:?}",
            result.warnings
        );
        test.assert_nothing_left();
    }
}

/// The first signal waits for a stopped server; the second one does not.
#[test]
fn a_second_signal_kills_the_remaining_processes() {
    let test = Marked::new();
    let (mut child, _stderr) = started(&test);
    let is_server = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"redis-server")
    };
    let stops = || {
        // The server may end between the check and the signal; then the next server is stopped.
        let servers = test.processes_but(child.id());
        let mut servers = servers.into_iter().filter(is_server);
        servers.any(|server| kill_process(pid(server), Signal::STOP).is_ok())
    };
    await_true(stops, || "no server".to_owned());
    send(&child, Signal::INT);
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    test.wait_until_gone();
}

#[test]
fn nothing_survives_a_kill() {
    let test = Marked::new();
    let (mut child, _stderr) = started(&test);
    // Between two runs there is no server; the next one starts within milliseconds.
    let runs = || !test.processes_but(child.id()).is_empty();
    await_true(runs, || "no server".to_owned());
    send(&child, Signal::KILL);
    child.wait().unwrap();
    test.wait_until_gone();
}

#[test]
fn errors_are_one_line_and_exit_2() {
    let (_taken, port) = taken_port();
    let test = Marked::new();
    std::fs::write(test.path("file"), "").unwrap();
    let (out, under_a_file) = (test.text("out"), test.text("file/out"));
    for (words, message) in [
        (
            &["compare", "tpcc"][..],
            "give --engine mariadb or --engine postgres for a private server, or --props FILE with \
             --server 'COMMAND LINE' for your own",
        ),
        (
            &["compare", "plan.toml"],
            "cannot read plan.toml: No such file or directory",
        ),
        (&["bench", "redis"], "libsaiga.so is neither at"),
        (
            &[
                "compare",
                "redis",
                "--arms",
                "kernel,unix",
                "--only",
                "no-such-cell",
                "--dry-run",
            ],
            "--only no-such-cell: no cell's name contains this",
        ),
    ] {
        test.assert_refused(words, message);
    }
    for (more, message) in [
        (&[][..], "give --out DIR"),
        (&["--out", &under_a_file], "cannot write into"),
        (
            &["--out", &out, "--port", &port],
            &format!("port {port} on 127.0.0.1 is in use"),
        ),
    ] {
        let words = [&SMALL[..], &["--arms", "kernel,unix"], more].concat();
        test.assert_refused(&words, message);
    }
}

#[test]
fn a_missing_redis_is_named_with_its_package() {
    let test = Marked::new();
    for verb in [
        &["bench", "redis", "--arm", "kernel"][..],
        &[
            "compare",
            "redis",
            "--arms",
            "kernel,unix",
            "--out",
            &test.text("out"),
        ],
    ] {
        assert_eq!(
            test.refused(test.saiga(verb).env("PATH", test.path("nowhere"))),
            "saiga: redis-server is not installed (not found in PATH); \
             on Debian: apt-get install redis-server\n"
        );
        assert!(
            !test.path("out").exists(),
            "nothing is made before it can be used"
        );
    }
}

#[test]
fn a_missing_directory_for_temporary_files_is_named_once() {
    let test = Marked::new();
    let mut saiga = test.saiga(&["bench", "redis", "--arm", "kernel"]);
    let said = test.refused(saiga.env("TMPDIR", test.path("nowhere")));
    assert!(
        said.starts_with("saiga: cannot create a temporary directory: No such file"),
        "{said}"
    );
    assert!(
        said.ends_with("; set TMPDIR to one that is writable\n"),
        "{said}"
    );
}

/// The cells of `make bench-wait`: each type of load with few and with many connections, with and
/// without a hog.
#[test]
fn the_wait_policy_is_measured_with_every_type_of_load() {
    let test = Marked::with_library();
    let makefile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Makefile");
    let text = std::fs::read_to_string(makefile).unwrap();
    let (_, target) = text.split_once("\nbench-wait: ablation\n").unwrap();
    let recipe = target.lines().take_while(|line| line.starts_with('\t'));
    let commands = recipe.filter_map(|line| line.strip_prefix("\t$(release)/saiga "));
    let mut cells = BTreeSet::new();
    for command in commands {
        let command = command.replace(" $(without)", "");
        let words: Vec<&str> = command.split(' ').chain(["--dry-run"]).collect();
        let said = test.said(&mut test.saiga(&words));
        assert_eq!(said.code, Some(0), "{said:?}");
        let names = said
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("# ")?.strip_suffix(", pair 6"));
        cells.extend(names.map(str::to_owned));
    }
    let places = ["one-core", "two-cores", "unpinned"].map(|place| format!("set-c50-{place}"));
    let loads = [
        "mariadb-point-select-c16",
        "mariadb-point-select-c64",
        "mariadb-read-write-c16",
    ];
    let more = [
        "postgres-select-c16",
        "postgres-select-c64",
        "postgres-tpcb-c16",
    ];
    let unpinned = loads
        .iter()
        .chain(&more)
        .map(|load| format!("{load}-unpinned"));
    let both = places.iter().cloned().chain(unpinned);
    let both = both.flat_map(|cell| [format!("{cell}-hog-0"), cell]);
    let alone = ["one-core", "two-cores", "unpinned"].map(|place| format!("set-c1-{place}"));
    assert_eq!(cells, both.chain(alone).collect());
}

#[test]
fn bench_prints_one_run_record() {
    let test = Marked::new();
    let mut saiga = test.saiga(&[
        "bench", "redis", "--arm", "unix", "-t", "get", "-c", "3", "-n", "3000",
    ]);
    let said = test.said(saiga.args(["-r", "700", "-d", "100", "--json"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let run: Run = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (run.cell.as_str(), run.arm.as_str()),
        ("get-c3-100b-r700-unpinned", "unix")
    );
    assert!(run.metrics["throughput_ops_s"] > 0.0 && run.metrics["server_cpu_us_per_op"] > 0.0);
    assert_eq!(run.rejected, None);
    test.assert_nothing_left();
}
