//! The process that undoes a plan which is not confirmed in time. It outlives the terminal and the
//! connection of `saiga tune apply`.

#![expect(unsafe_code, reason = "a session of its own before the program starts")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use saiga_process::root::Root;
use saiga_tune::confirm::{Deadline, undo_if_unconfirmed};
use saiga_tune::host::LiveHost;
use saiga_tune::journal::JournalError;
use saiga_tune::store::{Directory, OpenError};
use saiga_tune::undo::{Outcome, UndoneStep};

/// Time between two looks while another process has the lock.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// The longest sleep: sleeping does not count the time for which a host is suspended, and the
/// deadline does. Also the time between two undos.
const MAX_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    id: String,
    dir: PathBuf,
}

/// Starts the process, in a session of its own.
pub(super) fn start(id: &str, dir: &Path) -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["tune", "watch", id])
        .arg(std::path::absolute(dir)?);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/");
    // Before the program starts: neither the keys nor the end of the terminal reach it then. The
    // leader of a process group could not leave its session later (`man 2 setsid`).
    let leave = || Ok(rustix::process::setsid().map(drop)?);
    // SAFETY: `leave` makes one system call, which is allowed between fork and exec.
    unsafe { command.pre_exec(leave) };
    command.spawn().map(drop)
}

#[expect(clippy::disallowed_methods, reason = "waits for a time")]
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Without its directory, there is no journal to undo from.
    while args.dir.is_dir() {
        let mut store = match Directory::lock(&args.dir) {
            Ok(store) => store,
            Err(OpenError::Busy(_)) => {
                thread::sleep(BUSY_PAUSE);
                continue;
            }
            // No other process undoes the plan, so an error is not the end.
            Err(OpenError::Io { .. }) => {
                thread::sleep(MAX_PAUSE);
                continue;
            }
            Err(error @ OpenError::Writable(_)) => return Err(error.into()),
        };
        let mut host = LiveHost::new(Root::host());
        let deadline = undo_if_unconfirmed(&args.id, &mut host, &mut store);
        drop(store);
        match deadline {
            Err(JournalError::Unknown(_)) => break,
            Err(_) => thread::sleep(MAX_PAUSE),
            Ok(deadline) if is_settled(&deadline) => return Ok(ExitCode::SUCCESS),
            Ok(Deadline::Waiting(left)) => thread::sleep(left.clamp(BUSY_PAUSE, MAX_PAUSE)),
            // A value was refused. The next undo continues where this one ended.
            Ok(Deadline::Settled | Deadline::Undone(_)) => thread::sleep(MAX_PAUSE),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether nothing is left to do. Values of other programs are left to the user.
fn is_settled(deadline: &Deadline) -> bool {
    match deadline {
        Deadline::Settled => true,
        Deadline::Waiting(_) => false,
        Deadline::Undone(report) => {
            let is_failed = |step: &UndoneStep| matches!(step.outcome, Outcome::Failed(_));
            report.is_complete || !report.steps.iter().any(is_failed)
        }
    }
}
