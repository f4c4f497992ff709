//! Packet scripts: calls, segments in and segments expected, with their times.
//!
//! A script is a file in this folder that ends in `.tcp`. `SCRIPT=name` runs one and prints its
//! segments. The form:
//!
//! ```text
//! # A comment.
//! config mss=1000 timestamps=off     settings, before all else
//! connect                            a call: accept, write N, read N, shutdown, close, abort
//! established                        a whole active open: 20 ms, window 8000, segment size 1000
//! > S 0 win 65535 mss 1000           this segment must leave now; fields that are not named are free
//! +20 < S. 0 ack 1 win 8000          20 ms later, this segment comes
//! state ESTABLISHED                  the state of the connection
//! ```
//!
//! A segment is its flags (S, F, R, P, `.` for ACK, E, C), its number and length (`1+1000`), and
//! fields. Numbers count from the initial number of the side that sends or that is acknowledged. A
//! segment that leaves without being expected fails the script.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod parse;
mod run;

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
