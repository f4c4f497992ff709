//! Clients in Python that implement the protocol themselves.

use std::{process::Command, time::Duration};

use saiga_trials::{
    bounded,
    parity::{self, Arm},
    program,
};

/// A client that runs longer than this counts as hung.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs `programs/tools/NAME.py` with `words` to its end; returns its output.
///
/// # Panics
/// If it does not exit with 0.
pub(crate) fn run(name: &str, arm: Arm, words: &[&str]) -> String {
    let script = program::folder().join("tools").join(format!("{name}.py"));
    let mut command = Command::new(parity::python());
    parity::set_environment(&mut command, arm);
    command.arg(script).args(words);
    let outcome = bounded::run(command, LIMIT);
    assert!(outcome.is_success(), "{name} on {arm:?}: {outcome:?}");
    outcome.stdout
}
