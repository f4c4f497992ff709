//! Random scripts: the engine says what must happen, and the kernel is asked whether it does.
//!
//! A script on which they differ is made smaller, step by step, as long as they do.

use std::sync::Mutex;
use std::time::Duration;

use crate::parse::Line;
use crate::random::{self, Steps};
use crate::record::{Step, record};
use crate::scripts::{Report, at_once, is_proof, run_punctually};

/// A run that fell behind its script by more than this proves nothing: timers of the engine, which
/// is never late, may have expired in another order.
const BEHIND: Duration = Duration::from_millis(25);

/// Compares the scripts of these seeds; prints them if `is_shown`.
pub(crate) fn compare(seeds: Vec<u64>, is_shown: bool) -> Report {
    let report = Mutex::new(Report::default());
    at_once(seeds, |seed| {
        let steps = random::steps(seed);
        let script = record(&steps.all);
        if is_shown {
            println!("{}", text(&script));
        }
        let run = run_punctually(&script, BEHIND);
        if is_shown {
            println!("{}", run.trace.join("\n"));
        }
        let failure = if is_proof(&run, BEHIND) {
            run.result.err().map(|why| smallest(steps, why))
        } else {
            report.lock().unwrap().unproven.push(seed.to_string());
            return;
        };
        let mut report = report.lock().unwrap();
        match failure {
            None => report.held += 1,
            Some(failure) => report.failed.push(format!("SEED={seed}\n{failure}")),
        }
    });
    report.into_inner().unwrap()
}

/// Leaves out steps as long as the two differ; returns the script and how the kernel differs.
fn smallest(mut steps: Steps, mut why: String) -> String {
    let mut at = steps.opening;
    while at < steps.all.len() {
        let mut fewer = steps.all.clone();
        fewer.remove(at);
        match difference(&fewer).filter(|still| kind(still) == kind(&why)) {
            Some(still) => (steps.all, why, at) = (fewer, still, steps.opening),
            None => at += 1,
        }
    }
    format!("{}# The kernel: {why}", text(&record(&steps.all)))
}

/// The words of a failure: another kind of difference may come from what was left out.
fn kind(why: &str) -> Vec<&str> {
    let what = why.rsplit_once(" ms").map_or(why, |(_, what)| what);
    let words = what.split_whitespace().take(4);
    words
        .filter(|word| word.chars().all(char::is_alphabetic))
        .collect()
}

fn difference(steps: &[Step]) -> Option<String> {
    let run = run_punctually(&record(steps), BEHIND);
    let is_proof = is_proof(&run, BEHIND);
    run.result.err().filter(|_| is_proof)
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}
