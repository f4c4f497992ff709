//! What a JDBC URL's parameters ask of a session: those that matter here are honoured, those that
//! mean nothing here are named, and what cannot be had is refused.

use std::path::PathBuf;
use std::time::Duration;

use super::encryption::{Driver, Encryption};
use super::tls::Tls;
use crate::props::{Engine, Url, secrets};

/// How a session works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How statements go to the server.
    pub protocol: Protocol,
    /// Several INSERTs of one batch go as one statement with several rows (MySQL's
    /// `rewriteBatchedStatements`; PostgreSQL's `reWriteBatchedInserts`).
    pub folds_inserts: bool,
    /// Rows that are fetched at a time; `None` for all at once.
    pub fetch_size: Option<u32>,
    /// How long to wait for a connection and the log-in, in milliseconds; `None` for as long as the
    /// system does, and for half a minute.
    pub connect_timeout_ms: Option<u64>,
    /// How long to wait for a connection alone where `connect_timeout_ms` does not say it.
    pub tcp_timeout_ms: Option<u64>,
    /// How long to wait for an answer, in milliseconds.
    pub socket_timeout_ms: Option<u64>,
    /// MySQL's public key is taken from the server itself, to send it the password.
    pub takes_public_key: bool,
    /// How connections are encrypted; `None` for plain text.
    pub tls: Option<Tls>,
    /// The Unix socket by which the server is reached in place of host and port; PostgreSQL's may
    /// be the directory in which it lies.
    pub socket: Option<PathBuf>,
    /// Parameters that mean nothing here, as `key=value`.
    pub ignored: Vec<String>,
}

/// How statements go to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Prepared by the server once, then by number (MySQL's binary protocol, PostgreSQL's named
    /// statements).
    Prepared,
    /// As text each time (Connector/J without `useServerPrepStmts`; pgjdbc with
    /// `prepareThreshold=0`).
    Text,
}

/// What a URL asks for and cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// A certificate is to be checked, and no CA is named.
    #[error(
        "conn: {by} needs {key}=FILE (--tls-ca FILE), the PEM file of the CA that signed the \
         server's certificate"
    )]
    NoAuthority {
        /// What demands it, as `key=value`.
        by: String,
        /// The parameter that is missing.
        key: &'static str,
    },
    /// The CA is named in a form that cannot be read.
    #[error(
        "conn: {param} is a Java key store, which cannot be read here; export the CA's certificate \
         as PEM (keytool -exportcert -rfc), and name that file by serverSslCert=FILE"
    )]
    KeyStore {
        /// As `key=value`.
        param: String,
    },
    /// A CA is named, and nothing is checked.
    #[error(
        "conn: {param} names a CA, but {by} checks no certificate; ask for verify-ca or verify-full"
    )]
    Unchecked {
        /// As `key=value`.
        param: String,
        /// What says so, as `key=value`.
        by: String,
    },
    /// Two parameters that ask for different things.
    #[error("conn: {one} and {other} ask for different things; keep one of them")]
    Contradiction {
        /// As `key=value`.
        one: String,
        /// As `key=value`.
        other: String,
    },
    /// Encryption on a Unix socket.
    #[error(
        "conn: {param} is a Unix socket, which has no TLS here: nothing leaves the host; ask for \
         one of them"
    )]
    EncryptedSocket {
        /// As `key=value`.
        param: String,
    },
    /// A value of another kind.
    #[error("conn: {param} is not a {wanted}")]
    Value {
        /// As `key=value`.
        param: String,
        /// `whole number`, `value of true or false`.
        wanted: &'static str,
    },
}

/// Milliseconds in the unit of a driver's time-outs.
const MYSQL_TIMEOUT_MS: u64 = 1;
const POSTGRES_TIMEOUT_MS: u64 = 1000;

/// A host that is gone does not refuse: without a limit the system would ask it again after 1, 3, 7 s and
/// so on, and a fail-over would be as long as those waits.
const RECONNECT_LIMIT_MS: u64 = 2000;

impl Options {
    /// Those of a URL; what it leaves out is as in the drivers.
    ///
    /// # Errors
    /// [`OptionError`].
    pub fn of(url: &Url) -> Result<Self, OptionError> {
        let mut options = Self {
            protocol: match url.engine {
                Engine::MySql => Protocol::Text,
                Engine::Postgres | Engine::OpenGauss | Engine::Sqlite => Protocol::Prepared,
            },
            folds_inserts: false,
            fetch_size: None,
            connect_timeout_ms: None,
            tcp_timeout_ms: None,
            socket_timeout_ms: None,
            takes_public_key: true,
            tls: None,
            socket: None,
            ignored: Vec::new(),
        };
        let mut encryption = Encryption::new(match url.engine {
            Engine::MySql if url.system == "mariadb" => Driver::MariaDb,
            Engine::MySql => Driver::ConnectorJ,
            Engine::Postgres | Engine::OpenGauss | Engine::Sqlite => Driver::Postgres,
        });
        for (key, value) in &url.params {
            let param = Param { key, value };
            if url.engine == Engine::Sqlite {
                options.ignore(&param);
            } else if encryption.take(&param)? || options.take_socket(&param, url)? {
                // It is kept there.
            } else if url.engine == Engine::MySql {
                options.take_mysql(&param)?;
            } else {
                options.take_postgres(&param)?;
            }
        }
        options.tls = encryption.finish(&mut options.ignored)?;
        if let (Some(path), Some(_)) = (&options.socket, &options.tls) {
            let param = format!("localSocket={}", path.display());
            return Err(OptionError::EncryptedSocket { param });
        }
        Ok(options)
    }

