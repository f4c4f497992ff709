//! Maps results to exit codes, and prints errors to stderr.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// The exit code of a verb that completed with the answer no, such as a check that failed.
pub(crate) const NO: u8 = 1;
/// The exit code of a verb that failed.
pub(crate) const COULD_NOT: u8 = 2;

/// Turns a verb's result into the process's exit code; prints an error to stderr.
///
/// A broken pipe is success: the reader of stdout has read what it needed.
pub(crate) fn code(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Prints `saiga: text` to stderr and returns the exit code [`COULD_NOT`].
pub(crate) fn fail(text: &str) -> ExitCode {
    say(text);
    ExitCode::from(COULD_NOT)
}

/// Prints `saiga: text` to stderr.
pub(crate) fn say(text: &str) {
    // File names in the text must not control the terminal.
    let is_order = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let text = text.replace(is_order, "?");
    // Errors of a closed stderr are ignored; the exit code still reports a failure.
    let _ = writeln!(std::io::stderr(), "saiga: {text}");
}

/// Whether a cause of the error is EPIPE. The cause is assumed to be a closed stdout.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == ErrorKind::BrokenPipe)
}
