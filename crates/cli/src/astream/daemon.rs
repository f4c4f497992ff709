//! The daemon of `astream`: a separate process, which is found by the lock on its pid file.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use saiga_process::lock::{FlockOperation, try_lock};
use saiga_streams::control::Control;
use saiga_streams::holder;
use saiga_streams::labeller::{self, Database, Level, Mode, Options};
use saiga_streams::lock::LOCK_DIR;
use saiga_streams::route::System;
use saiga_streams::rules::RuleSet;
use saiga_streams::setter::Fcntl;

use super::options::DaemonOptions;
use crate::printable::printable;

/// The first argument of the process that becomes the daemon.
pub(super) const SERVE: &str = "--serve";
const PID_FILE: &str = "/var/run/astream.pid";
/// The daemon writes this text to its stdout once all files are labelled.
const READY: &[u8] = b"ready\n";
/// Mode of the pid file. A process that can open the file can also lock it, and would look like a
/// daemon.
const OWN: u32 = 0o600;
/// Maximum time for the daemon to end.
const END: Duration = Duration::from_secs(30);
/// Interval between checks of all files.
const LOOK: Duration = Duration::from_secs(60);

fn open_pid_file() -> Result<File, String> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(OWN)
        .custom_flags(libc::O_NOFOLLOW)
        .open(PID_FILE);
    let own = |file: File| {
        file.set_permissions(Permissions::from_mode(OWN))?;
        Ok(file)
    };
    file.and_then(own)
        .map_err(|error: std::io::Error| format!("cannot open {PID_FILE}: {error}"))
}

/// Takes the lock. Returns `false` if another descriptor, such as a daemon's, holds it.
fn lock(file: &File) -> Result<bool, String> {
    try_lock(file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|error| format!("cannot lock {PID_FILE}: {error}"))
}

/// Whether the path of the pid file still leads to the open `file`.
fn is_named(file: &File) -> bool {
    let named = std::fs::symlink_metadata(PID_FILE);
    let open = file.metadata();
    let identity = |file: &std::fs::Metadata| (file.dev(), file.ino());
    named.is_ok_and(|named| open.is_ok_and(|open| identity(&named) == identity(&open)))
}

/// Starts the daemon and waits until all files are labelled.
pub(super) fn start(words: &[OsString]) -> Result<(), String> {
    let mut child = Command::new("/proc/self/exe")
        .arg0("astream")
        .arg(SERVE)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the daemon: {error}"))?;
    let mut said = Vec::new();
    if let Some(stdout) = &mut child.stdout {
        // The daemon closes its stdout when it is ready, or when it ends.
        let _ = stdout.read_to_end(&mut said);
    }
    if said == READY {
        return Ok(());
    }
    // The daemon has printed the reason to the stderr that it shares with this process.
    let _ = child.wait();
    Err("the daemon did not start".to_owned())
}

/// Stops the daemon and waits until it has ended.
pub(super) fn stop() -> Result<(), String> {
    let mut file = match File::open(PID_FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("no daemon is running".to_owned());
        }
        Err(error) => return Err(format!("cannot open {PID_FILE}: {error}")),
    };
    // The pid may have been reused; only the lock proves that the daemon runs.
    if lock(&file)? {
        return Err("no daemon is running".to_owned());
    }
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    let Some(pid) = holder::pid_in(&text).filter(|_| read.is_ok()) else {
        return Err(format!(
            "a daemon is running, but {PID_FILE} does not contain its pid"
        ));
    };
    let fail = |error: std::io::Error| format!("cannot stop the daemon (pid {pid}): {error}");
    // While a daemon starts, the file may still have the pid of the previous daemon.
    let Some(process) = holder::process_with(pid, Path::new(PID_FILE)).map_err(fail)? else {
        return Err("a daemon is starting or ending at the moment; try again".to_owned());
    };
    holder::end(pid, &process, END).map_err(|error| error.to_string())?;
    let _ = writeln!(std::io::stdout(), "stopped");
    Ok(())
}

pub(super) fn serve(start: &DaemonOptions) -> Result<(), String> {
    let mut file = open_pid_file()?;
    // A daemon that ends may have removed the pid file since it was opened: then open a new file.
    while lock(&file)? && !is_named(&file) {
        file = open_pid_file()?;
    }
    if !lock(&file)? {
        return Err("a daemon is already running; stop it with `astream stop`".to_owned());
    }
    // A new session, so that signals from the terminal do not reach the daemon.
    rustix::process::setsid().map_err(|error| format!("cannot leave the terminal: {error}"))?;
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(|error| format!("cannot write {PID_FILE}: {error}"))?;
    let pairs = start.dirs.iter().zip(&start.rules);
    let databases = pairs.map(|(dir, rules)| Database {
        dir: dir.clone(),
        rules: vec![RuleSet::Astream(
            std::path::absolute(rules).unwrap_or_else(|_| rules.clone()),
        )],
    });
    let options = Options {
        databases: databases.collect(),
        mode: Mode::Notify,
        once: false,
        force: false,
        scan_interval: LOOK,
        stall_limit: Duration::from_secs(1),
        drill: None,
        metrics: None,
        lock_dir: LOCK_DIR.into(),
        kept: None,
        system: System::default(),
    };
    let control = Control::new().map_err(|error| error.to_string())?;
    control.on_signals().map_err(|error| error.to_string())?;
    let syslog = Syslog::new(start.level);
    labeller::run(&options, Arc::new(Fcntl), &control, &|level, text| {
        syslog.say(level, text);
        // Warnings also go to the terminal, for the user who starts the daemon: for example, that
        // hints do not reach the drive.
        if level == Level::Warn && !syslog.is_detached.get() {
            let _ = writeln!(std::io::stderr(), "astream: warning: {}", printable(text));
        }
        if level == Level::Begun {
            syslog.detach();
        }
    })
    .map_err(|error| error.to_string())?;
    // Removed before the lock is released: afterwards, the file may belong to the next daemon.
    let _ = std::fs::remove_file(PID_FILE);
    Ok(())
}

/// The log of astream, in syslog.
struct Syslog {
    socket: Option<UnixDatagram>,
    level: u8,
    is_detached: std::cell::Cell<bool>,
}

impl Syslog {
    fn new(level: u8) -> Self {
        let socket = UnixDatagram::unbound().ok().filter(|socket| {
            let is_set = socket.set_nonblocking(true);
            is_set.is_ok() && socket.connect("/dev/log").is_ok()
        });
        Self {
            socket,
            level,
            is_detached: std::cell::Cell::new(false),
        }
    }

    fn say(&self, level: Level, text: &str) {
        // Facility LOG_USER (1 << 3) with the severity.
        let (own, priority) = match level {
            Level::Detail => (1, 8 + 7),
            Level::Info | Level::Begun => (2, 8 + 6),
            Level::Warn => (3, 8 + 4),
        };
        if own < self.level {
            return;
        }
        if let Some(socket) = &self.socket {
            let (pid, text) = (std::process::id(), printable(text));
            // Errors are ignored: a full log must not delay labels.
            let _ = socket.send(format!("<{priority}>astream[{pid}]: {text}").as_bytes());
        }
    }

    /// Reports readiness to the parent process, and writes nothing more to its terminal.
    fn detach(&self) {
        let _ = std::io::stdout().write_all(READY);
        let _ = std::io::stdout().flush();
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
        self.is_detached.set(true);
    }
}
