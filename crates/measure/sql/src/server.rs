//! [`Server`]: a private SQL server. Its data are created and loaded once; it is started for each
//! run and stopped by PID.
//!
//! A server is ready when its log says so; another server on the same port cannot be measured by
//! mistake. The data are kept from run to run. Reads do not change them, writes of sysbench keep
//! their size, and pgbench removes the rows that its previous run added.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::Duration;

use saiga_experiment::account::Account;
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::port::{self, PortError};
use saiga_experiment::process::CommandLine;
use saiga_experiment::server::{self, NotReady, WaitLimits, start_with_retries};
use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::workload::Failure;

use crate::engine::Engine;
use crate::installation::{Endpoint, Installation};
use crate::{mariadb, postgres};

const READY_LIMITS: WaitLimits = WaitLimits {
    limit: Duration::from_secs(30),
    pause: Duration::from_millis(3),
};
/// Time-out for creating and loading data, which takes seconds.
const LOADING_LIMIT: Duration = Duration::from_secs(120);
/// Maximum number of connections while the data are loaded.
const LOADING_CONNECTIONS: u32 = 4;
const SERVER_LOG: &str = "server.log";
const TOOL_LOG: &str = "tool.log";
/// Name of the file with SQL for the first start of MariaDB.
pub(crate) const INIT_FILE: &str = "init.sql";

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
        /// Exit status, or the time-out.
        status: String,
        /// The last lines of its output.
        output: String,
    },
    /// The server for loading did not become ready or did not end.
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

/// A server process and its address.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: server::Server,
    pub(crate) endpoint: Endpoint,
}

/// Creates the folder of `installation` and an empty data directory; `sql` is executed when MariaDB
/// starts for the first time.
pub(crate) fn install(
    installation: &Installation,
    sql: &str,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let prepare = |error| prepare(installation.engine, error);
    fs::create_dir(&installation.dir).map_err(prepare)?;
    fs::set_permissions(&installation.dir, PermissionsExt::from_mode(0o700)).map_err(prepare)?;
    give_to_account(installation, Path::new(&installation.dir)).map_err(prepare)?;
    check_account(installation, interrupt)?;
    let (installer, package) = installation.engine.installer();
    match installation.engine {
        Engine::MariaDb => {
            write(installation, INIT_FILE, sql).map_err(prepare)?;
            let line = mariadb::initialise(installation);
            finish(installation, &line, installer, package, interrupt)
        }
        Engine::Postgres => {
            let line = postgres::initialise(installation);
            finish(installation, &line, installer, package, interrupt)
        }
    }
}

/// Creates the folder, the data directory and the data of `installation`.
pub(crate) fn create(installation: &Installation, interrupt: &Interrupt) -> Result<(), Failure> {
    install(installation, mariadb::INIT_SQL, interrupt)?;
    if installation.engine == Engine::MariaDb {
        let lua = write(installation, "load.lua", include_str!("load.lua"));
        lua.map_err(|error| prepare(installation.engine, error))?;
    }
    let mut line = server_line(installation, &Endpoint::Unix, LOADING_CONNECTIONS);
    let fill = match installation.engine {
        Engine::MariaDb => {
            line.args
                .push(format!("--init-file={}", installation.file(INIT_FILE)));
            mariadb::fill(installation)
        }
        Engine::Postgres => postgres::fill(installation),
    };
    let server =
        Server::spawn(installation, &line, Endpoint::Unix, interrupt).map_err(as_impossible)?;
    let [_, (loader, package)] = installation.engine.measured_programs();
    finish(installation, &fill, loader, package, interrupt)?;
    server.stop().map_err(Failure::impossible)
}

/// The command line of the server without CPUs and environment.
pub(crate) fn server_line(
    installation: &Installation,
    endpoint: &Endpoint,
    connections: u32,
) -> CommandLine {
    match installation.engine {
        Engine::MariaDb => mariadb::server(installation, endpoint, connections),
        Engine::Postgres => postgres::server(installation, endpoint, connections),
    }
}

