//! Runs a command under a time limit and captures its output.
//!
//! Output goes to files, not pipes: a daemon that a program leaves behind cannot block the harness.
//! The remaining processes of the command's process group are killed when the command ends or the
//! limit passes.

use std::{
    fmt, fs,
    fs::File,
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use saiga_process::proc::{self, Stat};

use crate::{
    reaper,
    scale::patient,
    sys::{self, Signal},
};

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
    /// Killed at its limit; the text describes the state of its processes.
    TimedOut(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signalled(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut(place) => write!(f, "TIMED OUT and was killed\n{place}"),
        }
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signalled(signal),
            (None, None) => unreachable!("wait returns ended processes only"),
        }
    }
}

/// Output and ending of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
    pub ending: Ending,
}

impl Outcome {
    /// Whether the command exited with 0.
    pub fn is_success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

/// Runs `command` in its own process group for at most `limit` ([`patient`]).
///
/// # Panics
/// If the command cannot be started or its output cannot be stored.
pub fn run(mut command: Command, limit: Duration) -> Outcome {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (out, err) = (folder.path().join("stdout"), folder.path().join("stderr"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&out).expect("a file for stdout"))
        .stderr(File::create(&err).expect("a file for stderr"))
        .process_group(0);
    let shown = format!("{command:?}");
    let mut child = reaper::spawn(command, Signal::KILL)
        .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
    let pid = child.id();
    let (tell, told) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let status = child.wait();
        // The receiver is gone only after a panic of the other thread.
        let _ = tell.send(status);
    });
    let ending = match told.recv_timeout(patient(limit)) {
        Ok(status) => Ending::from(status.expect("the child can be waited for")),
        Err(_) => {
            let place = whereabouts(pid);
            sys::kill_group(pid);
            Ending::TimedOut(place)
        }
    };
    waiter.join().expect("waiting does not panic");
    sys::kill_group(pid);
    let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    Outcome {
        stdout: text(&out),
        stderr: text(&err),
        ending,
    }
}

/// Runs `command`, which becomes a daemon. The processes that it leaves behind live on until this
/// process ends.
///
/// # Panics
/// If the command cannot be started, or its first process does not end.
pub fn run_daemon(mut command: Command) -> Outcome {
    reaper::keep(&mut command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    Outcome {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        ending: Ending::from(output.status),
    }
}

/// State of the processes in the group of `leader`: kernel function, system call, and with
/// `SAIGA_TRIALS_GDB=1` every thread's stack.
fn whereabouts(leader: u32) -> String {
    let mut places = Vec::new();
    for pid in group_members(leader).unwrap_or_default() {
        let status = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        places.push(format!(
            "pid {pid} in {status}, system call {}",
            call.trim()
        ));
        if std::env::var_os("SAIGA_TRIALS_GDB").is_some() {
            let gdb = Command::new("gdb")
                .args([
                    "-batch",
                    "-p",
                    &pid.to_string(),
                    "-ex",
                    "thread apply all bt 16",
                ])
                .output();
            if let Ok(gdb) = gdb {
                places.push(String::from_utf8_lossy(&gdb.stdout).into_owned());
            }
        }
    }
    places.join("\n")
}

/// The processes of the process group of `leader`.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn group_members(leader: u32) -> io::Result<Vec<u32>> {
    let stats = proc::pids()?
        .into_iter()
        .filter_map(|pid| Stat::of(pid).ok());
    let members = stats.filter(|stat| stat.group == leader);
    Ok(members.map(|stat| stat.pid).collect())
}
