//! `astream`: this binary under that name has the interface of openEuler's tool, and its labels take.
//!
//! `astream -i DIR.. -r RULES.. [-l N]` starts a daemon (the Nth rule file is for the Nth directory), `astream stop` ends
//! it. As there: 255 for every error, for help and for no words at all; the log goes to syslog; one daemon per host,
//! by a lock on its pid file. Unlike there: it returns once everything is labelled, `stop` once the daemon is gone, and
//! nobody else's process is ever signalled.

mod daemon;
mod words;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use saiga_streams::rules;
use words::{Order, Start};

use crate::printable::printable;

/// What astream answers when something is wrong, or when it is asked for help.
const WRONG: u8 = 255;

const HELP: &str = "\
Usage: astream -i DIR.. -r RULES.. [-l N]   start labelling; the Nth rule file is for the Nth directory
       astream stop                         end the daemon
       astream -h                           this text

  -i, --inotify_directory DIR..   directories, with everything below them
  -r, --rule_file RULES..         a rule file for each: lines of `REGEX STREAM`, streams 2 (short) to 5 (extreme)
  -l, --log_level N               1 debug, 2 info (as it is without -l), 3 warn, 4 error; the log goes to syslog
  -h, --help                      this text

This is Saiga's; `saiga streams --help` has more: check, metrics, labels before the first byte.
";

/// Whether this process was called by that name.
pub(crate) fn is_asked() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    Path::new(&name)
        .file_name()
        .is_some_and(|name| name == "astream")
}

/// Does what the words say.
pub(crate) fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (is_daemon, words) = match words.split_first() {
        Some((first, rest)) if first == daemon::SERVE => (true, rest),
        _ => (false, words.as_slice()),
    };
    let done = match words::read(words) {
        Err(text) => Err(text),
        Ok(Order::Help) => {
            // A reader that has gone has seen what it wanted.
            let _ = std::io::stdout().write_all(HELP.as_bytes());
            return ExitCode::from(WRONG);
        }
        Ok(Order::Stop) => daemon::stop(),
        Ok(Order::Start(start)) if is_daemon => daemon::serve(&start),
        Ok(Order::Start(start)) => check(&start).and_then(|()| daemon::start(words)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            let _ = writeln!(std::io::stderr(), "astream: {}", printable(&text));
            ExitCode::from(WRONG)
        }
    }
}

/// What can be said before anything is started.
fn check(start: &Start) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can watch file systems; run it as root".to_owned());
    }
    for dir in &start.dirs {
        if !dir.is_dir() {
            return Err(format!("there is no directory {}", dir.display()));
        }
    }
    for file in &start.rules {
        let bytes = std::fs::read(file)
            .map_err(|error| format!("cannot read the rules in {}: {error}", file.display()))?;
        // What is doubtful in them is said by the daemon.
        rules::astream::parse(file, &bytes).map_err(|error| error.to_string())?;
    }
    Ok(())
}
