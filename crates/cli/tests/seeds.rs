//! The load generators of both arms of a pair get the same seed, and the next pair another one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use marked::Marked;

/// Two equal arms, without a limit on foreign CPU use.
const SMALL: [&str; 8] = [
    "--arms",
    "kernel,kernel",
    "--pairs",
    "2",
    "--max-foreign",
    "100",
    "--seed",
    "1",
];

/// A wrapper that adds --seed to redis-benchmark, which has no such option in Redis 7.0.
const REDIS: &str = r#"case "$1" in
    --help) echo ' --seed <num>  Set the seed for the random numbers.'; exit;;
esac
for word; do
    shift
    if [ "$skip" ]; then skip=; continue; fi
    case "$word" in --seed) skip=1; continue;; esac
    set -- "$@" "$word"
done"#;

/// Installs a program in PATH that logs its arguments and runs the real one.
fn noting(test: &Marked, program: &str, before: &str) {
    let log = test.path("log");
    fs::write(&log, "").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
    let log = log.display();
    let text = format!(
        "#!/bin/sh\necho \"{program} $*\" >> {log}\n{before}\nexec /usr/bin/{program} \"$@\"\n"
    );
    test.script(&format!("first/{program}"), &text);
}

/// Runs `saiga`, and returns the logged values of `option`.
fn seeds(test: &Marked, arguments: &[&str], program: &str, option: &str) -> Vec<String> {
    let path = std::env::var("PATH").unwrap();
    let mut saiga = test.saiga(arguments);
    saiga.args(["--out", &test.text(&format!("out-{program}"))]);
    let said = test.said(saiga.env("PATH", format!("{}:{path}", test.text("first"))));
    assert_eq!(said.code, Some(0), "{said:?}");
    let log = fs::read_to_string(test.path("log")).unwrap();
    let lines = log.lines().filter(|line| line.starts_with(program));
    let value = |line: &str| {
        let (_, rest) = line.split_once(option)?;
        Some(rest.split_whitespace().next()?.to_owned())
    };
    lines.filter_map(value).collect()
}

/// Checks two pairs of two runs, in the order of time. On a busy machine a run may not count; then
/// its pair is made again, with its seed.
fn assert_of_pairs(seeds: &[String], what: &str) {
    let pairs: Vec<&[String]> = seeds.chunks(2).collect();
    let is_pair = |pair: &&[String]| matches!(pair, [a, b] if a == b);
    assert!(
        pairs.iter().all(is_pair) && pairs.len() >= 2,
        "{what}: {seeds:?}"
    );
    assert_ne!(pairs[0], pairs[1], "{what}");
    let numbers: BTreeSet<u32> = seeds.iter().map(|seed| seed.parse().unwrap()).collect();
    assert_eq!(numbers.len(), 2);
}

#[test]
fn sysbench_and_pgbench_are_given_the_seed_of_their_pair() {
    for (engine, cell, program, option) in [
        (
            "mariadb",
            "mariadb-point-select-c1-unpinned",
            "sysbench",
            "--rand-seed=",
        ),
        (
            "postgres",
            "postgres-select-c1-unpinned",
            "pgbench",
            "--random-seed=",
        ),
    ] {
        let test = Marked::new();
        noting(&test, program, "");
        let words = ["compare", "sql", "--engine", engine, "--only", cell];
        let pace = ["--seconds", "0.1"];
        let words = [&words[..], &SMALL, &pace].concat();
        assert_of_pairs(&seeds(&test, &words, program, option), program);
        test.assert_nothing_left();
    }
}

#[test]
fn a_redis_benchmark_whose_help_names_a_seed_is_given_that_of_its_pair() {
    let test = Marked::new();
    noting(&test, "redis-benchmark", REDIS);
    let words = [
        "compare",
        "redis",
        "--only",
        "set-c1-unpinned",
        "--requests",
        "300",
    ];
    let words = [&words[..], &SMALL].concat();
    let program = "redis-benchmark";
    assert_of_pairs(&seeds(&test, &words, program, "--seed "), "compare redis");

    let file = format!(
        "[plan]\npairs = 2\nseed = 1\nmax_foreign_cores = 100\n\
         [[server]]\nname = \"redis\"\nport = {port}\nready = {{ probe = \"redis\" }}\n\
         command = \"redis-server --port {port} --bind 127.0.0.1 --save '' --dir ${{HERE}}\"\n\
         [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
         [workload]\nkind = \"redis-benchmark\"\nflags = \"-c 2 -n 300 -t set\"\n",
        port = saiga_trials::port::free()
    );
    fs::write(test.path("e.toml"), file).unwrap();
    fs::write(test.path("log"), "").unwrap();
    let words = ["compare", &test.text("e.toml")];
    assert_of_pairs(&seeds(&test, &words, program, "--seed "), "a file");
    test.assert_nothing_left();
}

/// The old program would fail with an unknown option.
#[test]
fn a_redis_benchmark_without_a_seed_is_given_none() {
    let test = Marked::new();
    noting(&test, "redis-benchmark", "");
    let words = [
        "compare",
        "redis",
        "--only",
        "set-c1-unpinned",
        "--requests",
        "300",
    ];
    let words = [&words[..], &SMALL].concat();
    let given = seeds(&test, &words, "redis-benchmark", "--seed ");
    assert_eq!(given, [""; 0]);
}
