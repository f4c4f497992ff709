//! A private server for another load than ours: its empty data made, its command line told.
//!
//! Who asks for one loads its data, starts it as often as it likes, and removes the folder. It runs as
//! an unprivileged user; nothing that it does waits for a disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::{CommandLine, Signal, SpawnError, Waited};
use saiga_experiment::workload::Failure;

use crate::engine::Engine;
use crate::server::{self, Server, ServerError};
use crate::site::{Endpoint, Site};
use crate::{mariadb, programs};

/// What a server writes when it ends takes seconds.
const END_LIMIT: Duration = Duration::from_secs(120);
/// Memory for pages of a small database.
const LEAST_POOL_MIB: u32 = 256;

/// The place of a private server.
#[derive(Debug)]
pub struct Private {
    site: Site,
    connections: u32,
    pool_mib: u32,
}

/// One that was started to be loaded.
#[derive(Debug)]
pub struct Loading {
    engine: Engine,
    server: Server,
}

impl Private {
    /// A server of `engine` in `dir`, which [`create`](Self::create) makes; for so many
    /// connections, and a database of so many MiB.
    ///
    /// # Errors
    /// A program is not installed.
    pub fn find(
        engine: Engine,
        dir: &Path,
        connections: u32,
        data_mib: u32,
    ) -> Result<Self, SpawnError> {
        let found = programs::find_server(engine)?;
        Ok(Self::with(engine, dir, found, connections, data_mib))
    }

    /// The same where the programs may be missing, to say what would run.
    #[must_use]
    pub fn described(engine: Engine, dir: &Path, connections: u32, data_mib: u32) -> Self {
        let found = programs::find_server(engine).unwrap_or_default();
        Self::with(engine, dir, found, connections, data_mib)
    }

    fn with(
        engine: Engine,
        dir: &Path,
        found: programs::Programs,
        connections: u32,
        data_mib: u32,
    ) -> Self {
        Self {
            site: Site::new(engine, dir.display().to_string(), found),
            connections,
            pool_mib: data_mib.max(LEAST_POOL_MIB),
        }
    }

    /// Makes the folder and an empty data directory. `sql` is what a first start of MariaDB runs.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn create(&self, sql: &str, interrupt: &Interrupt) -> Result<(), Failure> {
        server::install(&self.site, sql, interrupt)
    }

    /// Where its data are.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.site.file("data").into()
    }

    /// As whom it runs; `None` for us.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        let account = self.site.account.as_ref();
        account.map(|account| account.name.as_str())
    }

    /// Whether its user may execute a file, or read another.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn may(&self, flag: &str, path: &Path, interrupt: &Interrupt) -> Result<bool, Failure> {
        self.site.may(flag, &path.display().to_string(), interrupt)
    }

    /// Program and arguments, for a port of 127.0.0.1.
    #[must_use]
    pub fn command(&self, port: u16) -> Vec<String> {
        let CommandLine { program, args, .. } = self.line(port);
        [program].into_iter().chain(args).collect()
    }

    fn line(&self, port: u16) -> CommandLine {
        let endpoint = Endpoint::Tcp(port.to_string());
        let mut line = server::server_line(&self.site, &endpoint, self.connections);
        let pool = self.pool_mib;
        // What is larger here than for tables of sysbench and pgbench.
        let larger = match self.site.engine {
            Engine::MariaDb => vec![
                ("--innodb-buffer-pool-size=", format!("{pool}M")),
                ("--innodb-log-file-size=", "256M".to_owned()),
            ],
            Engine::Postgres => vec![("shared_buffers=", format!("{pool}MB"))],
        };
        for (name, value) in larger {
            let own = line.args.iter_mut().find(|arg| arg.starts_with(name));
            own.into_iter()
                .for_each(|arg| *arg = format!("{name}{value}"));
        }
        line
    }

    /// Starts it for its data to be loaded.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn start(&self, port: u16, interrupt: &Interrupt) -> Result<Loading, Failure> {
        let mut line = self.line(port);
        if self.site.engine == Engine::MariaDb {
            let init = self.site.file(server::INIT_FILE);
            line.args.push(format!("--init-file={init}"));
        }
        let endpoint = Endpoint::Tcp(port.to_string());
        let server = Server::spawn(&self.site, &line, endpoint, interrupt);
        Ok(Loading {
            engine: self.site.engine,
            server: server.map_err(server::for_good)?,
        })
    }
}

impl Loading {
    /// Lets it write everything and end.
    ///
    /// # Errors
    /// [`Failure`], when it does not end in order.
    pub fn stop(mut self) -> Result<(), Failure> {
        let child = &mut self.server.process.child;
        child.signal(match self.engine {
            Engine::MariaDb => Signal::TERM,
            Engine::Postgres => Signal::INT,
        });
        match child.wait(END_LIMIT, &Interrupt::never()) {
            Ok(Waited::Ended(ended)) if ended.status.success() => Ok(()),
            Ok(Waited::Ended(ended)) => Err(unclean(&ended.status.to_string())),
            Ok(Waited::TimeOver | Waited::Interrupted) => Err(unclean("no end in time")),
            Err(error) => Err(Failure::impossible(error)),
        }
    }
}

fn unclean(how: &str) -> Failure {
    let said = format!("the private server did not end in order ({how})");
    Failure::impossible(ServerError::Stuck(said))
}

/// What a first start of MariaDB runs for TPC-C; PostgreSQL's administrator has a database.
pub const TPCC_SQL: &str = mariadb::TPCC_SQL;
