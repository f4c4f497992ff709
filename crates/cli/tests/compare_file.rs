//! `saiga compare FILE.toml` with real servers: steps in order, hooks, faults, leftovers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "compare_file/after_load.rs"]
mod after_load;
#[path = "compare_file/figures.rs"]
mod figures;
mod marked;

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use marked::{Marked, taken_port};
use saiga_experiment::result::Run;

/// Two arms with `sh` as server, and a load that prints a figure.
const PLAIN: &str = r#"
[plan]
pairs = 1
seed = 1
max_foreign_cores = 100
[[server]]
name = "sleeper"
command = "sleep 1000"
ready = { command = "true" }
stop = { signal = "KILL" }
[[arm]]
name = "a"
[[arm]]
name = "b"
[workload]
kind = "command"
command = "sh -c 'echo load >> ${LOG}; echo rate 12.5'"
[[workload.metric]]
name = "rate_per_s"
regex = 'rate ([0-9.]+)'
unit = "1/s"
better = "higher"
"#;

/// A port that was free when this was called.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn set(name: &str, value: &str) -> [String; 2] {
    ["--set".to_owned(), format!("{name}={value}")]
}

/// Writes a file and returns the arguments that run it, with `${LOG}` set.
fn words(test: &Marked, text: &str) -> Vec<String> {
    fs::write(test.path("e.toml"), text).unwrap();
    let mut words = vec!["compare".to_owned(), test.text("e.toml")];
    words.extend(set("LOG", &test.text("log")));
    words.extend(["--out".to_owned(), test.text("out")]);
    words
}

