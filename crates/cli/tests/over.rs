//! `saiga compare redis|sql|tpcc --over`: real servers on a host of their own, with and without a
//! gateway. Needs root, ip(8), /dev/net/tun and Redis; with `soak` also MariaDB and PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use marked::{Marked, send};
use rustix::process::Signal;
use saiga_experiment::result::{ExperimentResult, Run};

/// One cell, a short run, and no limit on other processes.
const SMALL: [&str; 10] = [
    "compare",
    "redis",
    "--only",
    "get-c5-unpinned",
    "-c",
    "5",
    "--max-foreign",
    "100",
    "--seed",
    "1",
];
/// Requests of each run.
const REQUESTS: &str = "20000";

/// `saiga compare redis` with these further arguments.
fn compare(test: &Marked, more: &[&str]) -> Command {
    let mut saiga = test.saiga(&SMALL);
    saiga.args(more).args(["--out", &test.text("out")]);
    saiga
}

/// Redis's programs. After a load, redis-benchmark also writes the server's count of commands to
/// the file `served`; redis-cli asks for it from the client's host.
fn counting_programs(test: &Marked) -> String {
    let served = test.text("served");
    test.script(
        "programs/redis-benchmark",
        &format!(
            "#!/bin/sh\n/usr/bin/redis-benchmark \"$@\" || exit\ncase \"$*\" in *' -n '*)\n\
             /usr/bin/redis-cli -h 10.77.0.1 info commandstats >>{served};;\nesac\n"
        ),
    );
    for program in ["redis-server", "redis-cli"] {
        let own = test.path("programs").join(program);
        symlink(format!("/usr/bin/{program}"), own).unwrap();
    }
    format!("{}:/usr/bin:/bin", test.text("programs"))
}

/// The numbers of GETs that the servers counted, one for each run.
fn served(test: &Marked) -> Vec<String> {
    let text = fs::read_to_string(test.path("served")).unwrap();
    let calls = |line: &str| {
        let rest = line.strip_prefix("cmdstat_get:calls=")?;
        Some(rest.split_once(',')?.0.to_owned())
    };
    text.lines().filter_map(calls).collect()
}

fn runs<'a>(result: &'a ExperimentResult, arm: &str) -> Vec<&'a Run> {
    let all = result.runs.iter();
    all.filter(|run| run.arm == arm).collect()
}

#[test]
fn a_gateway_serves_every_request_of_another_host() {
    let test = Marked::with_real_library();
    let described = ["over a TAP device (wire0)", "a TAP device needs a program"];
    check_gateway(&test, "tap", described);
}

/// The client is under Saiga, too, and a gateway on its host carries its connections.
#[test]
fn gateways_on_both_hosts_share_memory() {
    let test = Marked::with_real_library();
    let described = ["memory that two gateways share", "only wakes a gateway"];
    check_gateway(&test, "memif", described);
    let client = &test.result().arms[1].client;
    assert!(client.starts_with("nsenter --net={client} "), "{client}");
}

/// Every request of every run is served, and the figures are those of the arm. `words` are in its
/// description, and in a warning.
fn check_gateway(test: &Marked, wire: &str, words: [&str; 2]) {
    let more = ["--over", wire, "--pairs", "2", "-n", REQUESTS];
    let mut saiga = compare(test, &more);
    let said = test.said(saiga.env("PATH", counting_programs(test)));
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    let names: Vec<&str> = result.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["kernel", "gateway"]);
    assert_eq!(served(test), [REQUESTS; 4]);
    assert_eq!(result.runs.len(), 4);
    for run in &result.runs {
        assert_eq!(run.rejected, None, "{}", run.arm);
        let metric = |name: &str| run.metrics[name];
        let found = metric("hit_share");
        assert!((found - 1.0).abs() < 1e-9, "{}: {found} found", run.arm);
        // The machine without the client did at least as much as the servers. The kernel's clocks
        // for machine and processes differ by some ticks of 10 ms.
        let (host, server) = (
            metric("server_host_cpu_us_per_op"),
            metric("server_cpu_us_per_op"),
        );
        assert!(host > server / 2.0, "{}: {host} and {server}", run.arm);
    }
    for run in runs(&result, "gateway") {
        let gateway = run.metrics["gateway_cpu_us_per_op"];
        assert!(gateway > 0.0 && gateway < run.metrics["server_cpu_us_per_op"]);
        assert!(run.metrics["channel_share"] >= 0.9, "{:?}", run.metrics);
        assert!(run.metrics["upgraded_sockets"] >= 5.0, "{:?}", run.metrics);
    }
    for run in runs(&result, "kernel") {
        assert_eq!(run.metrics.get("gateway_cpu_us_per_op"), None);
        assert_eq!(run.metrics.get("channel_share"), None);
    }
    let described = result.arms[1].description.as_deref().unwrap();
    assert!(described.contains(words[0]), "{described}");
    assert!(!result.host.kernel.is_empty());
    let is_host_cpu = |metric: &str| metric == "server_host_cpu_us_per_op";
    let mut compared = result.comparisons.iter();
    assert!(compared.any(|one| is_host_cpu(&one.metric)));
    let mut warnings = result.warnings.iter();
    assert!(warnings.any(|one| one.text.contains(words[1])));
    assert!(test.path("out/report.html").is_file());
    test.assert_nothing_left();
}

