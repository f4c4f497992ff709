//! The help of verbs, as committed in `tests/help`.
//!
//! After a wanted change: `saiga VERB --help > crates/cli/tests/help/VERB.txt`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

mod support;
use support::{Installation, said};

#[test]
fn help_is_as_committed() {
    let saiga = Installation::bare();
    for verb in [
        "run", "enable", "disable", "status", "top", "config", "compare",
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/help/{verb}.txt"));
        let out = said(&mut saiga.saiga(&[verb, "--help"]));
        assert_eq!(out.code, Some(0));
        assert_eq!(
            out.stdout,
            fs::read_to_string(&file).unwrap(),
            "{}",
            file.display()
        );
    }
}
