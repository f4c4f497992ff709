//! Differences between MariaDB and MySQL: programs, options, tables.
//!
//! MariaDB is Debian's. MySQL is in `target/mysql`, where `tools/mysql` puts it, with its own
//! clients; only `make soak` does so.

use std::path::{Path, PathBuf};

use saiga_database::Engine;

use crate::mariadb::Server;

/// The product of a server and its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The installed MariaDB.
    MariaDb,
    /// The MySQL in `target/mysql`.
    MySql,
}

impl Kind {
    /// The server's program.
    pub(super) fn server(self) -> PathBuf {
        match self {
            Self::MariaDb => saiga_database::find(Engine::MariaDb, &[])
                .unwrap_or_else(|error| panic!("{error}"))["mariadbd"]
                .clone(),
            Self::MySql => fetched("mysqld"),
        }
    }

    /// The client that reads statements from stdin.
    pub(super) fn client(self) -> PathBuf {
        match self {
            Self::MariaDb => "mariadb".into(),
            Self::MySql => fetched("mysql"),
        }
    }

    /// The client that repeats one query.
    pub(super) fn slap(self) -> PathBuf {
        match self {
            Self::MariaDb => "mariadb-slap".into(),
            Self::MySql => fetched("mysqlslap"),
        }
    }

    /// Options that its clients need; later options override them.
    pub(super) fn client_options(self) -> &'static [&'static str] {
        match self {
            Self::MariaDb => &[],
            // Its clients would encrypt everything, and without TLS they need the server's key.
            Self::MySql => &["--ssl-mode=DISABLED", "--get-server-public-key"],
        }
    }

    /// Options for the addresses where `server` listens beside its port.
    pub(super) fn listening(self, server: &Server) -> Vec<String> {
        match self {
            Self::MariaDb => vec![format!("--extra-port={}", server.extra_port)],
            Self::MySql => vec![
                "--admin-address=127.0.0.1".to_owned(),
                format!("--admin-port={}", server.extra_port),
                "--mysqlx-bind-address=127.0.0.1".to_owned(),
                format!("--mysqlx-port={}", server.x_port),
                format!("--mysqlx-socket={}", server.data().join("x").display()),
            ],
        }
    }

    /// Options on which the files depend, small for a fast copy and start; and options against
    /// defaults that differ: no deep recursion, a log of changes, Debian's folders.
    pub(super) fn storage(self) -> &'static [&'static str] {
        match self {
            Self::MariaDb => &[
                "--innodb-buffer-pool-size=32M",
                "--innodb-doublewrite=0",
                "--innodb-log-file-size=16M",
                "--max-recursive-iterations=1000000",
            ],
            Self::MySql => &[
                "--innodb-buffer-pool-size=32M",
                "--innodb-doublewrite=0",
                "--innodb-redo-log-capacity=16M",
                "--cte-max-recursion-depth=1000000",
                "--skip-log-bin",
                "--sync-binlog=0",
                "--secure-file-priv=NULL",
            ],
        }
    }

    /// Lines that a server writes when it has started, in any order.
    pub(super) fn ready(self) -> &'static [&'static str] {
        match self {
            Self::MariaDb => &["ready for connections"],
            Self::MySql => &[
                "mysqld: ready for connections",
                "Admin interface ready for connections",
                "X Plugin ready for connections",
            ],
        }
    }

    /// The query for the server's counter `name`. Not for counters of statements, which MySQL does
    /// not keep in its tables ([`Server::count`] finds them).
    pub fn counter(self, name: &str) -> String {
        let schema = match self {
            Self::MariaDb => "information_schema",
            Self::MySql => "performance_schema",
        };
        format!("SELECT VARIABLE_VALUE FROM {schema}.global_status WHERE VARIABLE_NAME = '{name}'")
    }
}

/// Path of a program in `target/mysql`.
fn fetched(name: &str) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = crate_folder.ancestors().nth(3).expect("crates/net/trials");
    let program = repository.join("target/mysql").join(name);
    assert!(
        program.is_file(),
        "{} is missing; tools/mysql target/mysql",
        program.display()
    );
    program
}
