//! [`Server`]: a private server, from its start to its end.
//!
//! A server is ready when its log says so; another server on the same port cannot be measured by
//! mistake. Data are created and loaded once and are kept from run to run.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use saiga_experiment::server::{self, NotReady, WaitLimits, start_with_retries};
use saiga_experiment::workload::Failure;
use saiga_process::child::{CommandLine, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::port::{self, PortError};

use crate::engine::Engine;
use crate::installation::{Endpoint, Installation, Sizes};

const READY_LIMITS: WaitLimits = WaitLimits {
    limit: Duration::from_secs(30),
    pause: Duration::from_millis(3),
};
/// Timeout for the end in order of a server, which writes its data first.
const END_LIMIT: Duration = Duration::from_secs(120);
const SERVER_LOG: &str = "server.log";

/// The server cannot be created or started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// The folder or a file of the server cannot be created.
    #[error("cannot prepare a private {server}: {error}")]
    Prepare {
        server: &'static str,
        error: io::Error,
    },
    /// A program that creates or loads the data failed.
    #[error("{program} failed ({status}); its output: {output}")]
    Tool {
        program: String,
        /// Exit status, or the timeout.
        status: String,
        /// The last lines of its output.
        output: String,
    },
    /// The server for loading did not become ready or did not end in order.
    #[error("{0}")]
    NotUsable(String),
    /// Saiga runs as root, and there is no unprivileged account.
    #[error(
        "{server} refuses to run as root, and this host has neither the user {user} nor the user \
         nobody; start saiga as an unprivileged user"
    )]
    Root {
        server: &'static str,
        /// The user that the Debian package creates.
        user: &'static str,
    },
    /// The server's user cannot write into its folder.
    #[error(
        "the user {user}, as which {server} runs, cannot write into {dir}; set TMPDIR to a folder \
         that all users can write to"
    )]
    Closed {
        user: String,
        server: &'static str,
        dir: String,
    },
}

/// Where a server is to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// On this port of 127.0.0.1, or on any free port.
    Tcp(Option<u16>),
    /// On the usual port of the server's host, where every port is free.
    Remote,
    Unix,
}

/// A server process and its address.
#[derive(Debug)]
pub struct Server {
    pub process: server::Server,
    pub endpoint: Endpoint,
    engine: Engine,
}

impl Server {
    /// Starts a server and waits until it is ready. `finish` adds CPUs, environment and network to
    /// its command line.
    ///
    /// # Errors
    /// Fails after an interrupt, or if the server does not become ready.
    pub fn start(
        installation: &Installation,
        listen: Listen,
        sizes: &Sizes,
        finish: impl Fn(&mut CommandLine),
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let attempt = || {
            let endpoint = match listen {
                Listen::Tcp(wanted) => {
                    let port = port::choose(wanted).map_err(Failure::impossible)?;
                    Endpoint::Tcp(port.to_string())
                }
                Listen::Remote => Endpoint::remote(installation.engine),
                Listen::Unix => Endpoint::Unix,
            };
            let mut line = installation.server_line(&endpoint, sizes);
            finish(&mut line);
            Self::spawn(installation, &line, endpoint, interrupt)
        };
        let chosen = match listen {
            Listen::Tcp(chosen) => chosen,
            Listen::Remote | Listen::Unix => None,
        };
        let taken = |port| Failure::impossible(PortError::taken(port));
        start_with_retries(attempt, || chosen.map(taken))
    }

    /// Starts the server for the first time, so that its data can be loaded. `network` is the file
    /// of its network namespace; `None` for that of this process.
    ///
    /// # Errors
    /// After a failure, no run is possible.
    pub fn start_to_load(
        installation: &Installation,
        endpoint: Endpoint,
        sizes: &Sizes,
        network: Option<PathBuf>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let line = CommandLine {
            network,
            ..installation.first_line(&endpoint, sizes)
        };
        let started = Self::spawn(installation, &line, endpoint, interrupt);
        started.map_err(|not_ready| match not_ready {
            NotReady::Died(died) => Failure::impossible(died),
            NotReady::Failed(Failure::Run { reason }) => {
                Failure::impossible(ServerError::NotUsable(reason))
            }
            NotReady::Failed(failure) => failure,
        })
    }

    fn spawn(
        installation: &Installation,
        line: &CommandLine,
        endpoint: Endpoint,
        interrupt: &Interrupt,
    ) -> Result<Self, NotReady> {
        let engine = installation.engine;
        let (program, package) = engine.server();
        let log = installation.file(SERVER_LOG).into();
        let mut process =
            server::Server::start(line, program, package, log).map_err(Failure::impossible)?;
        process.await_ready(READY_LIMITS, interrupt, |process| {
            process.output().contains(engine.ready_text())
        })?;
        Ok(Self {
            process,
            endpoint,
            engine,
        })
    }

    /// Stops the server and waits for its end; kills it if it takes too long.
    ///
    /// # Errors
    /// Fails if the process cannot be waited for.
    pub fn stop(mut self) -> io::Result<()> {
        self.process.child.stop().map(|_| ())
    }

    /// Stops the server in order, so that all data are written.
    ///
    /// # Errors
    /// Fails if the server does not end in order.
    pub fn stop_in_order(mut self) -> Result<(), Failure> {
        let child = &mut self.process.child;
        child.signal(self.engine.stop_signals().ask);
        match child.wait(END_LIMIT, &Interrupt::never()) {
            Ok(Waited::Ended(ended)) if ended.status.success() => Ok(()),
            Ok(Waited::Ended(ended)) => Err(unclean(&ended.status.to_string())),
            Ok(Waited::TimeOver | Waited::Interrupted) => Err(unclean("not ended in time")),
            Err(error) => Err(Failure::impossible(error)),
        }
    }
}

fn unclean(status: &str) -> Failure {
    let message = format!("the private server did not end in order ({status})");
    Failure::impossible(ServerError::NotUsable(message))
}
