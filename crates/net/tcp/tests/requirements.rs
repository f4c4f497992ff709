//! The tables of requirements: each row names tests that exist, or a reason.
//!
//! A file `requirements/rfcNNNN.md` has a heading, a sentence and one table with the columns of
//! [`HEADER`]. The last column holds claims, with `; ` between them; [`claim`] lists their forms.
//! The test finds the named tests by reading the sources, so a test that is renamed breaks its row.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

const HEADER: &str = "| § | level | requirement | shown by |";
const RULE: &str = "|---|---|---|---|";

/// Words of RFC 2119. RFC 9293 numbers its requirements instead.
const LEVELS: [&str; 4] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT"];
/// The numbers of appendix B of RFC 9293: `MUST-1` to `MUST-69` and `SHLD-1` to `SHLD-31`.
const NUMBERED: [(&str, u32); 2] = [("MUST-", 69), ("SHLD-", 31)];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The tables: name of the file and text.
fn tables() -> Vec<(String, String)> {
    let mut tables: Vec<_> = fs::read_dir(package().join("requirements"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    tables.sort();
    tables
}

/// What is wrong with a table, one line for each fault.
fn faults(file: &str, text: &str) -> Vec<String> {
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).collect();
    let Some(header) = lines.iter().position(|(_, line)| *line == HEADER) else {
        return vec![format!("{file}: the table begins with \"{HEADER}\"")];
    };
    if lines.get(header + 1).is_none_or(|(_, line)| *line != RULE) {
        return vec![format!("{file}: \"{RULE}\" follows the header")];
    }
    let rows = &lines[header + 2..];
    if rows.is_empty() {
        return vec![format!("{file}: the table has no row")];
    }
    rows.iter()
        .filter_map(|(number, line)| {
            let why = row(line).err()?;
            Some(format!("{file}:{number}: {why}: {line}"))
        })
        .collect()
}

/// The four cells of a line of a table.
fn cells(line: &str) -> Option<[&str; 4]> {
    let inside = line.strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inside.split('|').map(str::trim).collect();
    cells.try_into().ok()
}

fn row(line: &str) -> Result<(), String> {
    let Some([section, level, requirement, shown_by]) = cells(line) else {
        return Err("a row has four cells".to_owned());
    };
    if section.is_empty() || requirement.is_empty() {
        return Err("a cell is empty".to_owned());
    }
    if !is_level(level) {
        return Err(format!("\"{level}\" is not a level"));
    }
    shown_by.split("; ").try_for_each(claim)
}

fn is_level(level: &str) -> bool {
    let is_numbered = NUMBERED.iter().any(|(prefix, most)| {
        let number = level.strip_prefix(prefix).map(str::parse::<u32>);
        number.is_some_and(|number| number.is_ok_and(|number| (1..=*most).contains(&number)))
    });
    LEVELS.contains(&level) || is_numbered
}

/// Checks one claim of the last column.
fn claim(claim: &str) -> Result<(), String> {
    let (kind, rest) = claim
        .split_once(' ')
        .ok_or_else(|| format!("\"{claim}\" is not a claim"))?;
    let tests = package().join("tests");
    let exists = match kind {
        "script" => tests.join("scripts").join(format!("{rest}.tcp")).is_file(),
        "test" => has_test(&package().join("src"), rest),
        "wire" => {
            let path = rest.strip_prefix("test ").unwrap_or_default();
            has_test(&package().join("../wire/src"), path)
        }
        "simulation" => has_test_below(&tests.join("simulation"), rest),
        // A reason, for a person to judge.
        "exception:" | "caller:" => !rest.trim().is_empty(),
        _ => return Err(format!("\"{claim}\" is not a claim")),
    };
    if exists {
        return Ok(());
    }
    Err(format!("\"{claim}\" does not exist"))
}

/// Whether a crate has the test `module::path::name`. A module is a file, or a block in the file of
/// the module around it.
fn has_test(src: &Path, path: &str) -> bool {
    let mut modules: Vec<&str> = path.split("::").collect();
    let Some(name) = modules.pop() else {
        return false;
    };
    (0..=modules.len()).rev().any(|depth| {
        let (files, blocks) = modules.split_at(depth);
        let file = match files {
            [] => src.join("lib.rs"),
            files => src.join(files.join("/")).with_extension("rs"),
        };
        let text = fs::read_to_string(file).unwrap_or_default();
        let has_block = |module: &&str| text.contains(&format!("mod {module} {{"));
        blocks.iter().all(has_block) && defines_test(&text, name)
    })
}

/// Whether any file of a folder has the test.
fn has_test_below(folder: &Path, name: &str) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten();
    let paths = files.map(|file| file.unwrap().path());
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.into_iter().any(|path: PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        defines_test(&text, name)
    })
}

