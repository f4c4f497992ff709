//! Comparisons that stop at a given precision, and that resume after a kill, with real servers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;

use std::fs;
use std::process::{Child, Stdio};

use marked::{Marked, send};
use rustix::process::Signal;
use saiga_experiment::result::Run;
use saiga_experiment::stats::Method;
use saiga_trials::witness::await_true;

const SMALL: [&str; 12] = [
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
    "--arms",
    "kernel,kernel",
];

/// A comparison of thirty pairs, long enough to be killed.
fn thirty<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], &["--pairs", "30", "--out", out], more].concat()
}

/// Starts a campaign and waits until some runs are recorded.
fn begun(test: &Marked, out: &str) -> Child {
    let mut saiga = test.saiga(&thirty(out, &[]));
    let mut child = saiga
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = test.path("out/campaign.jsonl");
    // The line of the plan, and at least two runs.
    let text = || fs::read_to_string(&file).unwrap_or_default();
    await_true(
        || text().lines().count() >= 3,
        || format!("{:?}, having written {:?}", child.try_wait(), text()),
    );
    child
}

#[test]
fn a_killed_campaign_resumes_after_its_last_run() {
    let test = Marked::new();
    let out = test.text("out");
    let mut child = begun(&test, &out);
    let in_use = format!("{out}/campaign.jsonl is in use by another saiga;");
    let refused = |words: &[&str], message: &str| {
        let said = test.said(&mut test.saiga(words));
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.stderr.contains(message), "{message}: {}", said.stderr);
    };
    refused(&thirty(&out, &[]), &in_use);
    refused(&thirty(&out, &["--resume"]), &in_use);
    send(&child, Signal::KILL);
    child.wait().unwrap();
    test.wait_until_gone();
    for left in fs::read_dir(test.path("tmp")).unwrap().flatten() {
        fs::remove_dir_all(left.path()).unwrap();
    }

    refused(&thirty(&out, &[]), "holds an unfinished campaign of ");
    let other = [&SMALL[..], &["--pairs", "31", "--resume", "--out", &out]].concat();
    refused(
        &other,
        "belongs to another plan (pairs: 30 there, 31 here);",
    );

    let kept = fs::read_to_string(test.path("out/campaign.jsonl")).unwrap();
    let said = test.said(&mut test.saiga(&thirty(&out, &["--resume"])));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stderr.contains(" runs are already recorded"),
        "{}",
        said.stderr
    );
    let result = test.result();
    let counts = |run: &&Run| run.rejected.is_none();
    assert_eq!(result.runs.iter().filter(counts).count(), 60);
    let record = fs::read_to_string(test.path("out/campaign.jsonl")).unwrap();
    let whole = kept.rfind('\n').unwrap();
    assert!(
        record.starts_with(&kept[..whole]),
        "nothing that was kept is rewritten"
    );
    assert!(
        record.lines().last().unwrap().contains("\"finished\""),
        "{record}"
    );
    test.assert_nothing_left();

    // Resuming a finished campaign runs nothing and prints the same result.
    let said = test.said(&mut test.saiga(&thirty(&out, &["--resume"])));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stderr.contains("all 60 runs are already recorded"),
        "{}",
        said.stderr
    );
    assert!(test.result().runs == result.runs);
    // A finished campaign may be replaced by a new one.
    let anew = [&SMALL[..], &["--pairs", "1", "--out", &out]].concat();
    assert_eq!(test.said(&mut test.saiga(&anew)).code, Some(0));
    assert_eq!(test.result().runs.len(), 2);
}

#[test]
fn pairs_are_added_until_the_interval_is_narrow() {
    let test = Marked::new();
    let mut saiga = test.saiga(&SMALL);
    saiga.args([
        "--until",
        "100%",
        "--max-pairs",
        "30",
        "--out",
        &test.text("out"),
    ]);
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = test.result();
    for one in &result.comparisons {
        assert_eq!(one.ratio.method, Method::Sequential);
        assert!((8..=30).contains(&one.ratio.n_pairs), "{one:?}");
    }
    let throughput = &result.comparisons[0].ratio;
    let [lo, hi] = throughput.ci95.unwrap();
    assert!(throughput.n_pairs == 30 || hi / lo <= 4.0, "{throughput:?}");
    assert!(
        said.stdout
            .contains("95 % interval, valid after every pair:"),
        "{}",
        said.stdout
    );
    assert!(said.stderr.contains("at most 30 pairs"), "{}", said.stderr);
    let estimate = "a precision of 100 % needs ";
    assert!(said.stderr.contains(estimate), "{}", said.stderr);
}