    /// Where the server is, for people: host and port, or a Unix socket.
    #[must_use]
    pub fn address(&self, url: &Url) -> String {
        match &self.socket {
            Some(path) => path.display().to_string(),
            None => url.address(),
        }
    }

    /// The same for an attempt to log in again after a loss, of which there are many.
    #[must_use]
    pub fn for_another_try(&self) -> Self {
        Self {
            tcp_timeout_ms: Some(RECONNECT_LIMIT_MS),
            ..self.clone()
        }
    }

    /// How long to wait for a connection, before any log-in.
    #[must_use]
    pub fn tcp_limit(&self) -> Option<Duration> {
        let limit_ms = self.connect_timeout_ms.or(self.tcp_timeout_ms);
        limit_ms.map(Duration::from_millis)
    }

    /// The parameter of MariaDB's connector, here of all systems; and what pgjdbc is given for
    /// the socket factory of junixsocket.
    fn take_socket(&mut self, param: &Param<'_>, url: &Url) -> Result<bool, OptionError> {
        let has_factory = || {
            let factory = url.param("socketFactory");
            factory.is_some_and(|class| class.contains("AFUNIXSocketFactory"))
        };
        match param.key.to_ascii_lowercase().as_str() {
            "localsocket" => {}
            "socketfactoryarg" if has_factory() => {}
            "socketfactory" if has_factory() && url.param("socketFactoryArg").is_none() => {
                return Err(param.wrong("given the path of a Unix socket by socketFactoryArg"));
            }
            "socketfactory" => return Ok(has_factory()),
            _ => return Ok(false),
        }
        if param.value.is_empty() {
            return Err(param.wrong("path of a Unix socket"));
        }
        self.socket = Some(PathBuf::from(param.value));
        Ok(true)
    }

    /// Connector/J and MariaDB's connector.
    fn take_mysql(&mut self, param: &Param<'_>) -> Result<(), OptionError> {
        match param.key.to_ascii_lowercase().as_str() {
            "useserverprepstmts" => self.protocol = param.protocol(param.flag()?),
            "rewritebatchedstatements" => self.folds_inserts = param.flag()?,
            "defaultfetchsize" => self.fetch_size = param.count()?,
            "connecttimeout" => self.connect_timeout_ms = param.milliseconds(MYSQL_TIMEOUT_MS)?,
            "sockettimeout" => self.socket_timeout_ms = param.milliseconds(MYSQL_TIMEOUT_MS)?,
            "allowpublickeyretrieval" => self.takes_public_key = param.flag()?,
            _ => self.ignore(param),
        }
        Ok(())
    }

    /// pgjdbc and openGauss's descendant of it.
    fn take_postgres(&mut self, param: &Param<'_>) -> Result<(), OptionError> {
        match param.key.to_ascii_lowercase().as_str() {
            "preparethreshold" => self.protocol = param.protocol(param.count()?.is_some()),
            "rewritebatchedinserts" => self.folds_inserts = param.flag()?,
            "defaultrowfetchsize" | "fetchsize" => self.fetch_size = param.count()?,
            "connecttimeout" => {
                self.connect_timeout_ms = param.milliseconds(POSTGRES_TIMEOUT_MS)?
            }
            "sockettimeout" => self.socket_timeout_ms = param.milliseconds(POSTGRES_TIMEOUT_MS)?,
            "gssencmode" | "channelbinding" if param.value.eq_ignore_ascii_case("require") => {
                return Err(param.wrong("demand that can be met here; sslmode=verify-full can"));
            }
            _ => self.ignore(param),
        }
        Ok(())
    }

    fn ignore(&mut self, param: &Param<'_>) {
        self.ignored.push(param.to_string());
    }
}

/// A parameter of a URL.
#[derive(Debug)]
pub(super) struct Param<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

