//! A database that is given by options in place of a props file.
//!
//! The options have the names that the database's own clients use; the password comes from the same
//! variable. The result is the [`Props`] of an equivalent props file.

use std::env;
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use saiga_tpcc::props::Props;

/// Length of a run without `--for`, in minutes.
const MINUTES: u32 = 1;

/// Heading of these options in the help.
const HEADING: &str = "Without a props file (the password comes from MYSQL_PWD or PGPASSWORD)";

/// The options that stand in for a props file.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Direct {
    /// Database system
    #[arg(long, help_heading = HEADING, value_enum, conflicts_with = "props")]
    engine: Option<EngineName>,
    /// Host of the server (default: 127.0.0.1)
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "engine")]
    #[arg(value_parser = host_alone)]
    host: Option<String>,
    /// Port of the server (default: 3306 or 5432)
    #[arg(long, help_heading = HEADING, requires = "engine")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// User to log in as (default: tpcc)
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "engine")]
    #[arg(value_parser = plain)]
    user: Option<String>,
    /// Name of the database (default: tpcc)
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "engine")]
    #[arg(value_parser = plain)]
    database: Option<String>,
    /// Unix socket to connect to instead of a host; for PostgreSQL its directory is enough
    #[arg(long, help_heading = HEADING, value_name = "PATH", requires = "engine")]
    #[arg(conflicts_with_all = ["host", "tls"])]
    socket: Option<String>,
    /// Use of TLS: disable (plain text, the default), require (encryption), verify-ca (also checks
    /// the CA), verify-full (also checks the name of the host)
    #[arg(long, help_heading = HEADING, value_name = "MODE", requires = "engine", value_enum)]
    #[arg(requires_ifs = [("verify-ca", "tls_ca"), ("verify-full", "tls_ca")])]
    tls: Option<TlsMode>,
    /// PEM file with the certificate of the CA that signed the server's certificate
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "tls")]
    tls_ca: Option<String>,
    /// Number of warehouses to load or to use (default: 1)
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "engine")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    warehouses: Option<u32>,
    /// Number of terminals of a run, at most ten for each warehouse (default: that maximum)
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "engine")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    terminals: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Mysql,
    Mariadb,
    Postgres,
    // Also GaussDB.
    Opengauss,
}

/// Modes of TLS, with libpq's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TlsMode {
    Disable,
    Require,
    VerifyCa,
    VerifyFull,
}

impl TlsMode {
    /// The value in a JDBC URL.
    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl EngineName {
    /// The name in a JDBC URL.
    fn system(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
            Self::Postgres => "postgresql",
            Self::Opengauss => "opengauss",
        }
    }

    /// The parameter of a JDBC URL with the CA's file.
    fn authority_key(self) -> &'static str {
        match self {
            Self::Mysql | Self::Mariadb => "serverSslCert",
            Self::Postgres | Self::Opengauss => "sslrootcert",
        }
    }

    /// The variable from which the system's own clients take the password.
    fn password_variable(self) -> &'static str {
        match self {
            Self::Mysql | Self::Mariadb => "MYSQL_PWD",
            Self::Postgres | Self::Opengauss => "PGPASSWORD",
        }
    }
}

impl Direct {
    /// The equivalent of a props file; `None` if no database is given.
    ///
    /// # Errors
    /// The password cannot be written in a props file.
    pub(super) fn props(&self) -> anyhow::Result<Option<Props>> {
        let Some(engine) = self.engine else {
            return Ok(None);
        };
        let variable = engine.password_variable();
        let password = env::var_os(variable).unwrap_or_default();
        let Some(password) = password.to_str().filter(|text| text.trim() == *text) else {
            bail!(
                "{variable} is not UTF-8, or begins or ends with a blank; such a password is not \
                 supported here"
            );
        };
        let text = self.text(engine, password);
        Ok(Some(Props::parse(PathBuf::from("(no props file)"), &text)?))
    }

    fn text(&self, engine: EngineName, password: &str) -> String {
        let named = |name: &Option<String>, usual: &str| name.clone().unwrap_or(usual.to_owned());
        let host = named(&self.host, "127.0.0.1");
        // An IPv6 address in a URL is enclosed in brackets.
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host
        };
        let port = self.port.map_or(String::new(), |port| format!(":{port}"));
        let warehouses = self.warehouses.unwrap_or(1);
        let terminals = self.terminals.unwrap_or(warehouses.saturating_mul(10));
        format!(
            "conn=jdbc:{}://{host}{port}/{}{}\nuser={}\npassword={}\nwarehouses={warehouses}\n\
             terminals={terminals}\nrunMins={MINUTES}\n",
            engine.system(),
            named(&self.database, "tpcc"),
            self.params(engine),
            named(&self.user, "tpcc"),
            password.replace('\\', "\\\\").replace('\n', "\\n"),
        )
    }

    /// The parameters of the URL, with the separators.
    fn params(&self, engine: EngineName) -> String {
        let params = [
            ("localSocket", self.socket.as_deref()),
            ("sslMode", self.tls.map(TlsMode::name)),
            (engine.authority_key(), self.tls_ca.as_deref()),
        ];
        let mut text = String::new();
        for (key, value) in params {
            if let Some(value) = value {
                let sign = if text.is_empty() { '?' } else { '&' };
                // Writing to a string cannot fail.
                let _ = write!(text, "{sign}{key}={}", encoded(value));
            }
        }
        text
    }
}

