//! `saiga streams simulate` from the command line.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

mod bad_input;
mod memory;
mod recorded;
mod shares;
#[path = "../support/mod.rs"]
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

/// Files that are written cyclically at different rates, and a file that is not written.
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
        // A step that is coprime to the length makes the slow file look random.
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
fn uniform_writes_are_compared_with_theory() {
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

/// For a small hot stream, an even split of the spare space is better than greedy victims.
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
            .contains("greedy victims of the handle with the most spare space;"),
        "{out:?}"
    );
    // The content of an interval.
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
    for policy in ["greedy", "fifo", "cost-benefit", "choice:10"] {
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
        "30500 distinct pages of 4.00 KiB, 20000 of which held data before; one repetition writes 40000",
        "90 % live, 90 % ever written; the trace was repeated 7 times as warm-up",
        "redo apart, persistently isolated: ",
        "because of deaths in",
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
    // By streams and by hints, each initially and persistently isolated.
    let sets = [["redo apart"; 4], ["idle"; 4]].concat();
    assert_eq!(names, [&["none"], &sets[..], &["(oracle)"]].concat());
    // Two cyclic files with different lifetimes are exactly cyclic in separate streams.
    assert!(waf(0) > 1.5, "{}", waf(0));
    assert_eq!([waf(1), waf(2)], [1.0, 1.0]);
    assert_eq!(
        waf(5),
        waf(0),
        "a rule that matches nothing changes nothing"
    );
    assert_eq!(cases[0]["flash_writes_ratio"], 1.0);
    // One stream could save all its moves, and separate cyclic streams move nothing.
    let ceiling = 1.0 - 1.0 / waf(0);
    assert_eq!(cases[9]["ceiling"], ceiling);
    assert_eq!([&cases[1]["not_moved"], &cases[5]["not_moved"]], [1.0, 0.0]);
    let words = format!("no placement saves more than {:.1} % of", ceiling * 100.0);
    assert!(out.stdout.contains(&words), "{words}: {out:?}");
    assert!((1.0..waf(0)).contains(&waf(9)), "{}", waf(9));
    assert_eq!(cases[2]["streams"], serde_json::json!([0, 2]));
}

#[test]
fn without_rules_the_database_and_the_trace_decide() {
    let saiga = Installation::bare();
    let (plain, mysql) = (saiga.path("plain.csv"), saiga.path("mysql.csv"));
    fs::write(&plain, trace()).unwrap();
    let named = trace().replace("1=db/slow.ibd", "1=mysql.ibd");
    fs::write(&mysql, named).unwrap();
    for (file, expected) in [
        (&plain, &["suggested"; 4][..]),
        (&mysql, &[["mysql"; 4], ["suggested"; 4]].concat()),
    ] {
        let found = json(&saiga, &["--trace", text(file), "--simulations", "6"]);
        let cases = found["cases"].as_array().unwrap();
        let names: Vec<&str> = cases
            .iter()
            .map(|case| case["rules"].as_str().unwrap())
            .collect();
        assert_eq!(names, [&["none"], expected, &["(oracle)"]].concat());
        let waf = |case: &Value| case["result"]["waf"].as_f64().unwrap();
        let last = cases.len() - 2;
        assert!(
            waf(&cases[last]) < 0.9 * waf(&cases[0]),
            "{}",
            waf(&cases[last])
        );
    }
    let out = must(
        &saiga,
        &["--trace", text(&mysql), "--rules", "mysql", "none"],
    );
    // The cold table is not written; each of the two others has half of the bytes.
    assert!(
        out.stdout
            .contains("mysql: rules match 156 MiB of the 156 MiB written (100.0 %)"),
        "{out:?}"
    );
    assert!(!out.stderr.contains("matches no file"), "{out:?}");
}

#[test]
fn some_drives_know_only_hints() {
    let saiga = Installation::bare();
    let file = saiga.path("t.csv");
    let named = trace().replace("1=db/slow.ibd", "1=#ib_1_0.dblwr");
    fs::write(&file, named.replace("0=cold.ibd", "0=ibtmp1")).unwrap();
    let streams = |by: &str| {
        let found = json(
            &saiga,
            &["--trace", text(&file), "--rules", "mysql", "--by", by],
        );
        assert_eq!(found["by"], serde_json::json!([by]));
        assert_eq!(found["cases"][1]["by"], by);
        found["cases"][1]["streams"].as_array().unwrap().len()
    };
    // Temporary tables have the hint of the log, for which F2FS has no class.
    assert_eq!(
        [streams("stream"), streams("hint"), streams("f2fs")],
        [3, 2, 2]
    );
}

