//! The document and the examples have the keys and defaults of the code.

use std::fs;
use std::path::{Path, PathBuf};

use saiga_gateway::settings::{Device, KEYS, Key, Settings};

use crate::mistakes::problems;
use crate::{SHORTEST, parsed};

const DPDK: &str = "[[device]]\npci = \"04:00.0\"\naddresses = \"kernel\"\n[[serve]]\nport = 1\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A file in which a key has this value and nothing else is wrong.
fn with(key: &Key, value: &str) -> String {
    let Key { table, name, .. } = key;
    let base = if *table == "dpdk" { DPDK } else { SHORTEST };
    match *table {
        "" => format!("{name} = {value}\n"),
        "device" => format!("{base}{name} = {value}\n"),
        "serve" => format!(
            "[[device]]\ninterface = \"enp4s0\"\n[[serve]]\n{}{name} = {value}\n",
            if *name == "port" { "" } else { "port = 6379\n" }
        ),
        table => format!("{base}[{table}]\n{name} = {value}\n"),
    }
}

#[test]
fn every_key_is_read() {
    for key in KEYS
        .iter()
        .filter(|key| (key.table, key.name) != ("device", "interface"))
    {
        let problems = problems(&with(key, "1979-05-27"));
        let path = if key.table.is_empty() {
            key.name.to_owned()
        } else {
            format!("{}.{}", key.table, key.name)
        };
        let expected = format!("{path} = 1979-05-27: ");
        assert!(
            problems.iter().any(|one| one.contains(&expected)),
            "{expected}{problems:?}"
        );
    }
}

#[test]
fn the_documented_defaults_change_nothing() {
    let mut tried = 0;
    for key in KEYS {
        let inner = key
            .default
            .strip_prefix('`')
            .and_then(|text| text.strip_suffix('`'));
        let Some(value) = inner.filter(|value| !value.contains('`') && !key.table.is_empty())
        else {
            continue;
        };
        if value.starts_with(|first: char| first.is_ascii_lowercase()) {
            continue; // The default is another key.
        }
        let base = if key.table == "dpdk" { DPDK } else { SHORTEST };
        assert_eq!(parsed(&with(&key, value)), parsed(base), "{key:?}");
        tried += 1;
    }
    assert_eq!(tried, 20);
}

/// The table of each `[table]` in the document has the rows of `KEYS`.
#[test]
fn the_document_has_every_key_with_its_default() {
    let text = fs::read_to_string(root().join("docs/gateway.md")).unwrap();
    let mut table = None;
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            let name = heading.trim_matches('`');
            table = name
                .strip_prefix('[')
                .map(|name| name.trim_matches(['[', ']']).to_owned());
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let [name, default, _] = cells.as_slice() else {
            continue;
        };
        let name = name
            .strip_prefix("| `")
            .and_then(|name| name.strip_suffix('`'));
        if let (Some(table), Some(name)) = (&table, name) {
            rows.push((table.clone(), name.to_owned(), (*default).to_owned()));
        }
    }
    let keys = KEYS.iter().filter(|key| !key.table.is_empty());
    let expected: Vec<_> = keys
        .map(|key| {
            (
                key.table.to_owned(),
                key.name.to_owned(),
                key.default.to_owned(),
            )
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_examples_are_valid() {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("gateway") && name.ends_with(".toml") {
            let settings = Settings::read(&path).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parsed(&settings.to_toml()), settings, "{name}");
            names.push(name);
        }
    }
    names.sort();
    assert_eq!(
        names,
        ["gateway-dpdk.toml", "gateway-numa.toml", "gateway.toml"]
    );
    let numa = Settings::read(&root().join("examples/gateway-numa.toml")).unwrap();
    assert_eq!(numa.devices.iter().map(Device::interface).count(), 2);
}

/// Every commented-out line of the first example is valid, and has the default.
#[test]
fn the_first_example_has_all_defaults() {
    let text = fs::read_to_string(root().join("examples/gateway.toml")).unwrap();
    let active: Vec<&str> = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with([' ', '#']) => rest,
            Some(_) | None => line,
        })
        .collect();
    assert_ne!(active.join("\n"), text.trim_end());
    assert_eq!(parsed(&active.join("\n")), parsed(&text));
}
