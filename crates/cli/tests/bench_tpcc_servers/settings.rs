//! `saiga tune database`: the settings of a running server.

use std::fs;

use serde_json::Value;

use crate::bench::Bench;

/// Only differences are shown, with the running value and its origin; the file has the changes.
pub(crate) fn differences_to_the_running_server_are_shown(bench: &Bench) {
    let (engine, _, _) = bench.system.named();
    let said = bench.tune_database(&["--connections", "300", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let diff: Value = serde_json::from_str(&said.stdout).unwrap();
    let changes = diff["changes"].as_array().unwrap();
    let connections = |change: &&Value| change["wanted"]["name"] == "max_connections";
    let change = changes.iter().find(connections).unwrap();
    assert_eq!(change["wanted"]["value"], "300");
    assert_ne!(change["running"]["value"], "300");
    assert!(change["running"]["from"].is_string(), "{change}");
    let known = if engine == "postgres" {
        "shared_buffers"
    } else {
        "innodb_buffer_pool_size"
    };
    assert!(
        changes
            .iter()
            .any(|change| change["wanted"]["name"] == known),
        "{diff}"
    );
    // The server may know all settings of its own version only.
    let unknown: Vec<&str> = diff["unknown"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    if engine == "postgres" {
        assert!(unknown.is_empty(), "{unknown:?}");
    } else {
        assert!(unknown.contains(&"innodb_page_cleaners"), "{unknown:?}");
        let redo = changes
            .iter()
            .find(|one| one["wanted"]["name"] == "innodb_log_file_size");
        assert_eq!(redo.unwrap()["renamed_from"], "innodb_redo_log_capacity");
    }

    let said = bench.tune_database(&["--connections", "300", "--out", "settings.conf"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let name = if engine == "postgres" {
        "PostgreSQL "
    } else {
        "MariaDB "
    };
    assert!(said.stdout.starts_with(name), "{said:?}");
    assert!(said.stdout.contains("  max_connections: "), "{said:?}");
    let file = fs::read_to_string(bench.path("settings.conf")).unwrap();
    let line = if engine == "postgres" {
        "max_connections = '300'"
    } else {
        "max_connections = 300"
    };
    assert!(file.lines().any(|found| found == line), "{file}");
    assert_eq!(file.contains("[mysqld]"), engine != "postgres");
    // Without the option, no limit of connections is lowered.
    let said = bench.tune_database(&["--json"]);
    let diff: Value = serde_json::from_str(&said.stdout).unwrap();
    let changes = diff["changes"].as_array().unwrap();
    assert!(!changes.iter().any(|change| connections(&change)), "{diff}");
    assert!(diff["disk"]["kind"].is_string(), "{diff}");
    let again = bench.tune_database(&["--out", "settings.conf"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("settings.conf"), "{again:?}");
    bench.assert_nothing_left();
}
