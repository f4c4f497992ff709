//! `tools/results`: resumption, refusals, and marks in the tables.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};
use support::{Installation, Said, said, text};

/// A `saiga` that logs its arguments, and fails after its first run while the file `full` exists.
const FAKE: &str = r#"#!/bin/sh
echo "$*" >> HERE/log
for word; do out=$word; [ "$last" = --out ] && break; last=$word; done
: > "$out/campaign.jsonl"
[ -e HERE/full ] && { echo "the disk is full"; exit 2; }
cp HERE/made.json "$out/result.json"
"#;

struct Tool {
    installation: Installation,
}

impl Tool {
    fn new() -> Self {
        let installation = Installation::bare();
        let here = installation.path("");
        let fake = FAKE.replace("HERE", text(&here).trim_end_matches('/'));
        installation.script("fake", &fake);
        let tool = Self { installation };
        let made = result(&[("tpcc-t8-w2", 1.0, [0.9, 1.1])], "kernel (again)");
        fs::write(tool.path("made.json"), made.to_string()).unwrap();
        tool
    }

    fn path(&self, name: &str) -> PathBuf {
        self.installation.path(name)
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/results");
        let mut command = Command::new(tools);
        command
            .arg(self.path("out"))
            .arg("--saiga")
            .arg(self.path("fake"));
        said(command.args(arguments))
    }

    /// The logged commands, without their directories.
    fn log(&self) -> Vec<String> {
        let said = fs::read_to_string(self.path("log")).unwrap_or_default();
        let without = |line: &str| line.replace(text(&self.path("out")), "OUT");
        said.lines().map(without).collect()
    }
}

/// The part of a result that tables use: throughput in cells, with the median ratio and its
/// interval.
fn result(cells: &[(&str, f64, [f64; 2])], b: &str) -> Value {
    let comparison = |(cell, median, ci95): &(&str, f64, [f64; 2])| {
        json!({
            "cell": cell, "metric": "throughput_ops_s", "a": "kernel", "b": b, "unit": "ops/s",
            "a_median": 1000.0, "b_median": 1000.0 * median,
            "ratio": {"median": median, "ci95": ci95},
        })
    };
    let comparisons: Vec<Value> = cells.iter().map(comparison).collect();
    json!({
        "command": ["saiga", "compare", "tpcc"], "started": "2026-11-24T10:00:00Z",
        "versions": {"saiga": "0.1.0", "saiga_commit": "abc123"},
        "host": {"cpu": "a CPU", "cores": 2, "kernel": "6.18"},
        "arms": [], "cells": [], "runs": [{"rejected": null}, {"rejected": "noise"}],
        "comparisons": comparisons,
    })
}

/// A limit that is never exceeded, because the machine that runs the tests is busy.
const ANY: [&str; 4] = ["--only", "itself", "--max-busy", "100000"];

#[test]
fn finished_measurements_are_not_repeated() {
    let tool = Tool::new();
    let first = tool.run(&ANY);
    assert_eq!(first.code, Some(0), "{first:?}");
    let wanted = [
        "compare redis --only set-c50 --arms kernel,kernel --no-dashboard --out OUT/itself-redis",
        "compare tpcc --engine mariadb --arms kernel,kernel --pairs 8 --seconds 15 --no-dashboard \
         --out OUT/itself-mariadb",
        "compare tpcc --engine postgres --arms kernel,kernel --pairs 8 --seconds 15 \
         --no-dashboard --out \
         OUT/itself-postgres",
    ];
    assert_eq!(tool.log(), wanted);
    let row = "| TPC-C, MariaDB |  | 1.00x (0.90-1.10), 1,000 to 1,000 ops/s | not measured |";
    assert!(first.stdout.contains(row), "{}", first.stdout);
    assert!(
        first
            .stdout
            .contains("1 of 2 runs count, 2026-11-24, build abc123"),
        "{first:?}"
    );
    let kept = fs::read_to_string(tool.path("out/results.md")).unwrap();
    assert!(kept.contains(row), "{kept}");
    let raw = tool.path("out/raw/2026-11-24-itself-mariadb.json.gz");
    assert!(raw.is_file(), "{}", raw.display());
    let again = tool.run(&ANY);
    assert_eq!((again.code, tool.log().len()), (Some(0), 3), "{again:?}");
}

#[test]
fn a_failed_measurement_resumes_and_does_not_stop_the_others() {
    let tool = Tool::new();
    fs::write(tool.path("full"), "").unwrap();
    let failed = tool.run(&ANY);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(tool.log().len(), 3);
    let told =
        "results: failed: itself-redis, itself-mariadb, itself-postgres; the same command goes on";
    assert!(failed.stderr.contains(told), "{}", failed.stderr);
    let words = fs::read_to_string(tool.path("out/itself-redis/output.txt")).unwrap();
    assert_eq!(words, "the disk is full\n");
    fs::remove_file(tool.path("full")).unwrap();
    let resumed = tool.run(&ANY);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(
        tool.log()[3..]
            .iter()
            .all(|line| line.ends_with(" --resume")),
        "{:?}",
        tool.log()
    );

    fs::write(tool.path("out/itself-redis/done"), "another command\n").unwrap();
    let other = tool.run(&ANY);
    assert_eq!((other.code, tool.log().len()), (Some(1), 6), "{other:?}");
    let told = "itself-redis was measured by another command (another command); remove it";
    assert!(other.stderr.contains(told), "{}", other.stderr);
}

