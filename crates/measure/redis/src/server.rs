//! One private redis process: started in its own folder, stopped by pid.
//!
//! It is ready when it answers and says that its process is the one we started: a
//! stranger that holds the port cannot be measured by mistake. Deliberately absent:
//! what it has to do with others (`fleet`), and anything that outlives a run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::{CommandLine, Ended, Waited};
use saiga_experiment::server::{self, NotReady, Patience};
use saiga_experiment::workload::Failure;
use tempfile::TempDir;

use crate::arm::Endpoint;
use crate::ports::PortsError;
use crate::resp::Control;
use crate::topology::Role;

const PATIENCE: Patience = Patience {
    limit: Duration::from_secs(20),
    pause: Duration::from_millis(2),
};
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
    Prepare(io::Error),
}

/// A running server in its folder.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: server::Server,
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
        let log = dir.path().join("server.log");
        let process = server::Server::start(line, "redis-server", PACKAGE, log)
            .map_err(Failure::impossible)?;
        Ok(Self {
            process,
            endpoint,
            role,
            dir,
            ended: None,
        })
    }

    /// Waits until it answers.
    pub(crate) fn await_ready(&mut self, interrupt: &Interrupt) -> Result<(), NotReady> {
        let Self {
            process, endpoint, ..
        } = self;
        process.await_ready(PATIENCE, interrupt, |process| {
            answers(endpoint, process.child.pid()).unwrap_or(false)
        })
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
            None => self.process.child.cpu_time(),
        }
    }

    /// Who it is and the last lines of its log, for people.
    pub(crate) fn last_lines(&self) -> String {
        format!("{} said last: {}", self.name(), self.process.last_lines())
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
        self.process.obituary()
    }

    /// Ends it by SIGKILL, for a fail-over or because nothing of it is needed any more.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if self.ended.is_none() {
            self.ended = Some(self.process.child.kill()?);
        }
        Ok(())
    }

    /// Stops it: by SHUTDOWN, which needs no tick of its clock, else by signals.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        let asked = self
            .control()
            .and_then(|mut control| control.send(&[b"SHUTDOWN", b"NOSAVE"]));
        if asked.is_ok() {
            let waited = self
                .process
                .child
                .wait(SHUTDOWN_LIMIT, &Interrupt::never())?;
            if matches!(waited, Waited::Ended(_)) {
                return Ok(());
            }
        }
        self.process.child.stop().map(|_| ())
    }
}

/// Whether a server answers that is process `pid`.
fn answers(endpoint: &Endpoint, pid: u32) -> io::Result<bool> {
    let mut control = Control::connect(endpoint)?;
    control.ask(&[b"PING"])?;
    let info = control.ask(&[b"INFO", b"server"])?;
    let ours = format!("process_id:{pid}");
    Ok(info.lines().any(|line| line == ours))
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
