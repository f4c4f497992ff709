//! A server of an arm from its start to its end.

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use saiga_experiment::file::{Probe, Server, Stop, StopHow};
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::{Signal, Waited};
use saiga_experiment::server::{self, NotReady, Patience};
use saiga_experiment::tool::{self, Undone};
use saiga_experiment::workload::Failure;
use saiga_snapshot::{InUse, Unseen, check_not_running, check_ready};

use crate::{line, occupant, ready};

/// Between two questions whether a server is ready, or gone.
const PAUSE: Duration = Duration::from_millis(20);
/// The same for a command, which costs a process each time.
const COMMAND_PAUSE: Duration = Duration::from_millis(250);
/// What a question by command may take.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// Why a server cannot be started, or is still there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OccupiedError {
    /// Its port is taken.
    #[error("port {port} of {server} is taken by {who}; stop it, or give the server another port")]
    Port {
        server: String,
        port: u16,
        who: String,
    },
    /// Its directories are in use.
    #[error("the data of {server} are in use: {why}")]
    Directory { server: String, why: InUse },
    /// It ended and left something behind.
    #[error("{server} has ended, but {who} still listens on its port {port}")]
    Left {
        server: String,
        port: u16,
        who: String,
    },
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: server::Server,
}

/// Nobody listens where `server` will, or works in its directories.
pub(crate) fn check_free(server: &Server) -> Result<(), Failure> {
    let name = || format!("server {:?}", server.name);
    if let Some((port, who)) = server
        .port
        .and_then(|port| Some((port, occupant::of_port(port)?)))
    {
        let (server, who) = (name(), who.to_string());
        return Err(Failure::impossible(OccupiedError::Port {
            server,
            port,
            who,
        }));
    }
    check_not_running(&server.data, Unseen::Refuse).map_err(|why| {
        let server = name();
        Failure::impossible(OccupiedError::Directory { server, why })
    })
}

impl Running {
    /// Starts it with its output in `log`, never on data that are partly restored.
    pub(crate) fn start(server: &Server, tool: &Path, log: &Path) -> Result<Self, Failure> {
        check_ready(&server.data).map_err(Failure::impossible)?;
        let line = line::dressed(&server.dress, &server.command, tool);
        let name = format!("server {:?}", server.name);
        let process =
            server::Server::start(&line, &name, "the package of the server", log.to_owned())
                .map_err(Failure::impossible)?;
        Ok(Self { process })
    }

    /// Waits until it is ready.
    pub(crate) fn await_ready(
        &mut self,
        server: &Server,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let last = RefCell::new(String::new());
        let pause = match server.ready.probe {
            Probe::Command(_) => COMMAND_PAUSE,
            Probe::Port | Probe::Redis | Probe::MySql | Probe::Postgres => PAUSE,
        };
        let limit = server.ready.limit;
        let waited = self
            .process
            .await_ready(Patience { limit, pause }, interrupt, |_| {
                match ask(server, interrupt) {
                    Ok(()) => true,
                    Err(said) => {
                        *last.borrow_mut() = said;
                        false
                    }
                }
            });
        match waited {
            Ok(()) => Ok(()),
            Err(NotReady::Died(died)) => Err(Failure::impossible(died)),
            Err(NotReady::Failed(Failure::Run { reason })) => {
                let last = last.into_inner();
                Err(Failure::run(format!("{reason}; when last asked: {last}")))
            }
            Err(NotReady::Failed(failure)) => Err(failure),
        }
    }

    /// Asks it to end as its file says, and insists when it does not.
    pub(crate) fn stop(mut self, server: &Server, log: &Path) -> Result<(), Failure> {
        if let Some(obituary) = self.process.obituary() {
            return Err(Failure::run(obituary));
        }
        let Stop { how, limit } = &server.stop;
        let asked = match how {
            // Who is not asked takes its group along.
            StopHow::Signal(signal) if *signal == Signal::KILL => {
                self.process.child.kill().map_err(Failure::impossible)?;
                return Ok(());
            }
            StopHow::Signal(signal) => {
                self.process.child.signal(*signal);
                Ok(())
            }
            StopHow::Command(command) => {
                let line = line::shell(command);
                tool::run(&line, "dash", log, *limit, &Interrupt::never())?
            }
        };
        let refused = asked.err().map(|Undone { how, said }| {
            format!(
                "the command that stops server {:?} failed ({how}): {said}",
                server.name
            )
        });
        let waited = if refused.is_some() {
            Duration::ZERO
        } else {
            *limit
        };
        let ended = self.process.child.wait(waited, &Interrupt::never());
        if let Waited::Ended(_) = ended.map_err(Failure::impossible)? {
            return Ok(());
        }
        self.process.child.kill().map_err(Failure::impossible)?;
        let reason = refused.unwrap_or_else(|| {
            format!(
                "server {:?} did not end within {} s",
                server.name,
                limit.as_secs_f64()
            )
        });
        Err(Failure::run(format!("{reason}; it was killed")))
    }
}

/// Waits until nobody listens on the port of a server that has ended.
pub(crate) fn await_gone(server: &Server) -> Result<(), Failure> {
    let Some(port) = server.port else {
        return Ok(());
    };
    let began = Instant::now();
    while let Some(who) = occupant::of_port(port) {
        if began.elapsed() >= server.stop.limit {
            let (server, who) = (format!("server {:?}", server.name), who.to_string());
            return Err(Failure::impossible(OccupiedError::Left {
                server,
                port,
                who,
            }));
        }
        let pause = rustix::event::Timespec::try_from(PAUSE).ok();
        // Nothing can be waited for: the listener is nobody's child.
        rustix::event::poll(&mut [], pause.as_ref())
            .map_err(|errno| Failure::impossible(std::io::Error::from(errno)))?;
    }
    Ok(())
}

fn ask(server: &Server, interrupt: &Interrupt) -> Result<(), String> {
    let port = server.port.unwrap_or(0);
    let answered = match &server.ready.probe {
        Probe::Port => ready::port(port),
        Probe::Redis => ready::redis(port),
        Probe::MySql => ready::mysql(port),
        Probe::Postgres => ready::postgres(port),
        Probe::Command(command) => return ask_by_command(command, interrupt),
    };
    answered.map_err(|error| error.to_string())
}

fn ask_by_command(command: &str, interrupt: &Interrupt) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (line, log) = (line::shell(command), dir.path().join("probe.log"));
    match tool::run(&line, "dash", &log, PROBE_LIMIT, interrupt) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Undone { how, said })) => Err(format!("{how}: {said}")),
        Err(failure) => Err(failure.to_string()),
    }
}
