//! The dashboard in a terminal: its content, and the state of the terminal after each kind of end.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod marked;
mod terminal;

use std::fs;
use std::process::Command;

use marked::{Marked, pid};
use rustix::process::{Signal, kill_process};
use terminal::Terminal;

const CTRL_C: u8 = 3;

/// Starts a run without an end on one warehouse in SQLite.
fn endless_run(test: &Marked, more: &[&str]) -> Command {
    let props = test.path("props");
    let file = test.text("t.db");
    let text = format!(
        "conn=jdbc:sqlite:{file}\nwarehouses=1\nterminals=2\nrunMins=30\nlimitTxnsPerMin=0\n"
    );
    fs::write(&props, text).unwrap();
    let props = test.text("props");
    let built = test.said(&mut test.saiga(&["bench", "tpcc", "build", "--props", &props]));
    assert_eq!(built.code, Some(0), "{built:?}");
    let mut command = test.saiga(&["bench", "tpcc", "run", "--props", &props]);
    command.arg("--no-check").args(more);
    command
}

/// Requests of a run that is long enough to be drawn several times on any machine.
const DRAWN: &str = "200000";

fn comparison(test: &Marked, requests: &str, more: &[&str]) -> Command {
    let mut command = test.saiga(&["compare", "redis", "--only", "set-c1-one", "--requests"]);
    command.args([
        requests,
        "--max-foreign",
        "100",
        "--seed",
        "1",
        "--pairs",
        "2",
    ]);
    command.args(["--arms", "kernel,unix", "--out", &test.text("out")]);
    command.args(more);
    command
}

#[test]
fn a_run_of_tpcc_is_drawn_resized_and_interrupted() {
    let test = Marked::new();
    let mut terminal = Terminal::start(&endless_run(&test, &[]), 100, 30);
    terminal.await_screen("load and host", |screen| {
        [
            "New-Orders/min",
            "measured",
            "p95 ",
            "all [",
            "█ user",
            "client ",
            "net lo",
        ]
        .iter()
        .all(|part| screen.has(part))
            && screen.has(" left")
            && screen.has("max ")
    });
    assert!(terminal.screen.width() <= 100);

    terminal.resize(40, 12);
    terminal.await_screen("small panel", |screen| {
        screen.has("New-Orders/min") && screen.has("all [") && screen.width() <= 40
    });
    let shown = terminal.screen.text();
    assert_eq!(shown.matches("all [").count(), 1, "{shown}");
    assert_eq!(shown.matches("New-Orders/min").count(), 1, "{shown}");

    terminal.press(CTRL_C);
    let (code, printed) = terminal.end();
    assert_eq!(code, Some(2));
    assert!(printed.contains("Measured tpmC"), "{printed}");
    let left = terminal.screen.text();
    assert!(!left.contains("all [") && !left.contains("p95 "), "{left}");
    assert!(left.contains("interrupted"), "{left}");
    assert!(terminal.screen.is_ready_for_a_prompt(), "{left}");
    test.assert_nothing_left();
}

/// The load is another process, which writes its figures to a file.
#[test]
fn a_campaign_draws_the_load_that_it_runs() {
    let test = Marked::new();
    drop(endless_run(&test, &[]));
    let file = r#"
[plan]
pairs = 1
seed = 1
max_foreign_cores = 100
[[server]]
name = "none"
command = "sleep 1000"
ready = { command = "true" }
stop = { signal = "KILL" }
[[arm]]
name = "a"
[[arm]]
name = "b"
[workload]
kind = "tpcc"
props = "props"
options = ["--for", "30m", "--no-check"]
"#;
    fs::write(test.path("experiment.toml"), file).unwrap();
    let mut command = test.saiga(&["compare", &test.text("experiment.toml")]);
    command.args(["--out", &test.text("out")]);
    let mut terminal = Terminal::start(&command, 100, 30);
    terminal.await_screen("campaign, load and host", |screen| {
        ["of 2 runs", "New-Orders/min", "measured", "p95 ", "all ["]
            .iter()
            .all(|part| screen.has(part))
    });
    assert!(test.path("out/runs/load.json").is_file());
    terminal.press(CTRL_C);
    let (code, _) = terminal.end();
    assert_eq!(code, Some(2));
    assert!(!test.path("out/runs/load.json").exists());
    test.assert_nothing_left();
}

/// After a SIGKILL or a panic, no code runs that could restore the terminal.
#[test]
fn a_run_that_is_killed_leaves_the_terminal_in_order() {
    let test = Marked::new();
    let mut terminal = Terminal::start(&endless_run(&test, &[]), 80, 24);
    terminal.await_screen("panel", |screen| screen.has("all ["));
    kill_process(pid(terminal.child.id()), Signal::KILL).unwrap();
    let (code, _) = terminal.end();
    assert_eq!(code, None);
    assert!(
        terminal.screen.is_ready_for_a_prompt(),
        "{}",
        terminal.screen.text()
    );
}

#[test]
fn messages_of_a_comparison_are_above_the_panel() {
    let test = Marked::new();
    let mut terminal = Terminal::start(&comparison(&test, DRAWN, &[]), 90, 30);
    terminal.await_screen("campaign", |screen| {
        [
            "of 4 runs",
            "set-c1-one-core",
            "pair ",
            "last of kernel: ",
            " ops/s",
        ]
        .iter()
        .all(|part| screen.has(part))
    });
    let (code, printed) = terminal.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.ends_with("out/report.html\n"), "{printed}");
    let left = terminal.screen.text();
    assert!(left.contains("saiga: seed 1, 1 cells, 2 pairs"), "{left}");
    assert!(
        !left.contains("last of") && !left.contains("of 4 runs"),
        "{left}"
    );
    assert!(terminal.screen.is_ready_for_a_prompt(), "{left}");
}

/// A window too small for a panel is not an error.
#[test]
fn a_tiny_terminal_gets_what_fits() {
    let test = Marked::new();
    let mut terminal = Terminal::start(&comparison(&test, "2000", &[]), 12, 3);
    let (code, printed) = terminal.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        terminal.screen.is_ready_for_a_prompt(),
        "{}",
        terminal.screen.text()
    );
}

#[test]
fn progress_lines_replace_the_dashboard() {
    let test = Marked::new();
    let said = test.said(&mut comparison(&test, "2000", &[]));
    assert!(said.stderr.contains("saiga: 0 of 4 runs, "), "{said:?}");
    assert!(!said.stderr.contains('\x1b'), "{said:?}");
    let mut plain = comparison(&test, "2000", &["--no-dashboard"]);
    plain.env("TERM", "xterm");
    let said = test.said(&mut plain);
    assert!(said.stderr.contains("saiga: 0 of 4 runs, "), "{said:?}");
}
