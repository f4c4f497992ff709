//! The packet scripts on the Linux kernel, over a TUN device in a network namespace.
//!
//! Each script that the engine runs (tests/scripts) runs here too, in real time and in a namespace
//! of its own. A script in which the two differ on purpose says so. README.md in that folder
//! explains the form. `SCRIPT=name` runs one script and prints its segments. Needs root,
//! /dev/net/tun and ip(8).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clock;
mod compare;
mod device;
mod numbers;
#[path = "../scripts/parse.rs"]
mod parse;
mod run;
#[path = "../scripts/show.rs"]
mod show;
mod socket;
mod sys;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use parse::{Line, Side};
use run::Run;

/// Scripts that run at the same time. They wait for most of theirs.
const AT_ONCE: usize = 24;
/// Scripts that take longer run with `SAIGA_SOAK=1` only.
const LONG_MS: u64 = 3000;
/// A script that fails after a call or a segment was late by more than this has proven nothing.
const PUNCTUAL: Duration = Duration::from_millis(3);
/// Runs of a script that proved nothing.
const ATTEMPTS: usize = 5;

struct Script {
    name: String,
    lines: Vec<Line>,
}

#[derive(Debug, Default)]
struct Report {
    held: Vec<String>,
    failed: Vec<String>,
    /// Always late.
    unproven: Vec<String>,
}

#[test]
fn the_kernel_agrees() {
    let chosen = std::env::var("SCRIPT").ok();
    let is_soak = std::env::var_os("SAIGA_SOAK").is_some();
    let mut scripts = Vec::new();
    let (mut differ, mut long) = (Vec::new(), 0);
    for (name, text) in texts() {
        if chosen.as_ref().is_some_and(|chosen| *chosen != name) {
            continue;
        }
        if let Some(reason) = parse::difference(&text) {
            differ.push(format!("{name}: {reason}"));
            continue;
        }
        let lines = parse::lines(&text, Side::Kernel).unwrap();
        let length_ms: u64 = lines.iter().map(|line| line.after_ms).sum();
        if length_ms > LONG_MS && !is_soak && chosen.is_none() {
            long += 1;
            continue;
        }
        scripts.push(Script { name, lines });
    }
    let report = run_all(scripts, chosen.is_some());
    println!("differs from the kernel, on purpose:");
    differ.sort();
    for line in &differ {
        println!("    {line}");
    }
    println!("too late to prove anything: {:?}", report.unproven);
    println!(
        "{} held, {} differ, {long} are for SAIGA_SOAK=1",
        report.held.len(),
        differ.len()
    );
    assert!(report.failed.is_empty(), "\n{}", report.failed.join("\n"));
}

fn texts() -> Vec<(String, String)> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let folder = std::env::var_os("SCRIPTS").map_or(ours, Into::into);
    let mut texts = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tcp") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            texts.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    texts
}

fn run_all(scripts: Vec<Script>, is_shown: bool) -> Report {
    let waiting = Mutex::new(scripts);
    let report = Mutex::new(Report::default());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(script) = waiting.lock().unwrap().pop() else {
                        return;
                    };
                    let run = run_punctually(&script.lines);
                    if is_shown {
                        println!("{}", run.trace.join("\n"));
                    }
                    let mut report = report.lock().unwrap();
                    match run.result {
                        Ok(()) => report.held.push(script.name),
                        Err(_) if run.late > PUNCTUAL => report.unproven.push(script.name),
                        Err(why) => report.failed.push(format!("{}: {why}", script.name)),
                    }
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap();
    report.failed.sort();
    report
}

/// Runs a script, each time in a new namespace, until it holds or fails without having been late.
fn run_punctually(lines: &[Line]) -> Run {
    let mut attempts = 0;
    loop {
        let run = thread::scope(|scope| scope.spawn(|| run::run(lines)).join().unwrap());
        attempts += 1;
        if run.result.is_ok() || run.late <= PUNCTUAL || attempts == ATTEMPTS {
            return run;
        }
    }
}
