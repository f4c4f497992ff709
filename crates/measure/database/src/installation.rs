//! [`Installation`]: the programs, folder and account of one private server.
//!
//! All files are in one folder that the server's account owns: `data`, the socket, logs, and the
//! files of a load generator. Dry runs use the same command lines with placeholders for paths.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::Duration;

use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::workload::Failure;
use saiga_hosts::SERVER;
use saiga_process::account::Account;
use saiga_process::child::CommandLine;
use saiga_process::interrupt::Interrupt;

use crate::engine::{Engine, Program};
use crate::programs::Programs;
use crate::server::ServerError;
use crate::{mariadb, postgres};

/// Timeout of `test`, which takes milliseconds.
const TEST_LIMIT: Duration = Duration::from_secs(10);
/// Timeout for creating and loading data, which takes seconds.
const TOOL_LIMIT: Duration = Duration::from_secs(120);
const TOOL_LOG: &str = "tool.log";
/// Name of the file with SQL for the first start of MariaDB.
const INIT_FILE: &str = "init.sql";
/// The address of servers on this host.
pub(crate) const LOOPBACK: &str = "127.0.0.1";
/// Minimum size of the buffer pool for loaded data.
const MIN_POOL_MIB: u32 = 256;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A port of 127.0.0.1, or a placeholder for it.
    Tcp(String),
    /// A port of the server's host ([`SERVER`]).
    Remote(String),
    /// A Unix socket in the folder of the installation.
    Unix,
}

impl Endpoint {
    /// The usual port of `engine` on the server's host.
    #[must_use]
    pub fn remote(engine: Engine) -> Self {
        Self::Remote(engine.port().to_string())
    }

    /// Address and port; `None` for a Unix socket.
    #[must_use]
    pub fn tcp(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Tcp(port) => Some((LOOPBACK, port.as_str())),
            Self::Remote(port) => Some((SERVER, port.as_str())),
            Self::Unix => None,
        }
    }
}

/// The sizes that depend on the load of a server.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Maximum number of connections of the load; the server permits a few more.
    pub connections: u32,
    pub(crate) pool_mib: u32,
    /// Size of MariaDB's redo log.
    pub(crate) log_mib: u32,
}

/// The programs, folder and account of a server.
#[derive(Debug, Clone)]
pub struct Installation {
    pub engine: Engine,
    pub dir: String,
    /// The account of server and client; `None` for that of this process.
    pub account: Option<Account>,
    programs: Programs,
}

impl Sizes {
    /// For tables of a few MiB.
    #[must_use]
    pub fn small(engine: Engine, connections: u32) -> Self {
        Self {
            connections,
            pool_mib: match engine {
                Engine::MariaDb => 128,
                Engine::Postgres => 256,
            },
            log_mib: 16,
        }
    }

    /// For `data_mib` of data, all of which fit into the buffer pool.
    #[must_use]
    pub fn of_data(data_mib: u32, connections: u32) -> Self {
        Self {
            connections,
            pool_mib: data_mib.max(MIN_POOL_MIB),
            log_mib: 256,
        }
    }
}

impl Installation {
    /// Describes an installation in `dir`, which [`create`](Self::create) creates. A program that
    /// is not among `programs` is searched in `PATH`.
    #[must_use]
    pub fn new(engine: Engine, dir: String, programs: Programs) -> Self {
        Self {
            engine,
            dir,
            account: Account::instead_of_root(&[engine.user()]),
            programs,
        }
    }

    /// The path of a file in the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    /// Creates the folder and an empty data directory. The first start of MariaDB adds a database
    /// and users without password, all called `name`; PostgreSQL has those of its administrator.
    /// Clients of this host and of the client's host are admitted, by their addresses.
    ///
    /// # Errors
    /// Fails if the folder exists, the server's user cannot use it, or the installer fails.
    pub fn create(&self, name: &str, interrupt: &Interrupt) -> Result<(), Failure> {
        fs::create_dir(&self.dir)
            .and_then(|()| fs::set_permissions(&self.dir, PermissionsExt::from_mode(0o700)))
            .and_then(|()| self.give_to_account(Path::new(&self.dir)))
            .map_err(|error| self.unprepared(error))?;
        self.check_account(interrupt)?;
        let args = match self.engine {
            Engine::MariaDb => {
                self.write(INIT_FILE, &mariadb::first_sql(name))?;
                mariadb::initialise(self)
            }
            Engine::Postgres => postgres::initialise(self),
        };
        let installer = self.engine.installer();
        self.run(installer, &self.line(installer.0, args), interrupt)?;
        if self.engine == Engine::Postgres {
            postgres::admit_client(self).map_err(|error| self.unprepared(error))?;
        }
        Ok(())
    }

