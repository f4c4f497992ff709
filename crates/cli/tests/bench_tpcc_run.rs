//! `saiga bench tpcc run` and `merge` on SQLite: a complete run, its files, and failures.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use saiga_tpcc::db::Session;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::sqlite::Sqlite;
use saiga_tpcc::props::Url;
use saiga_trials::witness::await_some;
use serde_json::{Value, json};

mod support;
use support::{Installation, Said, said, text};

/// One warehouse, built once for all tests of this file.
fn built() -> &'static Path {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, file) = BUILT.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("built.db");
        let props = dir.path().join("props");
        fs::write(
            &props,
            format!("conn=jdbc:sqlite:{}\nwarehouses=1\n", file.display()),
        )
        .unwrap();
        let saiga = Installation::bare();
        let out = said(&mut saiga.saiga(&["bench", "tpcc", "build", "--props", text(&props)]));
        assert_eq!(out.code, Some(0), "{out:?}");
        (dir, file)
    });
    file
}

/// A database and a props file for one test.
struct Bench {
    saiga: Installation,
}

impl Bench {
    fn new(more: &str) -> Self {
        let bench = Self {
            saiga: Installation::bare(),
        };
        fs::copy(built(), bench.path("t.db")).unwrap();
        bench.props("props", more);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.saiga.path(name)
    }

    fn props(&self, name: &str, more: &str) {
        let usual = format!(
            "conn=jdbc:sqlite:{}\nuser=u\npassword=PWbmsql\nwarehouses=1\nterminals=3\nlimitTxnsPerMin=0\n",
            self.path("t.db").display()
        );
        fs::write(self.path(name), usual + more).unwrap();
    }

    fn run(&self, more: &[&str]) -> Command {
        let mut command =
            self.saiga
                .saiga(&["bench", "tpcc", "run", "--props", text(&self.path("props"))]);
        command.args(more);
        command
    }

    fn merge(&self, dir: &Path) -> Said {
        said(
            &mut self
                .saiga
                .saiga(&["bench", "tpcc", "merge", text(dir), "--json"]),
        )
    }

