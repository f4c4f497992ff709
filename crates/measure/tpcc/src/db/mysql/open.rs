//! Opens a session: connects, logs in and sets the session's variables.

use std::io;
use std::time::Duration;

use super::fault::{Fault, ServerError};
use super::greeting::LoginUser;
use super::link::Link;
use super::login::{self, LoginFault};
use super::wire::Wire;
use crate::db::options::Options;
use crate::db::rows::Rows;
use crate::db::stream::{LOGIN_LIMIT, Stream, is_timeout};
use crate::db::{ConnectError, Server};
use crate::props::{Engine, Url};

/// Logs in, switches autocommit off, and makes values that do not fit an error.
pub(super) fn open(
    url: &Url,
    user: &str,
    password: &str,
    options: &Options,
) -> Result<(Link, Server), ConnectError> {
    let login = LoginUser {
        user,
        password,
        database: &url.database,
        takes_public_key: options.takes_public_key,
        tls: options.tls.as_ref().map(|tls| (tls, url.host.as_str())),
    };
    let address = options.address(url);
    let limit = options
        .connect_timeout_ms
        .map_or(LOGIN_LIMIT, Duration::from_millis);
    let stream = Stream::open(url, options);
    let mut stream = stream.map_err(|error| unreachable(&address, error))?;
    stream.end_within(limit);
    let mut wire = Wire::new(stream);
    let refusal = |fault| refusal(&address, &login, fault, limit);
    let entered = login::log_in(&mut wire, &login).map_err(refusal)?;
    let mut link = Link::new(wire, entered);
    let settled = settle(
        &mut link,
        options.socket_timeout_ms.map(Duration::from_millis),
    );
    let server = settled.map_err(|fault| refusal(LoginFault::Fault(fault)))?;
    Ok((link, server))
}

/// As in Connector/J: no autocommit, and values that do not fit are errors.
const SETTINGS: &str = "set autocommit = 0, \
     sql_mode = concat(@@sql_mode, ',STRICT_TRANS_TABLES')";

fn settle(link: &mut Link, limit: Option<Duration>) -> Result<Server, Fault> {
    link.command(SETTINGS)?;
    let version = version(&one(link, "select version()")?);
    // MySQL 8 has only the first name, MariaDB before 11.1 only the second.
    let isolation = match one(link, "select @@transaction_isolation") {
        Err(Fault::Server(ServerError { code: 1193, .. })) => one(link, "select @@tx_isolation"),
        found => found,
    }?;
    link.command("commit")?;
    link.wire().limit_waiting(limit).map_err(Fault::Io)?;
    Ok(Server {
        engine: Engine::MySql,
        version,
        isolation,
    })
}

fn one(link: &mut Link, sql: &str) -> Result<String, Fault> {
    let mut rows = Rows::new();
    link.query_as_written(sql, &mut rows)?;
    rows.shown(0, 0).map_err(|_| Fault::Answer("no value"))
}

/// `MariaDB 10.11.6` from `10.11.6-MariaDB-0+deb12u1`; for MySQL the whole version string.
fn version(said: &str) -> String {
    match said.split_once("-MariaDB") {
        Some((number, _)) => format!("MariaDB {}", number.trim_start_matches("5.5.5-")),
        None => format!("MySQL {said}"),
    }
}

fn unreachable(address: &str, error: io::Error) -> ConnectError {
    ConnectError::Unreachable {
        engine: Engine::MySql,
        address: address.to_owned(),
        error,
    }
}

/// Converts the error of a log-in that had this time limit.
fn refusal(
    address: &str,
    login: &LoginUser<'_>,
    fault: LoginFault,
    limit: Duration,
) -> ConnectError {
    let unsupported = |what: String, instead: &str| ConnectError::Unsupported {
        engine: Engine::MySql,
        address: address.to_owned(),
        what,
        instead: instead.to_owned(),
    };
    match fault {
        LoginFault::Fault(Fault::Server(error)) => {
            let said = error.with_way_out();
            refused_by_server(address, login, &error, said)
        }
        LoginFault::InPlainText(error) => {
            let said = format!(
                "{error}; a user who must use TLS is refused in the same way: ask for it with --tls \
                 require, or sslMode=REQUIRED in conn="
            );
            refused_by_server(address, login, &error, said)
        }
        LoginFault::Fault(Fault::Io(error)) if is_timeout(&error) => ConnectError::Stuck {
            engine: Engine::MySql,
            address: address.to_owned(),
            step: "the log-in",
            limit,
        },
        LoginFault::Fault(Fault::Io(error)) => unreachable(address, error),
        LoginFault::Fault(fault) => unreachable(address, io::Error::other(fault.to_string())),
        LoginFault::Tls(error) => error.of_login(Engine::MySql, address, limit),
        LoginFault::NoGreeting => unreachable(
            address,
            io::Error::other(
                "the program there does not speak the protocol of MariaDB or of MySQL 5.7 and later",
            ),
        ),
        LoginFault::PublicKey => unsupported(
            format!(
                "the password of user {:?} encrypted with a public key that it sends itself \
                 (allowPublicKeyRetrieval=false forbids that)",
                login.user
            ),
            "set it to true where nobody can stand in for the server, or give the user a password by \
             mysql_native_password",
        ),
        LoginFault::Plugin(plugin) => unsupported(
            format!("user {:?} to log in by {plugin}", login.user),
            // MySQL names an arbitrary plugin if the user does not exist.
            "check that the user exists, and give it a password by mysql_native_password or \
             caching_sha2_password",
        ),
    }
}

fn refused_by_server(
    address: &str,
    login: &LoginUser<'_>,
    error: &ServerError,
    said: String,
) -> ConnectError {
    let (engine, address) = (Engine::MySql, address.to_owned());
    match error.code {
        // Wrong or expired password, locked or blocked account.
        1045 | 1820 | 1862 | 3118 | 3955 | 4150 | 4151 => ConnectError::Login {
            engine,
            address,
            user: login.user.to_owned(),
            said,
        },
        1044 | 1049 => ConnectError::Database {
            engine,
            address,
            database: login.database.to_owned(),
            said,
        },
        // Accounts with auth_socket or unix_socket, which have no password.
        1698 => ConnectError::Unsupported {
            engine,
            address,
            what: format!(
                "user {:?} to log in without a password ({error})",
                login.user
            ),
            instead: "give the user one: ALTER USER ... IDENTIFIED BY '...'".to_owned(),
        },
        1251 => ConnectError::Unsupported {
            engine,
            address,
            what: format!("user {:?} to log in in another way ({error})", login.user),
            instead: "give the user a password by mysql_native_password or caching_sha2_password"
                .to_owned(),
        },
        3159 => ConnectError::Refused {
            engine,
            address,
            said: format!("{said}; ask for TLS (--tls require, or sslMode=REQUIRED in conn=)"),
            for_now: false,
        },
        code => ConnectError::Refused {
            engine,
            address,
            said,
            // Too many connections, shutting down, starting up. A blocked host stays blocked.
            for_now: matches!(code, 1040 | 1047 | 1053 | 1203 | 1226 | 1152..=1161),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_short_where_the_rest_is_known() {
        assert_eq!(version("10.11.6-MariaDB-0+deb12u1"), "MariaDB 10.11.6");
        assert_eq!(version("5.5.5-10.4.1-MariaDB-log"), "MariaDB 10.4.1");
        assert_eq!(version("8.4.3"), "MySQL 8.4.3");
        assert_eq!(version("8.0.11-TiDB-v7.5.0"), "MySQL 8.0.11-TiDB-v7.5.0");
    }
}
