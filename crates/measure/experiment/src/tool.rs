//! Runs a program to its end, such as `mariadb-install-db` or a hook, with a timeout.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Duration;

use crate::workload::Failure;
use saiga_process::child::{Child, CommandLine, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::log;

/// Maximum bytes of captured output.
const MAX_OUTPUT: u64 = 1 << 20;

/// A program that ended with an error, or did not end in time.
#[derive(Debug)]
pub struct Unsuccessful {
    /// The exit status, or the timeout.
    pub status: String,
    /// The last lines of its output.
    pub output: String,
}

/// Runs `line` for at most `limit`, with its output in the file `output`. Errors name `package`,
/// the Debian package of the program.
///
/// # Errors
/// Fails if the program cannot be started or the user interrupts.
pub fn run(
    line: &CommandLine,
    package: &str,
    output: &Path,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Result<(), Unsuccessful>, Failure> {
    let child = line
        .spawn_logged(package, output)
        .map_err(Failure::impossible)?;
    await_end(child, output, limit, interrupt)
}

/// [`run`] with the standard output as the result; standard error goes to the file `errors`.
///
/// # Errors
/// As [`run`].
pub fn capture(
    line: &CommandLine,
    package: &str,
    errors: &Path,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Result<String, Unsuccessful>, Failure> {
    let mut stdout = tempfile::tempfile().map_err(Failure::impossible)?;
    let files = stdout
        .try_clone()
        .and_then(|out| Ok((out, File::create(errors)?)));
    let (out, log) = files.map_err(Failure::impossible)?;
    let child = line.spawn(package, out, log).map_err(Failure::impossible)?;
    if let Err(unsuccessful) = await_end(child, errors, limit, interrupt)? {
        return Ok(Err(unsuccessful));
    }
    let mut bytes = Vec::new();
    stdout
        .rewind()
        .and_then(|()| stdout.take(MAX_OUTPUT + 1).read_to_end(&mut bytes))
        .map_err(Failure::impossible)?;
    if bytes.len() as u64 > MAX_OUTPUT {
        return Ok(Err(Unsuccessful {
            status: format!("more than {MAX_OUTPUT} bytes of output"),
            output: log::cause(errors),
        }));
    }
    Ok(Ok(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Waits until the program ends; `output` is the file with its output.
fn await_end(
    mut child: Child,
    output: &Path,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Result<(), Unsuccessful>, Failure> {
    let status = match child.wait(limit, interrupt).map_err(Failure::impossible)? {
        Waited::Ended(ended) if ended.status.success() => return Ok(Ok(())),
        Waited::Ended(ended) => ended.status.to_string(),
        Waited::Interrupted => return Err(Failure::Interrupted),
        Waited::TimeOver => format!("not ended after {} s", limit.as_secs()),
    };
    let output = log::cause(output);
    Ok(Err(Unsuccessful { status, output }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_script(script: &str, limit: Duration) -> Option<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let line = CommandLine::new("sh", ["-c", script]);
        let log = dir.path().join("log");
        let done = run(&line, "dash", &log, limit, &Interrupt::never()).unwrap();
        done.err()
            .map(|Unsuccessful { status, output }| (status, output))
    }

    #[test]
    fn captured_output_is_complete_or_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let output = |bytes: u64| {
            let line = CommandLine::new("head", ["-c", &bytes.to_string(), "/dev/zero"]);
            let (errors, long) = (dir.path().join("errors"), Duration::from_secs(30));
            capture(&line, "coreutils", &errors, long, &Interrupt::never()).unwrap()
        };
        assert_eq!(output(MAX_OUTPUT).unwrap().len() as u64, MAX_OUTPUT);
        let unsuccessful = output(MAX_OUTPUT + 1).unwrap_err();
        assert_eq!(unsuccessful.status, "more than 1048576 bytes of output");
    }

    #[test]
    fn errors_and_time_outs_are_reported_with_the_last_lines() {
        let long = Duration::from_secs(30);
        assert_eq!(run_script("echo done", long), None);
        let (status, output) = run_script("echo no; exit 3", long).unwrap();
        assert_eq!((status.as_str(), output.as_str()), ("exit status: 3", "no"));
        let (status, output) = run_script("sleep 1000", Duration::ZERO).unwrap();
        assert_eq!(
            (status.as_str(), output.as_str()),
            ("not ended after 0 s", "nothing")
        );
    }
}