    /// Starts a run and waits until its first transactions are in its file.
    fn under_way(&self, out: &str) -> Child {
        let mut command = self.run(&[
            "--for",
            "10min",
            "--no-check",
            "--result-csv",
            "--out",
            text(&self.path(out)),
        ]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let rows = self.path(out).join("data/result.csv");
        await_some(
            || fs::metadata(&rows).ok().filter(|file| file.len() > 0),
            || format!("no transactions in {}", rows.display()),
        );
        child
    }

    fn record(&self, out: &str) -> Value {
        let file = self.path(out).join("result.json");
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    }
}

const SHORT: &str = "runTxnsPerTerminal=40\nrunMins=0\n";

#[test]
fn a_run_leaves_consistent_tables_and_all_its_files() {
    let bench = Bench::new(&format!("{SHORT}resultDirectory={}\n", "result_%tY"));
    let out = bench.path("out");
    let run = said(&mut bench.run(&[
        "--seed",
        "11",
        "--result-csv",
        "--delivery",
        "queue",
        "--out",
        text(&out),
    ]));
    // Such a small sample fails no check, unless the machine is very slow.
    assert_eq!(run.code, Some(0), "{run:?}");
    let last: Vec<&str> = run.stdout.lines().rev().take(5).collect();
    assert_eq!(last[0], "Term-00, Transaction Count = 120");
    assert!(
        last[4].starts_with("Term-00, Measured tpmC (NewOrders) = "),
        "{last:?}"
    );
    assert!(run.stdout.contains("tpmC (no think time)"));
    assert!(run.stdout.contains("before the run") && run.stdout.contains("after the run"));
    let properties = fs::read_to_string(out.join("run.properties")).unwrap();
    assert!(properties.contains("password=***\n"), "{properties}");
    for file in [
        "result.json",
        "series.csv",
        "delivery.csv",
        "data/runInfo.csv",
        "data/tx_summary.csv",
    ] {
        let text = fs::read_to_string(out.join(file)).unwrap();
        assert!(!text.contains("PWbmsql"), "{file}");
    }
    let rows = fs::read_to_string(out.join("data/result.csv")).unwrap();
    let deferred = rows
        .lines()
        .filter(|row| row.contains("DELIVERY_BG"))
        .count();
    assert_eq!(rows.lines().count(), 1 + 120 + deferred);
    let record = bench.record("out");
    assert_eq!(
        record["tracks"]["measured"]["DELIVERY_BG"]["committed"],
        deferred
    );
    assert_eq!(
        (&record["end"], &record["errors"]),
        (&Value::from("done"), &Value::Array(Vec::new()))
    );
    assert!(!record.to_string().contains("PWbmsql"));
}

#[test]
fn an_existing_directory_is_refused_and_not_changed() {
    let bench = Bench::new(SHORT);
    let out = bench.path("out");
    let first = said(&mut bench.run(&["--no-check", "--seed", "4", "--out", text(&out)]));
    assert_eq!(first.code, Some(0), "{first:?}");
    let before = fs::read_to_string(out.join("result.json")).unwrap();
    let second = said(&mut bench.run(&["--no-check", "--seed", "4", "--out", text(&out)]));
    assert_eq!((second.code, second.stdout.as_str()), (Some(2), ""));
    assert!(second.stderr.contains("exists already"), "{second:?}");
    assert_eq!(fs::read_to_string(out.join("result.json")).unwrap(), before);
}

#[test]
fn ctrl_c_keeps_the_measured_part() {
    let bench = Bench::new("runMins=10\n");
    let child = bench.under_way("out");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("Term-00, Measured tpmC"), "{stdout}");
    let record = bench.record("out");
    assert_eq!(record["end"], "interrupted");
    assert!(
        record["run"]["metrics"]["tpmc_no_think_time"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert_eq!(record["unanswered"], 0);
}

/// Another process holds the write lock, so that no transaction gets an answer.
#[test]
fn a_hanging_database_does_not_delay_the_result() {
    let bench = Bench::new("runMins=10\n");
    let url = Url::parse(&format!("jdbc:sqlite:{}", bench.path("t.db").display())).unwrap();
    let (mut holder, mut rows) = (Sqlite::open(&url).unwrap(), Rows::new());
    holder.run("pragma journal_mode = wal", &mut rows).unwrap();
    holder.run("begin immediate", &mut rows).unwrap();
    let out = bench.path("out");
    let run = said(&mut bench.run(&["--for", "100ms", "--drain", "100ms", "--out", text(&out)]));
    assert!(
        run.stderr.contains(
            "the tables were not checked after the run: 3 connections still wait for an answer"
        ),
        "{run:?}"
    );
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stdout
            .contains("Nothing is measured: no transaction was done"),
        "{run:?}"
    );
    let record = bench.record("out");
    assert_eq!(record["unanswered"], 3);
    let after = &record["consistency"][1];
    assert_eq!(after["when"], "after");
    let why = after["not_checked"].as_str().unwrap();
    assert!(
        why.starts_with("3 connections still wait for an answer"),
        "{why}"
    );
    // With --check none, a missing check is not reported.
    let out = bench.path("unchecked");
    let brief = ["--for", "100ms", "--drain", "100ms", "--no-check"];
    let run = said(&mut bench.run(&[&brief[..], &["--out", text(&out)]].concat()));
    assert_eq!(run.code, Some(1), "{run:?}");
}

#[test]
fn a_killed_client_leaves_consistent_tables() {
    let bench = Bench::new(SHORT);
    let mut child = bench.under_way("out");
    child.kill().unwrap();
    child.wait().unwrap();
    // The check before a run fails on inconsistent tables.
    let next = said(&mut bench.run(&["--seed", "4"]));
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.stdout.contains("all rules hold"), "{next:?}");
}

