//! The library exports exactly the symbols of its table, and the table is complete: each row has
//! the system call and the further names of its function.
//!
//! The table is read as text from `preload/src/symbols.rs`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use saiga_trials::library;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use syscalls::Sysno;

const SYMBOLS: &str = include_str!("../../preload/src/symbols.rs");
const NUMBERS: &str = include_str!("../../preload/src/hooks/numbers.rs");

/// The text before `symbols! { ... }`, and its rows.
fn parts() -> (&'static str, impl Iterator<Item = &'static str>) {
    let (before, behind) = SYMBOLS.split_once("\nsymbols! {\n").unwrap();
    let (rows, _) = behind.split_once("\n}\n").unwrap();
    (before, rows.lines().map(str::trim))
}

/// Name of the function in a row.
fn name(row: &str) -> &str {
    row.split_once('(').unwrap().0
}

/// The names in the table. Variadic functions have no signature in a row; they are listed as
/// `("NAME", "why")` before the rows.
fn table() -> BTreeSet<&'static str> {
    let (before, rows) = parts();
    let further = |row: &'static str| {
        let (_, further) = row.trim_end_matches(';').rsplit_once('"').unwrap();
        further.split(" also ").skip(1)
    };
    let variadic = |line: &'static str| {
        let (name, _) = line.trim().strip_prefix("(\"")?.split_once("\", \"")?;
        Some(name)
    };
    let rows = rows.flat_map(|row| core::iter::once(name(row)).chain(further(row)));
    rows.chain(before.lines().filter_map(variadic)).collect()
}

/// Functions that a file exports, with their symbol versions, if any.
fn defined(file: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(file)
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
    let (table, exported) = (table(), defined(library::path()));
    let exported: BTreeSet<&str> = exported.iter().map(String::as_str).collect();
    assert!(table.len() > 60, "the table was not parsed: {table:?}");
    let missing: Vec<_> = table.difference(&exported).collect();
    let extra: Vec<_> = exported.difference(&table).collect();
    assert!(
        missing.is_empty(),
        "in the table and not exported: {missing:?}"
    );
    assert!(extra.is_empty(), "exported and not in the table: {extra:?}");
}

#[test]
fn each_row_has_the_system_call_of_its_name() {
    for row in parts().1 {
        let call = match name(row) {
            "fork" => continue, // A fork by system call is detected by the process's PID.
            "pselect" => "pselect6",
            name => name,
        };
        if call.parse::<Sysno>().is_err() {
            continue;
        }
        let number = format!("SYS_{call}");
        let has = |text: &str| {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.any(|word| word == number)
        };
        assert!(has(row) || has(NUMBERS), "no {number}: {row}");
    }
}

/// glibc's own code uses names that programs can use as well: `__read`, `_IO_popen`.
#[test]
fn each_row_has_the_further_names_of_its_function() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find_map(|line| {
        let path = line.split_whitespace().last()?;
        path.contains("/libc.so").then_some(path)
    });
    let public: BTreeSet<String> = defined(Path::new(libc.unwrap()))
        .into_iter()
        .filter(|symbol| !symbol.contains("GLIBC_PRIVATE"))
        .filter_map(|symbol| Some(symbol.split_once("@@")?.0.to_owned()))
        .collect();
    assert!(public.contains("read"), "libc was not parsed");
    let table = table();
    for name in &table {
        for further in [
            format!("__{name}"),
            format!("_IO_{name}"),
            format!("{name}64"),
        ] {
            let known = table.contains(further.as_str());
            assert!(known || !public.contains(&further), "libc has {further}");
        }
    }
}

/// Only the library of the random arm has fault injection, not the installed one.
#[test]
fn only_the_random_arm_has_fault_injection() {
    let obeys = |file: &Path| {
        let bytes = std::fs::read(file).unwrap();
        let variable = b"SAIGA_CHAOS";
        bytes.windows(variable.len()).any(|part| part == variable)
    };
    assert!(!obeys(library::path()));
    assert!(obeys(library::with_chaos()));
}
