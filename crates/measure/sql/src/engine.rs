//! The two database systems, and what they need of a machine.

/// A database system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// `mariadbd`, a thread per connection; sysbench as load.
    MariaDb,
    /// `postgres`, a process per connection; pgbench as load.
    Postgres,
}

impl Engine {
    /// Both.
    pub const ALL: [Self; 2] = [Self::MariaDb, Self::Postgres];

    /// As on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::Postgres => "postgres",
        }
    }

    /// The server, then the load generator: each program with its Debian package.
    pub(crate) fn measured_programs(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::MariaDb => [("mariadbd", "mariadb-server"), ("sysbench", "sysbench")],
            Self::Postgres => [("postgres", "postgresql"), ("pgbench", "postgresql")],
        }
    }

    /// What makes an empty data directory, with its Debian package.
    pub(crate) fn installer(self) -> (&'static str, &'static str) {
        match self {
            Self::MariaDb => ("mariadb-install-db", "mariadb-server"),
            Self::Postgres => ("initdb", "postgresql"),
        }
    }

    /// The user that its package makes for it.
    pub(crate) fn user(self) -> &'static str {
        match self {
            Self::MariaDb => "mysql",
            Self::Postgres => "postgres",
        }
    }

    /// What its log says when it takes connections.
    pub(crate) fn ready_words(self) -> &'static str {
        match self {
            Self::MariaDb => "ready for connections",
            Self::Postgres => "ready to accept connections",
        }
    }
}