impl Param<'_> {
    pub(super) fn wrong(&self, wanted: &'static str) -> OptionError {
        OptionError::Value {
            param: self.to_string(),
            wanted,
        }
    }

    pub(super) fn flag(&self) -> Result<bool, OptionError> {
        match self.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(self.wrong("value of true or false")),
        }
    }

    /// Zero, and less, is for none.
    fn count(&self) -> Result<Option<u32>, OptionError> {
        let number: i64 = self
            .value
            .trim()
            .parse()
            .map_err(|_| self.wrong("whole number"))?;
        Ok(u32::try_from(number).ok().filter(|n| *n > 0))
    }

    fn milliseconds(&self, unit: u64) -> Result<Option<u64>, OptionError> {
        Ok(self.count()?.map(|n| u64::from(n) * unit))
    }

    fn protocol(&self, by_server: bool) -> Protocol {
        if by_server {
            Protocol::Prepared
        } else {
            Protocol::Text
        }
    }
}

impl std::fmt::Display for Param<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, secrets::shown(self.key, self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<Options, OptionError> {
        Options::of(&Url::parse(url).unwrap())
    }

    #[test]
    fn the_urls_of_the_documents_ask_for_prepared_statements() {
        let mysql = of("jdbc:mysql://h/t?useSSL=false&useServerPrepStmts=true\
                        &useConfigs=maxPerformance&rewriteBatchedStatements=true")
        .unwrap();
        assert_eq!(
            (mysql.protocol, mysql.folds_inserts),
            (Protocol::Prepared, true)
        );
        assert_eq!(mysql.ignored, ["useConfigs=maxPerformance"]);
        let gauss =
            of("jdbc:opengauss://h/t?prepareThreshold=1&batchMode=on&fetchsize=10").unwrap();
        assert_eq!(
            (gauss.protocol, gauss.fetch_size),
            (Protocol::Prepared, Some(10))
        );
        assert_eq!(gauss.ignored, ["batchMode=on"]);
    }

    #[test]
    fn passwords_of_key_stores_are_not_named() {
        let options = of("jdbc:mysql://h/t?trustCertificateKeyStorePassword=hidden&x=1").unwrap();
        assert_eq!(
            options.ignored,
            ["trustCertificateKeyStorePassword=***", "x=1"]
        );
    }

    #[test]
    fn without_parameters_it_is_as_with_the_drivers() {
        let (mysql, postgres) = (
            of("jdbc:mysql://h/t").unwrap(),
            of("jdbc:postgresql://h/t").unwrap(),
        );
        assert_eq!(
            (mysql.protocol, mysql.folds_inserts),
            (Protocol::Text, false)
        );
        assert_eq!(
            (postgres.protocol, postgres.fetch_size),
            (Protocol::Prepared, None)
        );
        assert_eq!(
            of("jdbc:postgresql://h/t?prepareThreshold=0")
                .unwrap()
                .protocol,
            Protocol::Text
        );
    }

    #[test]
    fn time_outs_come_in_each_drivers_unit() {
        let mysql = of("jdbc:mysql://h/t?connectTimeout=1500&socketTimeout=0").unwrap();
        assert_eq!(
            (mysql.connect_timeout_ms, mysql.socket_timeout_ms),
            (Some(1500), None)
        );
        let postgres = of("jdbc:postgresql://h/t?connectTimeout=2&socketTimeout=30").unwrap();
        assert_eq!(
            (postgres.connect_timeout_ms, postgres.socket_timeout_ms),
            (Some(2000), Some(30_000))
        );
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_name() {
        let key = |url| of(url).unwrap().takes_public_key;
        assert!(key("jdbc:mysql://h/t") && !key("jdbc:mysql://h/t?allowPublicKeyRetrieval=false"));
        let said = of("jdbc:mysql://h/t?useServerPrepStmts=si")
            .unwrap_err()
            .to_string();
        assert_eq!(
            said,
            "conn: useServerPrepStmts=si is not a value of true or false"
        );
        let said = of("jdbc:postgresql://h/t?fetchsize=ten")
            .unwrap_err()
            .to_string();
        assert_eq!(said, "conn: fetchsize=ten is not a whole number");
    }

    #[test]
    fn a_unix_socket_is_named_as_in_the_connectors() {
        let factory = "socketFactory=org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg";
        for url in [
            "jdbc:mariadb://h/t?localSocket=/run/s".to_owned(),
            "jdbc:mysql://h/t?localsocket=/run%2Fs".to_owned(),
            format!("jdbc:postgresql://h/t?socketFactoryArg=/run/s&{factory}"),
        ] {
            let options = of(&url).unwrap();
            assert_eq!(options.socket, Some(PathBuf::from("/run/s")), "{url}");
            assert!(options.ignored.is_empty(), "{url}: {:?}", options.ignored);
            let parsed = Url::parse(&url).unwrap();
            assert_eq!(options.address(&parsed), "/run/s");
        }
        assert!(of(&format!("jdbc:postgresql://h/t?{factory}")).is_err());
        let other = of("jdbc:postgresql://h/t?socketFactoryArg=x&socketFactory=Own").unwrap();
        assert_eq!((other.socket, other.ignored.len()), (None, 2));
        let said = of("jdbc:mysql://h/t?localSocket=").unwrap_err().to_string();
        assert!(said.contains("is not a path of a Unix socket"), "{said}");
    }
}
