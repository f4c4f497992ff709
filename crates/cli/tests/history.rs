//! `saiga history` from the command line.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

mod support;
use support::{Installation, said};

const SAMPLE: &str = include_str!("../../measure/experiment/tests/data/result-v1.json");

#[test]
fn results_are_listed_and_a_page_is_written() {
    let (saiga, dir) = (Installation::bare(), tempfile::tempdir().unwrap());
    let all = dir.path().join("all");
    for (name, started) in [
        ("late", "2026-11-22T00:00:00Z"),
        ("early", "2026-11-20T00:00:00Z"),
    ] {
        let folder = all.join(name);
        fs::create_dir_all(&folder).unwrap();
        let result = SAMPLE.replacen("2026-11-20T14:02:11Z", started, 1);
        fs::write(folder.join("result.json"), result).unwrap();
    }
    let (all, page) = (all.to_str().unwrap(), dir.path().join("page"));
    let out = said(&mut saiga.saiga(&["history", all, "--json", "--out", page.to_str().unwrap()]));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let stages: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert!(
        stages[0]["name"].as_str().unwrap().ends_with("early"),
        "{stages}"
    );
    assert_eq!(stages[0]["changed"], serde_json::Value::Null);
    assert_eq!(stages[1]["changed"], serde_json::json!([]));
    let written = fs::read_to_string(page.join("history.html")).unwrap();
    assert!(written.contains("History of experiments"));
}

#[test]
fn directories_without_results_and_damaged_results_are_named() {
    let (saiga, dir) = (Installation::bare(), tempfile::tempdir().unwrap());
    let folder = dir.path().to_str().unwrap();
    let out = said(&mut saiga.saiga(&["history", folder]));
    assert_eq!(out.code, Some(2));
    let wanted = format!("saiga: {folder} has no result.json, nor do its subdirectories; give");
    assert!(out.stderr.starts_with(&wanted), "{}", out.stderr);
    fs::write(dir.path().join("result.json"), "{}").unwrap();
    let out = said(&mut saiga.saiga(&["history", folder]));
    assert_eq!(out.code, Some(2));
    let wanted = "/result.json: not a Saiga result: `format_version` is missing";
    assert!(out.stderr.contains(wanted), "{}", out.stderr);
}
