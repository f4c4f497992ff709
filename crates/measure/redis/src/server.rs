//! One private redis process: started in its own folder, stopped by pid.
//!
//! It is ready when it answers and says that its process is the one we started: a
//! stranger that holds the port cannot be measured by mistake. Deliberately absent:
//! what it has to do with others (`fleet`), and anything that outlives a run.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::log;
use saiga_experiment::process::{Child, CommandLine, Ended, Waited};
use saiga_experiment::workload::Failure;
use tempfile::TempDir;

use crate::arm::Endpoint;
use crate::ports::PortsError;
use crate::resp::Control;
use crate::topology::Role;

/// A server that is not ready by then is stuck.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Between two looks whether it listens; a death ends the pause at once.
const READY_PAUSE: Duration = Duration::from_millis(2);
/// After SHUTDOWN; then by signals.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);
/// The Debian package with every program that we start.
pub(crate) const PACKAGE: &str = "redis-server";

/// Why a server did not come up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// Nowhere to listen.
    #[error(transparent)]
    Port(#[from] PortsError),
    /// No folder or descriptor for it.
    #[error("cannot prepare a private redis-server: {0}")]
    Prepare(#[from] io::Error),
    /// It ended instead of listening.
    #[error("redis-server ended before it was ready; it said: {last_words}")]
    Died {
        /// The last line of its output.
        last_words: String,
    },
}

/// A running server in its folder.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) endpoint: Endpoint,
    pub(crate) role: Role,
    /// Removed with everything in it when dropped, after the child.
    pub(crate) dir: TempDir,
    /// When we ended it ourselves.
    ended: Option<Ended>,
}

/// A folder that only this user can look into.
pub(crate) fn private_dir() -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("saiga-redis-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
}

impl Server {
    /// Starts `line`, which listens at `endpoint`, with its output in `dir`.
    pub(crate) fn spawn(
        line: &CommandLine,
        role: Role,
        endpoint: Endpoint,
        dir: TempDir,
    ) -> Result<Self, Failure> {
        let prepare = |error: io::Error| Failure::impossible(ServerError::Prepare(error));
        let log = File::create(dir.path().join("server.log")).map_err(prepare)?;
        let errors = log.try_clone().map_err(prepare)?;
        let child = line
            .spawn(PACKAGE, log, errors)
            .map_err(Failure::impossible)?;
        Ok(Self {
            child,
            endpoint,
            role,
            dir,
            ended: None,
        })
    }

    /// `Err(None)` when the server ended by itself.
    pub(crate) fn wait_until_ready(
        &mut self,
        interrupt: &Interrupt,
    ) -> Result<Control, Option<Failure>> {
        let began = Instant::now();
        while began.elapsed() < READY_LIMIT {
            if let Ok(control) = self.greet() {
                return Ok(control);
            }
            match self.child.wait(READY_PAUSE, interrupt) {
                Ok(Waited::TimeOver) => {}
                Ok(Waited::Ended(_)) => return Err(None),
                Ok(Waited::Interrupted) => return Err(Some(Failure::Interrupted)),
                Err(error) => return Err(Some(Failure::impossible(error))),
            }
        }
        let seconds = READY_LIMIT.as_secs();
        Err(Some(Failure::run(format!(
            "redis-server was not ready after {seconds} s"
        ))))
    }

    fn greet(&self) -> io::Result<Control> {
        let mut control = self.control()?;
        control.ask(&[b"PING"])?;
        let info = control.ask(&[b"INFO", b"server"])?;
        let ours = format!("process_id:{}", self.child.pid());
        if info.lines().any(|line| line == ours) {
            return Ok(control);
        }
        Err(io::Error::other("another server answers"))
    }

    /// A connection of ours.
    pub(crate) fn control(&self) -> io::Result<Control> {
        Control::connect(&self.endpoint)
    }

    /// One section of INFO.
    pub(crate) fn info(&self, section: &str) -> io::Result<Info> {
        let text = self.control()?.ask(&[b"INFO", section.as_bytes()])?;
        Ok(Info(text))
    }

    /// User and system time so far, or in all when we ended it.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        match self.ended {
            Some(ended) => Ok(ended.cpu),
            None => self.child.cpu_time(),
        }
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        log::last_line(&self.dir.path().join("server.log"))
    }

    /// Who it is and the last lines of its log, for people.
    pub(crate) fn last_lines(&self) -> String {
        let lines = log::last_lines(&self.dir.path().join("server.log"));
        format!("{} said last: {lines}", self.name())
    }

    /// `the replica at 127.0.0.1:7001`.
    pub(crate) fn name(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp(port) => format!("the {} at 127.0.0.1:{port}", self.role.name()),
            Endpoint::Unix(path) => format!("the {} at {path}", self.role.name()),
        }
    }

    /// What it said last, when it has ended by itself.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        if self.ended.is_some() {
            return None;
        }
        match self.child.wait(Duration::ZERO, &Interrupt::never()) {
            Ok(Waited::Ended(ended)) => Some(format!(
                "redis-server died ({}); it said: {}",
                ended.status,
                self.last_words()
            )),
            Ok(Waited::TimeOver | Waited::Interrupted) | Err(_) => None,
        }
    }

    /// Ends it by SIGKILL, for a fail-over or because nothing of it is needed any more.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if self.ended.is_none() {
            self.ended = Some(self.child.kill()?);
        }
        Ok(())
    }

    /// Stops it: by SHUTDOWN, which needs no tick of its clock, else by signals.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        let asked = self
            .control()
            .and_then(|mut control| control.send(&[b"SHUTDOWN", b"NOSAVE"]));
        if asked.is_ok() {
            let waited = self.child.wait(SHUTDOWN_LIMIT, &Interrupt::never())?;
            if matches!(waited, Waited::Ended(_)) {
                return Ok(());
            }
        }
        self.child.stop().map(|_| ())
    }
}

/// An answer to INFO.
#[derive(Debug)]
pub(crate) struct Info(pub(crate) String);

impl Info {
    /// The value of a field; empty when there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(field, _)| *field == name);
        found.map_or("", |(_, value)| value.trim_end())
    }

    /// A field that counts something; 0 when there is none.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.field(name).parse().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_info_are_found_by_their_whole_name() {
        let info = Info("# Stats\r\nsync_full:2\r\nsync_partial_ok:11\r\n".to_owned());
        assert_eq!(info.count("sync_partial_ok"), 11);
        assert_eq!((info.field("sync"), info.count("sync")), ("", 0));
    }
}