#[test]
fn units_of_several_sizes_are_several_devices() {
    let saiga = Installation::bare();
    let file = saiga.path("t.csv");
    fs::write(&file, trace()).unwrap();
    let words = [
        "--trace",
        text(&file),
        "--rules",
        "none",
        "--ru-pages",
        "32,64",
    ];
    let out = must(&saiga, &words);
    for expected in [
        "\n90 % live, 7 % spare, greedy\n",
        "reclaim units of 32 pages, greedy victims",
        "reclaim units of 64 pages, greedy victims",
        "WAF, 32 pages  to flash, 32 pages  WAF, 64 pages  to flash, 64 pages\n",
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {out:?}");
    }
    let found = json(&saiga, &words);
    let devices = found["devices"].as_array().unwrap();
    let sizes: Vec<_> = devices.iter().map(|device| &device["unit_pages"]).collect();
    assert_eq!(sizes, [32, 64]);
    let cases = found["cases"].as_array().unwrap();
    let waf = |case: usize| cases[case]["result"]["waf"].as_f64().unwrap();
    // Each size has its own oracle, because it is another drive.
    assert_eq!((cases.len(), &cases[2]["unit_pages"]), (4, &64.into()));
    assert_ne!(waf(0), waf(2));
    let row = |name: &str| {
        let mut lines = out.stdout.lines();
        let line = lines.find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let [one, two] = [0, 2].map(|case| format!("{:.3}", waf(case)));
    assert_eq!(row("none "), ["none", "one", "stream", &one, &two]);
    let page = saiga.path("page.html");
    must(&saiga, &[&words[..], &["--report", text(&page)]].concat());
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("WAF, 32 pages") && html.contains("WAF, 64 pages"));
}

