//! A labeller that is restarted with other rules may change its own hints from the previous run,
//! but not those of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use saiga_streams::hint::Hint;

use crate::site::{Site, hint, set_hint};
use crate::support::{said, text};

/// A rule that gives every file this hint.
fn rule(site: &Site, hint: &str) -> PathBuf {
    let file = site.path("my.toml");
    let rule = format!("[[rule]]\npath = \"**\"\nhint = \"{hint}\"\nwhy = \"w\"\n");
    fs::write(&file, rule).unwrap();
    file
}

/// The state of each file according to `check`, and its exit status.
fn standings(site: &Site, data: &Path, rules: &Path) -> (Vec<String>, Option<i32>) {
    let locks = site.path("locks");
    let words = ["check", text(data), "--rules", text(rules), "--any-route"];
    let more = ["--json", "--lock-dir", text(&locks)];
    let out = said(&mut site.streams(&[&words[..], &more].concat()));
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let files = value["directories"][0]["files"].as_array().unwrap();
    let standing = |file: &serde_json::Value| file["standing"].as_str().unwrap().to_owned();
    (files.iter().map(standing).collect(), out.code)
}

fn names(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn own_hints_follow_new_rules_and_those_of_other_programs_stay() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    fs::remove_dir(data.join("lost+found")).unwrap();
    let [ours, other, same] = ["a", "b", "c"].map(|name| data.join(name));
    for file in [&ours, &other, &same] {
        fs::write(file, "x").unwrap();
    }
    set_hint(&other, Hint::Extreme);
    // The expected hint, but set by another program.
    set_hint(&same, Hint::Long);
    let rules = rule(&site, "long");
    let more = ["--rules", text(&rules)];
    let mut labeller = site.labeller(&data, &more);
    assert_eq!(hint(&ours), Hint::Long);
    assert_eq!(labeller.end(), Some(0));
    let (now, code) = standings(&site, &data, &rules);
    assert_eq!((now, code), (names(&["ok", "kept", "ok"]), Some(0)));

    rule(&site, "medium");
    let (now, code) = standings(&site, &data, &rules);
    assert_eq!((now, code), (names(&["stale", "kept", "kept"]), Some(1)));
    // It was killed after it had saved the labels of its start.
    let mut labeller = site.labeller(&data, &more);
    assert_eq!(hint(&ours), Hint::Medium);
    labeller.signal("KILL");
    labeller.child.wait().unwrap();
    rule(&site, "short");
    let mut labeller = site.labeller(&data, &more);
    let now = [&ours, &other, &same].map(|file| hint(file));
    assert_eq!(now, [Hint::Short, Hint::Extreme, Hint::Long]);
    assert_eq!(labeller.end(), Some(0));
    let (now, code) = standings(&site, &data, &rules);
    assert_eq!((now, code), (names(&["ok", "kept", "kept"]), Some(0)));
}

/// The gate labels in a separate thread, and `--once` ends immediately.
#[test]
fn labels_of_the_gate_and_of_once_are_stored() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let rules = rule(&site, "long");
    let gate = ["--rules", text(&rules), "--mode", "gate"];
    let mut labeller = site.labeller(&data, &gate);
    let file = data.join("a");
    fs::write(&file, "x").unwrap();
    assert_eq!(hint(&file), Hint::Long);
    assert_eq!(labeller.end(), Some(0));
    let locks = site.path("locks");
    for (name, expected) in [("medium", Hint::Medium), ("extreme", Hint::Extreme)] {
        rule(&site, name);
        let words = ["run", text(&data), "--rules", text(&rules), "--once"];
        let more = ["--any-route", "--lock-dir", text(&locks)];
        let out = said(&mut site.streams(&[&words[..], &more].concat()));
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(hint(&file), expected);
    }
}

#[test]
fn labels_that_another_user_could_have_written_are_ignored() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let file = data.join("a");
    fs::write(&file, "x").unwrap();
    let rules = rule(&site, "long");
    let more = ["--rules", text(&rules)];
    assert_eq!(site.labeller(&data, &more).end(), Some(0));
    let entries = fs::read_dir(site.path("locks")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_labels = |path: &PathBuf| path.extension().is_some_and(|it| it == "labels");
    let labels = paths.find(is_labels).unwrap();
    std::os::unix::fs::chown(&labels, Some(65534), None).unwrap();
    rule(&site, "medium");
    let (now, code) = standings(&site, &data, &rules);
    assert_eq!((now, code), (names(&["kept"]), Some(0)));
    let mut labeller = site.labeller(&data, &more);
    assert_eq!(hint(&file), Hint::Long);
    assert_eq!(labeller.end(), Some(0));
}
