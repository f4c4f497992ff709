//! Bad input gives one clear message and exit status 2, and starts nothing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

mod support;
use support::{Installation, said};

/// Arguments, environment, and what the message must contain.
type Row = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// `BAD` stands for the path of a settings file with an unknown key.
const ROWS: &[Row] = &[
    (&["--bogus"], &[], "unexpected argument '--bogus'"),
    (
        &["run", "--bogus", "true"],
        &[],
        "unexpected argument '--bogus'",
    ),
    (&["fly"], &[], "unrecognized subcommand 'fly'"),
    (&["run"], &[], "required arguments were not provided"),
    (
        &["run", "--profile", "fast", "true"],
        &[],
        "use latency, default or gentle",
    ),
    (
        &["run", "no-such-program"],
        &[],
        "command not found: no-such-program",
    ),
    (
        &["run", "/no/such/program"],
        &[],
        "cannot run /no/such/program: there is no such file",
    ),
    (&["run", "/etc/passwd"], &[], "this user may not execute it"),
    (&["run", "--", "/"], &[], "it is a folder"),
    (
        &["run", "true"],
        &[("SAIGA_CONFIG", "BAD")],
        "line 2: unknown field `faster`",
    ),
    (
        &["run", "true"],
        &[("SAIGA_CONFIG", "/no/file")],
        "/no/file, which does not exist",
    ),
    (
        &["run", "true"],
        &[("SAIGA_RING", "7KiB")],
        "SAIGA_RING=7KiB",
    ),
    (
        &["config", "show"],
        &[("SAIGA_CONFIG", "BAD")],
        "unknown field `faster`",
    ),
    (
        &["config", "show"],
        &[("SAIGA_ENABLED", "perhaps")],
        "SAIGA_ENABLED=perhaps",
    ),
    (&["status", "word"], &[], "invalid value 'word'"),
    (
        &["status", "8388608"],
        &[],
        "no process has the number 8388608",
    ),
    (&["top", "--iterations", "0"], &[], "invalid value '0'"),
    (&["bench"], &[], "Usage: saiga bench <COMMAND>"),
    (
        &["bench", "tpcc", "fly"],
        &[],
        "unrecognized subcommand 'fly'",
    ),
    (&["bench", "sql"], &[], "--engine <ENGINE>"),
    (
        &["bench", "sql", "--engine", "oracle"],
        &[],
        "invalid value 'oracle' for '--engine",
    ),
    (
        &["bench", "sql", "--engine", "mariadb", "-n", "9"],
        &[],
        "unexpected argument '-n'",
    ),
    (&["completions", "cobol"], &[], "invalid value 'cobol'"),
    (&["man", "--out", "/no/folder"], &[], "/no/folder"),
];

#[test]
fn each_bad_input_is_named_and_exits_2() {
    let saiga = Installation::with_library();
    fs::create_dir_all(saiga.path("bad")).unwrap();
    let bad = saiga.path("bad/saiga.toml");
    fs::write(&bad, "enabled = true\nfaster = true\n").unwrap();
    let bad = bad.to_str().unwrap();
    for (arguments, environment, expected) in ROWS {
        let environment = environment
            .iter()
            .map(|(name, value)| (*name, value.replace("BAD", bad)));
        let out = said(saiga.saiga(arguments).envs(environment));
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}: {out:?}"
        );
        assert!(out.stderr.starts_with("saiga: "), "{arguments:?}: {out:?}");
        assert!(out.stderr.contains(expected), "{arguments:?}: {out:?}");
        assert!(!out.stderr.contains("panicked"), "{arguments:?}: {out:?}");
    }
}

#[test]
fn the_process_of_another_user_is_not_shown() {
    let saiga = Installation::bare();
    let mut command = saiga.saiga(&["status", "1"]);
    let out = said(command.uid(65534).gid(65534));
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(
        out.stderr
            .contains("no permission to read process 1; run this command as root"),
        "{out:?}"
    );
}

#[test]
fn a_misspelt_variable_is_a_warning() {
    let saiga = Installation::bare();
    let out = said(saiga.saiga(&["config", "show"]).env("SAIGA_RINGS", "64KiB"));
    assert_eq!(out.code, Some(0));
    assert!(
        out.stderr
            .contains("warning: $SAIGA_RINGS is not a variable that Saiga reads"),
        "{out:?}"
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let saiga = Installation::bare();
    for arguments in [
        &["man"][..],
        &["--help"],
        &["completions", "bash"],
        &["config", "show"],
    ] {
        // The reading end is closed before the command starts.
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        let mut command = saiga.saiga(arguments);
        let out = said(command.stdout(Stdio::from(std::os::fd::OwnedFd::from(writer))));
        assert_eq!(
            (out.code, out.stderr.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn config_show_names_value_and_origin() {
    let saiga = Installation::bare();
    let mut command = saiga.saiga(&["config", "show"]);
    let out = said(command.env("SAIGA_RING", "64KiB"));
    let line = |key: &str| {
        out.stdout
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap()
    };
    assert_eq!(
        line("ring").split_whitespace().collect::<Vec<_>>(),
        ["ring", "64KiB", "$SAIGA_RING"]
    );
    assert!(line("evidence_messages").ends_with("default"));

    let out = said(&mut saiga.saiga(&["config", "show", "--json"]));
    let rows: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 7);
    assert_eq!(rows[0]["key"], "enabled");
}

#[test]
fn man_pages_and_completions_cover_every_verb() {
    let saiga = Installation::bare();
    let folder = saiga.path("man");
    fs::create_dir(&folder).unwrap();
    let out = said(&mut saiga.saiga(&["man", "--out", folder.to_str().unwrap()]));
    assert_eq!(out.code, Some(0), "{out:?}");
    for verb in ["run", "status", "top", "compare", "bench", "config"] {
        let page = fs::read_to_string(folder.join(format!("saiga-{verb}.1"))).unwrap();
        assert!(page.contains(".TH"), "{verb}");
    }
    assert!(
        fs::read_to_string(folder.join("saiga.1"))
            .unwrap()
            .contains("Exit status")
    );
    for shell in ["bash", "zsh", "fish"] {
        let out = said(&mut saiga.saiga(&["completions", shell]));
        assert!(
            out.stdout.contains("status") && out.stdout.contains("require"),
            "{shell}"
        );
    }
}
