//! A program that runs to its end, such as one that makes the data of a server.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::log;
use crate::process::{Child, CommandLine, Waited};
use crate::workload::Failure;

/// Bytes of the longest answer.
const MOST_SAID: u64 = 1 << 20;

/// How a program did not do its work.
#[derive(Debug)]
pub struct Undone {
    /// Its exit status, or the time that it took.
    pub how: String,
    /// What it said of the cause.
    pub said: String,
}

/// Runs `line` of `package` with its output in the file `output`, for `limit` at most.
///
/// # Errors
/// [`Failure`], when it could not be started or the user interrupts.
pub fn run(
    line: &CommandLine,
    package: &str,
    output: &Path,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Result<(), Undone>, Failure> {
    let child = line
        .spawn_logged(package, output)
        .map_err(Failure::impossible)?;
    ended(child, output, limit, interrupt)
}

/// The same with its standard output as text, and only what it says of errors in the file `errors`.
///
/// # Errors
/// The errors of [`run`].
pub fn ask(
    line: &CommandLine,
    package: &str,
    errors: &Path,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Result<String, Undone>, Failure> {
    let mut answer = tempfile::tempfile().map_err(Failure::impossible)?;
    let files = answer
        .try_clone()
        .and_then(|out| Ok((out, File::create(errors)?)));
    let (out, log) = files.map_err(Failure::impossible)?;
    let child = line.spawn(package, out, log).map_err(Failure::impossible)?;
    if let Err(undone) = ended(child, errors, limit, interrupt)? {
        return Ok(Err(undone));
    }
    let mut bytes = Vec::new();
    answer
        .rewind()
        .and_then(|()| answer.take(MOST_SAID + 1).read_to_end(&mut bytes))
        .map_err(Failure::impossible)?;
    if bytes.len() as u64 > MOST_SAID {
        return Ok(Err(Undone {
            how: format!("it printed more than {MOST_SAID} bytes"),
            said: log::cause(errors),
        }));
    }
    Ok(Ok(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Waits for its end; `output` has what it said.
fn ended(
    mut child: Child,
    output: &Path,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Result<(), Undone>, Failure> {
    let how = match child.wait(limit, interrupt).map_err(Failure::impossible)? {
        Waited::Ended(ended) if ended.status.success() => return Ok(Ok(())),
        Waited::Ended(ended) => ended.status.to_string(),
        Waited::Interrupted => return Err(Failure::Interrupted),
        Waited::TimeOver => format!("no end within {} s", limit.as_secs()),
    };
    let said = log::cause(output);
    Ok(Err(Undone { how, said }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(script: &str, limit: Duration) -> Option<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let line = CommandLine::new("sh", ["-c", script]);
        let log = dir.path().join("log");
        let done = run(&line, "dash", &log, limit, &Interrupt::never()).unwrap();
        done.err().map(|Undone { how, said }| (how, said))
    }

    #[test]
    fn an_answer_is_whole_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let said = |bytes: u64| {
            let line = CommandLine::new("head", ["-c", &bytes.to_string(), "/dev/zero"]);
            let (errors, long) = (dir.path().join("errors"), Duration::from_secs(30));
            ask(&line, "coreutils", &errors, long, &Interrupt::never()).unwrap()
        };
        assert_eq!(said(MOST_SAID).unwrap().len() as u64, MOST_SAID);
        let undone = said(MOST_SAID + 1).unwrap_err();
        assert_eq!(undone.how, "it printed more than 1048576 bytes");
    }

    #[test]
    fn what_ends_badly_or_not_at_all_is_told_with_its_last_words() {
        let long = Duration::from_secs(30);
        assert_eq!(undone("echo done", long), None);
        let (how, said) = undone("echo no; exit 3", long).unwrap();
        assert_eq!((how.as_str(), said.as_str()), ("exit status: 3", "no"));
        let (how, said) = undone("sleep 1000", Duration::ZERO).unwrap();
        assert_eq!(
            (how.as_str(), said.as_str()),
            ("no end within 0 s", "nothing")
        );
    }
}
