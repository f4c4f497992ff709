//! [`PrivateServer`]: prepares a server for TPC-C.
//!
//! Creates an empty data directory and returns the server's command line. The caller loads the
//! data, starts the server as often as needed, and removes the folder. The server runs as an
//! unprivileged user, and no operation waits for a disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::{CommandLine, Signal, SpawnError, Waited};
use saiga_experiment::workload::Failure;

use crate::engine::Engine;
use crate::installation::{Endpoint, Installation};
use crate::server::{self, Server, ServerError};
use crate::{mariadb, programs};

/// Time-out for the end of a server, which writes its data first.
const END_LIMIT: Duration = Duration::from_secs(120);
/// Minimum size of the buffer pool.
const MIN_POOL_MIB: u32 = 256;

/// The installation and sizes of a private server.
#[derive(Debug)]
pub struct PrivateServer {
    installation: Installation,
    connections: u32,
    pool_mib: u32,
}

/// A running private server whose data are being loaded.
#[derive(Debug)]
pub struct LoadingServer {
    engine: Engine,
    server: Server,
}

impl PrivateServer {
    /// Finds the programs of a server in `dir`, which [`create`](Self::create) creates.
    /// `connections` and `data_mib` set its maximum number of connections and the size of its
    /// buffer pool.
    ///
    /// # Errors
    /// Fails if a program is not installed.
    pub fn find(
        engine: Engine,
        dir: &Path,
        connections: u32,
        data_mib: u32,
    ) -> Result<Self, SpawnError> {
        let found = programs::find_server(engine)?;
        Ok(Self::with(engine, dir, found, connections, data_mib))
    }

    /// [`find`](Self::find) for dry runs; the programs need not be installed.
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
            installation: Installation::new(engine, dir.display().to_string(), found),
            connections,
            pool_mib: data_mib.max(MIN_POOL_MIB),
        }
    }

    /// Creates the folder and an empty data directory. `sql` is executed when MariaDB starts for
    /// the first time.
    pub fn create(&self, sql: &str, interrupt: &Interrupt) -> Result<(), Failure> {
        server::install(&self.installation, sql, interrupt)
    }

    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.installation.file("data").into()
    }

    /// The user of the server; `None` for that of this process.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        let account = self.installation.account.as_ref();
        account.map(|account| account.name.as_str())
    }

    /// Whether `test FLAG PATH` succeeds for the server's user.
    ///
    /// # Errors
    /// Fails after an interrupt, or if `test` cannot be started.
    pub fn passes_test(
        &self,
        flag: &str,
        path: &Path,
        interrupt: &Interrupt,
    ) -> Result<bool, Failure> {
        self.installation
            .passes_test(flag, &path.display().to_string(), interrupt)
    }

    /// Program and arguments of the server on a port of 127.0.0.1.
    #[must_use]
    pub fn command(&self, port: u16) -> Vec<String> {
        let CommandLine { program, args, .. } = self.line(port);
        [program].into_iter().chain(args).collect()
    }

    fn line(&self, port: u16) -> CommandLine {
        let endpoint = Endpoint::Tcp(port.to_string());
        let mut line = server::server_line(&self.installation, &endpoint, self.connections);
        let pool = self.pool_mib;
        // These settings are larger than for the tables of sysbench and pgbench.
        let larger = match self.installation.engine {
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

    /// Starts the server so that its data can be loaded.
    pub fn start(&self, port: u16, interrupt: &Interrupt) -> Result<LoadingServer, Failure> {
        let mut line = self.line(port);
        if self.installation.engine == Engine::MariaDb {
            let init = self.installation.file(server::INIT_FILE);
            line.args.push(format!("--init-file={init}"));
        }
        let endpoint = Endpoint::Tcp(port.to_string());
        let server = Server::spawn(&self.installation, &line, endpoint, interrupt);
        Ok(LoadingServer {
            engine: self.installation.engine,
            server: server.map_err(server::as_impossible)?,
        })
    }
}

impl LoadingServer {
    /// Stops the server in order, so that all data are written.
    ///
    /// # Errors
    /// Fails if the server does not end in order.
    pub fn stop(mut self) -> Result<(), Failure> {
        let child = &mut self.server.process.child;
        child.signal(match self.engine {
            Engine::MariaDb => Signal::TERM,
            Engine::Postgres => Signal::INT,
        });
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

/// SQL for the first start of MariaDB for TPC-C; PostgreSQL needs none, because its administrator
/// has a database.
pub const TPCC_SQL: &str = mariadb::TPCC_SQL;
