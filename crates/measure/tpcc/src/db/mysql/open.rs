//! Opening a session: the TCP connection, the log-in, the session's settings.
//!
//! `localhost` is TCP as in JDBC, never a Unix socket: that would go past the very path that is
//! measured.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::fault::{self, Fault, ServerError};
use super::greeting::Who;
use super::link::Link;
use super::login::{self, LoginFault};
use super::wire::Wire;
use crate::db::options::Options;
use crate::db::rows::Rows;
use crate::db::{ConnectError, Server};
use crate::props::{Engine, Url};

/// Within this a server must have let us in. Ports of other services may say nothing at all.
const LOGIN_LIMIT: Duration = Duration::from_secs(30);
/// A host that is gone is noticed within half a minute: while we wait for an answer by probes,
const PROBE_AFTER: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES: u32 = 4;
/// and while we send by its silence.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// `host:port`, with brackets around an IPv6 address.
pub(super) fn address(url: &Url) -> String {
    if url.host.contains(':') {
        format!("[{}]:{}", url.host, url.port)
    } else {
        format!("{}:{}", url.host, url.port)
    }
}

/// Logs in and settles the session: transactions begin by themselves, bad values are errors.
pub(super) fn open(
    url: &Url,
    user: &str,
    password: &str,
    options: &Options,
) -> Result<(Link, Server), ConnectError> {
    let who = Who {
        user,
        password,
        database: &url.database,
        takes_public_key: options.takes_public_key,
    };
    let login_limit = options
        .connect_timeout_ms
        .map_or(LOGIN_LIMIT, Duration::from_millis);
    let stream = connect(url, options.tcp_limit())
        .and_then(|stream| prepare(&stream, Some(login_limit)).map(|()| stream));
    let stream = stream.map_err(|error| unreachable(url, error))?;
    let mut wire = Wire::new(stream);
    let entered = login::log_in(&mut wire, &who).map_err(|fault| refusal(url, &who, fault))?;
    let mut link = Link::new(wire, entered);
    let settled = settle(
        &mut link,
        options.socket_timeout_ms.map(Duration::from_millis),
    );
    let server = settled.map_err(|fault| refusal(url, &who, LoginFault::Fault(fault)))?;
    Ok((link, server))
}

/// To the first address of the host that answers.
fn connect(url: &Url, limit: Option<Duration>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        let connected = match limit {
            Some(limit) => TcpStream::connect_timeout(&address, limit),
            None => TcpStream::connect(address),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn prepare(stream: &TcpStream, limit: Option<Duration>) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_INTERVAL)
        .with_retries(PROBES);
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(SILENCE_LIMIT))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(limit)?;
    stream.set_write_timeout(limit)
}

/// As Connector/J: no autocommit, and values that do not fit are errors.
const SETTINGS: &str = "set autocommit = 0, \
     sql_mode = concat(@@sql_mode, ',STRICT_TRANS_TABLES')";

fn settle(link: &mut Link, limit: Option<Duration>) -> Result<Server, Fault> {
    link.command(SETTINGS)?;
    let version = version(&one(link, "select version()")?);
    // MySQL 8 has the first name only, MariaDB before 11.1 the second one.
    let isolation = match one(link, "select @@transaction_isolation") {
        Err(Fault::Server(ServerError { code: 1193, .. })) => one(link, "select @@tx_isolation"),
        found => found,
    }?;
    link.command("commit")?;
    let stream = link.wire().stream();
    stream.set_read_timeout(limit).map_err(Fault::Io)?;
    stream.set_write_timeout(limit).map_err(Fault::Io)?;
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

/// `MariaDB 10.11.6` of `10.11.6-MariaDB-0+deb12u1`; of MySQL all that it says.
fn version(said: &str) -> String {
    match said.split_once("-MariaDB") {
        Some((number, _)) => format!("MariaDB {}", number.trim_start_matches("5.5.5-")),
        None => format!("MySQL {said}"),
    }
}

fn unreachable(url: &Url, error: io::Error) -> ConnectError {
    ConnectError::Unreachable {
        engine: Engine::MySql,
        address: address(url),
        error,
    }
}

/// Why we are not let in.
fn refusal(url: &Url, who: &Who<'_>, fault: LoginFault) -> ConnectError {
    let unsupported = |what: String, instead: &str| ConnectError::Unsupported {
        engine: Engine::MySql,
        address: address(url),
        what,
        instead: instead.to_owned(),
    };
    match fault {
        LoginFault::Fault(Fault::Server(error)) => refused_by_server(url, who, &error),
        LoginFault::Fault(Fault::Io(error)) => unreachable(url, silence(error)),
        LoginFault::Fault(fault) => unreachable(url, io::Error::other(fault.to_string())),
        LoginFault::NoGreeting => unreachable(
            url,
            io::Error::other("what answers there is no MySQL since 5.7 and no MariaDB"),
        ),
        LoginFault::PublicKey => unsupported(
            format!(
                "the password of user {:?} by a public key that it sends itself, against \
                 allowPublicKeyRetrieval=false",
                who.user
            ),
            "set it to true where nobody can stand in for the server, or give the user a password by \
             mysql_native_password",
        ),
        LoginFault::Plugin(plugin) => unsupported(
            format!("user {:?} to log in by {plugin}", who.user),
            // MySQL invents a plugin for whom it does not know.
            "check that the user exists, and give it a password by mysql_native_password or \
             caching_sha2_password",
        ),
    }
}

fn silence(error: io::Error) -> io::Error {
    if fault::is_timeout(&error) {
        let words = "connected, but nothing answers in time";
        return io::Error::new(io::ErrorKind::TimedOut, words);
    }
    error
}

fn refused_by_server(url: &Url, who: &Who<'_>, error: &ServerError) -> ConnectError {
    let (engine, address) = (Engine::MySql, address(url));
    let said = error.with_way_out();
    match error.code {
        // Wrong password, one that has expired, an account that is locked or blocked.
        1045 | 1820 | 1862 | 3118 | 3955 | 4150 | 4151 => ConnectError::Login {
            engine,
            address,
            user: who.user.to_owned(),
            said,
        },
        1044 | 1049 => ConnectError::Database {
            engine,
            address,
            database: who.database.to_owned(),
            said,
        },
        // Accounts of auth_socket and unix_socket, which have no password.
        1698 => ConnectError::Unsupported {
            engine,
            address,
            what: format!("user {:?} to log in without a password ({error})", who.user),
            instead: "give the user one: ALTER USER ... IDENTIFIED BY '...'".to_owned(),
        },
        1251 => ConnectError::Unsupported {
            engine,
            address,
            what: format!("user {:?} to log in in another way ({error})", who.user),
            instead: "give the user a password by mysql_native_password or caching_sha2_password"
                .to_owned(),
        },
        3159 => ConnectError::Unsupported {
            engine,
            address,
            what: "an encrypted connection".to_owned(),
            instead: "set require_secure_transport = OFF on the server".to_owned(),
        },
        code => ConnectError::Refused {
            engine,
            address,
            said,
            // Full, going down, coming up; a host that is blocked stays so.
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
