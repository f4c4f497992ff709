//! `saiga streams rules`: the sets as tables, TOML and JSON.

use std::fs;

use crate::site::Site;
use crate::support::{said, text};

#[test]
fn a_set_can_be_printed_changed_and_used() {
    let site = Site::new();
    let out = said(&mut site.streams(&["rules"]));
    assert_eq!(out.code, Some(0));
    for name in [
        "mysql",
        "mariadb",
        "postgres",
        "opengauss",
        "redis",
        "rocksdb",
    ] {
        assert!(
            out.stdout.lines().any(|line| line.starts_with(name)),
            "{}",
            out.stdout
        );
        let printed = said(&mut site.streams(&["rules", name]));
        assert_eq!(printed.code, Some(0));
        let file = site.path(&format!("{name}.toml"));
        fs::write(&file, &printed.stdout).unwrap();
        let again = said(&mut site.streams(&["rules", text(&file)]));
        assert_eq!(
            (again.code, again.stdout),
            (Some(0), printed.stdout),
            "{name}"
        );
    }
}

#[test]
fn json_has_every_rule_with_its_reason() {
    let site = Site::new();
    let out = said(&mut site.streams(&["rules", "redis", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let rules = value["rules"].as_array().unwrap();
    assert!(
        rules
            .iter()
            .all(|rule| !rule["why"].as_str().unwrap().is_empty())
    );
    assert_eq!(rules[0]["path"], "**/*.{incr,base}.{aof,rdb}");
    assert_eq!(rules[0]["hint"], "medium");
    let out = said(&mut site.streams(&["rules", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(value.as_array().unwrap().len(), 6);
}

#[test]
fn a_file_in_astreams_grammar_is_read_with_warnings() {
    let site = Site::new();
    let file = site.path("rules");
    fs::write(&file, "/d/undo 1\n").unwrap();
    let out = said(&mut site.streams(&["rules", text(&file), "--json"]));
    assert_eq!(out.code, Some(0));
    assert!(
        out.stderr
            .contains("rules:1: stream 1 means that the lifetime is unknown"),
        "{}",
        out.stderr
    );
    assert!(out.stdout.contains("\"is_regex\": true"), "{}", out.stdout);
}
