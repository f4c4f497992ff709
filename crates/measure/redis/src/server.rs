//! [`Server`]: a redis-server process in its own folder, stopped by PID.
//!
//! A server is ready when it answers PING and reports the PID of the started process, so that
//! another server on the same port cannot be measured by mistake. Deliberately absent: the relation
//! to other servers (`fleet`), and anything that outlives a run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use saiga_experiment::server::{self, NotReady, WaitLimits};
use saiga_experiment::workload::Failure;
use saiga_hosts::SERVER;
use saiga_process::child::{CommandLine, Ended, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::network;
use tempfile::TempDir;

use crate::arm::Endpoint;
use crate::ports::PortsError;
use crate::resp::Control;
use crate::topology::Role;

const READY_LIMITS: WaitLimits = WaitLimits {
    limit: Duration::from_secs(20),
    pause: Duration::from_millis(2),
};
/// Timeout after SHUTDOWN, before signals are sent.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);
/// The Debian package of all programs of Redis.
pub(crate) const PACKAGE: &str = "redis-server";

/// A server cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error(transparent)]
    Port(#[from] PortsError),
    /// The folder or a file of the server cannot be created.
    #[error("cannot prepare a private redis-server: {0}")]
    Prepare(io::Error),
}

/// A server process and its folder.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: server::Server,
    pub(crate) endpoint: Endpoint,
    /// File of its network namespace; `None` for that of this process.
    network: Option<PathBuf>,
    pub(crate) role: Role,
    /// Removed with its contents when dropped, after the child has ended.
    pub(crate) dir: TempDir,
    /// Set if this program killed the server.
    ended: Option<Ended>,
}

/// Creates a folder that only this user can read.
pub(crate) fn private_dir() -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("saiga-redis-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
}

impl Server {
    /// Starts `line`, which listens on `endpoint`, with its log in `dir`.
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
            network: line.network.clone(),
            role,
            dir,
            ended: None,
        })
    }

    /// Waits until the server answers.
    pub(crate) fn await_ready(&mut self, interrupt: &Interrupt) -> Result<(), NotReady> {
        let Self {
            process,
            endpoint,
            network,
            ..
        } = self;
        process.await_ready(READY_LIMITS, interrupt, |process| {
            answers(endpoint, network.as_deref(), process.child.pid()).unwrap_or(false)
        })
    }

    /// Opens a connection for commands.
    pub(crate) fn control(&self) -> io::Result<Control> {
        connect(&self.endpoint, self.network.as_deref())
    }

    /// A section of INFO.
    pub(crate) fn info(&self, section: &str) -> io::Result<Info> {
        let text = self.control()?.ask(&[b"INFO", section.as_bytes()])?;
        Ok(Info(text))
    }

    /// User and system time so far; that of its whole life if this program killed the server.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        match self.ended {
            Some(ended) => Ok(ended.cpu),
            None => self.process.child.cpu_time(),
        }
    }

    /// The server's name and the last lines of its log, for messages.
    pub(crate) fn last_lines(&self) -> String {
        format!(
            "last output of {}: {}",
            self.name(),
            self.process.last_lines()
        )
    }

    /// The name in messages: `the replica at 127.0.0.1:7001`.
    pub(crate) fn name(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp(port) => format!("the {} at 127.0.0.1:{port}", self.role.name()),
            Endpoint::Remote(port) => format!("the {} at {SERVER}:{port}", self.role.name()),
            Endpoint::Unix(path) => format!("the {} at {path}", self.role.name()),
        }
    }

    /// The exit report of a server that ended by itself.
    pub(crate) fn exit_report(&mut self) -> Option<String> {
        if self.ended.is_some() {
            return None;
        }
        self.process.exit_report()
    }

    /// Kills the server by SIGKILL, for a fail-over or because its data are no longer needed.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if self.ended.is_none() {
            self.ended = Some(self.process.child.kill()?);
        }
        Ok(())
    }

    /// Stops the server by SHUTDOWN, which takes effect at once, unlike SIGTERM, or by signals.
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

/// Connects to `endpoint` from the server's host.
fn connect(endpoint: &Endpoint, network: Option<&Path>) -> io::Result<Control> {
    network::within(network, || Control::connect(endpoint))
}

/// Whether the server at `endpoint` answers and is the process `pid`.
fn answers(endpoint: &Endpoint, network: Option<&Path>, pid: u32) -> io::Result<bool> {
    let mut control = connect(endpoint, network)?;
    control.ask(&[b"PING"])?;
    let info = control.ask(&[b"INFO", b"server"])?;
    let wanted = format!("process_id:{pid}");
    Ok(info.lines().any(|line| line == wanted))
}

/// The answer to INFO.
#[derive(Debug)]
pub(crate) struct Info(pub(crate) String);

impl Info {
    /// The value of a field; empty if the field is missing.
    pub(crate) fn field(&self, name: &str) -> &str {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(field, _)| *field == name);
        found.map_or("", |(_, value)| value.trim_end())
    }

    /// The value of a counter; 0 if the field is missing.
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
