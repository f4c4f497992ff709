//! [`Engine`]: the database systems and their programs, packages and users.

/// A database system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// `mariadbd`, with one thread per connection. sysbench generates the load.
    MariaDb,
    /// `postgres`, with one process per connection. pgbench generates the load.
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

    /// Server and load generator, each with its Debian package.
    pub(crate) fn measured_programs(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::MariaDb => [("mariadbd", "mariadb-server"), ("sysbench", "sysbench")],
            Self::Postgres => [("postgres", "postgresql"), ("pgbench", "postgresql")],
        }
    }

    /// The program that creates an empty data directory, with its Debian package.
    pub(crate) fn installer(self) -> (&'static str, &'static str) {
        match self {
            Self::MariaDb => ("mariadb-install-db", "mariadb-server"),
            Self::Postgres => ("initdb", "postgresql"),
        }
    }

    /// The user that the Debian package creates for the server.
    pub(crate) fn user(self) -> &'static str {
        match self {
            Self::MariaDb => "mysql",
            Self::Postgres => "postgres",
        }
    }

    /// The text that the server logs when it begins to accept connections.
    pub(crate) fn ready_text(self) -> &'static str {
        match self {
            Self::MariaDb => "ready for connections",
            Self::Postgres => "ready to accept connections",
        }
    }
}
