//! Runs a command under a time limit and keeps all that it printed.
//!
//! Output goes to files, not pipes: a daemon that a program leaves behind
//! cannot hold the harness up. What is left of the command's process group is
//! killed when it ends or when the limit passes.

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

use crate::{
    leash,
    sys::{self, Signal},
};

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Not within its limit; the text says where its processes were.
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

/// What a command printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// How it ended.
    pub ending: Ending,
}

impl Outcome {
    /// Whether it exited with 0.
    pub fn is_success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

/// Runs `command` in its own process group for at most `limit`.
///
/// # Panics
/// When the command cannot be started or its output cannot be stored.
pub fn run(mut command: Command, limit: Duration) -> Outcome {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (out, err) = (folder.path().join("stdout"), folder.path().join("stderr"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&out).expect("a file for stdout"))
        .stderr(File::create(&err).expect("a file for stderr"))
        .process_group(0);
    let shown = format!("{command:?}");
    let mut child = leash::spawn(command, Signal::Kill)
        .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
    let pid = child.id();
    let (tell, told) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let status = child.wait();
        // The receiver has left only when this thread is no longer joined.
        let _ = tell.send(status);
    });
    let ending = match told.recv_timeout(limit) {
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

/// Runs `command`, which becomes a daemon: what it leaves behind lives on, at the longest until
/// this process ends.
///
/// # Panics
/// When it cannot be started, or its first process does not end.
pub fn run_daemon(mut command: Command) -> Outcome {
    leash::keep(&mut command);
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

/// Where the processes of the group `leader` are: state, kernel function, and with
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

/// The processes of the group that `leader` made.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn group_members(leader: u32) -> io::Result<Vec<u32>> {
    let mut members = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        // After the command's name in brackets: state, parent, process group.
        let group = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(2));
        if group.and_then(|group| group.parse().ok()) == Some(leader) {
            members.push(pid);
        }
    }
    Ok(members)
}
