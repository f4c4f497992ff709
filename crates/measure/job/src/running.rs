//! A server of an arm: checks before its start, start, readiness, stop, checks after its end.
//!
//! In: a [`Server`] of the experiment file. Out: a running process with its log, or a [`Failure`]
//! that quotes the log. A stop that fails is followed by SIGKILL, so no server outlives its run.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use saiga_experiment::file::{Probe, Server, Stop, StopHow};
use saiga_experiment::server::{self, NotReady, WaitLimits};
use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::workload::Failure;
use saiga_hosts::Hosts;
use saiga_process::child::{CommandLine, Signal, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::network;
use saiga_snapshot::{InUse, Unseen, check_not_running, check_ready};

use crate::{hosts, line, port_owner, ready};

/// Interval between two probes for readiness, or for a closed port.
const PAUSE: Duration = Duration::from_millis(20);
/// [`PAUSE`] for probes of kind `command`, which start a process each time.
const COMMAND_PAUSE: Duration = Duration::from_millis(250);
/// Timeout of a probe of kind `command`.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// The port or a directory of a server is in use by another process.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InUseError {
    #[error(
        "port {port} of {server} is in use by {owner}; stop it, or give the server another port"
    )]
    Port {
        server: String,
        port: u16,
        owner: String,
    },
    #[error("the data of {server} are in use: {reason}")]
    Directory { server: String, reason: InUse },
    /// The server ended, but one of its children or another process keeps the port open.
    #[error("{server} has ended, but {owner} still listens on its port {port}")]
    AfterEnd {
        server: String,
        port: u16,
        owner: String,
    },
}

/// A server that was started and not stopped yet.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: server::Server,
    /// File of the network namespace of its clients; `None` for that of this process. The server
    /// need not admit others.
    clients: Option<PathBuf>,
}

/// The processes on the side of the servers, which a run of the load watches.
pub(crate) struct Processes<'a> {
    /// By index in the file.
    pub(crate) servers: &'a mut [Option<Running>],
    /// The hosts, whose gateway is one of these processes; `None` on this host.
    pub(crate) hosts: Option<&'a mut Hosts>,
}

/// CPU times so far.
pub(crate) struct CpuTimes {
    /// Of the servers and of the gateway on their host.
    pub(crate) used: Duration,
    /// Of that gateway alone; zero without one.
    pub(crate) gateway: Duration,
    /// Of the gateway on the client's host; zero without one.
    pub(crate) far_gateway: Duration,
}

impl Processes<'_> {
    /// CPU times of the servers and gateways so far.
    ///
    /// # Errors
    /// Fails if one of them is gone.
    pub(crate) fn cpu_times(&self) -> io::Result<CpuTimes> {
        let servers = self.servers.iter().flatten();
        let servers: io::Result<Duration> =
            servers.map(|one| one.process.child.tree_cpu_time()).sum();
        let (gateway, far_gateway) = match &self.hosts {
            Some(hosts) => (hosts.gateway_cpu_time()?, hosts.far_cpu_time()?),
            None => (Duration::ZERO, Duration::ZERO),
        };
        Ok(CpuTimes {
            used: servers? + gateway,
            gateway,
            far_gateway,
        })
    }

    /// The exit report of the first server that has ended, or of the gateway.
    pub(crate) fn exit_report(&mut self) -> Option<String> {
        let mut servers = self.servers.iter_mut().flatten();
        let of_server = servers.find_map(|one| one.process.exit_report());
        of_server.or_else(|| self.hosts.as_mut()?.exit_report())
    }
}

/// Fails if a process listens on the port of `server` or uses its directories. On a host of its
/// own, every port is free.
pub(crate) fn check_free(server: &Server, has_own_host: bool) -> Result<(), Failure> {
    let name = || format!("server {:?}", server.name);
    if let Some((port, owner)) = server
        .port
        .filter(|_| !has_own_host)
        .and_then(|port| Some((port, port_owner::find(port)?)))
    {
        let (server, owner) = (name(), owner.to_string());
        return Err(Failure::impossible(InUseError::Port {
            server,
            port,
            owner,
        }));
    }
    check_not_running(&server.data, Unseen::Refuse).map_err(|reason| {
        let server = name();
        Failure::impossible(InUseError::Directory { server, reason })
    })
}

