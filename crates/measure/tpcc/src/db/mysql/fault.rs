//! Errors of a session, and the meaning of the server's error numbers.
//!
//! Sources: MySQL's "Server Error Message Reference" and MariaDB's `errmsg-utf8.txt`.

use std::io;

use super::parts::Parts;
use crate::db::stream::is_timeout;
use crate::db::{SqlError, beginning};

/// The reason why a command failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server answered with an error.
    Server(ServerError),
    /// The connection broke, or no answer came in time.
    Io(io::Error),
    /// The server closed the connection.
    Closed,
    /// The answer does not follow the protocol. The text describes the answer.
    Answer(&'static str),
    /// The statement does not fit into a packet of 16 MiB.
    TooLong {
        /// Length of the packet in bytes.
        length: usize,
    },
}

/// An error packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerError {
    pub(super) code: u16,
    /// SQLSTATE; empty before the log-in.
    pub(super) state: String,
    pub(super) message: String,
}

impl Fault {
    /// Converts an error packet.
    pub(super) fn of_error(payload: &[u8]) -> Self {
        ServerError::parse(payload).map_or(Self::Answer("an error without a number"), Self::Server)
    }

    /// Whether the session is unusable after this error.
    pub(super) fn ends_session(&self) -> bool {
        match self {
            Self::Server(error) => error.kind() == Kind::Lost,
            Self::Io(_) | Self::Closed | Self::Answer(_) => true,
            Self::TooLong { .. } => false,
        }
    }

    /// Converts the error for the caller of a session at `address`; `sql` is the failed statement.
    pub(super) fn into_sql_error(self, address: &str, sql: &str) -> SqlError {
        match self {
            Self::Server(error) => error.into_sql_error(sql),
            Self::TooLong { length } => SqlError::Unexpected {
                what: format!(
                    "a statement of {length} bytes is too long: {}",
                    beginning(sql)
                ),
            },
            Self::Io(_) | Self::Closed | Self::Answer(_) => SqlError::Lost {
                said: format!("{address}: {self}"),
            },
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Io(error) if is_timeout(error) => {
                f.write_str("no answer in time; is socketTimeout too short, or the server stuck?")
            }
            Self::Io(error) => error.fmt(f),
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Answer(what) => write!(f, "the server sent {what}; is it MySQL or MariaDB?"),
            Self::TooLong { length } => write!(f, "{length} bytes do not fit into a packet"),
        }
    }
}

/// The effect of an error on the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Conflict,
    Lost,
    Refused,
}

impl ServerError {
    /// Parses `0xff`, the number, `#` with five characters of SQLSTATE, and the message. SQLSTATE
    /// is absent before the log-in.
    fn parse(payload: &[u8]) -> Option<Self> {
        let mut parts = Parts(payload.get(1..)?);
        let code = parts.u16()?;
        let text = String::from_utf8_lossy(parts.0);
        let (state, message) = match text
            .strip_prefix('#')
            .and_then(|text| text.split_at_checked(5))
        {
            Some((state, message)) => (state.to_owned(), message.to_owned()),
            None => (String::new(), text.into_owned()),
        };
        Some(Self {
            code,
            state,
            message,
        })
    }

    fn kind(&self) -> Kind {
        match self.code {
            // Deadlock or failed certification in Galera; lock wait timeout; MariaDB's snapshot
            // isolation; a Galera node that is not ready; XA; group replication; NOWAIT.
            1213 | 1205 | 1020 | 1047 | 1402 | 1613 | 1614 | 3101 | 3572 => Kind::Conflict,
            // Shutdown (1053, 1077 to 1079), network errors and aborted connections, errors of the
            // client library, killed connections in MariaDB and MySQL, idle timeout.
            1053 | 1077..=1079 | 1152..=1161 | 1184 | 1927 | 2006 | 2013 | 3169 | 4031 => {
                Kind::Lost
            }
            _ if self.state == "40001" => Kind::Conflict,
            _ if self.state.starts_with("08") => Kind::Lost,
            _ => Kind::Refused,
        }
    }

    fn into_sql_error(self, sql: &str) -> SqlError {
        let said = self.with_way_out();
        match self.kind() {
            Kind::Conflict => SqlError::Conflict { said },
            Kind::Lost => SqlError::Lost { said },
            Kind::Refused => SqlError::Refused {
                code: self.code.to_string(),
                said,
                sql: beginning(sql),
            },
        }
    }

    /// The server's message, followed by a hint if the message does not contain one.
    pub(super) fn with_way_out(&self) -> String {
        let way_out = match self.code {
            1021 | 1026 | 1114 => "; has the disk of the server's data room?",
            1040 => "; raise max_connections on the server, or lower terminals= or loadWorkers=",
            1129 => "; run FLUSH HOSTS on the server",
            1130 => "; create the user for this host: CREATE USER ...@'%'",
            1142..=1143 | 1370 => "; GRANT it to the user of user=",
            1153 => "; raise max_allowed_packet on the server",
            1203 | 1226 => "; raise the user's limit, or lower terminals= or loadWorkers=",
            1290 | 1836 => "; the server takes no changes: is it a replica?",
            1461 => {
                "; raise max_prepared_stmt_count on the server, or remove useServerPrepStmts from conn="
            }
            1820 | 1862 => "; set a new password: ALTER USER ... IDENTIFIED BY ...",
            _ => return self.to_string(),
        };
        let said = self.to_string();
        format!("{}{way_out}", said.trim_end_matches('.'))
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ERROR {}", self.code)?;
        if !self.state.is_empty() {
            write!(f, " ({})", self.state)?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16, state: &str) -> ServerError {
        ServerError {
            code,
            state: state.to_owned(),
            message: "said".to_owned(),
        }
    }

    #[test]
    fn numbers_have_their_meaning() {
        for (code, state, kind) in [
            (1213, "40001", Kind::Conflict),
            (1205, "HY000", Kind::Conflict),
            (1020, "HY000", Kind::Conflict),
            (1047, "08S01", Kind::Conflict),
            (9999, "40001", Kind::Conflict),
            (1053, "08S01", Kind::Lost),
            (1927, "70100", Kind::Lost),
            (4031, "HY000", Kind::Lost),
            (1062, "23000", Kind::Refused),
            (1146, "42S02", Kind::Refused),
            (1317, "70100", Kind::Refused),
        ] {
            assert_eq!(error(code, state).kind(), kind, "{code}");
        }
    }

    #[test]
    fn packets_are_read_with_and_without_sqlstate() {
        let parse = |payload: &[u8]| ServerError::parse(payload).map(|error| error.to_string());
        assert_eq!(
            parse(b"\xff\xbd\x04#40001Deadlock found").as_deref(),
            Some("ERROR 1213 (40001): Deadlock found")
        );
        assert_eq!(
            parse(b"\xff\x10\x04Too many connections").as_deref(),
            Some("ERROR 1040: Too many connections")
        );
        assert_eq!((parse(b"\xff\x10"), parse(b"")), (None, None));
    }

    #[test]
    fn the_error_says_what_failed_and_what_to_do() {
        let said = error(1461, "42000")
            .into_sql_error("select  1\n from t")
            .to_string();
        assert!(said.contains("raise max_prepared_stmt_count"), "{said}");
        assert!(said.ends_with("(in: select 1 from t)"), "{said}");
        let long = beginning(&"\u{e4}".repeat(101));
        assert_eq!(long, format!("{} ...", "\u{e4}".repeat(100)));
    }
}
