//! Where the programs and the files of one database system are.
//!
//! All files are in one folder that belongs to the server's account: `data`, the socket,
//! logs, and what the load generator writes. The same lines are made for a dry run, with
//! placeholders in place of paths.

use saiga_experiment::account::Account;
use saiga_experiment::process::CommandLine;

use crate::engine::Engine;
use crate::programs::Programs;

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