/// Writes a file that the server's account owns.
pub(crate) fn write(installation: &Installation, name: &str, text: &str) -> io::Result<()> {
    let path = installation.file(name);
    fs::write(&path, text)?;
    give_to_account(installation, Path::new(&path))
}

fn give_to_account(installation: &Installation, path: &Path) -> io::Result<()> {
    match &installation.account {
        Some(account) => chown(path, Some(account.uid), Some(account.gid)),
        None => Ok(()),
    }
}

/// Checks that there is an unprivileged account, and that it can write into the folder.
fn check_account(installation: &Installation, interrupt: &Interrupt) -> Result<(), Failure> {
    let [(server, _), _] = installation.engine.measured_programs();
    let Some(account) = &installation.account else {
        let user = installation.engine.user();
        let root = Failure::impossible(ServerError::Root { server, user });
        return if Account::is_root() {
            Err(root)
        } else {
            Ok(())
        };
    };
    if installation.passes_test("-w", &installation.dir, interrupt)? {
        return Ok(());
    }
    Err(Failure::impossible(ServerError::Closed {
        user: account.name.clone(),
        server,
        dir: installation.dir.clone(),
    }))
}

/// Converts a failure to start the server for loading, after which no run is possible.
pub(crate) fn as_impossible(not_ready: NotReady) -> Failure {
    match not_ready {
        NotReady::Died(died) => Failure::impossible(died),
        NotReady::Failed(Failure::Run { reason }) => {
            Failure::impossible(ServerError::NotUsable(reason))
        }
        NotReady::Failed(failure) => failure,
    }
}

fn prepare(engine: Engine, error: io::Error) -> Failure {
    let [(server, _), _] = engine.measured_programs();
    Failure::impossible(ServerError::Prepare { server, error })
}

/// Runs a program to its end; if it fails, the experiment ends.
fn finish(
    installation: &Installation,
    line: &CommandLine,
    program: &str,
    package: &str,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let log = installation.file(TOOL_LOG);
    let done = tool::run(line, package, Path::new(&log), LOADING_LIMIT, interrupt)?;
    done.map_err(|Unsuccessful { status, output }| {
        let program = program.to_owned();
        Failure::impossible(ServerError::Tool {
            program,
            status,
            output,
        })
    })
}

impl Server {
    /// Starts a server on a port (the user's or a free one) or on a socket, and waits until it is
    /// ready. `finish` adds CPUs and environment to its command line.
    pub(crate) fn start(
        installation: &Installation,
        tcp: Option<Option<u16>>,
        connections: u32,
        finish: impl Fn(&mut CommandLine),
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let attempt = || {
            let endpoint = match tcp {
                Some(wanted) => {
                    let port = port::choose(wanted).map_err(Failure::impossible)?;
                    Endpoint::Tcp(port.to_string())
                }
                None => Endpoint::Unix,
            };
            let mut line = server_line(installation, &endpoint, connections);
            finish(&mut line);
            Self::spawn(installation, &line, endpoint, interrupt)
        };
        let taken = |port| Failure::impossible(PortError::taken(port));
        start_with_retries(attempt, || tcp.flatten().map(taken))
    }

    pub(crate) fn spawn(
        installation: &Installation,
        line: &CommandLine,
        endpoint: Endpoint,
        interrupt: &Interrupt,
    ) -> Result<Self, NotReady> {
        let [(program, package), _] = installation.engine.measured_programs();
        let log = installation.file(SERVER_LOG).into();
        let mut process =
            server::Server::start(line, program, package, log).map_err(Failure::impossible)?;
        let text = installation.engine.ready_text();
        process.await_ready(READY_LIMITS, interrupt, |process| {
            process.output().contains(text)
        })?;
        Ok(Self { process, endpoint })
    }

    /// Stops the server and waits for its end.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        self.process.child.stop().map(|_| ())
    }
}