    /// Writes a file that the server's account owns.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.file(name);
        fs::write(&path, text)
            .and_then(|()| self.give_to_account(Path::new(&path)))
            .map_err(|error| self.unprepared(error))
    }

    /// Runs a program to its end. After a failure, no run is possible.
    ///
    /// # Errors
    /// Fails with the program's output, after an interrupt, or if the program cannot be started.
    pub fn run(
        &self,
        (program, package): Program,
        line: &CommandLine,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let log = self.file(TOOL_LOG);
        let done = tool::run(line, package, Path::new(&log), TOOL_LIMIT, interrupt)?;
        done.map_err(|Unsuccessful { status, output }| {
            Failure::impossible(ServerError::Tool {
                program: program.to_owned(),
                status,
                output,
            })
        })
    }

    /// Whether `test FLAG PATH` succeeds for the account.
    ///
    /// # Errors
    /// Fails after an interrupt, or if `test` cannot be started.
    pub fn passes_test(
        &self,
        flag: &str,
        path: &Path,
        interrupt: &Interrupt,
    ) -> Result<bool, Failure> {
        let line = self.line("test", [flag, &path.display().to_string()]);
        let log = Path::new("/dev/null");
        Ok(tool::run(&line, "coreutils", log, TEST_LIMIT, interrupt)?.is_ok())
    }

    /// The command line of a program of this installation, with its account.
    pub fn line<A: Into<String>>(
        &self,
        program: &'static str,
        args: impl IntoIterator<Item = A>,
    ) -> CommandLine {
        let path = self.programs.get(program);
        let path = path.map(|path| path.display().to_string());
        CommandLine {
            account: self.account.clone(),
            ..CommandLine::new(path.as_deref().unwrap_or(program), args)
        }
    }

    /// The command line of the server without CPUs and environment.
    #[must_use]
    pub fn server_line(&self, endpoint: &Endpoint, sizes: &Sizes) -> CommandLine {
        let args = match self.engine {
            Engine::MariaDb => mariadb::server(self, endpoint, sizes),
            Engine::Postgres => postgres::server(self, endpoint, sizes),
        };
        CommandLine {
            stop_signals: self.engine.stop_signals(),
            ..self.line(self.engine.server().0, args)
        }
    }

    /// The command line of the first start.
    pub(crate) fn first_line(&self, endpoint: &Endpoint, sizes: &Sizes) -> CommandLine {
        let mut line = self.server_line(endpoint, sizes);
        if self.engine == Engine::MariaDb {
            line.args
                .push(format!("--init-file={}", self.file(INIT_FILE)));
        }
        line
    }

    fn give_to_account(&self, path: &Path) -> io::Result<()> {
        match &self.account {
            Some(account) => chown(path, Some(account.uid), Some(account.gid)),
            None => Ok(()),
        }
    }

    /// Checks that there is an unprivileged account, and that it can write into the folder.
    fn check_account(&self, interrupt: &Interrupt) -> Result<(), Failure> {
        let (server, _) = self.engine.server();
        let error = match &self.account {
            None if !Account::is_root() => return Ok(()),
            None => ServerError::Root {
                server,
                user: self.engine.user(),
            },
            Some(_) if self.passes_test("-w", Path::new(&self.dir), interrupt)? => return Ok(()),
            Some(account) => ServerError::Closed {
                user: account.name.clone(),
                server,
                dir: self.dir.clone(),
            },
        };
        Err(Failure::impossible(error))
    }

    fn unprepared(&self, error: io::Error) -> Failure {
        let (server, _) = self.engine.server();
        Failure::impossible(ServerError::Prepare { server, error })
    }
}
