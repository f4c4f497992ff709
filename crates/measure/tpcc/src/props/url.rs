//! JDBC URLs such as `jdbc:mysql://host:3306/tpcc?useSSL=false&rewriteBatchedStatements=true`.
//!
//! The supported systems are MySQL, MariaDB, PostgreSQL, openGauss and its descendants, and SQLite.
//! If a URL names several hosts (PostgreSQL's `a:5432,b:5432`, MySQL's `loadbalance:`), the first
//! host is used and the others are reported. Deliberately absent: addresses in Connector/J's
//! key-value form.

use std::fmt;

use super::Password;
use super::secrets::{masked, split_query, split_userinfo};

/// A database system, by the SQL dialect that it uses; MariaDB counts as MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    MySql,
    Postgres,
    /// openGauss and GaussDB: PostgreSQL's protocol with other authentication methods.
    OpenGauss,
    /// SQLite, which runs inside this process.
    Sqlite,
}

impl Engine {
    /// The name in `db=` and in `sql.NAME`, the folder of the scripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::Postgres => "postgres",
            Self::OpenGauss => "opengauss",
            Self::Sqlite => "sqlite",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::MySql => 3306,
            Self::Postgres | Self::OpenGauss => 5432,
            Self::Sqlite => 0,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The parts of a JDBC URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub engine: Engine,
    /// The system's name in the URL, in lower case. Its driver defines the parameters.
    pub system: String,
    /// Host name or address; empty for SQLite.
    pub host: String,
    /// TCP port; 0 for SQLite.
    pub port: u16,
    /// Name of the database, or path of SQLite's file.
    pub database: String,
    /// Decoded parameters in the order of the URL, without user and password.
    pub params: Vec<(String, String)>,
    pub user: Option<String>,
    pub password: Option<Password>,
    /// Hosts after the first one; they are not used.
    pub others: Vec<String>,
}

/// A URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("{url:?} is not a JDBC URL; one looks like jdbc:mysql://127.0.0.1:3306/tpcc")]
    NotJdbc { url: String },
    #[error(
        "{url:?} is for {system}; supported are mysql, mariadb, postgresql, opengauss, gaussdb and sqlite"
    )]
    UnknownSystem { url: String, system: String },
    #[error("{url:?} names port {port:?}, which is not a number from 1 to 65535")]
    BadPort { url: String, port: String },
    #[error(
        "{url:?} names no database; append it to the port, as in jdbc:mysql://127.0.0.1:3306/tpcc"
    )]
    NoDatabase { url: String },
    #[error("{url:?} gives its address as (key=value); write it as //host:port/database")]
    KeyValueAddress { url: String },
}

impl Url {
    /// Parses a URL. Errors contain the URL with masked passwords.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let url = || masked(text);
        let not_jdbc = || UrlError::NotJdbc { url: url() };
        let rest = text.strip_prefix("jdbc:").ok_or_else(not_jdbc)?;
        let (system, rest) = rest.split_once(':').ok_or_else(not_jdbc)?;
        let engine = match system.to_ascii_lowercase().as_str() {
            "mysql" | "mariadb" => Engine::MySql,
            "postgresql" => Engine::Postgres,
            "opengauss" | "gaussdb" | "dws" => Engine::OpenGauss,
            "sqlite" => Engine::Sqlite,
            _ => {
                let system = system.to_owned();
                return Err(UrlError::UnknownSystem { url: url(), system });
            }
        };
        let (rest, query) = match engine {
            Engine::Sqlite => rest.split_once('?').unwrap_or((rest, "")),
            Engine::MySql | Engine::Postgres | Engine::OpenGauss => split_query(rest),
        };
        let mut params = params(query);
        let mut user = take(&mut params, "user");
        let mut password = take(&mut params, "password");
        if engine == Engine::Sqlite {
            return Self::of_file(rest, params).ok_or(UrlError::NoDatabase { url: url() });
        }
        let Some((_mode, rest)) = rest.split_once("//") else {
            return Err(not_jdbc());
        };
        let (userinfo, rest) = split_userinfo(rest);
        if let Some((name, secret)) = userinfo {
            user = user.or(Some(decoded(name)));
            password = password.or(secret.map(decoded));
        }
        let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
        if database.is_empty() {
            return Err(UrlError::NoDatabase { url: url() });
        }
        if hosts.contains('(') || hosts.contains("address=") {
            return Err(UrlError::KeyValueAddress { url: url() });
        }
        let mut hosts = hosts.split(',');
        let first = hosts.next().unwrap_or_default();
        let (host, port) = host_and_port(first);
        let port = match port {
            None | Some("") => engine.default_port(),
            Some(port) => port.parse().ok().filter(|p| *p != 0).ok_or_else(|| {
                let port = port.to_owned();
                UrlError::BadPort { url: url(), port }
            })?,
        };
        Ok(Self {
            engine,
            system: system.to_ascii_lowercase(),
            host: if host.is_empty() { "localhost" } else { host }.to_owned(),
            port,
            database: decoded(database),
            params,
            user,
            password: password.map(Password),
            others: hosts.map(str::to_owned).collect(),
        })
    }

    /// `host:port`, with brackets around an IPv6 address.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    fn of_file(path: &str, params: Vec<(String, String)>) -> Option<Self> {
        (!path.is_empty()).then(|| Self {
            engine: Engine::Sqlite,
            system: Engine::Sqlite.name().to_owned(),
            host: String::new(),
            port: 0,
            database: path.to_owned(),
            params,
            user: None,
            password: None,
            others: Vec::new(),
        })
    }

    /// The value of a parameter. If a parameter is repeated, its last value counts. Names are
    /// case-insensitive, as in the drivers.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        let mut found = self.params.iter().rev();
        found
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Splits `[::1]:5432`, `host:5432` or `host`.
pub(super) fn host_and_port(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

fn params(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (decoded(key), decoded(value)))
        .collect()
}

