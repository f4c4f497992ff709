//! Error messages of the server (`ErrorResponse`), and their meaning for the session.
//!
//! Codes: PostgreSQL's "Error Codes"; openGauss adds class YY.

use super::frame::take_text;
use crate::db::{ConnectError, SqlError, beginning};
use crate::props::Engine;

/// Codes of temporary errors: too many connections, starting up, shutting down.
const FOR_NOW: [&str; 4] = ["53300", "57P01", "57P02", "57P03"];

/// An error of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Failure {
    /// Whether the error ends the connection.
    pub(super) is_fatal: bool,
    /// SQLSTATE.
    pub(super) code: String,
    /// Message, details, hint and code.
    pub(super) said: String,
    /// The server's function that reported the error.
    routine: String,
}

impl Failure {
    /// Parses an `ErrorResponse`. Fields that cannot be parsed are left out.
    pub(super) fn of(mut body: &[u8]) -> Self {
        let mut failure = Self::default();
        let (mut words, mut detail, mut hint) = (String::new(), String::new(), String::new());
        // A zero byte ends the list of fields.
        while let [field, rest @ ..] = body
            && *field != 0
        {
            body = rest;
            let Some(text) = take_text(&mut body) else {
                break;
            };
            let text = String::from_utf8_lossy(text).into_owned();
            match field {
                // `S` is in the server's language, `V` in English.
                b'S' | b'V' => failure.is_fatal |= matches!(text.as_str(), "FATAL" | "PANIC"),
                b'C' => failure.code = text,
                b'M' => words = text,
                b'D' => detail = text,
                b'H' => hint = text,
                b'R' => failure.routine = text,
                _ => {}
            }
        }
        failure.said = words;
        for more in [detail, hint] {
            if !more.is_empty() {
                failure.said.push_str(": ");
                failure.said.push_str(more.trim_end_matches('.'));
            }
        }
        failure
            .said
            .push_str(&format!(" (SQLSTATE {})", failure.code));
        failure
    }

    /// An error of this client: a feature of PostgreSQL that is not supported here.
    pub(super) fn unsupported(what: &str) -> Self {
        let code = "0A000".to_owned();
        Self {
            said: format!("{what} (SQLSTATE {code})"),
            code,
            ..Self::default()
        }
    }

    /// Converts the error for a statement.
    pub(super) fn of_statement(self, sql: &str) -> SqlError {
        let Self { code, said, .. } = self;
        match code.as_str() {
            _ if self.is_fatal || code.starts_with("08") || code.starts_with("57P") => {
                SqlError::Lost {
                    said: format!("{said}{}", way_out(&code)),
                }
            }
            // Serialization failure, deadlock, lock timeout, statement timeout; openGauss's lock
            // wait.
            "40001" | "40P01" | "55P03" | "57014" | "YY003" => SqlError::Conflict { said },
            _ => SqlError::Refused {
                said: format!("{said}{}", way_out(&code)),
                code,
                sql: beginning(sql),
            },
        }
    }

    /// Converts the error for a log-in.
    pub(super) fn of_login(self, place: &Place<'_>) -> ConnectError {
        let address = place.address.to_owned();
        let (engine, said) = (place.engine, self.said);
        match self.code.as_str() {
            // The server checks pg_hba.conf before it requests a password.
            "28000" if self.routine == "ClientAuthentication" || said.contains("pg_hba.conf") => {
                ConnectError::Refused {
                    engine,
                    address,
                    said: format!(
                        "{said}; let it in by a host line in pg_hba.conf (hostssl lines count only with \
                     --tls, or sslmode=require in conn=)"
                    ),
                    for_now: false,
                }
            }
            "28P01" | "28000" => ConnectError::Login {
                engine,
                address,
                user: place.user.to_owned(),
                said,
            },
            "3D000" | "42501" => ConnectError::Database {
                engine,
                address,
                database: place.database.to_owned(),
                said,
            },
            code => ConnectError::Refused {
                engine,
                address,
                for_now: FOR_NOW.contains(&code),
                said: format!("{said}{}", way_out(code)),
            },
        }
    }
}

/// A hint for errors whose message does not contain one.
fn way_out(code: &str) -> &'static str {
    match code {
        "53300" => {
            "; raise max_connections on the server, or the user's limit, or lower terminals= or \
             loadWorkers="
        }
        "42501" => "; GRANT it to the user of user=",
        "53100" => "; has the disk of the server's data room?",
        _ => "",
    }
}

/// The server, user and database of a log-in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) engine: Engine,
    pub(super) address: &'a str,
    pub(super) user: &'a str,
    pub(super) database: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(severity: &str, code: &str) -> Failure {
        Failure::of(format!("S{severity}\0V{severity}\0C{code}\0Mwords\0DDetail.\0\0").as_bytes())
    }

    #[test]
    fn codes_say_what_is_to_be_done() {
        let of = |severity, code| failure(severity, code).of_statement("select 1");
        for code in ["40001", "40P01", "55P03", "57014", "YY003"] {
            assert_eq!(
                of("ERROR", code),
                SqlError::Conflict {
                    said: format!("words: Detail (SQLSTATE {code})")
                }
            );
        }
        for (severity, code) in [
            ("FATAL", "57P01"),
            ("ERROR", "57P03"),
            ("ERROR", "08006"),
            ("FATAL", "25P03"),
            ("PANIC", "XX000"),
            ("FATAL", "40001"),
        ] {
            assert!(
                matches!(of(severity, code), SqlError::Lost { .. }),
                "{code}"
            );
        }
        assert_eq!(
            of("ERROR", "23505").to_string(),
            "words: Detail (SQLSTATE 23505) (in: select 1)"
        );
    }

    #[test]
    fn what_is_cut_off_says_what_it_can() {
        assert_eq!(Failure::of(b"").said, " (SQLSTATE )");
        let cut = Failure::of(b"SFATAL\0C57P01\0Mgoing");
        assert_eq!((cut.is_fatal, cut.code.as_str()), (true, "57P01"));
        assert_eq!(cut.said, " (SQLSTATE 57P01)");
    }

    #[test]
    fn a_log_in_fails_for_what_its_code_says() {
        let place = Place {
            engine: Engine::Postgres,
            address: "h:1",
            user: "me",
            database: "tpcc",
        };
        let of = |code| failure("FATAL", code).of_login(&place);
        assert!(matches!(of("28P01"), ConnectError::Login { .. }));
        assert!(matches!(of("28000"), ConnectError::Login { .. }));
        assert!(matches!(of("3D000"), ConnectError::Database { .. }));
        assert!(matches!(of("42501"), ConnectError::Database { .. }));
        for code in FOR_NOW {
            assert!(matches!(
                of(code),
                ConnectError::Refused { for_now: true, .. }
            ));
        }
        assert!(of("53300").to_string().contains("; raise max_connections"));
        assert!(matches!(
            of("0A000"),
            ConnectError::Refused { for_now: false, .. }
        ));
    }
}