fn run(test: &Marked, text: &str) -> marked::Said {
    let words = words(test, text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    test.said(&mut test.saiga(&words))
}

fn log(test: &Marked) -> Vec<String> {
    let text = fs::read_to_string(test.path("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The reasons for which runs were rejected.
fn rejections(test: &Marked) -> Vec<String> {
    let runs: Vec<Run> = test.result().runs;
    runs.into_iter().filter_map(|run| run.rejected).collect()
}

#[test]
fn redis_starts_every_run_with_the_needed_keys() {
    let test = Marked::new();
    let text = r#"
goal = "Two arms."
[plan]
pairs = 2
seed = 1
max_foreign_cores = 100
[[server]]
name = "redis"
command = "redis-server --port ${PORT} --bind 127.0.0.1 --save '' --dir ${HERE}"
port = "${PORT}"
ready = { probe = "redis" }
[[arm]]
name = "one"
[[arm]]
name = "two"
hooks = { before_arm = "echo two >> ${LOG}" }
[[arm.server]]
name = "redis"
env = { LANG = "C" }
[workload]
kind = "redis-benchmark"
flags = "-c 5 -n 2000 -r 500 -t set,get"
[restore]
kind = "flushall"
[hooks]
before_experiment = "echo begin >> ${LOG}"
before_run = "redis-cli -p ${PORT} DBSIZE >> ${LOG}"
after_experiment = "echo end >> ${LOG}"
[metrics]
fill = "/tmp"
"#;
    let mut words = words(&test, text);
    words.extend(set("PORT", &free_port().to_string()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    assert_eq!(result.goal.as_deref(), Some("Two arms."));
    assert_eq!(result.runs.len(), 8);
    let lines = log(&test);
    assert_eq!(
        (lines[0].as_str(), lines[lines.len() - 1].as_str()),
        ("begin", "end")
    );
    // The keys of the previous run do not affect the next one.
    let mut sizes = lines.iter().filter(|line| line.parse::<u32>().is_ok());
    for run in &result.runs {
        assert_eq!(run.rejected, None);
        assert!(run.metrics["fill_tmp_after_percent"] > 0.0);
        // One sampler ran; such a short run has no time series.
        let detail = run.detail.as_ref().unwrap();
        let folder = test.path("out").join(detail.folder.as_ref().unwrap());
        let host = fs::read_to_string(folder.join("host.csv")).unwrap();
        assert!(
            host.contains(",server_cpu_percent,") && host.contains(",net_lo_"),
            "{host}"
        );
        assert_eq!(detail.series, []);
        let reads = run.cell.starts_with("get");
        assert_eq!(
            sizes.next().unwrap(),
            if reads { "500" } else { "0" },
            "{run:?}"
        );
        assert_eq!(run.metrics.get("hit_share").copied(), reads.then_some(1.0));
    }
    assert_eq!(lines.iter().filter(|line| *line == "two").count(), 4);
    test.assert_nothing_left();
}

#[test]
fn hooks_are_nested() {
    let test = Marked::new();
    let hooks = "[hooks]\n\
        before_arm = \"echo arm >> ${LOG}\"\nafter_arm = \"echo /arm >> ${LOG}\"\n\
        before_start = \"echo start >> ${LOG}\"\nafter_start = \"echo /start >> ${LOG}\"\n\
        before_run = [\"echo run >> ${LOG}\", \"echo run2 >> ${LOG}\"]\n\
        after_run = \"echo /run >> ${LOG}\"\n";
    let own = "name = \"b\"\n[arm.hooks]\n\
        before_run = \"echo own >> ${LOG}\"\nafter_run = \"echo /own >> ${LOG}\"\n";
    let text = PLAIN.replace("name = \"b\"\n", own) + hooks;
    let said = run(&test, &text);
    assert_eq!(said.code, Some(0), "{said:?}");
    let before = ["arm", "start", "run", "run2"];
    let after = ["/run", "/start", "/arm"];
    let a = [&before[..], &["load"], &after].concat();
    let b = [&before[..], &["own", "load", "/own"], &after].concat();
    let lines = log(&test);
    let wanted = [[a.clone(), b.clone()].concat(), [b, a].concat()];
    assert!(wanted.iter().any(|wanted| *wanted == lines), "{lines:?}");
    let result = test.result();
    assert_eq!(result.versions["saiga_commit"], env!("SAIGA_COMMIT"));
    assert_eq!(result.own_metrics[0].name, "rate_per_s");
    assert!(
        result
            .runs
            .iter()
            .all(|run| run.metrics["rate_per_s"] == 12.5)
    );
    let unrestored = result
        .warnings
        .iter()
        .any(|one| one.text.contains("not restored"));
    assert!(unrestored, "{:?}", result.warnings);
    test.assert_nothing_left();
}

/// The rule `on_failure` decides whether the experiment ends; started programs are ended either
/// way.
#[test]
fn on_failure_decides_what_a_failing_hook_means() {
    let failing = |rule: &str| {
        format!(
            "{PLAIN}[hooks]\nafter_arm = \"echo /arm >> ${{LOG}}\"\n\
             before_run = {{ command = \"echo broken; exit 3\", on_failure = \"{rule}\" }}\n"
        )
    };
    let test = Marked::new();
    let said = run(&test, &failing("stop"));
    assert_eq!(said.code, Some(2), "{said:?}");
    let told =
        "saiga: the hook \"echo broken; exit 3\" before the run failed (exit status: 3): broken";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    assert_eq!(log(&test), ["/arm"]);
    test.assert_nothing_left();

    let test = Marked::new();
    let said = run(&test, &failing("reject"));
    assert_eq!(said.code, Some(2), "{said:?}");
    let reasons = rejections(&test);
    assert!(!reasons.is_empty());
    assert!(
        reasons.iter().all(|why| why.contains("exit status: 3")),
        "{reasons:?}"
    );

    let test = Marked::new();
    let said = run(&test, &failing("ignore"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let warnings = test.result().warnings;
    let told = warnings
        .iter()
        .any(|one| one.text.starts_with("2 failures of hooks were ignored"));
    assert!(told, "{warnings:?}");
}

#[test]
fn a_server_that_is_never_ready_is_reported_with_its_output() {
    let test = Marked::new();
    let ready = "ready = { command = \"echo no; exit 1\", timeout = \"1s\" }";
    let text = PLAIN.replace("ready = { command = \"true\" }", ready);
    let said = run(&test, &text);
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = "server \"sleeper\" was not ready after 1 s; its output: nothing; last probe: exit status: 1: no";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    assert_eq!(log(&test), [""; 0], "no load runs");
    test.assert_nothing_left();
}

#[test]
fn a_server_that_does_not_stop_is_killed_and_its_run_rejected() {
    let test = Marked::new();
    // It is ready once it ignores SIGTERM.
    let deaf = "command = \"sh -c 'trap : TERM; touch ${LOG}.up; while :; do sleep 0.05; done'\"";
    let text = PLAIN
        .replace("command = \"sleep 1000\"", deaf)
        .replace("command = \"true\"", "command = \"test -e ${LOG}.up\"")
        .replace(
            "{ signal = \"KILL\" }",
            "{ signal = \"TERM\", timeout = \"200ms\" }",
        );
    let text = format!("{text}[hooks]\nbefore_start = \"rm -f ${{LOG}}.up\"\n");
    let said = run(&test, &text);
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = "server \"sleeper\" did not end within 0.2 s; it was killed";
    assert!(
        rejections(&test).iter().all(|why| why == told),
        "{:?}",
        rejections(&test)
    );
    test.wait_until_gone();
}

#[test]
fn a_server_that_dies_during_the_load_is_reported() {
    let test = Marked::new();
    let text = PLAIN
        .replace(
            "command = \"sleep 1000\"",
            "command = \"sh -c 'echo oh; exec sleep 0.1'\"",
        )
        .replace("echo rate 12.5", "exec sleep 1000");
    let said = run(&test, &text);
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = "server \"sleeper\" ended (exit status: 0); its output: oh";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    test.assert_nothing_left();
}

#[test]
fn the_owner_of_a_taken_port_is_named_and_not_killed() {
    let test = Marked::new();
    let (taken, port) = taken_port();
    let text = PLAIN.replace(
        "name = \"sleeper\"",
        &format!("name = \"sleeper\"\nport = {port}"),
    );
    let said = run(&test, &text);
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = format!(
        "saiga: port {port} of server \"sleeper\" is in use by process {} (",
        std::process::id()
    );
    assert!(said.stderr.contains(&told), "{}", said.stderr);
    drop(taken);
    test.assert_nothing_left();
}

#[test]
fn a_process_in_the_data_directory_is_named() {
    let test = Marked::new();
    fs::create_dir(test.path("data")).unwrap();
    let open = fs::File::create(test.path("data/ibdata1")).unwrap();
    let data = format!("name = \"sleeper\"\ndata = {:?}", test.text("data"));
    let said = run(&test, &PLAIN.replace("name = \"sleeper\"", &data));
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = "saiga: the data of server \"sleeper\" are in use: ";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    let pid = format!(" (pid {}) has open ", std::process::id());
    assert!(said.stderr.contains(&pid), "{}", said.stderr);
    drop(open);
}

#[test]
fn errors_in_the_file_are_reported_before_the_start() {
    let test = Marked::new();
    let twice = PLAIN
        .replace("name = \"b\"", "name = \"a\"")
        .replace("better", "beter");
    let said = run(&test, &twice);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""));
    for told in [
        "e.toml is not a valid experiment file:\n",
        "arm \"a\" occurs twice; rename one of them",
        "workload.metric.beter is an unknown key; did you mean better?",
    ] {
        assert!(said.stderr.contains(told), "{told} in {}", said.stderr);
    }
    assert!(!test.path("out").exists());
    let missing = PLAIN.replace(
        "command = \"sleep 1000\"",
        "command = \"saiga-no-such-program\"",
    );
    let said = run(&test, &missing);
    assert_eq!(said.code, Some(2));
    let told = "saiga: not on this machine: program saiga-no-such-program; --dry-run shows which";
    assert!(said.stderr.starts_with(told), "{}", said.stderr);
    assert_eq!(log(&test), [""; 0]);
}

#[test]
fn an_unmet_expectation_exits_with_1() {
    let test = Marked::new();
    let said = run(&test, &format!("{PLAIN}[[expect]]\nratio_above = 1.05\n"));
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = "saiga: expectation not met: rate_per_s in command: too few pairs for an interval";
    assert!(said.stderr.contains(told), "{}", said.stderr);

    // The metric of the headline is not the first one.
    let test = Marked::new();
    let throughput = "[[workload.metric]]\nname = \"throughput_ops_s\"\nregex = 'rate ([0-9.]+)'\n\
                      unit = \"ops/s\"\nbetter = \"higher\"\n";
    let expect = "[[expect]]\nratio_above = 1.05\n";
    let said = run(&test, &format!("{PLAIN}{throughput}{expect}"));
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = "saiga: expectation not met: throughput_ops_s in command: too few pairs";
    assert!(said.stderr.contains(told), "{}", said.stderr);
}

#[test]
fn a_dry_run_changes_nothing() {
    let test = Marked::new();
    let hooks =
        "[hooks]\nbefore_experiment = \"echo x >> ${LOG}\"\nbefore_arm = \"rm -rf ${HERE}\"\n";
    let text = format!("{PLAIN}{hooks}").replace(
        "command = \"sleep 1000\"",
        "command = \"/opt/none/mysqld\"\ncpus = \"0,4000\"",
    );
    let mut words = words(&test, &text);
    words.push("--dry-run".to_owned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    for line in [
        "# ! not here: program /opt/none/mysqld",
        "# ! not here: CPUs 4000",
        "taskset -c 0,4000 /opt/none/mysqld &",
    ] {
        assert!(
            said.stdout.lines().any(|one| one == line),
            "{line} in {}",
            said.stdout
        );
    }
    assert!(!test.path("out").exists() && test.path("e.toml").exists());
    assert_eq!(log(&test), [""; 0]);
    test.assert_nothing_left();
}

#[test]
fn options_for_values_of_the_file_are_refused() {
    let test = Marked::new();
    let mut words = words(&test, PLAIN);
    words.extend(["--arms".to_owned(), "kernel".to_owned()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    test.assert_refused(&words, "unexpected argument '--arms'");
    let told = "unexpected argument '--set'";
    test.assert_refused(&["compare", "redis", "--set", "A=1"], told);
}

/// Examples that need hardware name it; those for Redis need only what tools/setup installs.
#[test]
fn every_example_has_a_dry_run() {
    let test = Marked::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut shown = 0;
    for entry in fs::read_dir(&examples).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // The other files are settings and props.
        if !name.ends_with(".toml") || !fs::read_to_string(&path).unwrap().contains("[[arm]]") {
            continue;
        }
        let said = test.said(&mut test.saiga(&["compare", path.to_str().unwrap(), "--dry-run"]));
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{name}");
        let lacks = said.stdout.contains("# ! not here: ");
        // One of them also needs an installed saiga.
        let needs = !name.starts_with("redis") || name == "redis-observed.toml";
        assert_eq!(lacks, needs, "{name}: {}", said.stdout);
        shown += 1;
    }
    assert_eq!(shown, 9);
    test.assert_nothing_left();
}

#[test]
fn every_run_begins_with_the_data_of_the_snapshot() {
    let test = Marked::new();
    let (data, snapshot) = (test.text("data"), test.text("snapshot"));
    fs::create_dir(&data).unwrap();
    fs::write(test.path("data/table"), "as it was\n").unwrap();
    let taken = test.said(&mut test.saiga(&["snapshot", "take", &data, "--to", &snapshot]));
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let text = PLAIN.replace("echo load >> ${LOG}", "echo more >> ${HERE}/data/table");
    let restore = "[restore]\nkind = \"snapshot\"\nparts = [\"${HERE}/data\"]\n\
                   snapshot = \"${HERE}/snapshot\"\n";
    let hooks = "[hooks]\nbefore_start = \"cat ${HERE}/data/table >> ${LOG}\"\n";
    let said = run(&test, &format!("{text}{restore}{hooks}"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(log(&test), ["as it was", "as it was"]);
    let changed = fs::read_to_string(test.path("data/table")).unwrap();
    assert_eq!(changed, "as it was\nmore\n", "the last run is not undone");

    fs::create_dir(test.path("other")).unwrap();
    let other = restore.replace("${HERE}/data", "${HERE}/other");
    fs::remove_dir_all(test.path("out")).unwrap();
    let said = run(&test, &format!("{text}{other}{hooks}"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("name the same directories"),
        "{}",
        said.stderr
    );
    test.assert_nothing_left();
}

/// A damaged snapshot is found before the first run.
#[test]
fn a_damaged_snapshot_and_a_file_outside_of_it_end_the_campaign() {
    let test = Marked::new();
    let (data, snapshot) = (test.text("data"), test.text("snapshot"));
    fs::create_dir(&data).unwrap();
    fs::write(test.path("data/table"), "as it was\n").unwrap();
    fs::write(test.path("redo"), "on another disk\n").unwrap();
    std::os::unix::fs::symlink(test.path("redo"), test.path("data/redo")).unwrap();
    let leave = "--leave-linked-files";
    let words = ["snapshot", "take", &data, "--to", &snapshot, leave];
    let taken = test.said(&mut test.saiga(&words));
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let restore = "[restore]\nkind = \"snapshot\"\nparts = [\"${HERE}/data\"]\n\
                   snapshot = \"${HERE}/snapshot\"\n";
    let said = run(&test, &format!("{PLAIN}{restore}"));
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = format!("the target of the link {data}/redo is not in {snapshot}");
    assert!(said.stderr.contains(&told), "{}", said.stderr);
    assert!(said.stderr.contains("linked_files = \"leave\""), "{said:?}");
    assert_eq!(log(&test), [""; 0]);
    fs::remove_dir_all(test.path("out")).unwrap();
    let said = run(
        &test,
        &format!("{PLAIN}{restore}linked_files = \"leave\"\n"),
    );
    assert_eq!(said.code, Some(0), "{said:?}");

    let stored = test.path("snapshot/files/0000000");
    let when = fs::metadata(&stored).unwrap().modified().unwrap();
    fs::write(&stored, "as it WAS\n").unwrap();
    fs::File::open(&stored).unwrap().set_modified(when).unwrap();
    fs::remove_dir_all(test.path("out")).unwrap();
    fs::remove_file(test.path("log")).unwrap();
    let said = run(
        &test,
        &format!("{PLAIN}{restore}linked_files = \"leave\"\n"),
    );
    assert_eq!(said.code, Some(2), "{said:?}");
    let told = format!("the snapshot {snapshot} is damaged: {data}/table (stored as ");
    assert!(said.stderr.contains(&told), "{}", said.stderr);
    assert_eq!(log(&test), [""; 0]);
    test.assert_nothing_left();
}

/// Results may be read by people who may not read the experiment file.
#[test]
fn passwords_stay_out_of_results() {
    let test = Marked::new();
    let secret = "hunter2";
    let client = format!("[client]\nenv = {{ PGPASSWORD = \"{secret}\", LANG = \"C\" }}\n");
    let text = PLAIN
        .replace(
            "[[arm]]\nname = \"a\"\n",
            &format!("{client}[[arm]]\nname = \"a\"\n"),
        )
        .replace(
            "name = \"sleeper\"",
            &format!("name = \"sleeper\"\nenv = {{ MYSQL_PWD = \"{secret}\" }}"),
        )
        .replace(
            "echo rate 12.5'",
            &format!("echo rate 12.5' --mysql-password={secret} redis-cli -a {secret}"),
        );
    let hooks = format!(
        "[hooks]\nbefore_run = {{ command = \
         \"REDISCLI_AUTH={secret} false\", on_failure = \"ignore\" }}\n"
    );
    let text = format!("{text}{hooks}");
    let mut words = words(&test, &text);
    let strs: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = test.said(&mut test.saiga(&strs));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(test.result().arms[0].env["MYSQL_PWD"], "***");
    for entry in fs::read_dir(test.path("out")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains(secret), "{}", path.display());
        }
    }
    assert!(!said.stdout.contains(secret) && !said.stderr.contains(secret));
    words.push("--dry-run".to_owned());
    let strs: Vec<&str> = words.iter().map(String::as_str).collect();
    let shown = test.said(&mut test.saiga(&strs));
    assert!(shown.stdout.contains("PGPASSWORD='***'"), "{shown:?}");
    assert!(!shown.stdout.contains(secret), "{shown:?}");
}

/// A hook that exceeds its limit is killed with all processes of its pipeline.
#[test]
fn a_hook_that_takes_too_long_is_killed_with_its_pipeline() {
    let test = Marked::new();
    let slow = "sleep 1000 | sleep 1000";
    let hooks = format!(
        "[hooks]\nbefore_run = {{ command = \
         \"{slow}\", timeout = \"300ms\", on_failure = \"ignore\" }}\n"
    );
    // The server is a shell that waits for its child, which is killed, too.
    let server = "command = \"sh -c 'sleep 1000; true'\"";
    let text = PLAIN.replace("command = \"sleep 1000\"", server);
    let said = run(&test, &format!("{text}{hooks}"));
    assert_eq!(said.code, Some(0), "{said:?}");
    test.assert_nothing_left();
}
