//! `saiga compare tpcc` and `kind = "tpcc"`: on SQLite, on a private MariaDB, and refusals.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "compare_tpcc/interrupted.rs"]
mod interrupted;
mod marked;

use std::fs;

use marked::{Marked, taken_port};
use saiga_experiment::campaign::{Begin, Claim};
use saiga_experiment::result::{Detail, Run};
use saiga_tpcc::db::Session as _;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::sqlite::Sqlite;
use saiga_tpcc::props::Url;

/// An experiment on SQLite, which has no server: `sleep` runs in place of one.
const ON_SQLITE: &str = r#"
[plan]
pairs = 1
seed = 1
max_foreign_cores = 100
[[server]]
name = "none"
command = "sleep 1000"
ready = { command = "true" }
stop = { signal = "KILL" }
[[arm]]
name = "a"
[[arm]]
name = "b"
[workload]
kind = "tpcc"
props = "props"
options = ["--for", "6s", "--ramp-up", "200ms"]
[metrics]
devices = ["lo"]
"#;

/// A props file for the tables of MariaDB at `port`, followed by `more`.
fn props(test: &Marked, port: &str, more: &str) {
    let text = format!(
        "conn=jdbc:mysql://127.0.0.1:{port}/tpcc\nuser=u\npassword=p\nwarehouses=1\n{more}"
    );
    fs::write(test.path("props"), text).unwrap();
}

const RUN: &str = "terminals=2\nrunMins=1\n";

fn has_series(detail: &Detail, names: &[&str]) {
    for name in names {
        let found = detail.series.iter().find(|one| one.name == *name);
        let found = found.unwrap_or_else(|| panic!("{name} in {detail:?}"));
        assert!(found.is_even() && !found.at_s.is_empty(), "{found:?}");
        assert!(found.at_s.len() <= 300, "{found:?}");
    }
}

/// Checks the details that every run of TPC-C has in the result.
fn has_every_detail(run: &Run, folder: &str) {
    assert_eq!(run.rejected, None);
    for metric in [
        "tpmc_no_think_time",
        "tpm_total",
        "throughput_ops_s",
        "latency_p50_us",
        "latency_p95_us",
        "latency_p99_us",
        "client_cpu_us_per_op",
        "server_cpu_us_per_op",
    ] {
        assert!(
            run.metrics.contains_key(metric),
            "{metric} in {:?}",
            run.metrics
        );
    }
    let detail = run.detail.as_ref().unwrap();
    assert_eq!(detail.folder.as_deref(), Some(folder));
    let kinds: Vec<&str> = detail
        .transactions
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert!(kinds.starts_with(&["NEW_ORDER", "PAYMENT"]), "{kinds:?}");
    assert_eq!(detail.histograms.len(), kinds.len());
    assert_eq!(detail.marks[0].what, "measured");
    for when in ["before", "after"] {
        let what = format!("tables are consistent {when} the run");
        assert!(
            detail.checks.iter().any(|check| check.what == what),
            "{detail:?}"
        );
    }
    has_series(
        detail,
        &[
            "throughput_ops_s",
            "new_order_p95_ms",
            "concurrency",
            "errors_per_s",
        ],
    );
}

/// Checks that the result has the host's figures once, from the load.
fn has_the_host_once(run: &Run) {
    let detail = run.detail.as_ref().unwrap();
    let host = ["cpu_user_percent", "server_cpu_percent", "net_lo_rx_kb_s"];
    has_series(detail, &host);
    for name in host {
        let same = detail.series.iter().filter(|one| one.name == name);
        assert_eq!(same.count(), 1, "{name}");
    }
    assert!(run.metrics["host_client_cpu_s"] > 0.0, "{:?}", run.metrics);
}

#[test]
fn a_file_runs_tpcc_and_its_result_has_every_detail() {
    let test = Marked::new();
    let props = format!(
        "conn=jdbc:sqlite:{}\nwarehouses=1\nresultDirectory=once\n{RUN}",
        test.text("t.db")
    );
    fs::write(test.path("props"), props).unwrap();
    let built =
        test.said(&mut test.saiga(&["bench", "tpcc", "build", "--props", &test.text("props")]));
    assert_eq!(built.code, Some(0), "{built:?}");
    fs::write(test.path("e.toml"), ON_SQLITE).unwrap();
    let words = ["compare", &test.text("e.toml"), "--out", &test.text("out")];
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    assert_eq!(result.own_metrics[0].name, "tpmc_no_think_time");
    for (run, number) in result.runs.iter().zip(1..) {
        let folder = format!("runs/{number:04}-{}", run.arm);
        has_every_detail(run, &folder);
        has_the_host_once(run);
        assert!(test.path("out").join(&folder).join("series.csv").is_file());
    }
    let measured = |metric: &str| result.comparisons.iter().any(|one| one.metric == metric);
    assert!(measured("tpmc_no_think_time") && measured("latency_p95_us"));
    let page = fs::read_to_string(test.path("out/report.html")).unwrap();
    for told in [
        "NEW_ORDER",
        "Validity and consistency",
        "New-Orders, per second",
    ] {
        assert!(page.to_lowercase().contains(&told.to_lowercase()), "{told}");
    }
    test.assert_nothing_left();
    nothing_is_written_into_a_campaign_of_another_plan(&test);
}