#[test]
fn an_interval_that_stays_too_wide_is_reported() {
    let test = Marked::new();
    let mut saiga = test.saiga(&SMALL);
    saiga.args([
        "--until",
        "0.01%",
        "--max-pairs",
        "8",
        "--out",
        &test.text("out"),
    ]);
    let said = test.said(&mut saiga);
    assert_eq!(said.code, Some(0), "{said:?}");
    let warnings = test.result().warnings;
    let wide = "The interval of 1 cell is still wider than ±0.01 %.";
    assert!(warnings.iter().any(|one| one.text == wide), "{warnings:?}");
}

#[test]
fn a_dry_run_prints_the_precision_of_the_pairs() {
    let test = Marked::new();
    let dry = |more: &[&str]| {
        let said = test.said(test.saiga(&SMALL).arg("--dry-run").args(more));
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout
    };
    assert!(!dry(&[]).contains("resolve"), "nothing is known yet");
    let said = dry(&["--assume-sd", "1.4%"]);
    let line = "\n# 6 pairs can show a difference of about 1.5 % (from an assumed spread of 1.4 % between pairs)\n";
    assert!(said.contains(line), "{said}");
    let said = dry(&["--until", "2%", "--assume-sd", "2%"]);
    assert!(
        said.contains("\n# at most 100 pairs, fewer if every interval is within 2 %\n"),
        "{said}"
    );
    assert!(
        said.contains("\n# a precision of 2 % needs about "),
        "{said}"
    );

    let out = test.text("out");
    let run = [&SMALL[..], &["--pairs", "3", "--out", &out]].concat();
    assert_eq!(test.said(&mut test.saiga(&run)).code, Some(0));
    let said = dry(&["--out", &out]);
    assert!(said.contains("(from 3 pairs with a spread of "), "{said}");
}

#[test]
fn conflicting_options_are_refused() {
    let test = Marked::new();
    for (more, message) in [
        (&["--until", "2%", "--pairs", "6"][..], "--until"),
        (
            &["--until", "0.02"],
            "give a percentage from 0.01% to 100%, such as 2%",
        ),
        (&["--max-pairs", "9"], "--until"),
        (&["--until-cell", "set"], "--until"),
        (&["--resume"], "--out"),
        (
            &["--until", "2%", "--until-cell", "get-c9"],
            "--until-cell get-c9: no cell's name contains this; --dry-run lists the cells",
        ),
    ] {
        let said = test.refused(test.saiga(&SMALL).args(more));
        assert!(said.contains(message), "{more:?}: {said}");
    }
}

/// A hook makes the snapshot and the data, again when the campaign is resumed.
const MADE: &str = r#"
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
kind = "command"
command = "sh -c 'echo rate 12.5'"
[[workload.metric]]
name = "rate_per_s"
regex = 'rate ([0-9.]+)'
unit = "1/s"
better = "higher"
[restore]
kind = "snapshot"
parts = ["${HERE}/data"]
snapshot = "${HERE}/snapshot"
[hooks]
before_experiment = "echo more >> ${HERE}/data/table && rm -rf ${HERE}/snapshot && ${HERE}/bin/saiga snapshot take ${HERE}/data --to ${HERE}/snapshot"
before_run = "test -e ${HERE}/go || mkdir ${HERE}/once"
"#;

#[test]
fn a_snapshot_made_again_by_a_hook_is_the_same_plan() {
    let test = Marked::new();
    fs::create_dir(test.path("data")).unwrap();
    fs::write(test.path("e.toml"), MADE).unwrap();
    let (file, out) = (test.text("e.toml"), test.text("out"));
    let words = ["compare", &file, "--out", &out];
    let taken = |line: &str| {
        fs::write(test.path("data/table"), line).unwrap();
        if test.path("snapshot").exists() {
            fs::remove_dir_all(test.path("snapshot")).unwrap();
        }
        let (data, snapshot) = (test.text("data"), test.text("snapshot"));
        let taken = test.said(&mut test.saiga(&["snapshot", "take", &data, "--to", &snapshot]));
        assert_eq!(taken.code, Some(0), "{taken:?}");
    };
    taken("first\n");
    // The second run fails.
    let said = test.said(&mut test.saiga(&words));
    assert_eq!(said.code, Some(2), "{said:?}");
    let resume = [&words[..], &["--resume"]].concat();
    fs::create_dir(test.path("go")).unwrap();
    // Made by the test instead of the hook.
    taken("other\n");
    let told = format!("{out}/campaign.jsonl belongs to another plan (facts.snapshot: ");
    test.assert_refused(&resume, &told);
    taken("first\nmore\n");
    let said = test.said(&mut test.saiga(&resume));
    assert_eq!(said.code, Some(0), "{said:?}");
    let table = fs::read_to_string(test.path("data/table")).unwrap();
    assert_eq!(table, "first\nmore\nmore\n", "it was called again");
    test.assert_nothing_left();
}
