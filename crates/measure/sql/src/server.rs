//! One private server: its data made and loaded once, started for each run, ended by pid.
//!
//! It is ready when its own log says so: a stranger that holds the port cannot be measured
//! by mistake. The data stay from run to run. Reads leave them as they are; sysbench's
//! writes keep their size, and pgbench removes what its own last run added.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::log::last_lines;
use saiga_experiment::port::{self, PortError};
use saiga_experiment::process::{Child, CommandLine, Ended, Waited};
use saiga_experiment::workload::Failure;

use crate::engine::Engine;
use crate::site::{Endpoint, Site};
use crate::{mariadb, postgres};

/// A server that is not ready by then is stuck.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks at its log; a death ends the pause at once.
const READY_PAUSE: Duration = Duration::from_millis(3);
/// Making and loading data takes seconds.
const LOADING_LIMIT: Duration = Duration::from_secs(120);
/// Connections while the data are loaded.
const FEW: u32 = 4;
const SERVER_LOG: &str = "server.log";
const TOOL_LOG: &str = "tool.log";

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
        /// The last lines of its output.
        said: String,
    },
    /// It ended instead of listening.
    #[error("{server} ended before it was ready; it said: {said}")]
    Died {
        /// The program.
        server: &'static str,
        /// The last lines of its log.
        said: String,
    },
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) endpoint: Endpoint,
    engine: Engine,
    log: String,
}

/// Makes the folder, the data directory and the data of `site`.
pub(crate) fn create(site: &Site, interrupt: &Interrupt) -> Result<(), Failure> {
    let prepare = |error| prepare(site.engine, error);
    fs::create_dir(&site.dir).map_err(prepare)?;
    fs::set_permissions(&site.dir, PermissionsExt::from_mode(0o700)).map_err(prepare)?;
    give(site, Path::new(&site.dir)).map_err(prepare)?;
    let (installer, package) = site.engine.installer();
    match site.engine {
        Engine::MariaDb => {
            write(site, "load.lua", include_str!("load.lua")).map_err(prepare)?;
            write(site, "init.sql", mariadb::INIT_SQL).map_err(prepare)?;
            finish(
                site,
                &mariadb::initialise(site),
                installer,
                package,
                interrupt,
            )?;
        }
        Engine::Postgres => {
            finish(
                site,
                &postgres::initialise(site),
                installer,
                package,
                interrupt,
            )?;
        }
    }
    let mut line = server_line(site, &Endpoint::Unix, FEW);
    let fill = match site.engine {
        Engine::MariaDb => {
            line.args
                .push(format!("--init-file={}", site.file("init.sql")));
            mariadb::fill(site)
        }
        Engine::Postgres => postgres::fill(site),
    };
    let server = Server::spawn(site, &line, Endpoint::Unix, interrupt)?;
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
    let files = File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = files.map_err(|error| prepare(site.engine, error))?;
    let mut child = line.spawn(package, out, err).map_err(Failure::impossible)?;
    let how = match child
        .wait(LOADING_LIMIT, interrupt)
        .map_err(Failure::impossible)?
    {
        Waited::Ended(Ended { status, .. }) if status.success() => return Ok(()),
        Waited::Ended(Ended { status, .. }) => status.to_string(),
        Waited::Interrupted => return Err(Failure::Interrupted),
        Waited::TimeOver => format!("no end within {} s", LOADING_LIMIT.as_secs()),
    };
    Err(Failure::impossible(ServerError::Tool {
        program: program.to_owned(),
        how,
        said: last_lines(Path::new(&log)),
    }))
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
        let mut tries = port::TRIES;
        loop {
            tries -= 1;
            let endpoint = match tcp {
                Some(wanted) => {
                    let port = port::choose(wanted).map_err(Failure::impossible)?;
                    Endpoint::Tcp(port.to_string())
                }
                None => Endpoint::Unix,
            };
            let mut line = server_line(site, &endpoint, connections);
            finish(&mut line);
            let failure = match Self::spawn(site, &line, endpoint, interrupt) {
                Ok(server) => return Ok(server),
                Err(failure) => failure,
            };
            let taken = port::is_lost(&failure.to_string());
            match tcp.flatten() {
                Some(port) if taken => return Err(Failure::impossible(PortError::taken(port))),
                None if taken && tries > 0 => {}
                _ => return Err(failure),
            }
        }
    }

    fn spawn(
        site: &Site,
        line: &CommandLine,
        endpoint: Endpoint,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let log = site.file(SERVER_LOG);
        let files = File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = files.map_err(|error| prepare(site.engine, error))?;
        let [(_, package), _] = site.engine.measured_programs();
        let child = line.spawn(package, out, err).map_err(Failure::impossible)?;
        let mut server = Self {
            child,
            endpoint,
            engine: site.engine,
            log,
        };
        server.wait_until_ready(interrupt)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let [(server, _), _] = self.engine.measured_programs();
        let began = Instant::now();
        while began.elapsed() < READY_LIMIT {
            let log = fs::read(&self.log).unwrap_or_default();
            if String::from_utf8_lossy(&log).contains(self.engine.ready_words()) {
                return Ok(());
            }
            match self
                .child
                .wait(READY_PAUSE, interrupt)
                .map_err(Failure::impossible)?
            {
                Waited::TimeOver => {}
                Waited::Interrupted => return Err(Failure::Interrupted),
                Waited::Ended(_) => {
                    let said = last_lines(Path::new(&self.log));
                    return Err(Failure::impossible(ServerError::Died { server, said }));
                }
            }
        }
        Err(Failure::run(format!(
            "{server} was not ready after {} s; it said: {}",
            READY_LIMIT.as_secs(),
            last_lines(Path::new(&self.log))
        )))
    }

    /// What it said last, when it has ended.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        let [(server, _), _] = self.engine.measured_programs();
        match self.child.wait(Duration::ZERO, &Interrupt::never()) {
            Ok(Waited::Ended(ended)) => {
                let said = last_lines(Path::new(&self.log));
                Some(format!("{server} died ({}); it said: {said}", ended.status))
            }
            Ok(Waited::TimeOver | Waited::Interrupted) | Err(_) => None,
        }
    }

    /// Ends it and waits for its end.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        self.child.stop().map(|_| ())
    }
}