/// A check before the load would see the tables that `before_run` creates, and a check before
/// `after_run` those that only the arm `a` removes again.
const BETWEEN_HOOKS: &str = r#"
[plan]
pairs = 1
max_foreign_cores = 100
[[server]]
name = "none"
command = "sleep 1000"
ready = { command = "true" }
stop = { signal = "KILL" }
[hooks]
before_arm = ["cp ${HERE}/sound.db ${HERE}/t.db"]
before_run = ["cp ${HERE}/broken.db ${HERE}/t.db"]
[[arm]]
name = "a"
hooks = { after_run = ["cp ${HERE}/sound.db ${HERE}/t.db"] }
[[arm]]
name = "b"
[workload]
kind = "tpcc"
props = "props"
options = ["--for", "500ms"]
check = "sample"
"#;

#[test]
fn checks_enclose_the_hooks_and_reject_a_run_but_keep_its_figures() {
    let test = Marked::new();
    let url = format!("jdbc:sqlite:{}", test.text("t.db"));
    let props = format!("conn={url}\nwarehouses=1\n{RUN}");
    fs::write(test.path("props"), props).unwrap();
    let built =
        test.said(&mut test.saiga(&["bench", "tpcc", "build", "--props", &test.text("props")]));
    assert_eq!(built.code, Some(0), "{built:?}");
    fs::copy(test.path("t.db"), test.path("sound.db")).unwrap();
    let url = Url::parse(&url).unwrap();
    let fault = "update bmsql_district set d_ytd = d_ytd - 0.01 where d_id = 3";
    let changed = Sqlite::open(&url).unwrap().run(fault, &mut Rows::new());
    assert_eq!(changed, Ok(1));
    fs::rename(test.path("t.db"), test.path("broken.db")).unwrap();
    fs::write(test.path("e.toml"), BETWEEN_HOOKS).unwrap();
    let words = ["compare", &test.text("e.toml"), "--out", &test.text("out")];
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(2), "no pair counts: {said:?}");
    let result = test.result();
    let of = |arm: &str| result.runs.iter().find(|run| run.arm == arm).unwrap();
    for (arm, why) in [
        ("a", "repeated because the run of b was rejected"),
        ("b", "the tables are not consistent after the run: §3.3.2"),
    ] {
        let run = of(arm);
        let rejected = run.rejected.as_deref().unwrap_or_default();
        assert!(rejected.starts_with(why), "{rejected:?}");
        assert!(run.metrics["tpm_total"] > 0.0, "{:?}", run.metrics);
        let checks = &run.detail.as_ref().unwrap().checks;
        let found = |when: &str| {
            let what = format!("tables are consistent {when} the run");
            let looks = checks.iter().filter(|check| check.what == what);
            looks.map(|check| check.found.clone()).collect::<Vec<_>>()
        };
        assert_eq!(found("before"), ["8 rules hold in 1 of 1 warehouses"]);
        assert_eq!(found("after").len(), 1);
    }
    test.assert_nothing_left();
}

/// The directory has an interrupted campaign of another plan.
fn nothing_is_written_into_a_campaign_of_another_plan(test: &Marked) {
    let record = test.path("out/campaign.jsonl");
    let text = fs::read_to_string(&record).unwrap();
    let (runs, end) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(end.contains("\"finished\""), "{end}");
    fs::write(&record, format!("{runs}\n")).unwrap();
    for name in ["tpcc.props", "experiment.toml"] {
        fs::write(test.path("out").join(name), "of the campaign").unwrap();
    }
    let out = test.text("out");
    let private = ["compare", "tpcc", "--engine", "mariadb", "--out", &out];
    let own = test.text("props");
    let server = ["--server", "sleep 1000", "--out", &out];
    let own = [&["compare", "tpcc", "--props", &own], &server[..]].concat();
    let (of_mariadb, port) = taken_port();
    props(test, &port, RUN);
    drop(of_mariadb);
    let campaign = format!("{out}/campaign.jsonl");
    for words in [&private[..], &own] {
        let unfinished = format!("{campaign} holds an unfinished campaign of 2 runs");
        test.assert_refused(words, &unfinished);
        let resumed = [words, &["--resume"]].concat();
        test.assert_refused(&resumed, &format!("{campaign} belongs to another plan ("));
    }
    let held = Claim::take(&test.path("out"), Begin::Resume).unwrap();
    test.assert_refused(&private, &format!("{campaign} is in use by another saiga"));
    drop(held);
    for name in ["tpcc.props", "experiment.toml"] {
        let left = fs::read_to_string(test.path("out").join(name)).unwrap();
        assert_eq!(left, "of the campaign");
    }
    test.assert_nothing_left();
}

