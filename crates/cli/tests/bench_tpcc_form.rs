//! `saiga bench tpcc` with a file in Saiga's TOML format.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use serde_json::Value;

mod support;
use support::{Installation, Said, said};

/// The committed example, with some keys enabled.
fn example(changes: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tpcc.toml");
    let mut text = fs::read_to_string(path).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// Runs a step in a directory of its own, with the file `t.toml`.
fn step(saiga: &Installation, step: &str, more: &[&str]) -> Said {
    let mut command = saiga.saiga(&["bench", "tpcc", step, "--props", "t.toml"]);
    said(command.args(more).current_dir(saiga.path("")))
}

#[test]
fn the_example_is_built_and_run_and_the_command_line_wins() {
    let saiga = Installation::bare();
    let changes = [
        ("# seed = 1", "seed = 77"),
        ("for = \"10s\"", "for = \"1h\""),
        ("\"2s\"", "\"0s\""),
    ];
    fs::write(saiga.path("t.toml"), example(&changes)).unwrap();
    let built = step(&saiga, "build", &[]);
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    let run = step(&saiga, "run", &["--for", "1s", "--json", "--no-check"]);
    // Such a short run may violate a bound, which does not matter here.
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.stderr);
    let record: Value = serde_json::from_str(&run.stdout).unwrap();
    let text = record.to_string();
    assert!(text.contains("\"seed\":77"), "{text}");
    assert!(
        text.contains("DELIVERY_BG"),
        "deliveries are queued: {text}"
    );
}

#[test]
fn errors_name_the_keys_of_the_file() {
    let saiga = Installation::bare();
    let changes = [
        ("ramp_up = \"2s\"", "ramp_up = \"2\""),
        ("# rate", "rate"),
        ("# think = true", "think = true"),
    ];
    fs::write(saiga.path("t.toml"), example(&changes[..1])).unwrap();
    let bad = step(&saiga, "run", &[]);
    assert_eq!(bad.code, Some(2));
    assert!(
        bad.stderr
            .contains("t.toml: invalid value '2' for '--ramp-up"),
        "{}",
        bad.stderr
    );
    fs::write(saiga.path("t.toml"), example(&changes[1..])).unwrap();
    let bad = step(&saiga, "run", &[]);
    assert_eq!(bad.code, Some(2));
    assert!(
        bad.stderr.contains("t.toml: the argument '--rate"),
        "{}",
        bad.stderr
    );
    fs::write(
        saiga.path("t.toml"),
        example(&[("terminals = 4", "terminal = 4")]),
    )
    .unwrap();
    let bad = step(&saiga, "check", &[]);
    let wanted = "line 19: run.terminal is not a key (did you mean run.terminals?)";
    assert!(bad.stderr.contains(wanted), "{}", bad.stderr);
}
