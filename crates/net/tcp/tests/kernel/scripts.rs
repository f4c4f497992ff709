//! Runs many scripts at the same time, each in a namespace of its own.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::parse::{self, DIFFERS, Line, Side};
use crate::run::{self, Run};

/// Scripts that run at the same time. They wait for most of theirs.
pub(crate) const AT_ONCE: usize = 24;
/// Scripts that take longer run with `SAIGA_SOAK=1` only.
const LONG_MS: u64 = 3000;
/// Scripts that take longer do not run on the kernel.
const LONGEST_MS: u64 = 150_000;
/// A run that fails after a call or a segment was late by more than this has proven nothing.
const PUNCTUAL: Duration = Duration::from_millis(3);
/// Most runs of a script that proved nothing.
const ATTEMPTS: usize = 5;

/// What is to be run on the kernel.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    chosen: Vec<(String, Vec<Line>)>,
    /// Scripts that the kernel does not run, with the reason.
    pub(crate) differ: Vec<String>,
    /// Numbers of scripts that take too long for this run, and for every run.
    pub(crate) long: [usize; 2],
    failed: Vec<String>,
}

/// What has been found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) held: usize,
    pub(crate) failed: Vec<String>,
    /// Scripts that failed and were late each time.
    pub(crate) unproven: Vec<String>,
}

impl Scripts {
    /// Reads the folder; only the script `name` if it is given.
    pub(crate) fn read(name: Option<&str>, is_soak: bool) -> Self {
        let mut scripts = Self::default();
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
        let folder = std::env::var_os("SCRIPTS").map_or(ours, Into::into);
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "tcp") {
                continue;
            }
            let script = path.file_stem().unwrap().to_string_lossy().into_owned();
            if name.is_none_or(|name| name == script) {
                let limit_ms = if is_soak || name.is_some() {
                    LONGEST_MS
                } else {
                    LONG_MS
                };
                scripts.add(script, &fs::read_to_string(&path).unwrap(), limit_ms);
            }
        }
        scripts.differ.sort();
        scripts
    }

    fn add(&mut self, name: String, text: &str, limit_ms: u64) {
        let reason = text.lines().find_map(|line| line.strip_prefix(DIFFERS));
        if let Some(reason) = reason.map(str::trim) {
            self.differ.push(format!("{name}: {reason}"));
            return;
        }
        let lines = match parse::lines(text, Side::Kernel) {
            Ok(lines) => lines,
            Err(why) => {
                self.failed.push(format!("{name}: {why}"));
                return;
            }
        };
        let length_ms: u64 = lines.iter().map(|line| line.after_ms).sum();
        if length_ms > LONGEST_MS {
            self.long[1] += 1;
        } else if length_ms > limit_ms {
            self.long[0] += 1;
        } else {
            self.chosen.push((name, lines));
        }
    }

    /// Runs them all; prints their segments if `is_shown`.
    pub(crate) fn run(self, is_shown: bool) -> Report {
        let report = Mutex::new(Report {
            failed: self.failed,
            ..Report::default()
        });
        at_once(self.chosen, |(name, lines)| {
            let run = run_punctually(&lines, Duration::MAX);
            if is_shown {
                println!("{}", run.trace.join("\n"));
            }
            let mut report = report.lock().unwrap();
            match run.result {
                Ok(()) => report.held += 1,
                Err(_) if run.late > PUNCTUAL => report.unproven.push(name),
                Err(why) => report.failed.push(format!("{name}: {why}")),
            }
        });
        let mut report = report.into_inner().unwrap();
        report.failed.sort();
        report
    }
}

/// Does `work` for all items, some of them at the same time.
pub(crate) fn at_once<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let waiting = Mutex::new(items);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().pop();
                    match next {
                        Some(item) => work(item),
                        None => return,
                    }
                }
            });
        }
    });
}

/// Whether a run proves something: it held, or failed although nothing was late, and it did not
/// fall behind its script by more than `behind`.
pub(crate) fn is_proof(run: &Run, behind: Duration) -> bool {
    run.result.is_ok() || run.late <= PUNCTUAL && run.behind <= behind
}

/// Runs a script, each time in a new namespace, until the run proves something.
pub(crate) fn run_punctually(lines: &[Line], behind: Duration) -> Run {
    let mut attempts = 0;
    loop {
        let run = thread::scope(|scope| scope.spawn(|| run::run(lines)).join().unwrap());
        attempts += 1;
        if is_proof(&run, behind) || attempts == ATTEMPTS {
            return run;
        }
    }
}
