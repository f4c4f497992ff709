//! Tests of campaigns: refusals, incomplete and damaged files, exclusive locks.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn identity(seed: u64) -> Identity {
    Identity::from_facts(json!({ "seed": seed }))
}

fn run(pair: u32) -> Run {
    Run {
        cell: "cell".into(),
        arm: "a".into(),
        pair,
        position: 0,
        started: String::new(),
        // A number without a short decimal representation.
        seconds: 1.0 / 3.0 + f64::from(pair),
        metrics: BTreeMap::from([("throughput_ops_s".to_owned(), 1e5 / 7.0)]),
        foreign_cpu_s: 0.1 + 0.2,
        rejected: None,
        detail: None,
    }
}

fn open(dir: &Path, begin: Begin) -> Result<Campaign, CampaignError> {
    Campaign::open(dir, &identity(1), begin)
}

/// Writes a campaign of three runs.
fn three_runs(dir: &Path) {
    let mut campaign = open(dir, Begin::Fresh).unwrap();
    for pair in 0..3 {
        campaign.add_run(&run(pair), false).unwrap();
    }
}

fn refusal(dir: &Path, begin: Begin) -> String {
    let error = open(dir, begin).unwrap_err().to_string();
    error.replace(&dir.display().to_string(), "DIR")
}

/// The lines of the file, including line feeds.
fn text(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join(FILE)).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn write(dir: &Path, lines: &[String]) {
    std::fs::write(dir.join(FILE), lines.concat()).unwrap();
}

#[test]
fn recorded_runs_are_read_without_rounding() {
    let dir = tempfile::tempdir().unwrap();
    three_runs(dir.path());
    let campaign = open(dir.path(), Begin::Resume).unwrap();
    assert_eq!(campaign.recorded(), [run(0), run(1), run(2)]);
    assert!(!campaign.was_finished());
    let read = recorded(dir.path()).unwrap().unwrap();
    assert_eq!((read.identity.seed(), read.finished), (Some(1), false));
    assert_eq!(read.runs.len(), 3);
}

#[test]
fn a_new_campaign_does_not_overwrite_an_unfinished_one() {
    let dir = tempfile::tempdir().unwrap();
    assert!(open(dir.path(), Begin::Fresh).is_ok());
    // The file contains a plan, but no run that could be lost.
    three_runs(dir.path());
    assert_eq!(
        refusal(dir.path(), Begin::Fresh),
        "DIR/campaign.jsonl holds an unfinished campaign of 3 runs; use --resume to finish it, or \
         choose another --out (or remove the file) to begin a new one"
    );
    let mut campaign = open(dir.path(), Begin::Resume).unwrap();
    for pair in 0..3 {
        campaign.ran("cell", "a", pair).unwrap().unwrap();
    }
    campaign.check_end().unwrap();
    campaign.finish("then".into()).unwrap();
    drop(campaign);
    assert!(open(dir.path(), Begin::Resume).unwrap().was_finished());
    let begun_again = open(dir.path(), Begin::Fresh).unwrap();
    assert_eq!(
        (begun_again.recorded().len(), text(dir.path()).len()),
        (0, 1)
    );
}

#[test]
fn another_plan_is_refused_and_the_difference_named() {
    let dir = tempfile::tempdir().unwrap();
    three_runs(dir.path());
    let message = Campaign::open(dir.path(), &identity(2), Begin::Resume).unwrap_err();
    let message = message.to_string();
    assert!(
        message.contains("belongs to another plan (seed: 1 there, 2 here)"),
        "{message}"
    );
    assert_eq!(text(dir.path()).len(), 4, "nothing is changed");
}

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), Begin::Fresh).unwrap();
    for begin in [Begin::Fresh, Begin::Resume] {
        assert_eq!(
            refusal(dir.path(), begin),
            "DIR/campaign.jsonl is in use by another saiga; wait until it is done, or choose \
             another --out"
        );
    }
    drop(first);
    assert!(open(dir.path(), Begin::Resume).is_ok());
}

#[test]
fn a_line_torn_anywhere_is_left_out_and_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    three_runs(dir.path());
    let lines = text(dir.path());
    let last = lines[3].len();
    for kept in 0..last {
        let mut torn = lines.clone();
        torn[3].truncate(kept);
        write(dir.path(), &torn);
        let mut campaign = open(dir.path(), Begin::Resume).unwrap();
        assert_eq!(campaign.recorded().len(), 2, "{kept} of {last} bytes");
        for pair in 0..2 {
            campaign.ran("cell", "a", pair).unwrap().unwrap();
        }
        campaign.add_run(&run(2), false).unwrap();
        drop(campaign);
        assert_eq!(text(dir.path()), lines, "{kept} of {last} bytes");
    }
}

