//! One private server: its data made and loaded once, started for each run, ended by pid.
//!
//! It is ready when its own log says so: a stranger that holds the port cannot be measured
//! by mistake. The data stay from run to run. Reads leave them as they are; sysbench's
//! writes keep their size, and pgbench removes what its own last run added.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::Duration;

use saiga_experiment::account::Account;
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::port::{self, PortError};
use saiga_experiment::process::CommandLine;
use saiga_experiment::server::{self, NotReady, Patience, insist};
use saiga_experiment::tool::{self, Undone};
use saiga_experiment::workload::Failure;

use crate::engine::Engine;
use crate::site::{Endpoint, Site};
use crate::{mariadb, postgres};

const PATIENCE: Patience = Patience {
    limit: Duration::from_secs(30),
    pause: Duration::from_millis(3),
};
/// Making and loading data takes seconds.
const LOADING_LIMIT: Duration = Duration::from_secs(120);
/// Connections while the data are loaded.
const FEW: u32 = 4;
const SERVER_LOG: &str = "server.log";
const TOOL_LOG: &str = "tool.log";
/// What a server that is loaded for the first time is told.
pub(crate) const INIT_FILE: &str = "init.sql";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// No folder or descriptor for it.
    #[error("cannot prepare a private {server}: {error}")]
    Prepare {
        /// The program.
        server: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// A program that makes or loads its data failed.
    #[error("{program} failed ({how}); it said: {said}")]
    Tool {
        /// The program.
        program: String,
        /// Its exit status, or the time that it took.
        how: String,
        /// What it said of the cause.
        said: String,
    },
    /// It does not get ready to be loaded.
    #[error("{0}")]
    Stuck(String),
    /// We are root, and there is nobody else.
    #[error(
        "{server} does not run as root, and this host has neither the user {user} nor nobody; start saiga \
         as an unprivileged user"
    )]
    Root {
        /// The program.
        server: &'static str,
        /// The user that its package makes.
        user: &'static str,
    },
    /// Its user has no way to its folder.
    #[error(
        "{user}, the user as whom {server} runs, cannot write into {dir}; set TMPDIR to a folder that is \
         open to all"
    )]
    Closed {
        /// The user.
        user: String,
        /// The program.
        server: &'static str,
        /// The folder.
        dir: String,
    },
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: server::Server,
    pub(crate) endpoint: Endpoint,
}

/// Makes the folder of `site` and an empty data directory; `sql` is what MariaDB runs when it starts
/// for the first time.
pub(crate) fn install(site: &Site, sql: &str, interrupt: &Interrupt) -> Result<(), Failure> {
    let prepare = |error| prepare(site.engine, error);
    fs::create_dir(&site.dir).map_err(prepare)?;
    fs::set_permissions(&site.dir, PermissionsExt::from_mode(0o700)).map_err(prepare)?;
    give(site, Path::new(&site.dir)).map_err(prepare)?;
    check_account(site, interrupt)?;
    let (installer, package) = site.engine.installer();
    match site.engine {
        Engine::MariaDb => {
            write(site, INIT_FILE, sql).map_err(prepare)?;
            let line = mariadb::initialise(site);
            finish(site, &line, installer, package, interrupt)
        }
        Engine::Postgres => {
            let line = postgres::initialise(site);
            finish(site, &line, installer, package, interrupt)
        }
    }
}

/// Makes the folder, the data directory and the data of `site`.
pub(crate) fn create(site: &Site, interrupt: &Interrupt) -> Result<(), Failure> {
    install(site, mariadb::INIT_SQL, interrupt)?;
    if site.engine == Engine::MariaDb {
        let lua = write(site, "load.lua", include_str!("load.lua"));
        lua.map_err(|error| prepare(site.engine, error))?;
    }
    let mut line = server_line(site, &Endpoint::Unix, FEW);
    let fill = match site.engine {
        Engine::MariaDb => {
            line.args
                .push(format!("--init-file={}", site.file(INIT_FILE)));
            mariadb::fill(site)
        }
        Engine::Postgres => postgres::fill(site),
    };
    let server = Server::spawn(site, &line, Endpoint::Unix, interrupt).map_err(for_good)?;
    let [_, (loader, package)] = site.engine.measured_programs();
    finish(site, &fill, loader, package, interrupt)?;
    server.stop().map_err(Failure::impossible)
}

