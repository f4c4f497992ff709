//! Where the programs and the files of one database system are.
//!
//! All files are in one folder that belongs to the server's account: `data`, the socket,
//! logs, and what the load generator writes. The same lines are made for a dry run, with
//! placeholders in place of paths.

use std::path::Path;
use std::time::Duration;

use saiga_experiment::account::Account;
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::CommandLine;
use saiga_experiment::tool;
use saiga_experiment::workload::Failure;

use crate::engine::Engine;
use crate::programs::Programs;

/// `test` takes milliseconds.
const TEST_LIMIT: Duration = Duration::from_secs(10);

/// Where one private server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A port on 127.0.0.1.
    Tcp(String),
    /// A socket in the site's folder.
    Unix,
}

/// The place of one engine.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) dir: String,
    /// As whom everything runs; `None` for us.
    pub(crate) account: Option<Account>,
    programs: Programs,
}

impl Site {
    pub(crate) fn new(engine: Engine, dir: String, programs: Programs) -> Self {
        Self {
            engine,
            dir,
            account: Account::instead_of_root(&[engine.user()]),
            programs,
        }
    }

    /// For people: programs by their bare names, `{dir}` for the folder.
    pub(crate) fn described(engine: Engine) -> Self {
        Self::new(engine, "{dir}".to_owned(), Programs::new())
    }

    /// A file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    /// Whether the account passes `test FLAG PATH`.
    pub(crate) fn may(
        &self,
        flag: &str,
        path: &str,
        interrupt: &Interrupt,
    ) -> Result<bool, Failure> {
        let line = self.line("test", [flag, path]);
        let log = Path::new("/dev/null");
        Ok(tool::run(&line, "coreutils", log, TEST_LIMIT, interrupt)?.is_ok())
    }

    /// A program of this engine with its account.
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