/// A block that never reached the disk reads as zeros, even where its line feed did.
#[test]
fn zeros_at_the_end_are_a_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    for tail in ["\0\0\0\0", "\0\0\0}\n"] {
        if dir.path().join(FILE).exists() {
            std::fs::remove_file(dir.path().join(FILE)).unwrap();
        }
        three_runs(dir.path());
        let mut lines = text(dir.path());
        lines.push(tail.to_owned());
        write(dir.path(), &lines);
        assert_eq!(open(dir.path(), Begin::Resume).unwrap().recorded().len(), 3);
    }
}

#[test]
fn a_file_with_an_incomplete_first_line_is_a_new_campaign() {
    let dir = tempfile::tempdir().unwrap();
    three_runs(dir.path());
    let first = text(dir.path()).remove(0);
    write(dir.path(), &[first[..first.len() / 2].to_owned()]);
    let campaign = open(dir.path(), Begin::Resume).unwrap();
    assert!(campaign.recorded().is_empty());
    drop(campaign);
    assert_eq!(text(dir.path()), [first]);
}

#[test]
fn damage_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    three_runs(dir.path());
    let whole = text(dir.path());
    let changed = |line: usize, from: &str, to: &str| {
        let mut lines = whole.clone();
        assert!(lines[line].contains(from), "{}", lines[line]);
        lines[line] = lines[line].replacen(from, to, 1);
        lines
    };
    let without = |line: usize| {
        let mut lines = whole.clone();
        lines.remove(line);
        lines
    };
    let mut swapped = whole.clone();
    swapped.swap(1, 2);
    let cut = changed(2, "\"seconds\"", "\"seco");
    for (damage, lines, line, reason) in [
        (
            "a digit",
            changed(1, "\"pair\":0", "\"pair\":7"),
            2,
            "its check value is wrong",
        ),
        (
            "the last digit",
            changed(3, "\"pair\":2", "\"pair\":7"),
            4,
            "its check value is wrong",
        ),
        ("a missing line", without(2), 3, "its check value is wrong"),
        ("two lines swapped", swapped, 2, "its check value is wrong"),
        (
            "cut in the middle",
            cut,
            3,
            "the line is incomplete, but other lines follow",
        ),
        ("no plan", without(0), 1, "its check value is wrong"),
        (
            "not ours",
            vec!["{\"a\":1}\n".to_owned()],
            1,
            "its check value is wrong",
        ),
    ] {
        write(dir.path(), &lines);
        for begin in [Begin::Resume, Begin::Fresh] {
            let message = refusal(dir.path(), begin);
            let wanted = format!("DIR/campaign.jsonl is damaged in line {line}: {reason}");
            assert!(message.starts_with(&wanted), "{damage}: {message}");
        }
        assert!(recorded(dir.path()).is_err(), "{damage}");
        assert_eq!(text(dir.path()), lines, "{damage}: nothing is changed");
    }
}

/// A hook creates the data again each time the campaign is resumed.
#[test]
fn data_that_hooks_create_may_differ_on_resume() {
    let dir = tempfile::tempdir().unwrap();
    let of = |snapshot: &str| Identity::from_facts(json!({"facts": {"snapshot": snapshot}}));
    let facts = |snapshot: &str| BTreeMap::from([("snapshot".to_owned(), json!(snapshot))]);
    let open = |snapshot: &str| Campaign::open(dir.path(), &of(snapshot), Begin::Resume);
    let mut campaign = open("old").unwrap();
    for made in ["old", "first", "first"] {
        campaign.keep_fingerprint(&facts(made)).unwrap();
    }
    drop(campaign);
    assert_eq!(text(dir.path()).len(), 2, "recorded once");
    let mut campaign = open("first").unwrap();
    campaign.add_run(&run(0), false).unwrap();
    campaign.keep_fingerprint(&facts("second")).unwrap();
    drop(campaign);
    let error = open("third").unwrap_err().to_string();
    assert!(
        error.contains("facts.snapshot: \"old\" there, \"third\" here"),
        "{error}"
    );
    assert_eq!(open("second").unwrap().recorded(), [run(0)]);
}