/// The seed of a run.
fn seed_of(test: &Marked, run: &Run) -> u64 {
    let folder = &run.detail.as_ref().unwrap().folder;
    let path = test
        .path("out")
        .join(folder.as_ref().unwrap())
        .join("result.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    record["conditions"]["seed"].as_u64().unwrap()
}

#[test]
fn one_command_compares_on_a_private_server() {
    let test = Marked::with_real_library();
    let out = test.text("out");
    let words = [
        "compare",
        "tpcc",
        "--engine",
        "mariadb",
        "--warehouses",
        "1",
        "--terminals",
        "2",
        "--seconds",
        "2",
        "--pairs",
        "2",
        "--max-foreign",
        "100",
        "--out",
        &out,
    ];
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("Throughput: saiga divided by kernel"),
        "{}",
        said.stdout
    );
    let result = test.result();
    assert_eq!(result.runs.len(), 4);
    for (run, number) in result.runs.iter().zip(1..) {
        has_every_detail(run, &format!("runs/{number:04}-{}", run.arm));
        let upgraded = run.metrics.get("upgraded_sockets");
        assert_eq!(
            upgraded.is_some_and(|count| *count >= 2.0),
            run.arm == "saiga"
        );
        let share = run.metrics.get("channel_share");
        assert_eq!(share.is_some_and(|share| *share >= 0.9), run.arm == "saiga");
    }
    let seeds: Vec<u64> = result.runs.iter().map(|run| seed_of(&test, run)).collect();
    assert_eq!(
        (seeds[0], seeds[2]),
        (seeds[1], seeds[3]),
        "the arms of a pair have the same inputs"
    );
    assert_ne!(seeds[0], seeds[2]);
    // The settings of both servers are recorded, and the arms differ in one of them.
    let [kernel, saiga] = result.arms.as_slice() else {
        panic!("{:?}", result.arms);
    };
    assert_eq!(kernel.configuration["mariadb.skip_name_resolve"], "ON");
    let differs =
        |name: &&String| saiga.configuration.get(*name) != kernel.configuration.get(*name);
    let different: Vec<_> = kernel.configuration.keys().filter(differs).collect();
    assert_eq!(different, ["mariadb.saiga"]);
    assert!(test.path("out/experiment.toml").is_file() && test.path("out/tpcc.props").is_file());
    test.assert_nothing_left();
}

/// An error before the first step leaves no files.
#[test]
fn a_failed_start_leaves_no_files() {
    let test = Marked::new();
    let out = test.text("out");
    let private = ["compare", "tpcc", "--engine", "mariadb", "--out", &out];
    let told = test.refused(&mut test.saiga(&private));
    assert!(told.contains("libsaiga.so"), "{told}");
    assert!(!test.path("out").exists());
    // Nor in an existing directory.
    fs::create_dir(test.path("out")).unwrap();
    test.refused(&mut test.saiga(&private));
    props(&test, "1", RUN);
    let file = test.text("props");
    let line = ["--arm-a", "/no/such/mysqld", "--arm-b", "sleep 1"];
    let words = [
        &["compare", "tpcc", "--props", &file, "--out", &out],
        &line[..],
    ]
    .concat();
    let told = test.refused(&mut test.saiga(&words));
    assert!(
        told.contains("not on this machine: program /no/such/mysqld"),
        "{told}"
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}

/// Refuses a port or directory that another server uses.
#[test]
fn nothing_is_started_or_restored_over_a_running_server() {
    let test = Marked::with_library();
    let (taken, port) = taken_port();
    props(&test, &port, RUN);
    let (file, out) = (test.text("props"), test.text("out"));
    let compare = [
        "compare",
        "tpcc",
        "--props",
        &file,
        "--server",
        "sleep 1000",
        "--out",
        &out,
    ];
    let told = format!(
        "port {port} of server \"server\" is in use by process {} (",
        std::process::id()
    );
    let said = test.said(&mut test.saiga(&compare));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains(&told), "{}", said.stderr);
    drop(taken);

    fs::create_dir(test.path("data")).unwrap();
    let open = fs::File::create(test.path("data/ibdata1")).unwrap();
    props(&test, &port, &format!("{RUN}data={}\n", test.text("data")));
    let snapshot = test.text("snapshot");
    let words = [&compare[..], &["--snapshot", &snapshot]].concat();
    let told = format!("cannot take the snapshot {snapshot}: ");
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(2), "{said:?}");
    let who = format!(" (pid {}) has open ", std::process::id());
    assert!(
        said.stderr.contains(&told) && said.stderr.contains(&who),
        "{}",
        said.stderr
    );
    assert!(!test.path("snapshot").exists());
    drop(open);
    test.assert_nothing_left();
}

