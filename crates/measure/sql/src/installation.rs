//! [`Installation`]: the programs, files and account of one database system.
//!
//! All files are in one folder that the server's account owns: `data`, the socket, logs, and the
//! files of the load generator. Dry runs use the same command lines with placeholders for paths.

use std::path::Path;
use std::time::Duration;

use saiga_experiment::account::Account;
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::CommandLine;
use saiga_experiment::tool;
use saiga_experiment::workload::Failure;

use crate::engine::Engine;
use crate::programs::Programs;

/// Time-out of `test`, which takes milliseconds.
const TEST_LIMIT: Duration = Duration::from_secs(10);

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A port of 127.0.0.1.
    Tcp(String),
    /// A Unix socket in the folder of the installation.
    Unix,
}

/// The programs, folder and account of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) engine: Engine,
    pub(crate) dir: String,
    /// The account of server and client; `None` for that of this process.
    pub(crate) account: Option<Account>,
    programs: Programs,
}

impl Installation {
    pub(crate) fn new(engine: Engine, dir: String, programs: Programs) -> Self {
        Self {
            engine,
            dir,
            account: Account::instead_of_root(&[engine.user()]),
            programs,
        }
    }

    /// An installation for dry runs, with bare program names and the placeholder `{dir}`.
    pub(crate) fn described(engine: Engine) -> Self {
        Self::new(engine, "{dir}".to_owned(), Programs::new())
    }

    /// The path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    /// Whether `test FLAG PATH` succeeds for the account.
    pub(crate) fn passes_test(
        &self,
        flag: &str,
        path: &str,
        interrupt: &Interrupt,
    ) -> Result<bool, Failure> {
        let line = self.line("test", [flag, path]);
        let log = Path::new("/dev/null");
        Ok(tool::run(&line, "coreutils", log, TEST_LIMIT, interrupt)?.is_ok())
    }

    /// The command line of a program of this engine, with its account.
    pub(crate) fn line<A: Into<String>>(
        &self,
        program: &'static str,
        args: impl IntoIterator<Item = A>,
    ) -> CommandLine {
        let path = self
            .programs
            .get(program)
            .map(|path| path.display().to_string());
        CommandLine {
            account: self.account.clone(),
            ..CommandLine::new(path.as_deref().unwrap_or(program), args)
        }
    }
}