/// A process that uses a CPU all the time.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_busy_machine_is_refused_with_the_busy_processes() {
    let tool = Tool::new();
    let endless = ["-c", "while :; do :; done"];
    let hogs: Vec<Hog> = (0..2)
        .map(|_| Hog(Command::new("sh").args(endless).spawn().unwrap()))
        .collect();
    let refused = tool.run(&["--only", "itself", "--max-busy", "0.05"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.starts_with("results: the machine is busy: "),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("0.05 are allowed ("), "{refused:?}");
    assert_eq!(tool.log(), [""; 0], "nothing is measured");
    drop(hogs);
}

#[test]
fn tables_mark_missed_goals_and_missing_evidence() {
    let tool = Tool::new();
    for (median, interval, wanted) in [
        (
            1.05,
            [1.02, 1.08],
            "1.05x (1.02-1.08), 1,000 to 1,050 ops/s, **missed** |",
        ),
        (
            1.09,
            [0.90, 1.30],
            "1.09x (0.90-1.30), 1,000 to 1,090 ops/s, **missed** |",
        ),
        (
            1.20,
            [1.05, 1.40],
            "1.20x (1.05-1.40), 1,000 to 1,200 ops/s, **not shown** |",
        ),
        (
            1.20,
            [1.15, 1.40],
            "1.20x (1.15-1.40), 1,000 to 1,200 ops/s |",
        ),
    ] {
        let folder = tool.path("out/tpcc-mariadb");
        fs::create_dir_all(&folder).unwrap();
        let made = result(&[("tpcc-t8-w2", median, interval)], "saiga");
        fs::write(folder.join("result.json"), made.to_string()).unwrap();
        let shown = tool.run(&["--tables"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let row = format!("| transactions per second | 1.1x / 1x | {wanted}");
        assert!(shown.stdout.contains(&row), "{row} in {}", shown.stdout);
    }
}

#[test]
fn an_unknown_part_is_named() {
    let tool = Tool::new();
    let refused = tool.run(&["--only", "redsi"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("there is no part redsi; --help lists them"),
        "{refused:?}"
    );
    let refused = tool.run(&["--only", "library"]);
    assert!(
        refused
            .stderr
            .contains("--only library needs --library FILE"),
        "{refused:?}"
    );
}

/// The output of Python code that imports the modules of tools.
fn python(code: &str) -> String {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let begin = "import sys; sys.path.insert(0, '.'); sys.dont_write_bytecode = True";
    let code = format!("{begin}\n{code}");
    let said = said(
        Command::new("python3")
            .args(["-c", &code])
            .current_dir(tools),
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout
}

/// perf shows idle CPUs as swapper.
#[test]
fn the_share_of_the_library_is_that_of_busy_cpus() {
    let report = "80 ;mariadbd ;mariadbd ;[.] row_search\\n15 ;mariadbd ;libsaiga.so ;[.] send\\n\
                  5 ;saiga ;libsaiga.so ;[.] spin\\n900 ;swapper ;[kernel.kallsyms] ;[k] idle";
    let shown = python(&format!(
        "import importlib.machinery, importlib.util\n\
         loader = importlib.machinery.SourceFileLoader('results', 'results')\n\
         module = importlib.util.module_from_spec(importlib.util.spec_from_loader('results', \
         loader))\n\
         loader.exec_module(module)\n\
         print(module.share_of_library('{report}'), end='')"
    ));
    let wanted = "libsaiga.so: 20.0 % of 100 samples of busy CPUs (7 % asked for)\n15.00 %  [.] send\n \
                  5.00 %  [.] spin\n";
    assert_eq!(shown, wanted);
}

/// Ten values with a standard deviation of 0.065. The expected interval is that of chi-square with
/// nine degrees of freedom (2.70 and 19.02).
#[test]
fn pairs_with_one_and_two_seeds_have_separate_spreads() {
    let shown = python(
        "import seeds\n\
         order = seeds.planned(['same', 'other'], 10)\n\
         print([sum(kind == one for kind, _ in order) for one in seeds.KINDS])\n\
         print(all((a == b) == (kind == 'same') for kind, (a, b) in order))\n\
         print(len({seed for _, both in order for seed in both}))\n\
         values = [0.1, -0.1, 0.02, -0.05, 0.07, 0.01, -0.02, 0.03, -0.08, 0.05]\n\
         deviation, (low, high) = seeds.spread(values)\n\
         print(f'{deviation:.3f} {low:.3f} {high:.2f}')",
    );
    assert_eq!(shown, "[10, 10]\nTrue\n30\n0.065 0.045 0.12\n");
}
