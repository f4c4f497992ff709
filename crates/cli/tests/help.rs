//! The help texts, as committed in `tests/help`.
//!
//! To update one: `saiga VERB --help > crates/cli/tests/help/VERB.txt`, with a hyphen for a space
//! in the file name.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

mod support;
use support::{Installation, said};

#[test]
fn help_is_as_committed() {
    let saiga = Installation::bare();
    for verb in [
        "run",
        "enable",
        "disable",
        "status",
        "top",
        "topology",
        "topology collect",
        "diagnose",
        "tune",
        "tune plan",
        "tune apply",
        "tune confirm",
        "tune verify",
        "tune undo",
        "tune prove",
        "tune history",
        "tune knobs",
        "tune database",
        "tune move-pages",
        "config",
        "compare",
        "compare redis",
        "compare sql",
        "compare tpcc",
        "compare file",
        "bench redis",
        "bench sql",
        "bench tpcc run",
        "bench tpcc merge",
        "bench tpcc build",
        "bench tpcc check",
        "bench tpcc destroy",
        "history",
        "snapshot",
        "snapshot take",
        "snapshot restore",
        "snapshot verify",
        "snapshot show",
        "waf",
        "waf watch",
        "waf report",
        "waf probe",
        "waf record",
        "waf timer",
        "waf alerts",
        "streams",
        "streams run",
        "streams stop",
        "streams unit",
        "streams check",
        "streams record",
        "streams rules",
        "streams simulate",
        "streams suggest",
    ] {
        let name = verb.replace(' ', "-");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/help/{name}.txt"));
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let out = said(&mut saiga.saiga(&words));
        assert_eq!(out.code, Some(0));
        assert_eq!(
            out.stdout,
            fs::read_to_string(&file).unwrap(),
            "{}",
            file.display()
        );
    }
}
