//! From results to exit codes, and the one way in which errors are printed.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// The answer of a verb that is done and found something wrong.
pub(crate) const NO: u8 = 1;
/// The answer of a verb that could not do its work.
pub(crate) const COULD_NOT: u8 = 2;

/// Turns a verb's result into the process's exit code; prints an error to stderr.
///
/// A reader that closed our standard output has seen what it wanted: success.
pub(crate) fn code(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => complain(&format!("{error:#}")),
    }
}

/// Prints `saiga: text` to stderr and answers the code for "could not".
pub(crate) fn complain(text: &str) -> ExitCode {
    say(text);
    ExitCode::from(COULD_NOT)
}

/// Prints `saiga: text` to stderr.
pub(crate) fn say(text: &str) {
    // Names in it are other people's, and tell the terminal nothing.
    let is_order = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let text = text.replace(is_order, "?");
    // With stderr closed there is nobody left to tell; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "saiga: {text}");
}

/// Whether it is a reader that has closed our output.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == ErrorKind::BrokenPipe)
}
