//! `astream`: called by that name, this binary has the command line of openEuler's tool.
//!
//! `astream -i DIR.. -r RULES.. [-l N]` starts a daemon (the Nth rule file is for the Nth
//! directory) and `astream stop` ends the daemon. As in openEuler's astream, the exit status is 255
//! for every error, for help and for an empty command line, the log goes to syslog, and a lock on
//! the pid file allows one daemon per host. Differences: `astream` returns once all files are
//! labelled, `stop` returns once the daemon has ended, and a pid without the lock is never
//! signalled.

mod daemon;
mod options;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use options::{Action, DaemonOptions};
use saiga_streams::rules;

use crate::printable::printable;

/// The exit status of openEuler's astream after an error and after help.
const WRONG: u8 = 255;

const HELP: &str = "\
Usage: astream -i DIR.. -r RULES.. [-l N]   start a daemon that labels files
       astream stop                         stop the daemon
       astream -h                           print this help

  -i, --inotify_directory DIR..   directories to label, with everything below them
  -r, --rule_file RULES..         one rule file for each directory, in the same order;
                                  lines `REGEX STREAM`, streams from 2 (short) to 5 (extreme)
  -l, --log_level N               1 debug, 2 info (default), 3 warn, 4 error; the log goes to syslog
  -h, --help                      print this help

This is Saiga's implementation. `saiga streams --help` has more: checks, metrics, and labels before
the first write.
";

/// Whether this process was started under the name `astream`.
pub(crate) fn is_called() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    Path::new(&name)
        .file_name()
        .is_some_and(|name| name == "astream")
}

pub(crate) fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (is_daemon, words) = match words.split_first() {
        Some((first, rest)) if first == daemon::SERVE => (true, rest),
        _ => (false, words.as_slice()),
    };
    let done = match options::read(words) {
        Err(text) => Err(text),
        Ok(Action::Help) => {
            // Exits with 255 also if the pipe is closed.
            let _ = std::io::stdout().write_all(HELP.as_bytes());
            return ExitCode::from(WRONG);
        }
        Ok(Action::Stop) => daemon::stop(),
        Ok(Action::Start(start)) if is_daemon => daemon::serve(&start),
        Ok(Action::Start(start)) => check(&start).and_then(|()| daemon::start(words)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            let _ = writeln!(std::io::stderr(), "astream: {}", printable(&text));
            ExitCode::from(WRONG)
        }
    }
}

/// Finds the errors that can be reported before the daemon starts.
fn check(start: &DaemonOptions) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can watch file systems; run astream as root".to_owned());
    }
    for dir in &start.dirs {
        if !dir.is_dir() {
            return Err(format!("{} is not a directory", dir.display()));
        }
    }
    for file in &start.rules {
        let bytes = std::fs::read(file)
            .map_err(|error| format!("cannot read the rules in {}: {error}", file.display()))?;
        // The daemon logs the warnings.
        rules::astream::parse(file, &bytes).map_err(|error| error.to_string())?;
    }
    Ok(())
}