impl Running {
    /// Starts `server` with its output in `log`, on the server's host of `hosts` or on this host;
    /// fails if its data are only partly restored.
    pub(crate) fn start(
        server: &Server,
        tool: &Path,
        log: &Path,
        hosts: Option<&Hosts>,
    ) -> Result<Self, Failure> {
        check_ready(&server.data).map_err(Failure::impossible)?;
        let places = hosts.map(Hosts::places);
        let line = CommandLine {
            network: places.as_ref().map(|places| places.server.clone()),
            ..line::with_launch(&server.launch, &server.command, tool)
        };
        let name = format!("server {:?}", server.name);
        let process =
            server::Server::start(&line, &name, "the package of the server", log.to_owned())
                .map_err(Failure::impossible)?;
        let clients = places.map(|places| places.client);
        Ok(Self { process, clients })
    }

    /// Waits until the readiness probe of `server` succeeds.
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
        let Self { process, clients } = self;
        let is_ready = |_: &server::Server| match probe(server, clients.as_deref(), interrupt) {
            Ok(()) => true,
            Err(reason) => {
                *last.borrow_mut() = reason;
                false
            }
        };
        let waited = process.await_ready(WaitLimits { limit, pause }, interrupt, is_ready);
        match waited {
            Ok(()) => Ok(()),
            Err(NotReady::Died(died)) => Err(Failure::impossible(died)),
            Err(NotReady::Failed(Failure::Run { reason })) => {
                let last = last.into_inner();
                Err(Failure::run(format!("{reason}; last probe: {last}")))
            }
            Err(NotReady::Failed(failure)) => Err(failure),
        }
    }

    /// Stops the server by the signal or command of its `[server.stop]`. A server that does not
    /// end within the limit is killed, which is a failure of the run.
    pub(crate) fn stop(mut self, server: &Server, log: &Path) -> Result<(), Failure> {
        if let Some(report) = self.process.exit_report() {
            return Err(Failure::run(report));
        }
        let Stop { how, limit } = &server.stop;
        let asked = match how {
            // `kill` also ends the process group, because a killed server cannot stop its children.
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
        let refused = asked.err().map(|Unsuccessful { status, output }| {
            format!(
                "the command that stops server {:?} failed ({status}): {output}",
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

/// Waits until no process listens on the port of a server that has ended.
pub(crate) fn await_port_closed(server: &Server) -> Result<(), Failure> {
    let Some(port) = server.port else {
        return Ok(());
    };
    let began = Instant::now();
    while let Some(owner) = port_owner::find(port) {
        if began.elapsed() >= server.stop.limit {
            let (server, owner) = (format!("server {:?}", server.name), owner.to_string());
            return Err(Failure::impossible(InUseError::AfterEnd {
                server,
                port,
                owner,
            }));
        }
        let pause = rustix::event::Timespec::try_from(PAUSE).ok();
        // The listener is not a child of this process, so its end cannot be waited for.
        rustix::event::poll(&mut [], pause.as_ref())
            .map_err(|errno| Failure::impossible(std::io::Error::from(errno)))?;
    }
    Ok(())
}

/// Probes `server` once, from the network namespace `place`; the error is the reason why it is not
/// ready.
fn probe(server: &Server, place: Option<&Path>, interrupt: &Interrupt) -> Result<(), String> {
    let port = server.port.unwrap_or(0);
    let at = (hosts::address(place), port);
    let answered = match &server.ready.probe {
        Probe::Port => network::within(place, || ready::port(at)),
        Probe::Redis => ready::redis(port),
        Probe::MySql => network::within(place, || ready::mysql(at)),
        Probe::Postgres => network::within(place, || ready::postgres(at)),
        Probe::Command(command) => return probe_by_command(command, interrupt),
    };
    answered.map_err(|error| error.to_string())
}

fn probe_by_command(command: &str, interrupt: &Interrupt) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (line, log) = (line::shell(command), dir.path().join("probe.log"));
    match tool::run(&line, "dash", &log, PROBE_LIMIT, interrupt) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Unsuccessful { status, output })) => Err(format!("{status}: {output}")),
        Err(failure) => Err(failure.to_string()),
    }
}
