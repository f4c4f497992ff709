//! The encryption parameters of JDBC URLs, for each driver.
//!
//! In: parameters in any order. Out: the encryption of a connection, and the list of parameters
//! that are ignored. Required encryption that is impossible is an error; it never falls back to
//! plain text. An optional mode (`prefer`, `allow`), with which a driver falls back to plain text,
//! means plain text here, and the parameter is listed as ignored.

use std::path::PathBuf;

use super::options::{OptionError, Param};
use super::tls::Tls;

/// The JDBC driver that defines the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    /// MySQL's Connector/J.
    ConnectorJ,
    /// MariaDB's connector.
    MariaDb,
    /// pgjdbc, and openGauss's driver, which is based on it.
    Postgres,
}

/// Which parts of a certificate are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// A parsed `sslMode`.
#[derive(Debug, PartialEq, Eq)]
struct Mode {
    param: String,
    /// `None` means plain text.
    check: Option<Check>,
    /// Whether the driver would use TLS only if the server supports it.
    is_wish: bool,
}

/// The parameters read so far. Strings are parameters as `key=value`.
#[derive(Debug)]
pub(super) struct Encryption {
    driver: Driver,
    mode: Option<Mode>,
    /// A switch that requires encryption, such as `useSSL=true`.
    demand: Option<String>,
    /// Connector/J's `verifyServerCertificate`.
    verifies: bool,
    /// No certificate is verified.
    trusts_all: bool,
    /// The host name is not verified.
    trusts_names: bool,
    authority: Option<(String, PathBuf)>,
    /// A Java key store, which cannot be read here.
    key_store: Option<String>,
}

impl Encryption {
    pub(super) fn new(driver: Driver) -> Self {
        Self {
            driver,
            mode: None,
            demand: None,
            verifies: false,
            trusts_all: false,
            trusts_names: false,
            authority: None,
            key_store: None,
        }
    }