/// Removes a parameter and returns its value. If it is repeated, its last value counts.
fn take(params: &mut Vec<(String, String)>, name: &str) -> Option<String> {
    let is_named = |(key, _): &(String, String)| key.eq_ignore_ascii_case(name);
    let found = params.iter().rfind(|pair| is_named(pair)).cloned();
    params.retain(|pair| !is_named(pair));
    found.map(|(_, value)| value)
}

/// Decodes percent-encoding such as `%41`. Any other `%` is kept.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|two| std::str::from_utf8(two).ok());
        let byte = code.and_then(|two| u8::from_str_radix(two, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn urls_of_the_documentation_are_parsed() {
        let url = parse(
            "jdbc:mysql://192.168.1.10:3307/tpcc?useSSL=false&useServerPrepStmts=true\
             &useConfigs=maxPerformance&rewriteBatchedStatements=true",
        );
        assert_eq!(url.engine, Engine::MySql);
        assert_eq!((url.host.as_str(), url.port), ("192.168.1.10", 3307));
        assert_eq!(url.database, "tpcc");
        assert_eq!(url.param("rewritebatchedstatements"), Some("true"));
        assert_eq!(url.param("useUnicode"), None);
        assert_eq!(url.params.len(), 4);
        let url = parse(
            "jdbc:postgresql://10.0.0.1:21579/tpcc1000?prepareThreshold=1&batchMode=on&fetchsize=10",
        );
        assert_eq!((url.engine, url.port), (Engine::Postgres, 21579));
        assert_eq!(url.param("fetchsize"), Some("10"));
    }

    #[test]
    fn hosts_ports_and_databases_are_parsed_in_all_forms() {
        let parts = |text: &str| {
            let url = parse(text);
            (url.engine, url.host, url.port, url.database)
        };
        let own =
            |engine, host: &str, port, db: &str| (engine, host.to_owned(), port, db.to_owned());
        assert_eq!(
            parts("jdbc:mysql:///t"),
            own(Engine::MySql, "localhost", 3306, "t")
        );
        assert_eq!(
            parts("jdbc:mariadb://db1/t"),
            own(Engine::MySql, "db1", 3306, "t")
        );
        assert_eq!(
            parts("jdbc:opengauss://[::1]:5433/t"),
            own(Engine::OpenGauss, "::1", 5433, "t")
        );
        assert_eq!(
            parts("jdbc:postgresql://[fe80::1]/t"),
            own(Engine::Postgres, "fe80::1", 5432, "t")
        );
        assert_eq!(
            parts("jdbc:mysql:loadbalance://a:1,b:2/t"),
            own(Engine::MySql, "a", 1, "t")
        );
        assert_eq!(
            parts("jdbc:sqlite:/tmp/a b.db"),
            own(Engine::Sqlite, "", 0, "/tmp/a b.db")
        );
        assert_eq!(parse("jdbc:postgresql://a:1,b:2,c/t").others, ["b:2", "c"]);
        assert_eq!(parse("jdbc:mysql://h/t?a=%41%2G&b&a=2%26").params.len(), 3);
        let url = parse("jdbc:mysql://h/t%31?a=%41%2G&b");
        assert_eq!(
            (url.database.as_str(), url.param("a"), url.param("b")),
            ("t1", Some("A%2G"), Some(""))
        );
    }

    #[test]
    fn user_and_password_are_taken_from_the_url() {
        let parts = |text: &str| {
            let url = parse(text);
            let password = url.password.map(|password| password.reveal().to_owned());
            (url.host, url.user, password, url.params.len())
        };
        let own = |user: &str, password: &str| (Some(user.to_owned()), Some(password.to_owned()));
        let (user, password) = own("me", "s@:c");
        let expected = ("h".to_owned(), user, password, 1);
        assert_eq!(
            parts("jdbc:mysql://h/t?user=me&a=b&password=s%40:c"),
            expected.clone()
        );
        assert_eq!(parts("jdbc:mysql://me:s@:c@h:3306/t?a=b"), expected);
        let (user, password) = own("me", "s?c@r");
        assert_eq!(
            parts("jdbc:mysql://me:s?c@r@h/t?a=b"),
            ("h".to_owned(), user, password, 1)
        );
        assert_eq!(
            parts("jdbc:mysql://h/t?user=me@b&a=b").1.as_deref(),
            Some("me@b")
        );
        assert_eq!(
            parts("jdbc:postgresql://h/t"),
            ("h".to_owned(), None, None, 0)
        );
        let said = Url::parse("jdbc:mysqlx://h/t?password=secret").unwrap_err();
        assert!(said.to_string().contains("password=***"), "{said}");
    }

    #[test]
    fn the_part_that_cannot_be_used_is_named() {
        let error = |text: &str| Url::parse(text).unwrap_err().to_string();
        assert!(error("mysql://h/t").starts_with("\"mysql://h/t\" is not a JDBC URL"));
        assert!(error("jdbc:mysql:h/t").contains("is not a JDBC URL"));
        assert!(error("jdbc:oracle:thin:@h:1521:x").contains("is for oracle; supported are mysql"));
        assert!(error("jdbc:mysql://h:33o6/t").contains("names port \"33o6\""));
        assert!(error("jdbc:mysql://h:0/t").contains("names port \"0\""));
        assert!(error("jdbc:mysql://h:3306").contains("names no database"));
        assert!(error("jdbc:sqlite:").contains("names no database"));
        assert!(error("jdbc:mysql://address=(host=h)(port=1)/t").contains("//host:port/database"));
    }
}