#[test]
fn several_conditions_are_tabulated_and_reported() {
    let saiga = Installation::bare();
    let (file, page) = (saiga.path("t.csv"), saiga.path("page.html"));
    fs::write(&file, trace()).unwrap();
    let words = [
        "--trace",
        text(&file),
        "--rules",
        "astream",
        "--utilisation",
        "0.7,0.9",
        "--policy",
        "greedy",
        "--policy",
        "fifo",
        "--report",
        text(&page),
    ];
    let out = must(&saiga, &words);
    for expected in [
        "\n70 % live, 7 % spare, greedy\n",
        "\n90 % live, 7 % spare, fifo\n",
        "astream   persistently isolated",
        "streams by stream",
        "streams by hint",
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {out:?}");
    }
    assert!(
        out.stderr.contains(&format!("wrote {}", text(&page))),
        "{out:?}"
    );
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>"));
    for expected in [
        "70 % live, 7 % spare, fifo",
        "What would streams gain? t.csv",
        "db/slow.ibd",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    let found = json(&saiga, &words);
    let cases = found["cases"].as_array().unwrap();
    let of = |case: &Value| {
        (
            case["utilisation"].as_f64().unwrap(),
            case["policy"].as_str().unwrap().to_owned(),
        )
    };
    // One stream, one set by streams and by hints in two placements, and the oracle.
    let conditions: Vec<_> = cases.iter().step_by(6).map(of).collect();
    let expected = [
        (0.7, "greedy"),
        (0.7, "fifo"),
        (0.9, "greedy"),
        (0.9, "fifo"),
    ];
    assert_eq!(
        conditions,
        expected.map(|(used, policy)| (used, policy.to_owned()))
    );
    assert_eq!(
        (cases.len(), found["devices"].as_array().unwrap().len()),
        (24, 4)
    );
    assert_eq!(found["sets"][0]["matched_bytes"], 20_000 * 4096);
}

/// Nine logs, each of which is deleted before the next one is created.
fn deleted_logs() -> String {
    let mut text =
        "# saiga block trace 1\nt_ns,lba,len,op,file\n0,0,40960000,P,0=t.ibd\n".to_owned();
    let log = 8_192_000_u64;
    let place = |number: u64| 40_960_000 + number % 9 * log;
    for number in 0..18_u64 {
        let file = if number < 9 {
            format!("{0}=binlog.{0:06}", number + 1)
        } else {
            (number - 8).to_string()
        };
        let (t_ns, first) = (number + 1, place(number));
        writeln!(text, "{t_ns},{first},{log},W,{file}").unwrap();
        let mut page = number;
        for i in 0..3000_u64 {
            page = (page * 7919 + i) % 10_000;
            writeln!(text, "{t_ns},{},4096,W,0", page * 4096).unwrap();
        }
        writeln!(text, "{t_ns},{first},{log},D,{}", number % 9 + 1).unwrap();
    }
    text
}

#[test]
fn deleted_files_are_not_live_and_drives_without_discards_are_compared() {
    let saiga = Installation::bare();
    let file = saiga.path("t.csv");
    fs::write(&file, deleted_logs()).unwrap();
    let words = ["--trace", text(&file), "--rules", "none"];
    let out = must(&saiga, &words);
    // 10,000 pages of a table and 2000 of a log; 28,000 pages in all.
    for expected in [
        "\n90 % live, 7 % spare, greedy\n",
        "\n90 % live, 7 % spare, greedy, no discards\n",
        "90 % live, 21",
        " % ever written; the trace was repeated",
    ] {
        assert!(out.stdout.contains(expected), "{expected}: {out:?}");
    }
    let found = json(&saiga, &words);
    let cases = found["cases"].as_array().unwrap();
    let waf = |case: usize| cases[case]["result"]["waf"].as_f64().unwrap();
    // Each case has its own oracle.
    assert_eq!([&cases[0]["trim"], &cases[2]["trim"]], [true, false]);
    assert!(waf(0) < waf(2), "{} {}", waf(0), waf(2));
    assert!(found["trace"]["live_pages"]["mean"].as_f64().unwrap() < 12_001.0);
    assert_eq!(found["trace"]["footprint_pages"], 28_000);
    let only = json(&saiga, &[&words[..], &["--no-trim"]].concat());
    assert_eq!(only["cases"].as_array().unwrap().len(), 2);
    assert_eq!(only["cases"][0]["result"], cases[2]["result"]);
}

#[test]
fn duplicate_options_are_simulated_once() {
    let saiga = Installation::bare();
    let file = saiga.path("t.csv");
    fs::write(&file, trace()).unwrap();
    let words = ["--trace", text(&file), "--rules", "none"];
    let twice = ["--utilisation", "0.9,0.9,0.90", "--policy", "greedy,greedy"];
    let out = must(&saiga, &[&words[..], &twice].concat());
    assert!(out.stderr.contains("simulating 1 of 2: "), "{out:?}");
    assert_eq!(out.stdout, must(&saiga, &words).stdout);
}

/// The trace has too few writes for a suggestion, an error that comes later.
#[test]
fn sets_that_cannot_be_compared_are_refused_before_the_search() {
    let saiga = Installation::bare();
    let (file, many) = (saiga.path("t.csv"), saiga.path("many.toml"));
    let head = "# saiga block trace 1\nt_ns,lba,len,op,file\n";
    fs::write(&file, format!("{head}1,0,4194304,W,-\n")).unwrap();
    let rules = (0..70)
        .map(|i| format!("[[rule]]\npath = '{i}'\nhint = 'short'\nwhy = 'x'\nstream = 's{i}'\n"));
    fs::write(&many, rules.collect::<String>()).unwrap();
    for (sets, expected) in [
        (
            ["suggested", "mysql", "mysql"],
            "two rule sets have the name mysql",
        ),
        (
            ["suggested", "mysql", "suggested"],
            "two rule sets have the name suggested",
        ),
        (
            ["suggested", "mysql", text(&many)],
            "many has 70 streams; at most 63",
        ),
    ] {
        let words = [&["--trace", text(&file), "--rules"], &sets[..]].concat();
        let out = simulate(&saiga, &words);
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(out.stderr.contains(expected), "{out:?}");
    }
}

#[test]
fn suggested_rules_can_be_simulated_and_used_by_the_labeller() {
    let saiga = Installation::bare();
    let (file, rules) = (saiga.path("t.csv"), saiga.path("own.toml"));
    fs::write(&file, trace()).unwrap();
    let suggest = |more: &[&str]| {
        let words = [
            &[
                "streams",
                "suggest",
                "--trace",
                text(&file),
                "--simulations",
                "30",
            ],
            more,
        ]
        .concat();
        let out = said(&mut saiga.saiga(&words));
        assert_eq!(out.code, Some(0), "{out:?}");
        out.stdout
    };
    let printed = suggest(&[]);
    let seen = suggest(&["--out", text(&rules)]);
    assert_eq!(fs::read_to_string(&rules).unwrap(), printed);
    for expected in [
        "ib_logfileN",
        "a ring",
        "db/slow.ibd",
        "simulations on a sample of 30500 pages",
    ] {
        assert!(seen.contains(expected), "{expected}: {seen}");
    }
    // The table and the reason of the rule have the same number.
    let bytes = |text: &str| text.contains("78.1 MiB");
    assert!(bytes(&seen) && bytes(&printed), "{seen}{printed}");
    let listed = said(&mut saiga.saiga(&["streams", "rules", text(&rules)]));
    assert_eq!((listed.code, listed.stdout), (Some(0), printed));

    let found: Value = serde_json::from_str(&suggest(&["--json"])).unwrap();
    let class = |name: &str| {
        let mut classes = found["classes"].as_array().unwrap().iter();
        classes.find(|class| class["name"] == name).unwrap().clone()
    };
    assert_eq!(class("ib_logfileN")["hint"], "short");
    assert_eq!(class("ib_logfileN")["behaviour"], "a ring");
    assert_ne!(
        class("ib_logfileN")["stream"],
        class("db/slow.ibd")["stream"]
    );
    assert_eq!(class("db/slow.ibd")["lifetime"]["writes"], 20_000);

    let words = ["--trace", text(&file), "--rules", text(&rules)];
    let own = json(&saiga, &words);
    assert_eq!(own["cases"][2]["rules"], "own");
    assert_eq!(own["cases"][2]["result"]["waf"], 1.0, "two rings apart");
}
