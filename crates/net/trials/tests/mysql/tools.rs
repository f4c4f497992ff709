//! Clients in Python that speak to the server without any library of MySQL's.

use std::{process::Command, time::Duration};

use saiga_trials::{
    bounded,
    parity::{self, Arm},
    program,
};

/// After this long a client counts as hung.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs `programs/tools/NAME.py` with `words` to its end; what it printed.
///
/// # Panics
/// When it does not exit with 0.
pub(crate) fn run(name: &str, arm: Arm, words: &[&str]) -> String {
    let script = program::folder().join("tools").join(format!("{name}.py"));
    let mut command = Command::new(parity::python());
    parity::dress(&mut command, arm);
    command.arg(script).args(words);
    let outcome = bounded::run(command, LIMIT);
    assert!(outcome.is_success(), "{name} on {arm:?}: {outcome:?}");
    outcome.stdout
}
