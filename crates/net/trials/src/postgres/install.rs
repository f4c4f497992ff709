//! The programs of the PostgreSQL installation, and their accounts.

use std::{
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use saiga_database::Engine;
use saiga_process::account;

/// The account under which a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// The account of the tests.
    Ours,
    /// The account of the server: another one if the tests run as root, because postgres refuses
    /// root.
    Server,
}

/// Path of the program `name` beside the server. Debian's `psql` in PATH is a script.
///
/// # Panics
/// If PostgreSQL is not installed.
pub(super) fn program(name: &str) -> PathBuf {
    let found = saiga_database::find(Engine::Postgres, &[]);
    let server = &found.unwrap_or_else(|error| panic!("{error}"))["postgres"];
    // A link in PATH, for instance in /usr/local/bin, has no clients beside it.
    let server = server.canonicalize().expect("the server exists");
    server.with_file_name(name)
}

impl Account {
    /// The account of the server, if it is not ours.
    fn other(self) -> Option<account::Account> {
        match self {
            Self::Ours => None,
            Self::Server => account::Account::instead_of_root(&[Engine::Postgres.user()]),
        }
    }

    /// Makes `command` run under this account.
    pub(super) fn take_on(self, command: &mut Command) {
        if let Some(other) = self.other() {
            command.uid(other.uid).gid(other.gid);
        }
    }

    /// Gives `path` to this account.
    ///
    /// # Panics
    /// If that is not permitted.
    pub fn own(self, path: &Path) {
        if let Some(other) = self.other() {
            chown(path, Some(other.uid), Some(other.gid))
                .unwrap_or_else(|error| panic!("cannot give {} away: {error}", path.display()));
        }
    }
}
