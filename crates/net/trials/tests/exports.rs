//! The library exports the symbols of its table and nothing else.
//!
//! The table is read as text from `preload/src/symbols.rs`; the fortified names of
//! glibc and the variadic exec functions are rows of it like all others.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use saiga_trials::library;
use std::collections::BTreeSet;
use std::process::Command;

const SYMBOLS: &str = include_str!("../../preload/src/symbols.rs");

/// First word of each row of `symbols! { ... }`, and the variadic functions: they have no
/// signature there, and stand as `("NAME", "why")` in the list itself.
fn table() -> BTreeSet<String> {
    let (before, behind) = SYMBOLS.split_once("\nsymbols! {\n").unwrap();
    let (rows, _) = behind.split_once("\n}\n").unwrap();
    let name = |row: &str| Some(row.trim().split_once('(')?.0.to_owned());
    let word = |n: &String| n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let variadic = |row: &str| {
        Some(
            row.trim()
                .strip_prefix("(\"")?
                .split_once("\", \"")?
                .0
                .to_owned(),
        )
    };
    let rows = rows.lines().filter_map(name);
    rows.chain(before.lines().filter_map(variadic))
        .filter(word)
        .collect()
}

/// Functions that the dynamic loader can bind to.
fn exported() -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library::path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "nm: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| Some(line.split_whitespace().nth(2)?.to_owned()))
        .collect()
}

#[test]
fn exported_symbols_are_the_table() {
    let (table, exported) = (table(), exported());
    assert!(table.len() > 60, "the table was not understood: {table:?}");
    let missing: Vec<_> = table.difference(&exported).collect();
    let extra: Vec<_> = exported.difference(&table).collect();
    assert!(
        missing.is_empty(),
        "in the table and not exported: {missing:?}"
    );
    assert!(extra.is_empty(), "exported and not in the table: {extra:?}");
}