/// Percent-encodes characters that have a meaning in a URL or in a props file.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Accepts a name without characters that have a meaning in a URL or in a props file.
fn plain(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_alphanumeric() || "_-.:$@".contains(c);
    if !text.is_empty() && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err("give only letters, digits and _ - . : $ @; use a props file for other names".to_owned())
}

/// Accepts the name or address of a host.
fn host_alone(text: &str) -> Result<String, String> {
    if text.contains('@') {
        return Err("give only the host, and the user with --user".to_owned());
    }
    if text.contains(':') && text.parse::<Ipv6Addr>().is_err() {
        return Err("give only the host, and the port with --port".to_owned());
    }
    plain(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use saiga_tpcc::db::options::Options;
    use saiga_tpcc::db::tls::Tls;
    use saiga_tpcc::props::Engine;

    use super::*;

    #[derive(clap::Parser)]
    struct Alone {
        #[arg(long)]
        props: Option<PathBuf>,
        #[command(flatten)]
        direct: Direct,
    }

    fn props(words: &str, password: &str) -> Props {
        let words = words.split_whitespace();
        let alone = Alone::parse_from(["saiga"].into_iter().chain(words));
        assert_eq!(alone.props, None);
        let engine = alone.direct.engine.unwrap();
        let text = alone.direct.text(engine, password);
        Props::parse(PathBuf::from("x"), &text).unwrap()
    }

    #[test]
    fn options_are_equivalent_to_a_props_file() {
        let usual = props("--engine mariadb", "");
        let url = &usual.url;
        assert_eq!(
            (url.engine, url.host.as_str(), url.port),
            (Engine::MySql, "127.0.0.1", 3306)
        );
        assert_eq!(
            (url.database.as_str(), usual.user.as_str()),
            ("tpcc", "tpcc")
        );
        assert_eq!((usual.warehouses, usual.run.unwrap().terminals), (1, 10));

        let words = "--engine postgres --host ::1 --port 5433 --user me --database shop \
                     --warehouses 4 --terminals 7";
        let all = props(words, r"a\=b#é");
        let url = &all.url;
        assert_eq!(
            (url.engine, url.host.as_str(), url.port),
            (Engine::Postgres, "::1", 5433)
        );
        assert_eq!((url.database.as_str(), all.user.as_str()), ("shop", "me"));
        assert_eq!((all.warehouses, all.run.unwrap().terminals), (4, 7));
        assert_eq!(all.password.reveal(), r"a\=b#é");
    }

    #[test]
    fn sockets_and_tls_are_parameters_of_the_url() {
        for (words, socket, tls) in [
            ("--engine mysql", None, None),
            ("--engine postgres --tls disable", None, None),
            (
                "--engine mariadb --socket /run/a&b%.s",
                Some("/run/a&b%.s"),
                None,
            ),
            (
                "--engine postgres --socket /run --port 5433",
                Some("/run"),
                None,
            ),
            (
                "--engine opengauss --tls require",
                None,
                Some(Tls::require()),
            ),
            (
                "--engine mysql --tls verify-ca --tls-ca /c#a.pem",
                None,
                Some(Tls::verify_ca("/c#a.pem".into())),
            ),
            (
                "--engine postgres --tls verify-full --tls-ca ca.pem",
                None,
                Some(Tls::verify_full("ca.pem".into())),
            ),
        ] {
            let options = Options::of(&props(words, "").url).unwrap();
            assert_eq!(options.socket, socket.map(PathBuf::from), "{words}");
            assert_eq!(options.tls, tls, "{words}");
            assert!(options.ignored.is_empty(), "{words}: {:?}", options.ignored);
        }
    }

    #[test]
    fn conflicting_options_are_refused() {
        for words in [
            "--engine mysql --tls verify-full",
            "--engine mysql --tls-ca ca.pem",
            "--engine mysql --socket /s --tls require",
            "--engine mysql --socket /s --host h",
            "--socket /s",
            "--tls require",
            "--engine mysql --props p.conf",
        ] {
            let words = ["saiga"].into_iter().chain(words.split_whitespace());
            assert!(Alone::try_parse_from(words.clone()).is_err(), "{words:?}");
        }
    }

    #[test]
    fn names_with_special_characters_are_refused() {
        for name in ["", "a b", "shop?ssl=1", "a/b", "a\nuser=root", "a\\"] {
            assert!(plain(name).is_err(), "{name:?}");
        }
        for (host, wanted) in [
            ("h:3307", "--port"),
            ("[::1]:1", "--port"),
            ("me@h", "--user"),
        ] {
            let said = host_alone(host).unwrap_err();
            assert!(said.contains(wanted), "{host}: {said}");
        }
        assert!(
            ["::1", "db-1.example"]
                .map(host_alone)
                .iter()
                .all(Result::is_ok)
        );
    }
}