/// The server's command line without its cores and environment.
pub(crate) fn server_line(site: &Site, endpoint: &Endpoint, connections: u32) -> CommandLine {
    match site.engine {
        Engine::MariaDb => mariadb::server(site, endpoint, connections),
        Engine::Postgres => postgres::server(site, endpoint, connections),
    }
}

/// Writes a file that belongs to the server's account.
pub(crate) fn write(site: &Site, name: &str, text: &str) -> io::Result<()> {
    let path = site.file(name);
    fs::write(&path, text)?;
    give(site, Path::new(&path))
}

fn give(site: &Site, path: &Path) -> io::Result<()> {
    match &site.account {
        Some(account) => chown(path, Some(account.uid), Some(account.gid)),
        None => Ok(()),
    }
}

/// There is one that is not root, and the folders above the site are open to it.
fn check_account(site: &Site, interrupt: &Interrupt) -> Result<(), Failure> {
    let [(server, _), _] = site.engine.measured_programs();
    let Some(account) = &site.account else {
        let user = site.engine.user();
        let root = Failure::impossible(ServerError::Root { server, user });
        return if Account::are_root() {
            Err(root)
        } else {
            Ok(())
        };
    };
    if site.may("-w", &site.dir, interrupt)? {
        return Ok(());
    }
    Err(Failure::impossible(ServerError::Closed {
        user: account.name.clone(),
        server,
        dir: site.dir.clone(),
    }))
}

/// Without a server that can be loaded there is no run at all.
pub(crate) fn for_good(not_ready: NotReady) -> Failure {
    match not_ready {
        NotReady::Died(died) => Failure::impossible(died),
        NotReady::Failed(Failure::Run { reason }) => {
            Failure::impossible(ServerError::Stuck(reason))
        }
        NotReady::Failed(failure) => failure,
    }
}

fn prepare(engine: Engine, error: io::Error) -> Failure {
    let [(server, _), _] = engine.measured_programs();
    Failure::impossible(ServerError::Prepare { server, error })
}

/// Runs a program to its end; its failure ends the experiment.
fn finish(
    site: &Site,
    line: &CommandLine,
    program: &str,
    package: &str,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let log = site.file(TOOL_LOG);
    let done = tool::run(line, package, Path::new(&log), LOADING_LIMIT, interrupt)?;
    done.map_err(|Undone { how, said }| {
        let program = program.to_owned();
        Failure::impossible(ServerError::Tool { program, how, said })
    })
}

impl Server {
    /// Starts a server on a port, the user's or a free one, or on a socket, and waits until
    /// it is ready. `finish` adds cores and environment to its command line.
    pub(crate) fn start(
        site: &Site,
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
            let mut line = server_line(site, &endpoint, connections);
            finish(&mut line);
            Self::spawn(site, &line, endpoint, interrupt)
        };
        let taken = |port| Failure::impossible(PortError::taken(port));
        insist(attempt, || tcp.flatten().map(taken))
    }

    pub(crate) fn spawn(
        site: &Site,
        line: &CommandLine,
        endpoint: Endpoint,
        interrupt: &Interrupt,
    ) -> Result<Self, NotReady> {
        let [(program, package), _] = site.engine.measured_programs();
        let log = site.file(SERVER_LOG).into();
        let mut process =
            server::Server::start(line, program, package, log).map_err(Failure::impossible)?;
        let words = site.engine.ready_words();
        process.await_ready(PATIENCE, interrupt, |process| {
            process.said().contains(words)
        })?;
        Ok(Self { process, endpoint })
    }

    /// Ends it and waits for its end.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        self.process.child.stop().map(|_| ())
    }
}
