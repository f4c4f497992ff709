//! Tests of whole files, valid and invalid.

use super::*;
use crate::result::{Better, Verdict};

/// The scope of checks and the options of a file with `lines` in `[workload]`, or its problems.
fn checked(lines: &str) -> Result<(Option<TableCheck>, Vec<String>), String> {
    let text = format!(
        "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
         [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n\
         [workload]\nkind = \"tpcc\"\nprops = \"p\"\n{lines}"
    );
    match Experiment::parse(Path::new("/f.toml"), &text, &[]) {
        Ok(file) => match file.workload.kind {
            Kind::Tpcc { check, options, .. } => Ok((check, options)),
            other @ (Kind::Redis { .. } | Kind::Command { .. }) => panic!("{other:?}"),
        },
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn the_check_of_tables_is_a_key_and_the_old_option_means_none() {
    assert_eq!(checked(""), Ok((None, vec![])));
    for check in TableCheck::EACH {
        let line = format!("check = {:?}", check.name());
        assert_eq!(checked(&line), Ok((Some(check), vec![])));
    }
    let old = "options = [\"--no-check\", \"--think\"]";
    let think = vec!["--think".to_owned()];
    assert_eq!(checked(old), Ok((Some(TableCheck::None), think)));
    for (lines, wanted) in [
        ("check = \"some\"", "check"),
        (
            "check = \"all\"\noptions = [\"--no-check\"]",
            "options contains --no-check, but check is \"all\"",
        ),
        (
            "options = [\"--check=none\"]",
            "options contains --check; use the key check instead",
        ),
    ] {
        let message = checked(lines).unwrap_err();
        assert!(message.contains(wanted), "{message}");
    }
}

/// A file whose client is on another host.
const HOSTS: &str = "[hosts]\nwire = \"tap\"\n\
                     [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\ngateway = true\n\
                     [[arm.server]]\nname = \"s\"\nsaiga = true\n\
                     [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n\
                     [workload]\nkind = \"tpcc\"\nprops = \"p\"\n";

/// The problems of a file whose client is on another host, with `to` in place of `from`.
fn problems_of_hosts(from: &str, to: &str) -> String {
    let text = HOSTS.replace(from, to);
    match Experiment::parse(Path::new("/f.toml"), &text, &[]) {
        Ok(file) => {
            assert_eq!(file.wire, Some(Wire::Tap));
            assert!(!file.arms[0].gateway && file.arms[1].gateway);
            let mut own = file.own_metrics(&[]).into_iter();
            assert!(own.any(|metric| metric.name == two_hosts::SERVER_HOST_CPU));
            String::new()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_client_whose_host_has_a_gateway_is_under_saiga() {
    let text = HOSTS.replace("\"tap\"", "\"memif\"");
    let text = text.replace("gateway = true\n", "gateway = true\nsaiga = true\n");
    let file = Experiment::parse(Path::new("/f.toml"), &text, &[]).unwrap();
    assert_eq!(file.wire, Some(Wire::Memif));
    let accelerated: Vec<bool> = file.arms.iter().map(|arm| arm.client.saiga).collect();
    assert_eq!(accelerated, [false, true]);
}

#[test]
fn two_hosts_need_tpcc_one_server_and_a_client_without_saiga() {
    assert_eq!(problems_of_hosts("tap", "tap"), "");
    for (from, to, wanted) in [
        ("[hosts]\nwire = \"tap\"\n", "", "hosts is missing"),
        ("wire = \"tap\"\n", "", "wire is missing"),
        ("\"tap\"", "\"cable\"", "cable"),
        ("\"tap\"", "\"memif\"", "add saiga = true to the arm"),
        (
            "port = 1\n",
            "ready = { command = \"x\" }\n",
            "hosts needs one server with a port",
        ),
        (
            "gateway = true\n",
            "gateway = true\nsaiga = true\n",
            "remove saiga from the client",
        ),
        (
            "kind = \"tpcc\"\nprops = \"p\"",
            "kind = \"pgbench\"\ncommand = \"pgbench\"",
            "hosts needs the workload tpcc",
        ),
    ] {
        let message = problems_of_hosts(from, to);
        assert!(message.contains(wanted), "{wanted}: {message}");
    }
}

const WHOLE: &str = r#"
name = "two arms"
goal = "What Saiga is worth."

[vars]
PORT = 7379

[plan]
pairs = 8
until = "2%"
seed = 5

[[server]]
name = "redis"
command = "redis-server --port ${PORT} --save ''"
port = "${PORT}"
env = { LANG = "C", N = 1 }
cpus = "0-2,4"
memory_interleave = "0-1"
ready = { probe = "redis", timeout = "5s" }
stop = { command = "redis-cli -p ${PORT} SHUTDOWN NOSAVE", timeout = "9s" }

[client]
cpus = "3"

[[arm]]
name = "kernel"

[[arm]]
name = "saiga"
saiga = true
hooks = { before_arm = "echo before", after_arm = [{ command = "echo after", on_failure = "ignore" }] }
[[arm.server]]
name = "redis"
env = { N = 2 }
[arm.client]
saiga = false

[workload]
kind = "redis-benchmark"
flags = "-c 10 -n 1000 -r 100"
timeout = "2min"

[restore]
kind = "flushall"
drop_caches = true

[hooks]
before_run = ["sync", { command = "sleep 1", timeout = "3s", on_failure = "reject" }]

[metrics]
devices = "sda"
fill = ["/data"]

[[expect]]
verdict = "faster"
ratio_above = 1.05
"#;

fn read(text: &str) -> Result<Experiment, Vec<String>> {
    match Experiment::parse(Path::new("/exp/two.toml"), text, &[]) {
        Ok(experiment) => Ok(experiment),
        Err(FileError::Invalid { problems, .. }) => Err(problems),
        Err(FileError::Unreadable { error, .. }) => panic!("{error}"),
    }
}

fn problems(text: &str) -> Vec<String> {
    read(text).unwrap_err()
}

#[test]
fn a_whole_file_is_parsed() {
    let file = read(WHOLE).unwrap();
    assert_eq!((file.name.as_str(), file.plan.pairs), ("two arms", 8));
    assert_eq!((file.plan.until, file.plan.seed), (Some(0.02), Some(5)));
    let [kernel, saiga] = file.arms.as_slice() else {
        panic!("{:?}", file.arms)
    };
    let server = &kernel.servers[0];
    assert_eq!(
        server.command,
        ["redis-server", "--port", "7379", "--save", ""]
    );
    assert_eq!(server.port, Some(7379));
    assert_eq!(server.launch.cpus, [0, 1, 2, 4]);
    assert_eq!(server.ready.probe, Probe::Redis);
    assert_eq!(server.stop.limit.as_secs(), 9);
    assert!(!server.launch.saiga && saiga.servers[0].launch.saiga);
    assert_eq!(saiga.hooks.arm.after[0].failure, OnFailure::Ignore);
    assert_eq!(file.hooks.run.before[1].failure, OnFailure::Reject);
    assert_eq!(file.restore.how, How::FlushAll);
    assert_eq!(file.metrics.devices, ["sda"]);
    assert_eq!(file.expectations[0].verdict, Some(Verdict::Faster));
}

/// Others may read reports and identities that contain a printed file.
#[test]
fn launch_options_are_printed_without_passwords() {
    let text = WHOLE.replace("N = 1", "PGPASSWORD = \"hunter2\"");
    let shown = format!("{:?}", read(&text).unwrap().arms[0].servers[0].launch);
    assert!(shown.contains("\"PGPASSWORD\": \"***\""), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// An arm contains its differences; other options are common to all arms.
#[test]
fn an_arm_overrides_common_options() {
    let file = read(WHOLE).unwrap();
    let [kernel, saiga] = file.arms.as_slice() else {
        panic!("{:?}", file.arms)
    };
    let env = |arm: &Arm| {
        arm.servers[0]
            .launch
            .env
            .clone()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(env(kernel), [pair("LANG", "C"), pair("N", "1")]);
    assert_eq!(env(saiga), [pair("LANG", "C"), pair("N", "2")]);
    assert_eq!(saiga.servers[0].command, kernel.servers[0].command);
    assert_eq!(
        (saiga.client.saiga, saiga.client.cpus.as_slice()),
        (false, &[3][..])
    );
}

#[test]
fn a_variable_of_set_takes_precedence() {
    let sets = [("PORT".to_owned(), "9000".to_owned())];
    let file = Experiment::parse(Path::new("/exp/two.toml"), WHOLE, &sets).unwrap();
    assert_eq!(file.arms[0].servers[0].port, Some(9000));
}

#[test]
fn every_problem_is_reported_with_its_line() {
    let text = r#"
pears = 6
[[arm]]
name = "a"
saga = true
[[arm]]
name = "a"
[[server]]
name = "s"
command = "redis-server | tee log"
port = 70000
memory_bind = "0"
memory_interleave = "1"
ready = { probe = "rediss", timeout = "soon" }
data = "relative"
[workload]
kind = "redis-benchmark"
flags = "-h x"
[restore]
kind = "snapshot"
parts = ["/data"]
snapshot = "/data/backup"
[[expect]]
arm = "b"
[hooks]
before_rnu = "x"
before_run = { timeout = "1s" }
"#;
    let found = problems(text);
    let wanted = [
        "line 2: pears is an unknown key; known are",
        "line 5: arm \"a\".saga is an unknown key; did you mean saiga?",
        "line 6: arm \"a\" occurs twice; rename one of them",
        "line 10: server \"s\".command is \"redis-server | tee log\": '|' is an operator of a shell",
        "line 11: server \"s\".port must be a whole number from 1 to 65535",
        "line 12: server \"s\".memory_bind and memory_interleave exclude each other",
        "line 14: server \"s\".ready.probe is \"rediss\", not one of port, redis, mysql, postgres (did you mean \"redis\"?)",
        "line 14: server \"s\".ready.timeout is \"soon\", not a duration such as",
        "line 15: server \"s\".data contains relative, which is not an absolute path",
        "line 18: workload.flags -h cannot be set",
        "line 22: restore.snapshot is inside /data, which the restore replaces",
        "line 24: expect.arm is \"b\", not one of a, a",
        "line 26: hooks.before_rnu is an unknown key; did you mean before_run?",
        "line 27: before_run.command is missing",
    ];
    for start in wanted {
        let count = found.iter().filter(|one| one.starts_with(start)).count();
        assert_eq!(count, 1, "{start}\nin {found:#?}");
    }
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let found = problems("name = \"x\"\n[plan\npairs = 6\n");
    assert!(
        found.iter().any(|one| one.starts_with("line 2: ")),
        "{found:#?}"
    );
}

#[test]
fn a_topology_excludes_own_servers_and_hook_metrics() {
    let file = r#"
[[arm]]
name = "kernel"
[[arm]]
name = "saiga"
saiga = true
[workload]
kind = "redis-benchmark"
topology = "cluster"
"#;
    assert!(read(file).is_ok());
    let found = problems(&format!(
        "{file}[[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n"
    ));
    assert!(
        found[0].contains("for which Saiga starts the servers"),
        "{found:#?}"
    );
    let found = problems(&format!("{file}{MOVED}"));
    let wanted = "metric must be left out: with a topology no hook runs";
    assert!(found.iter().any(|one| one.contains(wanted)), "{found:#?}");
}

#[test]
fn figures_of_a_command_need_a_name_a_unit_and_a_direction() {
    let file = |metric: &str| {
        format!(
            "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
             [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n\
             [workload]\nkind = \"command\"\ncommand = \"load\"\n{metric}"
        )
    };
    let good = "metric = [{ name = \"rate_per_s\", regex = 'rate ([0-9]+)', unit = \"1/s\", better = \"higher\" }]";
    let metrics = read(&file(good)).unwrap().workload.metrics(&[]);
    assert_eq!(
        (metrics[0].name.as_str(), metrics[0].better),
        ("rate_per_s", Better::Higher)
    );
    let found = problems(&file(
        "metric = [{ name = \"Rate\", regex = 'rate', better = \"more\" }]",
    ));
    for part in [
        "name must consist of",
        "exactly one group",
        "better is \"more\"",
        "unit is missing",
    ] {
        assert!(
            found.iter().any(|one| one.contains(part)),
            "{part} in {found:#?}"
        );
    }
    let found = problems(&file(""));
    assert!(found[0].contains("add [[workload.metric]]"), "{found:#?}");
}

/// The name of TPC-C's throughput depends on its pauses, from the file or from props files.
#[test]
fn tpcc_has_no_time_out_and_its_metric_depends_on_its_pauses() {
    let file = |workload: &str| {
        let text = format!(
            "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
             [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n\
             [workload]\nkind = \"tpcc\"\nprops = \"p\"\n{workload}"
        );
        read(&text).unwrap().workload
    };
    let first = |workload: &Workload, of_props: &[&str]| {
        let of_props: Vec<String> = of_props.iter().map(|one| (*one).to_owned()).collect();
        workload.metrics(&of_props)[0].name.clone()
    };
    let plain = file("");
    assert_eq!(plain.limit(), None);
    assert_eq!(first(&plain, &["--for=9s"]), "tpmc_no_think_time");
    assert_eq!(first(&plain, &["--think"]), "tpmc");
    let limited = file("options = [\"--think\"]\ntimeout = \"9h\"\n");
    assert_eq!(limited.limit().map(|limit| limit.as_secs()), Some(9 * 3600));
    assert_eq!(first(&limited, &[]), "tpmc");
}

/// A props file among the options would escape the checks of `props`.
#[test]
fn props_files_among_options_are_refused() {
    let found = problems(
        "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
         [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n\
         [workload]\nkind = \"tpcc\"\nprops = \"p\"\noptions = [\"--props=q\", \"--think\"]\n",
    );
    let [found] = found.as_slice() else {
        panic!("{found:#?}");
    };
    assert!(
        found.contains("options contains --props; list all props files in props"),
        "{found}"
    );
}

/// A file with additions at its root and at its end.
fn measuring(root: &str, more: &str) -> String {
    format!(
        "{root}\n[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
         [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n\
         [workload]\nkind = \"pgbench\"\ncommand = \"load\"\n{more}"
    )
}

const MOVED: &str = "[[metric]]\nname = \"moved_bytes\"\nunit = \"B\"\nbetter = \"lower\"\n";

#[test]
fn the_headline_may_name_a_metric_of_hooks_drives_or_loads() {
    let hooks = "[hooks]\nafter_run = { command = \"x\", metrics = true }\n";
    let drives = "[metrics]\nwaf = \"/dev/nvme0n1\"\nwaf_every = \"10min\"\n";
    let more = format!("{hooks}{MOVED}{drives}");
    for (headline, unit) in [
        ("moved_bytes", "B"),
        ("waf", "flash/host"),
        ("latency_p99_us", "µs"),
        ("latency_mean_us", "µs"),
    ] {
        let file = read(&measuring(&format!("headline = {headline:?}"), &more)).unwrap();
        assert!(file.hooks.run.after[0].measures);
        assert_eq!(file.metrics.waf_every, Some(Duration::from_secs(600)));
        let own = file.own_metrics(&[]);
        let deciding: Vec<&Metric> = own.iter().filter(|metric| metric.decides).collect();
        assert_eq!(deciding.len(), 1, "{headline}");
        assert_eq!(
            (deciding[0].name.as_str(), deciding[0].unit.as_str()),
            (headline, unit)
        );
    }
    let own = read(&measuring("", &more)).unwrap().own_metrics(&[]);
    assert!(own.iter().all(|metric| !metric.decides), "{own:?}");
}

#[test]
fn impossible_restores_are_refused() {
    let flush = "[restore]\nkind = \"flushall\"\n";
    let wanted = "restore of kind flushall needs the workload redis-benchmark";
    let found = problems(&measuring("", flush));
    assert!(found.iter().any(|one| one.contains(wanted)), "{found:#?}");

    let text = format!(
        "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n[workload]\n\
         kind = \"redis-benchmark\"\ntopology = \"cluster\"\nflags = \"-c 5\"\n{flush}"
    );
    let wanted = "the servers of a topology start empty";
    let found = problems(&text);
    assert!(found.iter().any(|one| one.contains(wanted)), "{found:#?}");
}

#[test]
fn unknown_duplicate_and_misplaced_metrics_are_refused() {
    let latency = MOVED.replace("moved_bytes", "latency_mean_us");
    for (root, more, wanted) in [
        (
            "headline = \"moved\"",
            MOVED,
            "headline is \"moved\", which is not measured",
        ),
        (
            "",
            latency.as_str(),
            "metric \"latency_mean_us\" is already the name of a metric",
        ),
        (
            "",
            "metric = [{ name = \"waf\", regex = '([0-9.]+)', unit = \"x\", better = \"lower\" }]\n\
             [metrics]\nwaf = \"/dev/nvme0n1\"\n",
            "metric \"waf\" is already the name of a metric",
        ),
        (
            "",
            "[hooks]\nafter_experiment = { command = \"x\", metrics = true }\n",
            "after_experiment.metrics is not allowed here",
        ),
        (
            "",
            "[metrics]\nwaf_every = \"1h\"\n",
            "metrics.waf_every needs waf",
        ),
        (
            "",
            "[metrics]\nwaf = \"/dev/nvme0n1\"\nwaf_every = \"100ms\"\n",
            "metrics.waf_every must be at least a second",
        ),
    ] {
        let found = problems(&measuring(root, more));
        assert!(
            found.iter().any(|one| one.contains(wanted)),
            "{wanted} in {found:#?}"
        );
    }
}