#[test]
fn two_workers_make_one_run() {
    let bench = Bench::new(SHORT);
    let parts = bench.path("parts");
    let soon = SystemTime::now() + Duration::from_secs(8);
    let at = format!("@{}", soon.duration_since(UNIX_EPOCH).unwrap().as_secs());
    let worker = |share: &str| {
        let mut command = bench.run(&[
            "--worker",
            share,
            "--seed",
            "4",
            "--start-at",
            &at,
            "--out",
            text(&parts),
        ]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let workers = [worker("1/2"), worker("2/2")];
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let merged = bench.merge(&parts);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    let sum: Value = serde_json::from_str(&merged.stdout).unwrap();
    let done = |record: &Value| -> u64 {
        let tracks = record["tracks"]["measured"].as_object().unwrap().values();
        tracks
            .map(|track| {
                track["committed"].as_u64().unwrap() + track["rolled_back"].as_u64().unwrap()
            })
            .sum()
    };
    assert_eq!(done(&sum), 120);
    let again = said(&mut bench.run(&[
        "--worker",
        "1/2",
        "--seed",
        "4",
        "--start-at",
        &at,
        "--out",
        text(&parts),
    ]));
    assert_eq!(again.code, Some(2), "{again:?}");
    put_clocks(&parts, [0, -5_000_000]);
    let apart = bench.merge(&parts);
    assert_eq!(apart.code, Some(1), "{apart:?}");
    let sum: Value = serde_json::from_str(&apart.stdout).unwrap();
    let mut checks = sum["validity"].as_array().unwrap().iter();
    let windows = checks.find(|check| check["name"] == "windows of the workers coincide");
    let windows = windows.unwrap();
    assert_eq!(windows["verdict"], "fails");
    assert_eq!(windows["found"], "4999.6 to 5000.4 ms apart");
    fs::remove_file(parts.join("worker-2.json")).unwrap();
    let lost = bench.merge(&parts);
    assert_eq!(lost.code, Some(1), "{lost:?}");
    let told = "partial: worker 2 of 2 is missing; the figures are those of 2 of 3 terminals";
    assert!(lost.stderr.contains(told), "{lost:?}");
    let sum: Value = serde_json::from_str(&lost.stdout).unwrap();
    assert_eq!(sum["partial"]["missing"][0], 2);
    assert_eq!(done(&sum), 80);
}

/// SQLite has no server clock, so the test writes the clocks of two hosts into their parts.
fn put_clocks(parts: &Path, ahead_us: [i64; 2]) {
    for (worker, ahead_us) in (1..).zip(ahead_us) {
        let file = parts.join(format!("worker-{worker}.json"));
        let mut part: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(part.get("clock"), None);
        part["clock"] = json!({"server_ahead_us": ahead_us, "within_us": 200});
        fs::write(&file, part.to_string()).unwrap();
    }
}

/// The commands that the examples for Ansible, Slurm and Kubernetes share.
#[test]
fn the_examples_for_several_hosts_work() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tpcc-hosts");
    let bench = Bench::new(SHORT);
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.arg(examples.join(script)).stdin(Stdio::null());
        command
            .env("SAIGA", bench.path("bin/saiga"))
            .env("SEED", "4");
        command
    };
    let out = bench.path("out");
    let local = said(
        shell("local.sh")
            .args([&bench.path("props"), &out])
            .arg("8"),
    );
    assert_eq!(local.code, Some(0), "{local:?}");
    assert!(
        local.stdout.contains("Term-00, Transaction Count = 120"),
        "{local:?}"
    );
    assert!(out.join("result/result.json").exists());
}

/// A stand-in for Slurm runs the commands of the nodes.
#[test]
fn the_example_for_slurm_runs_its_workers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bench = Bench::new(SHORT);
    fs::create_dir(bench.path("fake")).unwrap();
    bench.saiga.script("fake/srun", SRUN);
    // The common start of the example is a minute ahead.
    bench
        .saiga
        .script("fake/date", "#!/bin/sh\necho $(($(/bin/date +%s) - 50))\n");
    let path = format!("{}:/usr/bin:/bin", bench.path("fake").display());
    let mut command = Command::new("sh");
    command
        .arg(root.join("examples/tpcc-hosts/slurm.sh"))
        .current_dir(bench.path(""));
    command
        .env("PATH", path)
        .env("SAIGA", bench.path("bin/saiga"))
        .env("PROPS", bench.path("props"));
    command
        .env("SLURM_SUBMIT_DIR", &root)
        .env("SLURM_JOB_ID", "77")
        .env("SLURM_JOB_NUM_NODES", "2");
    let job = said(command.stdin(Stdio::null()));
    assert_eq!(job.code, Some(0), "{job:?}");
    assert!(bench.path("tpcc-77/result/result.json").exists(), "{job:?}");
}

