//! `saiga streams simulate` from the outside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

mod support;
use support::{Installation, Said, said, text};

const SMALL: [&str; 6] = ["--pages", "20000", "--ru-pages", "32", "--op", "0.28"];

fn simulate(saiga: &Installation, words: &[&str]) -> Said {
    let words: Vec<&str> = [&["streams", "simulate"], words].concat();
    said(&mut saiga.saiga(&words))
}

fn must(saiga: &Installation, words: &[&str]) -> Said {
    let said = simulate(saiga, words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    said
}

fn json(saiga: &Installation, words: &[&str]) -> Value {
    let words: Vec<&str> = [words, &["--json"]].concat();
    serde_json::from_str(&must(saiga, &words).stdout).unwrap()
}

/// Rings that are written at different rates, and a file that is not written at all.
fn trace() -> String {
    let mut text =
        "# saiga block trace 1\nt_ns,lba,len,op,file\n0,0,81920000,P,0=cold.ibd\n".to_owned();
    let (slow, fast) = (81_920_000_u64, 122_880_000_u64);
    for i in 0..20_000_u64 {
        let t_ns = i * 1000;
        let number = |n: u32, name: &str| {
            if i == 0 {
                format!("{n}={name}")
            } else {
                n.to_string()
            }
        };
        let (one, two) = (number(1, "db/slow.ibd"), number(2, "ib_logfile0"));
        // A step that is prime to the length makes the slow one look random.
        writeln!(
            text,
            "{t_ns},{},4096,W,{one}",
            slow + i * 7919 % 10_000 * 4096
        )
        .unwrap();
        writeln!(text, "{t_ns},{},4096,W,{two}", fast + i % 500 * 4096).unwrap();
    }
    text
}

#[test]
fn uniform_writes_are_shown_beside_theory() {
    let saiga = Installation::bare();
    let words = [&["--uniform"], &SMALL[..]].concat();
    let out = must(&saiga, &words);
    assert!(out.stdout.contains("write amplification 2.3"), "{out:?}");
    assert!(out.stdout.contains("theory              2.48"), "{out:?}");
    assert_eq!(
        out.stdout,
        must(&saiga, &words).stdout,
        "the same options, the same figures"
    );

    let found = json(&saiga, &words);
    let waf = found["result"]["waf"].as_f64().unwrap();
    assert!((2.2..2.48).contains(&waf), "{waf}");
    assert_eq!(found["device"]["unit_pages"], 32);
    assert_eq!(found["result"]["warm_up_pages"], 160_000);
    assert_eq!(found["result"]["intervals"].as_array().unwrap().len(), 12);
}

#[test]
fn streams_change_hot_and_cold_writes() {
    let saiga = Installation::bare();
    let base = [&["--hot-cold", "0.1/0.9"], &SMALL[..]].concat();
    let waf = |more: &[&str]| {
        let words = [&base[..], more].concat();
        json(&saiga, &words)["result"]["waf"].as_f64().unwrap()
    };
    let one = waf(&["--gc", "shared"]);
    let apart = waf(&["--streams", "2", "--isolation", "persistently"]);
    assert!(apart < 0.85 * one, "{apart} {one}");
    let out = must(
        &saiga,
        &[
            &base[..],
            &["--streams", "2", "--isolation", "persistently"],
        ]
        .concat(),
    );
    for expected in [
        "gc, handle 1",
        "two streams with the best split",
        "hot",
        "cold",
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {out:?}");
    }
}

/// An even split of the spare space is worth more to a small hot stream than greedy victims give.
#[test]
fn quotas_change_hot_and_cold_writes() {
    let saiga = Installation::bare();
    let base = [
        "--hot-cold",
        "0.1/0.9",
        "--streams",
        "2",
        "--isolation",
        "persistently",
    ];
    let base = [&base, &SMALL[..]].concat();
    let found = |quota: &str| json(&saiga, &[&base[..], &["--quota", quota]].concat());
    let waf = |found: &Value| found["result"]["waf"].as_f64().unwrap();
    let (none, even, data) = (found("none"), found("even"), found("data"));
    assert!(waf(&even) < 0.75 * waf(&none), "{even} {none}");
    assert!(
        (waf(&data) / waf(&none) - 1.0).abs() < 0.05,
        "{data} {none}"
    );
    assert_eq!(even["device"]["quota"], "even");
    let out = must(&saiga, &[&base[..], &["--quota", "even"]].concat());
    assert!(
        out.stdout
            .contains("greedy victims of the handle with most spare space;"),
        "{out:?}"
    );
    // What an interval says of itself.
    let last = &even["result"]["intervals"][11];
    assert_eq!(last["mixing_bits"], 0.0);
    assert_eq!(last["units_by_frontier"].as_array().unwrap().len(), 4);
    let moved = last["moved_pages_by_class"].as_array().unwrap();
    assert!(moved.iter().all(|pages| pages.as_u64() > Some(0)), "{last}");
    let one = json(&saiga, &[&["--hot-cold", "0.1/0.9"], &SMALL[..]].concat());
    let mixing = one["result"]["mixing_bits"].as_f64().unwrap();
    assert!((0.1..0.5).contains(&mixing), "{mixing}");
}

#[test]
fn sequential_writes_move_nothing() {
    let saiga = Installation::bare();
    for policy in ["greedy", "fifo", "cost-benefit", "choice:10", "windowed:9"] {
        let words = [&["--sequential", "--policy", policy], &SMALL[..]].concat();
        let found = json(&saiga, &words);
        assert_eq!(found["result"]["waf"], 1.0, "{policy}");
        assert_eq!(found["theory"][0]["waf"], 1.0, "{policy}");
    }
}

#[test]
fn a_trace_compares_rule_sets() {
    let saiga = Installation::bare();
    let (file, rules, idle) = (
        saiga.path("t.csv"),
        saiga.path("redo.toml"),
        saiga.path("idle.toml"),
    );
    fs::write(&file, trace()).unwrap();
    fs::write(
        &rules,
        "name = 'redo apart'\n[[assign]]\nmatch = 'ib_logfile'\nstream = 2\n",
    )
    .unwrap();
    fs::write(&idle, "[[assign]]\nmatch = 'undo'\nstream = 4\n").unwrap();
    let words = [
        "--trace",
        text(&file),
        "--rules",
        text(&rules),
        text(&idle),
        "--ru-pages",
        "64",
    ];
    let out = must(&saiga, &words);
    assert!(
        out.stderr
            .contains("note: idle: \"undo\" matches no file of the trace"),
        "{out:?}"
    );
    for expected in [
        "in 3 files\n40000 writes of 156 MiB, 0 discards of 0 B\n",
        "30500 distinct pages of 4.00 KiB, 20000 of which held data before; 40000 written by one",
        "90 % in use; the trace was repeated 7 times as warm-up",
        "redo apart, persistently isolated: ",
        "because these died in the same unit",
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {out:?}");
    }
    let found = json(&saiga, &words);
    let cases = found["cases"].as_array().unwrap();
    let waf = |case: usize| cases[case]["result"]["waf"].as_f64().unwrap();
    let names: Vec<&str> = cases
        .iter()
        .map(|case| case["rules"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["none", "redo apart", "redo apart", "idle", "idle"]);
    // Two rings that die at different times are exactly two rings when they are apart.
    assert!(waf(0) > 1.5, "{}", waf(0));
    assert_eq!([waf(1), waf(2)], [1.0, 1.0]);
    assert_eq!(
        waf(3),
        waf(0),
        "a rule that matches nothing changes nothing"
    );
    assert_eq!(cases[0]["flash_writes_ratio"], 1.0);
    assert_eq!(cases[2]["streams"], serde_json::json!([0, 2]));
}

/// Arguments and what the message must contain; `T` is a good trace, `BAD` one with a wrong line,
/// `EMPTY` one without writes, `R` good rules, `ODD` bad ones.
const BAD: &[(&[&str], &str)] = &[
    (
        &[],
        "--uniform|--hot-cold <R/F>|--sequential|--trace <FILE>",
    ),
    (&["--uniform", "--sequential"], "cannot be used with"),
    (
        &["--hot-cold", "0.1"],
        "use two shares between 0 and 1, as 0.1/0.9",
    ),
    (
        &["--hot-cold", "0.1/1.5"],
        "use two shares between 0 and 1, as 0.1/0.9",
    ),
    (
        &["--uniform", "--op", "0"],
        "over-provisioning 0: use a share above 0",
    ),
    (&["--uniform", "--op", "x"], "invalid value 'x' for '--op"),
    (
        &["--uniform", "--ru-pages", "100"],
        "100 pages per reclaim unit: use a power of two",
    ),
    (
        &["--uniform", "--policy", "lru"],
        "use greedy, fifo, cost-benefit, choice:D",
    ),
    (
        &["--uniform", "--policy", "choice:0"],
        "use greedy, fifo, cost-benefit, choice:D",
    ),
    (
        &["--uniform", "--policy", "windowed:-1"],
        "or windowed:W with the number of units",
    ),
    (
        &["--uniform", "--quota", "half"],
        "[possible values: none, even, data]",
    ),
    (
        &["--uniform", "--utilisation", "1.2"],
        "--utilisation 1.2: use a share",
    ),
    (&["--uniform", "--warm-up", "2"], "2 is not in 8..=1000"),
    (
        &[
            "--uniform",
            "--pages",
            "3000",
            "--op",
            "0.01",
            "--ru-pages",
            "2048",
        ],
        "cannot hold 3000 pages and a spare one",
    ),
    (&["--uniform", "--pages", "0"], "0 is not in 1..=4294967295"),
    (
        &["--uniform", "--pages", "4000000000", "--op", "1"],
        "scale the device down",
    ),
    (
        &["--hot-cold", "0.1/0.9", "--streams", "3"],
        "hot and cold data go to 1 or 2",
    ),
    (&["--uniform", "--rules", "R"], "cannot be used with"),
    (&["--sequential", "--handles", "3"], "cannot be used with"),
    (&["--trace", "T", "--pages", "9"], "cannot be used with"),
    (&["--trace", "/no/file"], "cannot open /no/file"),
    (&["--trace", "BAD"], "line 4: lba \"x\" is no whole number"),
    (
        &["--trace", "EMPTY"],
        "has no writes, so there is nothing to simulate",
    ),
    (&["--trace", "T", "--rules", "ODD"], "unknown field `rule`"),
    (
        &["--trace", "T", "--rules", "/no/rules"],
        "cannot read /no/rules",
    ),
    (
        &["--trace", "T", "--page-bytes", "5000"],
        "pages of 5000 bytes: use a power of two",
    ),
    (
        &["--trace", "T", "--handles", "0"],
        "0 handles: use 1 to 128",
    ),
    (
        &["--trace", "T", "--utilisation", "0"],
        "utilisation 0: use a share",
    ),
];

#[test]
fn bad_input_is_named() {
    let saiga = Installation::bare();
    let head = "# saiga block trace 1\nt_ns,lba,len,op,file\n";
    let files = [
        ("T", trace()),
        ("BAD", format!("{head}1,0,512,W,-\n2,x,512,W,-\n")),
        ("EMPTY", format!("{head}1,0,4096,D,-\n")),
        ("R", "[[assign]]\nmatch = 'a'\nstream = 1\n".to_owned()),
        ("ODD", "rule = 1\n".to_owned()),
    ];
    for (name, contents) in &files {
        fs::write(saiga.path(name), contents).unwrap();
    }
    for (words, expected) in BAD {
        let put = |word: &&str| match files.iter().find(|(name, _)| name == word) {
            Some((name, _)) => text(&saiga.path(name)).to_owned(),
            None => (*word).to_owned(),
        };
        let words: Vec<String> = words.iter().map(put).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let out = simulate(&saiga, &words);
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(2), ""),
            "{words:?}: {out:?}"
        );
        assert!(out.stderr.contains(expected), "{words:?}: {out:?}");
    }
}