#[test]
fn the_kernel_is_compared_with_itself_over_a_veth_pair() {
    let test = Marked::new();
    let arms = ["--over", "veth", "--arms", "kernel,kernel"];
    let more = [&arms[..], &["--pairs", "1", "-n", REQUESTS]].concat();
    let mut saiga = compare(&test, &more);
    let said = test.said(saiga.env("PATH", counting_programs(&test)));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(served(&test), [REQUESTS; 2]);
    let result = test.result();
    let server = &result.arms[0].server;
    assert!(server.starts_with("nsenter --net={server} "), "{server}");
    assert!(result.arms[1].repeats(&result.arms[0]));
    test.assert_nothing_left();
}

#[test]
fn signals_leave_neither_servers_nor_gateways() {
    for (signal, code) in [
        (Signal::INT, Some(2)),
        (Signal::TERM, Some(2)),
        (Signal::KILL, None),
    ] {
        let test = Marked::with_real_library();
        let more = ["--over", "tap", "--pairs", "1000", "-n", REQUESTS];
        let mut saiga = compare(&test, &more);
        let saiga = saiga.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = saiga.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("2 of 2000 runs") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended early");
        }
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), code, "{signal:?}");
        test.wait_until_gone();
        if code.is_some() {
            assert!(test.result().interrupted.is_some(), "{signal:?}");
            test.assert_nothing_left();
        }
    }
}

#[test]
fn a_dry_run_prints_the_commands_of_both_hosts() {
    let test = Marked::with_library();
    let mut saiga = test.saiga(&SMALL);
    saiga.args(["--over", "tap", "--pairs", "1", "-n", REQUESTS, "--dry-run"]);
    // Neither programs nor rights are needed.
    let said = test.said(saiga.env("PATH", test.path("nowhere")).uid(65_534));
    assert_eq!(said.code, Some(0), "{said:?}");
    let folder = test.text("");
    let shown = said
        .stdout
        .replace(folder.trim_end_matches('/'), "{prefix}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/over/dry-run.txt");
    assert_eq!(shown, fs::read_to_string(file).unwrap(), "{file}");
}

/// The lines of `saiga compare` with these arguments, one pair and `--dry-run`.
fn dry_run(test: &Marked, words: &[&str]) -> Vec<String> {
    let more = ["--over", "tap", "--pairs", "1", "--seed", "1", "--dry-run"];
    let words = [&["compare"][..], words, &more].concat();
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.stdout.contains("refused"), "{}", said.stdout);
    test.assert_nothing_left();
    said.stdout.lines().map(str::to_owned).collect()
}

/// Checks that lines with these parts follow each other; other lines may be between them.
fn assert_in_order(lines: &[String], wanted: &[&[&str]]) {
    let mut rest = lines.iter();
    for parts in wanted {
        let has_all = |line: &String| parts.iter().all(|part| line.contains(part));
        assert!(rest.any(has_all), "{parts:?} in {lines:#?}");
    }
}

#[test]
fn a_dry_run_of_sql_prints_the_commands_of_both_hosts() {
    let test = Marked::with_library();
    let cell = "point-select-c1-unpinned";
    let lines = dry_run(&test, &["sql", "--engine", "mariadb", "--only", cell]);
    let server = "--bind-address=10.77.0.1 --port=3306 ";
    let client = "--mysql-host=10.77.0.1 --mysql-port=3306 ";
    let settings = "'addresses = [\"10.77.0.1/24\"]' '[[serve]]' 'port = 3306' ";
    assert_in_order(
        &lines,
        &[
            &["# arm kernel"],
            &["ip link add wire0 type veth peer name wire1 netns {client}"],
            &["nsenter --net={server} ", "mariadbd ", server],
            &["nsenter --net={client} ", "sysbench ", client],
            &["umount {server} {client}"],
            &["# arm gateway"],
            &[settings],
            &[
                "nsenter --net={server} ",
                "saiga gateway up --config ",
                " &",
            ],
            &[
                "nsenter --net={server} ",
                "LD_PRELOAD=",
                "mariadbd ",
                server,
            ],
            &["nsenter --net={client} ", "env SYSBENCH_TEST=", client],
            &["kill (PID of saiga gateway)"],
            &["umount {server} {client}"],
        ],
    );
}