/// Whether a function of this name has the attribute `#[test]`.
fn defines_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let definition = format!("fn {name}(");
    let is_definition = |line: &&str| line.starts_with(&definition);
    let Some(at) = lines.iter().position(is_definition) else {
        return false;
    };
    let is_attribute = |line: &&&str| line.starts_with('#') || line.starts_with("//");
    let attributes = lines[..at].iter().rev().take_while(is_attribute);
    attributes.into_iter().any(|line| *line == "#[test]")
}

#[test]
fn every_row_is_shown_or_has_a_reason() {
    let tables = tables();
    assert!(!tables.is_empty(), "no table");
    let faults: Vec<String> = tables
        .iter()
        .flat_map(|(file, text)| faults(file, text))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Each number of appendix B has a row, and only RFC 9293 has numbers.
#[test]
fn all_numbers_of_rfc_9293_are_there() {
    let mut found = Vec::new();
    for (file, text) in tables() {
        for [_, level, ..] in text.lines().filter_map(cells) {
            if NUMBERED.iter().any(|(prefix, _)| level.starts_with(prefix)) {
                assert_eq!(file, "rfc9293.md", "{level}");
                found.push(level.to_owned());
            }
        }
    }
    let all = NUMBERED
        .iter()
        .flat_map(|(prefix, most)| (1..=*most).map(move |number| format!("{prefix}{number}")));
    let missing: Vec<String> = all.filter(|number| !found.contains(number)).collect();
    assert!(missing.is_empty(), "no row for {}", missing.join(", "));
}

#[test]
fn good_rows_pass() {
    for shown_by in [
        "script close",
        "script close; script abort",
        "test iss::tests::numbers_of_one_connection_rise_by_one_in_four_microseconds",
        "test assembly::tests::only_new_bytes_are_placed",
        "wire test tcp::options::tests::unknown_options_are_skipped",
        "simulation every_seed_delivers_everything",
        "exception: Linux does the same",
        "script close; caller: the stack has the addresses",
    ] {
        assert_eq!(
            row(&format!("| 3.6 | MUST | it holds | {shown_by} |")),
            Ok(())
        );
    }
}

#[test]
fn bad_rows_are_found() {
    for (bad, why) in [
        ("| 3.6 | MUST | it holds |", "four cells"),
        ("| 3.6 | MUST | it | holds | script close |", "four cells"),
        ("3.6, MUST, it holds, script close", "four cells"),
        ("", "four cells"),
        ("| 3.6 | MAY | it holds | script close |", "\"MAY\""),
        ("| 3.6 | MUST-70 | it holds | script close |", "\"MUST-70\""),
        ("| 3.6 | SHLD-0 | it holds | script close |", "\"SHLD-0\""),
        ("| | MUST | it holds | script close |", "empty"),
        ("| 3.6 | MUST | | script close |", "empty"),
        ("| 3.6 | MUST | it holds | |", "not a claim"),
        ("| 3.6 | MUST | it holds | close |", "not a claim"),
        ("| 3.6 | MUST | it holds | believe me |", "not a claim"),
        ("| 3.6 | MUST | it holds | script clothes |", "not exist"),
        (
            "| 3.6 | MUST | it holds | script close; script x |",
            "not exist",
        ),
        (
            "| 3.6 | MUST | it holds | test iss::tests::no |",
            "not exist",
        ),
        (
            "| 3.6 | MUST | it holds | test iss::tests::iss |",
            "not exist",
        ),
        // A function that is not a test.
        (
            "| 3.6 | MUST | it holds | test iss::low_half |",
            "not exist",
        ),
        // A test of another module.
        (
            "| 3.6 | MUST | it holds | test rack::tests::lists_are_read |",
            "not exist",
        ),
        (
            "| 3.6 | MUST | it holds | wire test tcp::tests::no |",
            "not exist",
        ),
        (
            "| 3.6 | MUST | it holds | wire tcp::tests::fields |",
            "not exist",
        ),
        ("| 3.6 | MUST | it holds | simulation world |", "not exist"),
        ("| 3.6 | MUST | it holds | exception: |", "not a claim"),
    ] {
        let found = row(bad).unwrap_err();
        assert!(found.contains(why), "{bad}: {found}");
    }
}

#[test]
fn bad_tables_are_found_by_file_and_line() {
    let table = |rows: &str| format!("# RFC\n\nA sentence.\n\n{HEADER}\n{RULE}\n{rows}");
    assert_eq!(faults("a.md", "# RFC\n").len(), 1);
    assert_eq!(faults("a.md", &format!("{HEADER}\nrow\n")).len(), 1);
    assert_eq!(faults("a.md", &table("")).len(), 1);
    let good = "| 3.6 | MUST | it holds | script close |\n";
    assert_eq!(faults("a.md", &table(good)), Vec::<String>::new());
    let mixed = format!("{good}| 3.6 | OUGHT | it holds | script close |\n{good}\n");
    let found = faults("a.md", &table(&mixed));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("a.md:8: \"OUGHT\""), "{found:?}");
    assert!(found[1].starts_with("a.md:10: "), "{found:?}");
}
