//! Session options from the parameters of a JDBC URL. Parameters that matter here are applied,
//! parameters without a meaning here are listed, and impossible requests are errors.

use std::path::PathBuf;
use std::time::Duration;

use super::encryption::{Driver, Encryption};
use super::tls::Tls;
use crate::props::{Engine, Url, secrets};

/// Options of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How statements are sent to the server.
    pub protocol: Protocol,
    /// The INSERTs of one batch are sent as one statement with several rows (MySQL's
    /// `rewriteBatchedStatements`; PostgreSQL's `reWriteBatchedInserts`).
    pub folds_inserts: bool,
    /// Number of rows per fetch; `None` fetches all rows at once.
    pub fetch_size: Option<u32>,
    /// Time limit of connecting and of logging in, in milliseconds. `None`: the operating system's
    /// limit for connecting, and 30 seconds for logging in. PostgreSQL uses `socket_timeout_ms`
    /// before the 30 seconds.
    pub connect_timeout_ms: Option<u64>,
    /// Time limit of connecting only. Used if `connect_timeout_ms` is `None`.
    pub tcp_timeout_ms: Option<u64>,
    /// Time limit of waiting for an answer, in milliseconds.
    pub socket_timeout_ms: Option<u64>,
    /// MySQL's public key, which encrypts the password, may be requested from the server itself.
    pub takes_public_key: bool,
    /// Encryption of connections; `None` for plain text.
    pub tls: Option<Tls>,
    /// The server's Unix socket, used in place of host and port. For PostgreSQL, this can be the
    /// directory that contains the socket.
    pub socket: Option<PathBuf>,
    /// Parameters without a meaning here, as `key=value`.
    pub ignored: Vec<String>,
}

/// How statements are sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Each statement is prepared once on the server, then executed by number (MySQL's binary
    /// protocol, PostgreSQL's named statements).
    Prepared,
    /// As text each time (Connector/J without `useServerPrepStmts`; pgjdbc with
    /// `prepareThreshold=0`).
    Text,
}

/// A parameter of a URL that is invalid or cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// A certificate is to be verified, but no CA is given.
    #[error(
        "conn: {by} needs {key}=FILE (--tls-ca FILE), the PEM file of the CA that signed the \
         server's certificate"
    )]
    NoAuthority {
        /// The parameter that requires the verification, as `key=value`.
        by: String,
        /// The missing parameter.
        key: &'static str,
    },
    /// The CA is given in a format that cannot be read here.
    #[error(
        "conn: {param} is a Java key store, which cannot be read here; export the CA's certificate \
         as PEM (keytool -exportcert -rfc), and name that file by serverSslCert=FILE"
    )]
    KeyStore {
        /// As `key=value`.
        param: String,
    },
    /// A CA is given, but no certificate is verified.
    #[error(
        "conn: {param} names a CA, but {by} checks no certificate; ask for verify-ca or verify-full"
    )]
    Unchecked {
        /// As `key=value`.
        param: String,
        /// The parameter that switches verification off, as `key=value`.
        by: String,
    },
    /// Two parameters contradict each other.
    #[error("conn: {one} and {other} ask for different things; keep one of them")]
    Contradiction {
        /// As `key=value`.
        one: String,
        /// As `key=value`.
        other: String,
    },
    /// Encryption is requested on a Unix socket.
    #[error(
        "conn: {param} is a Unix socket, which has no TLS here: nothing leaves the host; ask for \
         one of them"
    )]
    EncryptedSocket {
        /// As `key=value`.
        param: String,
    },
    /// The value has the wrong type.
    #[error("conn: {param} is not a {wanted}")]
    Value {
        /// As `key=value`.
        param: String,
        /// `whole number`, `value of true or false`.
        wanted: &'static str,
    },
}

/// Milliseconds per unit of each driver's timeouts.
const MYSQL_TIMEOUT_MS: u64 = 1;
const POSTGRES_TIMEOUT_MS: u64 = 1000;

/// Time limit of connecting after a connection loss. A host that is down does not refuse a
/// connection. Without this limit, the kernel repeats its SYN after 1, 3, 7 s and so on, and these
/// waits would be measured as part of a fail-over.
const RECONNECT_LIMIT_MS: u64 = 2000;

impl Options {
    /// The options of a URL. Options that the URL does not set have the drivers' default values.
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
                // The condition has stored the parameter.
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

    /// The address of the server for messages: host and port, or a Unix socket.
    #[must_use]
    pub fn address(&self, url: &Url) -> String {
        match &self.socket {
            Some(path) => path.display().to_string(),
            None => url.address(),
        }
    }

    /// The same options with a short limit for connecting, for the repeated attempts to log in
    /// again after a connection loss.
    #[must_use]
    pub fn for_another_try(&self) -> Self {
        Self {
            tcp_timeout_ms: Some(RECONNECT_LIMIT_MS),
            ..self.clone()
        }
    }

    /// Time limit of connecting, without the log-in.
    #[must_use]
    pub fn tcp_limit(&self) -> Option<Duration> {
        let limit_ms = self.connect_timeout_ms.or(self.tcp_timeout_ms);
        limit_ms.map(Duration::from_millis)
    }

    /// Reads the path of a Unix socket: `localSocket` of MariaDB's connector, accepted here for all
    /// systems, or pgjdbc's parameters for the socket factory of junixsocket.
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

    /// Applies a parameter of Connector/J or MariaDB's connector.
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

    /// Applies a parameter of pgjdbc, or of openGauss's driver, which is based on it.
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

    /// Parses a number. Zero and negative numbers return `None`.
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