/// Runs two tasks in parallel, as srun does.
const SRUN: &str = "#!/bin/sh
shift
SLURM_PROCID=0 \"$@\" & first=$!
SLURM_PROCID=1 \"$@\" & second=$!
wait $first && wait $second
";

#[test]
fn several_databases_run_at_the_same_time_and_have_a_sum() {
    let bench = Bench::new(SHORT);
    let other = Bench::new(SHORT);
    let mut command = bench.run(&["--no-check", "--seed", "4"]);
    let run = said(command.arg("--props").arg(other.path("props")));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        run.stdout
            .matches("Term-00, Transaction Count = 120")
            .count(),
        2
    );
    assert!(
        run.stdout
            .contains("2 databases together: tpmC (no think time) "),
        "{}",
        run.stdout
    );
}

/// As with two props files that differ only in the port.
#[test]
fn databases_with_the_same_directory_get_one_each() {
    let bench = Bench::new("");
    let other = Bench::new("");
    let dir = bench.path("result");
    let more = format!("runMins=10\nresultDirectory={}\n", text(&dir));
    bench.props("props", &more);
    other.props("props", &more);
    let second = bench.path("result_2");
    let mut command = bench.run(&["--no-check", "--result-csv"]);
    command.arg("--props").arg(other.path("props"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let rows = second.join("data/result.csv");
    await_some(
        || fs::metadata(&rows).ok().filter(|file| file.len() > 0),
        || format!("no transactions in {}", rows.display()),
    );
    // The files of the first database cannot be written any more.
    fs::remove_dir_all(&dir).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("the figures above are all that remains of this run: cannot write"),
        "{stderr}"
    );
    assert_eq!(bench.record("result_2")["end"], "interrupted");
}

#[test]
fn conflicts_are_named_before_the_run() {
    let bench = Bench::new(SHORT);
    bench.props("bare", "");
    let load_only = format!(
        "conn=jdbc:sqlite:{}\nwarehouses=1\n",
        bench.path("t.db").display()
    );
    fs::write(bench.path("load"), load_only).unwrap();
    bench.props("many", &format!("{SHORT}warehouses=2\n"));
    fs::write(
        bench.path("none"),
        "conn=jdbc:sqlite:/no/such.db\nwarehouses=1\nterminals=1\nrunMins=1\n",
    )
    .unwrap();
    let with = |props: &str, more: &[&str]| {
        let mut command =
            bench
                .saiga
                .saiga(&["bench", "tpcc", "run", "--props", text(&bench.path(props))]);
        said(command.args(more))
    };
    for (props, more, expected) in [
        ("bare", &[][..], "one of them must be set"),
        (
            "load",
            &[],
            "set terminals, and runMins or runTxnsPerTerminal",
        ),
        ("many", &[], "warehouses=2, but 1 are loaded"),
        ("none", &[], "create it with `saiga bench tpcc build`"),
        ("props", &["--worker", "1/2"], "--start-at <WHEN>"),
        (
            "props",
            &["--worker", "3/2"],
            "the number of parts, such as 2/3",
        ),
        (
            "props",
            &["--rate", "600/min", "--think"],
            "cannot be used with",
        ),
        (
            "props",
            &["--rate", "fast"],
            "transactions per minute, such as 60000/min",
        ),
        (
            "props",
            &["--for", "90"],
            "give a time with a unit: 90s, 5min, 2h",
        ),
        (
            "props",
            &["--delivery-workers", "3"],
            "--delivery-workers needs --delivery queue",
        ),
        (
            "props",
            &["--ramp-up", "auto"],
            "--ramp-up auto needs runMins",
        ),
        ("props", &["--start-at", "@5"], "give a later time"),
    ] {
        let out = with(props, more);
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(2), ""),
            "{more:?}: {out:?}"
        );
        assert!(out.stderr.contains(expected), "{more:?}: {out:?}");
    }
}

#[test]
fn zero_and_huge_times_are_refused() {
    let bench = Bench::new(SHORT);
    for (more, expected) in [
        (["--for", "0s"], "must be greater than zero"),
        (["--for", "11years"], "at most ten years"),
        (["--ramp-up", "580000years"], "at most ten years"),
    ] {
        let out = said(&mut bench.run(&more));
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{out:?}");
        assert!(out.stderr.contains(expected), "{out:?}");
    }
}
