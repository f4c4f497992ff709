//! Packet scripts: calls, segments in and segments expected, with their times.
//!
//! A script is a file in this folder that ends in `.tcp`; README.md explains the form.
//! `SCRIPT=name` runs one script and prints its segments.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod parse;
mod run;
mod show;
mod states;

use std::fs;
use std::path::Path;

#[test]
fn every_script_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let chosen = std::env::var("SCRIPT").ok();
    let mut failures = Vec::new();
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "tcp") {
            continue;
        }
        if chosen.as_ref().is_some_and(|chosen| *chosen != name) {
            continue;
        }
        count += 1;
        let text = fs::read_to_string(&path).unwrap();
        if let Err(failure) = run::run(&text, chosen.is_some()) {
            failures.push(format!("{name}: {failure}"));
        }
    }
    assert!(count > 0, "no script");
    assert!(
        failures.is_empty(),
        "{} of {count} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}