#[test]
fn missing_and_conflicting_options_are_reported() {
    let test = Marked::with_library();
    let (file, out) = (test.text("props"), test.text("out"));
    let with = |more: &[&str]| {
        let words = [&["compare", "tpcc", "--out", &out], more].concat();
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let refused = |more: &[&str], told: &str| {
        let words = with(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        test.assert_refused(&words, told);
    };
    refused(&[], "give --engine mariadb or");
    let two = ["--engine", "mariadb,postgres"];
    refused(&two, "invalid value 'mariadb,postgres'");
    refused(&["--server", "mysqld"], "--server needs --props FILE");
    for arms in ["kernel,unix", "kernel"] {
        let told = "--arms: give at least two arms, each kernel or saiga";
        refused(&["--engine", "mariadb", "--arms", arms], told);
    }
    refused(
        &["--engine", "mariadb", "--terminals", "21"],
        "--terminals 21: at most 20, ten for each",
    );
    refused(
        &["--engine", "mariadb", "-c", "5"],
        "unexpected argument '-c'",
    );
    test.assert_refused(
        &["compare", "redis", "--props", "x"],
        "unexpected argument '--props'",
    );

    props(&test, "3306", RUN);
    let own = ["--props", &file];
    refused(
        &own,
        &format!("give --server with the command line that starts the server of {file}"),
    );
    let both = [&own[..], &["--engine", "mariadb"]].concat();
    refused(&both, "--engine is not allowed with --props");
    let pipe = [&own[..], &["--server", "a | b"]].concat();
    refused(&pipe, "--server a | b: '|' is an operator of a shell");
    let two = [&own[..], &["--server", "a", "--server", "b"]].concat();
    refused(&two, "--server is given 2 times, but --props has 1 files");
    let nothing = test.text("none");
    let snapshot = [&own[..], &["--server", "a", "--snapshot", &nothing]].concat();
    refused(
        &snapshot,
        &format!("--snapshot {nothing}: no snapshot exists, and no props file has data="),
    );

    props(&test, "3306", "");
    let mute = [&own[..], &["--server", "sleep 1"]].concat();
    refused(
        &mute,
        &format!("{file} has no parameters of a run; add terminals, and runMins"),
    );
    fs::write(
        test.path("props"),
        format!("conn=jdbc:sqlite:x\nwarehouses=1\n{RUN}"),
    )
    .unwrap();
    refused(&mute, &format!("{file}: SQLite has no server"));
}

/// The server would be started and restored here, but another server would be measured.
#[test]
fn props_of_another_server_are_refused_before_the_start() {
    let test = Marked::with_library();
    fs::create_dir(test.path("data")).unwrap();
    let [file, data, out, snapshot] = ["props", "data", "out", "snapshot"].map(|it| test.text(it));
    let far =
        format!("conn=jdbc:mysql://192.0.2.10:3399/tpcc\nuser=u\nwarehouses=1\ndata={data}\n{RUN}");
    fs::write(test.path("props"), far).unwrap();
    let told = format!("{file}: conn= points to 192.0.2.10 (this machine does not have 192.0");
    let from_flags = ["compare", "tpcc", "--props", &file, "--snapshot", &snapshot];
    let server = ["--server", "/no/such/mysqld", "--out", &out];
    test.assert_refused(&[&from_flags[..], &server].concat(), &told);
    assert!(!test.path("snapshot").exists() && !test.path("out").exists());

    let experiment = "[[server]]\nname = \"db\"\ncommand = \"/no/such/mysqld\"\nport = 3399\n\
                      [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
                      [workload]\nkind = \"tpcc\"\nprops = \"props\"\n";
    fs::write(test.path("e.toml"), experiment).unwrap();
    let from_file = ["compare", &test.text("e.toml"), "--out", &out];
    test.assert_refused(&from_file, &told);
    props(&test, "3400", RUN);
    let told = format!(
        "{file}: conn= points to port 3400, on which arm \"a\" starts no server (server \"db\" has \
         3399); give both the same port"
    );
    test.assert_refused(&from_file, &told);
    let shown = test.said(&mut test.saiga(&["compare", &test.text("e.toml"), "--dry-run"]));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    has_line(&shown, &format!("# ! refused: {told}"));
}

/// A props file with all optional keys, whose directories exist.
fn hinted(test: &Marked) {
    for folder in ["data", "etc"] {
        fs::create_dir(test.path(folder)).unwrap();
    }
    fs::write(test.path("etc/my.cnf"), "").unwrap();
    let [data, profile, backup] = ["data", "etc/my.cnf", "backup"].map(|name| test.text(name));
    let hints = format!("{RUN}data={data}\nprofile={profile}\nbackup={backup}\n");
    props(test, "3399", &hints);
}

/// The output of a dry run with that file.
fn shown(test: &Marked, more: &[&str]) -> marked::Said {
    let file = test.text("props");
    let words = [
        "compare",
        "tpcc",
        "--props",
        &file,
        "--dry-run",
        "--pairs",
        "1",
    ];
    let said = test.said(&mut test.saiga(&[&words, more].concat()));
    assert_eq!(said.code, Some(0), "{said:?}");
    test.assert_nothing_left();
    said
}

fn has_line(said: &marked::Said, line: &str) {
    let lines = &said.stdout;
    assert!(lines.lines().any(|one| one == line), "{line} in {lines}");
}

#[test]
fn hints_of_the_props_file_become_server_and_restore() {
    let test = Marked::with_library();
    hinted(&test);
    let said = shown(&test, &["--seconds", "2"]);
    let server = format!("mysqld --defaults-file={} &", test.text("etc/my.cnf"));
    let props = test.text("props");
    // Both arms of the pair get the same seed.
    let (_, seed) = said.stdout.split_once("--json --seed ").unwrap();
    let seed = seed.lines().next().unwrap();
    let client = format!(
        "saiga bench tpcc run --props {props} --for 2000ms --no-check --json --seed {seed}"
    );
    for line in [server, client] {
        has_line(&said, &line);
        has_line(&said, &format!("saiga run --require -- {line}"));
    }
    let told = "is not a snapshot, so nothing is restored";
    assert!(said.stderr.contains(told), "{}", said.stderr);

    let (data, backup) = (test.text("data"), test.text("backup"));
    let said = shown(&test, &["--snapshot", &backup]);
    has_line(&said, &format!("saiga snapshot take {data} --to {backup}"));
    assert!(!test.path("backup").exists());
    let taken = test.said(&mut test.saiga(&["snapshot", "take", &data, "--to", &backup]));
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let said = shown(&test, &[]);
    let told = format!("# restore {data} from snapshot {backup}");
    assert!(said.stdout.contains(&told), "{}", said.stdout);
}

#[test]
fn arms_may_have_different_commands() {
    let test = Marked::with_library();
    hinted(&test);
    fs::write(test.path("line"), "taskset -c 0 \\\n  mysqld --port=3399\n").unwrap();
    let line = format!("@{}", test.text("line"));
    let said = shown(&test, &["--server", "mysqld", "--arm-b", &line]);
    has_line(&said, "mysqld &");
    has_line(&said, "taskset -c 0 mysqld --port=3399 &");
    assert!(!said.stdout.contains("saiga run"), "{}", said.stdout);
    let said = shown(&test, &["--arm-a", "mysqld", "--arm-b", "saiga run mysqld"]);
    has_line(&said, "mysqld &");
    has_line(&said, "saiga run --require -- mysqld &");
}

#[test]
fn a_dry_run_describes_a_private_server() {
    let test = Marked::with_library();
    let said = test.said(&mut test.saiga(&["compare", "tpcc", "--engine", "mariadb", "--dry-run"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = "# once: create the private server";
    assert!(said.stdout.starts_with(told), "{}", said.stdout);
    let against_itself = ["compare", "tpcc", "--engine", "mariadb", "--dry-run"];
    let against_itself = [&against_itself[..], &["--arms", "kernel,kernel"]].concat();
    let said = test.said(&mut test.saiga(&against_itself));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("pair 1, arm kernel (again)") && !said.stdout.contains("saiga run"),
        "{}",
        said.stdout
    );
    test.assert_nothing_left();
}
