//! Product and version of the server.

use super::Postgres;
use crate::db::rows::Rows;
use crate::db::{ConnectError, Server, SqlError};
use crate::props::Engine;

/// Asks the server for its version and the isolation level.
pub(super) fn ask(
    session: &mut Postgres,
    dialect: Engine,
    address: &str,
) -> Result<Server, ConnectError> {
    let mut rows = Rows::new();
    let sql = "select version(), current_setting('transaction_isolation')";
    let answer = session.simple(sql, &mut rows);
    let answer = answer.and_then(|_| Ok((of(rows.text(0, 0)?), rows.text(0, 1)?.to_owned())));
    let address = address.to_owned();
    match answer {
        Ok(((engine, version), isolation)) => Ok(Server {
            engine,
            version,
            isolation,
        }),
        Err(SqlError::Lost { said }) => Err(ConnectError::Unreachable {
            engine: dialect,
            address,
            error: std::io::Error::other(said),
        }),
        Err(error) => Err(ConnectError::Refused {
            engine: dialect,
            address,
            said: error.to_string(),
            for_now: false,
        }),
    }
}

/// Parses the result of `version()`. `PostgreSQL 15.8 (Debian 15.8-0) on x86_64` is PostgreSQL.
/// openGauss and products based on it have their name and build in brackets: `(openGauss 5.0.1
/// build 33b035fd) compiled at`.
fn of(said: &str) -> (Engine, String) {
    let bracket = said
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    if let Some((name, _)) = bracket.and_then(|(inside, _)| inside.split_once(" build ")) {
        return (Engine::OpenGauss, name.to_owned());
    }
    let words: Vec<&str> = said.split_whitespace().take(2).collect();
    (
        Engine::Postgres,
        words.join(" ").trim_end_matches(',').to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_known_by_their_own_words() {
        let parts = |said| {
            let (engine, version) = of(said);
            format!("{engine}: {version}")
        };
        for (said, known) in [
            (
                "PostgreSQL 15.8 (Debian 15.8-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
                "postgres: PostgreSQL 15.8",
            ),
            (
                "PostgreSQL 17.2, compiled by Visual C++",
                "postgres: PostgreSQL 17.2",
            ),
            (
                "(openGauss 5.0.1 build 33b035fd) compiled at 2023-12-15 20:28:19 commit 0",
                "opengauss: openGauss 5.0.1",
            ),
            (
                "PostgreSQL 9.2.4 (openGauss 2.0.0 build 78689da9) compiled at 2021-03-31",
                "opengauss: openGauss 2.0.0",
            ),
            (
                "(openGauss-lite 5.0.0 build a07d57c3) compiled at 2023-03-29",
                "opengauss: openGauss-lite 5.0.0",
            ),
            (
                "PostgreSQL 9.2.4 (GaussDB Kernel V500R002C10 build 1a3b5c7d) compiled at",
                "opengauss: GaussDB Kernel V500R002C10",
            ),
            ("", "postgres: "),
        ] {
            assert_eq!(parts(said), known, "{said}");
        }
    }
}