#[test]
fn a_dry_run_of_tpcc_makes_the_hosts_of_each_run() {
    let test = Marked::with_library();
    let lines = dry_run(&test, &["tpcc", "--engine", "postgres"]);
    let server = "-c listen_addresses=10.77.0.1 -c port=5432 ";
    let run = "nsenter --net={client} saiga bench tpcc run ";
    assert_in_order(
        &lines,
        &[
            &["pair 1, arm kernel"],
            &["# make the two hosts"],
            &["nsenter --net={server} ", "postgres ", server],
            &["nsenter --net={client} pg_isready -h 10.77.0.1 -p 5432"],
            &["nsenter --net={client} saiga bench tpcc check "],
            &[run],
            &["# remove the two hosts"],
            &["pair 1, arm gateway"],
            &["nsenter --net={server} saiga gateway up --config "],
            &["nsenter --net={server} ", "saiga run --require -- ", server],
            &[run],
            &["kill (PID of saiga gateway)"],
        ],
    );
}

/// The servers admit only clients with the address 10.77.0.2, so this fails if the gateway hides
/// the client's address.
#[cfg(feature = "soak")]
#[test]
fn sql_servers_admit_the_client_by_its_address() {
    let test = Marked::with_real_library();
    let mut saiga = test.saiga(&["compare", "sql", "--engine", "mariadb,postgres"]);
    saiga.args([
        "--over",
        "tap",
        "--only",
        "select-c16-unpinned",
        "--pairs",
        "1",
    ]);
    saiga.args(["--seconds", "0.3", "--max-foreign", "100", "--seed", "1"]);
    let said = test.said(saiga.args(["--out", &test.text("out")]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    assert_eq!(result.runs.len(), 4);
    for run in &result.runs {
        assert_eq!(run.rejected, None, "{} {}", run.cell, run.arm);
        assert!(
            run.metrics["server_host_cpu_us_per_op"] > 0.0,
            "{}",
            run.cell
        );
    }
    for run in runs(&result, "gateway") {
        let gateway = run.metrics["gateway_cpu_us_per_op"];
        assert!(gateway > 0.0 && gateway < run.metrics["server_cpu_us_per_op"]);
        assert!(run.metrics["channel_share"] >= 0.9, "{:?}", run.metrics);
    }
    test.assert_nothing_left();
}

/// Each line is refused with the message, and leaves nothing.
fn assert_refused(lines: &[(&str, &str)]) {
    let test = Marked::with_library();
    let out = test.text("out");
    for (line, message) in lines {
        let line = format!("compare {line} --out {out}");
        let words: Vec<&str> = line.split(' ').collect();
        test.assert_refused(&words, message);
        assert!(!test.path("out").exists(), "{message}");
    }
}

const NO_WIRE: &str = "invalid value 'cable' for '--over <WIRE>'";
const OTHER_ARM: &str =
    "--arms: with --over, server and client are on two hosts; give kernel or gateway";

#[test]
fn bad_input_is_refused() {
    assert_refused(&[
        ("redis --over cable", NO_WIRE),
        (
            "redis --over tap --cluster",
            "--over needs --topology standalone, not cluster",
        ),
        (
            "redis --over tap --idle 10",
            "the argument '--over <WIRE>' cannot be used with '--idle <N>'",
        ),
        ("redis --over tap --arms kernel,saiga", OTHER_ARM),
        (
            "redis --over tap --arms gateway",
            "--arms needs two arms with --over: kernel,gateway",
        ),
        (
            "redis --arms kernel,gateway",
            "the gateway arm needs two hosts: add --over veth or --over tap",
        ),
        (
            "redis -c 50,10001",
            "-c 10001: redis-benchmark uses at most 10000 connections",
        ),
    ]);
}

#[test]
fn bad_input_of_databases_is_refused() {
    assert_refused(&[
        ("sql --engine mariadb --over cable", NO_WIRE),
        (
            "sql --engine mariadb --over tap --port 1",
            "the argument '--over <WIRE>' cannot be used with '--port <PORT>'",
        ),
        (
            "sql --engine mariadb --over tap --arms kernel,unix",
            OTHER_ARM,
        ),
        (
            "tpcc --engine mariadb --over tap --arms kernel,saiga",
            OTHER_ARM,
        ),
        (
            "tpcc --over tap --props p",
            "the argument '--over <WIRE>' cannot be used with '--props <FILE>'",
        ),
        (
            "tpcc --engine mariadb --arms kernel,gateway",
            "--arms: give at least two arms, each kernel or saiga",
        ),
        (
            "sql --engine mariadb,postgres --rate 1000",
            "--rate: sysbench logs no latency from a schedule; give --engine postgres",
        ),
    ]);
}

#[test]
fn a_user_without_rights_is_told_before_anything_starts() {
    let test = Marked::with_library();
    let said = test.refused(compare(&test, &["--over", "tap"]).uid(65_534));
    let wanted = "saiga: --over needs root, because it creates network namespaces: use sudo\n";
    assert_eq!(said, wanted);
    assert!(!test.path("out").exists());
}
