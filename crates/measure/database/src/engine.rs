//! [`Engine`]: the database systems and their programs, packages and users.

use saiga_process::child::{Signal, StopSignals};

/// A program and its Debian package.
pub type Program = (&'static str, &'static str);

/// A database system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// `mariadbd`, with one thread per connection.
    MariaDb,
    /// `postgres`, with one process per connection.
    Postgres,
}

impl Engine {
    pub const ALL: [Self; 2] = [Self::MariaDb, Self::Postgres];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::Postgres => "postgres",
        }
    }

    #[must_use]
    pub fn server(self) -> Program {
        match self {
            Self::MariaDb => ("mariadbd", "mariadb-server"),
            Self::Postgres => ("postgres", "postgresql"),
        }
    }

    /// The usual port, for a server on a host of its own.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::MariaDb => 3306,
            Self::Postgres => 5432,
        }
    }

    /// The program that creates an empty data directory.
    #[must_use]
    pub fn installer(self) -> Program {
        match self {
            Self::MariaDb => ("mariadb-install-db", "mariadb-server"),
            Self::Postgres => ("initdb", "postgresql"),
        }
    }

    /// The user that the Debian package creates for the server.
    #[must_use]
    pub fn user(self) -> &'static str {
        match self {
            Self::MariaDb => "mysql",
            Self::Postgres => "postgres",
        }
    }

    /// The text that the server logs when it begins to accept connections.
    #[must_use]
    pub fn ready_text(self) -> &'static str {
        match self {
            Self::MariaDb => "ready for connections",
            Self::Postgres => "ready to accept connections",
        }
    }

    /// SIGINT requests a fast shutdown of PostgreSQL; SIGQUIT an immediate shutdown, in which the
    /// server still ends its children and removes its shared memory.
    pub(crate) fn stop_signals(self) -> StopSignals {
        match self {
            Self::MariaDb => StopSignals::default(),
            Self::Postgres => StopSignals {
                ask: Signal::INT,
                force: Signal::QUIT,
            },
        }
    }
}