    /// Stores a parameter if it concerns encryption. Returns whether it does.
    pub(super) fn take(&mut self, param: &Param<'_>) -> Result<bool, OptionError> {
        use Driver::{ConnectorJ, MariaDb, Postgres};
        match (param.key.to_ascii_lowercase().as_str(), self.driver) {
            ("sslmode", _) => {
                let new = mode(param)?;
                if let Some(old) = self.mode.take().filter(|old| *old != new) {
                    return Err(contradiction(old.param, new.param));
                }
                self.mode = Some(new);
            }
            ("usessl" | "requiressl", ConnectorJ | MariaDb) => self.switch(param, param.flag()?),
            ("ssl", Postgres) => {
                let is_on = param.value.is_empty() || param.flag()?;
                self.switch(param, is_on);
            }
            // Connector/J encrypts by default, so this parameter alone requires encryption, too.
            ("verifyservercertificate", ConnectorJ) => {
                self.verifies = param.flag()?;
                self.switch(param, self.verifies);
            }
            ("trustservercertificate", MariaDb) => self.trusts_all = param.flag()?,
            ("disablesslhostnameverification", MariaDb) => self.trusts_names = param.flag()?,
            ("sslfactory", Postgres) if param.value.ends_with("NonValidatingFactory") => {
                self.trusts_all = true;
            }
            ("serversslcert", ConnectorJ | MariaDb) | ("sslrootcert", Postgres) => {
                let path = path_of(param)?;
                self.authority = Some((param.to_string(), path));
            }
            ("trustcertificatekeystoreurl", ConnectorJ) | ("truststore", MariaDb) => {
                self.key_store = Some(param.to_string());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn switch(&mut self, param: &Param<'_>, is_on: bool) {
        if is_on {
            self.demand = Some(param.to_string());
        }
    }

    /// The encryption that the parameters require. Parameters without effect are added to
    /// `ignored`.
    pub(super) fn finish(self, ignored: &mut Vec<String>) -> Result<Option<Tls>, OptionError> {
        let own = self.own_check();
        let Self {
            driver,
            mode,
            demand,
            authority,
            key_store,
            ..
        } = self;
        let asked = match (mode, demand) {
            // With MariaDB's connector the switch must agree with the mode; in the other drivers
            // the mode takes precedence.
            (Some(mode), Some(switch)) if driver == Driver::MariaDb && mode.check != Some(own) => {
                return Err(contradiction(mode.param, switch));
            }
            (Some(mode), _) => {
                ignored.extend(mode.is_wish.then(|| mode.param.clone()));
                mode.check.map(|check| (mode.param, check))
            }
            (None, demand) => demand.map(|param| (param, own)),
        };
        let Some((by, check)) = asked else {
            ignored.extend(authority.map(|(param, _)| param));
            ignored.extend(key_store);
            return Ok(None);
        };
        let ca = match (authority, key_store) {
            (Some((param, _)), _) if check == Check::Nothing => {
                return Err(OptionError::Unchecked { param, by });
            }
            (None, key_store) if check == Check::Nothing => {
                ignored.extend(key_store);
                return Ok(Some(Tls::require()));
            }
            (Some((_, path)), key_store) => {
                ignored.extend(key_store);
                path
            }
            (None, Some(param)) => return Err(OptionError::KeyStore { param }),
            (None, None) => {
                let key = match driver {
                    Driver::ConnectorJ | Driver::MariaDb => "serverSslCert",
                    Driver::Postgres => "sslrootcert",
                };
                return Err(OptionError::NoAuthority { by, key });
            }
        };
        Ok(Some(match check {
            Check::AuthorityAndName => Tls::verify_full(ca),
            Check::Nothing | Check::Authority => Tls::verify_ca(ca),
        }))
    }

    /// What the driver verifies if no mode is given.
    fn own_check(&self) -> Check {
        if self.trusts_all {
            return Check::Nothing;
        }
        match self.driver {
            Driver::ConnectorJ if !self.verifies => Check::Nothing,
            Driver::ConnectorJ => Check::Authority,
            Driver::MariaDb if self.trusts_names => Check::Authority,
            Driver::MariaDb | Driver::Postgres => Check::AuthorityAndName,
        }
    }
}

fn contradiction(one: String, other: String) -> OptionError {
    OptionError::Contradiction { one, other }
}

/// Parses `sslMode`. The drivers use different names for the same modes.
fn mode(param: &Param<'_>) -> Result<Mode, OptionError> {
    let name = param.value.to_ascii_lowercase().replace('_', "-");
    let (check, is_wish) = match name.as_str() {
        "disable" | "disabled" => (None, false),
        "allow" | "prefer" | "preferred" => (None, true),
        "require" | "required" | "trust" => (Some(Check::Nothing), false),
        "verify-ca" => (Some(Check::Authority), false),
        "verify-full" | "verify-identity" => (Some(Check::AuthorityAndName), false),
        _ => return Err(param.wrong("mode (disable, require, verify-ca or verify-full)")),
    };
    Ok(Mode {
        param: param.to_string(),
        check,
        is_wish,
    })
}

/// Accepts only the path of a file. MariaDB's connector also accepts a certificate as text and a
/// file on the class path.
fn path_of(param: &Param<'_>) -> Result<PathBuf, OptionError> {
    let is_other = ["-----BEGIN", "classpath:"]
        .iter()
        .any(|start| param.value.starts_with(start));
    if is_other || param.value.is_empty() {
        return Err(param.wrong("path of a PEM file"));
    }
    Ok(PathBuf::from(param.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::options::Options;
    use crate::props::Url;

    fn of(url: &str) -> Result<Options, OptionError> {
        Options::of(&Url::parse(&format!("jdbc:{url}")).unwrap())
    }

    #[test]
    fn each_driver_s_words_ask_for_what_they_ask_of_the_driver() {
        let ca = || PathBuf::from("/ca.pem");
        for (url, asked) in [
            ("mysql://h/t", None),
            ("mysql://h/t?sslMode=DISABLED&useSSL=true", None),
            ("mysql://h/t?useSSL=false", None),
            ("mysql://h/t?useSSL=true", Some(Tls::require())),
            ("mysql://h/t?requireSSL=true", Some(Tls::require())),
            ("mysql://h/t?sslMode=REQUIRED", Some(Tls::require())),
            (
                "mysql://h/t?serverSslCert=/ca.pem&verifyServerCertificate=true&useSSL=true",
                Some(Tls::verify_ca(ca())),
            ),
            (
                "mysql://h/t?sslMode=VERIFY_CA&serverSslCert=/ca.pem",
                Some(Tls::verify_ca(ca())),
            ),
            (
                "mysql://h/t?sslMode=VERIFY_IDENTITY&serverSslCert=/ca.pem",
                Some(Tls::verify_full(ca())),
            ),
            ("mariadb://h/t?sslMode=trust", Some(Tls::require())),
            (
                "mariadb://h/t?trustServerCertificate=true&useSsl=true",
                Some(Tls::require()),
            ),
            (
                "mariadb://h/t?useSsl=true&serverSslCert=/ca.pem",
                Some(Tls::verify_full(ca())),
            ),
            (
                "mariadb://h/t?useSsl=true&serverSslCert=/ca.pem&\
                 disableSslHostnameVerification=true",
                Some(Tls::verify_ca(ca())),
            ),
            ("postgresql://h/t?ssl=false", None),
            ("postgresql://h/t?sslmode=require", Some(Tls::require())),
            ("postgresql://h/t?sslmode=disable&ssl=true", None),
            (
                "mariadb://h/t?sslMode=verify-full&useSsl=true&serverSslCert=/ca.pem",
                Some(Tls::verify_full(ca())),
            ),
            (
                "postgresql://h/t?ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory",
                Some(Tls::require()),
            ),
            (
                "postgresql://h/t?ssl&sslrootcert=/ca.pem",
                Some(Tls::verify_full(ca())),
            ),
            (
                "opengauss://h/t?ssl=true&sslmode=verify-ca&sslrootcert=/ca.pem",
                Some(Tls::verify_ca(ca())),
            ),
        ] {
            let options = of(url).unwrap();
            assert_eq!(options.tls, asked, "{url}");
            assert!(options.ignored.is_empty(), "{url}: {:?}", options.ignored);
        }
    }

    #[test]
    fn wishes_and_what_they_would_need_are_named() {
        for (url, named) in [
            ("mysql://h/t?sslMode=PREFERRED", "sslMode=PREFERRED"),
            ("postgresql://h/t?sslmode=allow", "sslmode=allow"),
            ("postgresql://h/t?sslrootcert=/c", "sslrootcert=/c"),
            (
                "mysql://h/t?useSSL=true&trustCertificateKeyStoreUrl=file:/k",
                "trustCertificateKeyStoreUrl=file:/k",
            ),
        ] {
            assert_eq!(of(url).unwrap().ignored, [named], "{url}");
        }
    }

    #[test]
    fn a_demand_that_cannot_be_met_is_an_error() {
        for (url, wanted) in [
            (
                "mysql://h/t?verifyServerCertificate=true",
                "conn: verifyServerCertificate=true",
            ),
            (
                "mysql://h/t?sslMode=VERIFY_CA&trustCertificateKeyStoreUrl=file:/k",
                "conn: trustCertificateKeyStoreUrl=file:/k is a Java key store",
            ),
            (
                "mysql://h/t?sslMode=VERIFY_IDENTITY",
                "conn: sslMode=VERIFY_IDENTITY needs serverSslCert=FILE",
            ),
            (
                "mariadb://h/t?useSsl=true",
                "conn: useSsl=true needs serverSslCert=FILE",
            ),
            (
                "postgresql://h/t?ssl=true",
                "conn: ssl=true needs sslrootcert=FILE",
            ),
            (
                "postgresql://h/t?sslmode=require&sslrootcert=/ca.pem",
                "conn: sslrootcert=/ca.pem names a CA, but sslmode=require checks no certificate",
            ),
            (
                "mariadb://h/t?sslMode=disable&useSsl=true",
                "conn: sslMode=disable and useSsl=true ask for different things",
            ),
            (
                "postgresql://h/t?sslmode=disable&sslmode=require",
                "conn: sslmode=disable and sslmode=require ask for different things",
            ),
            (
                "postgresql://h/t?channelBinding=require",
                "conn: channelBinding=require is not a demand that can be met here",
            ),
            (
                "postgresql://h/t?sslmode=verify_all",
                "conn: sslmode=verify_all is not a mode",
            ),
            (
                "mariadb://h/t?serverSslCert=classpath:ca.pem",
                "is not a path of a PEM file",
            ),
            (
                "mysql://h/t?sslMode=REQUIRED&localSocket=/s",
                "conn: localSocket=/s is a Unix socket, which has no TLS",
            ),
        ] {
            let said = of(url).unwrap_err().to_string();
            assert!(said.contains(wanted), "{url}: {said}");
        }
    }
}
