//! A database that options name as its own clients name it, in place of a props file.
//!
//! In: options of the command line, and the password in the variable that those clients read. Out:
//! the props that a file with the same meaning would give.

use std::env;
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use saiga_tpcc::props::Props;

/// Minutes of a run that is given no `--for`.
const MINUTES: u32 = 1;

/// Above the options in the help.
const HEADING: &str = "Without a props file (the password comes from MYSQL_PWD or PGPASSWORD)";

/// The options that stand in for a props file.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Direct {
    /// The database system
    #[arg(long, help_heading = HEADING, value_enum, conflicts_with = "props")]
    engine: Option<EngineName>,
    /// Its host (default: 127.0.0.1)
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "engine")]
    #[arg(value_parser = plain)]
    host: Option<String>,
    /// Its port (default: 3306 or 5432)
    #[arg(long, help_heading = HEADING, requires = "engine")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// The user to log in as (default: tpcc)
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "engine")]
    #[arg(value_parser = plain)]
    user: Option<String>,
    /// The database (default: tpcc)
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "engine")]
    #[arg(value_parser = plain)]
    database: Option<String>,
    /// Warehouses to load, or to run on (default: 1)
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "engine")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    warehouses: Option<u32>,
    /// Terminals of a run, at most ten for each warehouse (default: ten for each warehouse)
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "engine")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    terminals: Option<u32>,
}

/// A database system, by the name that its users know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Mysql,
    Mariadb,
    Postgres,
    // GaussDB, too.
    Opengauss,
}

impl EngineName {
    /// Its name in a JDBC URL.
    fn system(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
            Self::Postgres => "postgresql",
            Self::Opengauss => "opengauss",
        }
    }

    /// The variable in which the system's own clients look for a password.
    fn password_variable(self) -> &'static str {
        match self {
            Self::Mysql | Self::Mariadb => "MYSQL_PWD",
            Self::Postgres | Self::Opengauss => "PGPASSWORD",
        }
    }
}

impl Direct {
    /// What a props file for it would say; `None` where no database is named.
    ///
    /// # Errors
    /// A props file cannot hold the password.
    pub(super) fn props(&self) -> anyhow::Result<Option<Props>> {
        let Some(engine) = self.engine else {
            return Ok(None);
        };
        let variable = engine.password_variable();
        let password = env::var_os(variable).unwrap_or_default();
        let Some(password) = password.to_str().filter(|text| text.trim() == *text) else {
            bail!(
                "{variable} is not UTF-8, or begins or ends with a blank; such a password cannot be \
                 used here"
            );
        };
        let text = self.text(engine, password);
        Ok(Some(Props::parse(PathBuf::from("(no props file)"), &text)?))
    }

    fn text(&self, engine: EngineName, password: &str) -> String {
        let named = |name: &Option<String>, usual: &str| name.clone().unwrap_or(usual.to_owned());
        let host = named(&self.host, "127.0.0.1");
        // In a URL an IPv6 address is enclosed in brackets.
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host
        };
        let port = self.port.map_or(String::new(), |port| format!(":{port}"));
        let warehouses = self.warehouses.unwrap_or(1);
        let terminals = self.terminals.unwrap_or(warehouses.saturating_mul(10));
        format!(
            "conn=jdbc:{}://{host}{port}/{}\nuser={}\npassword={}\nwarehouses={warehouses}\n\
             terminals={terminals}\nrunMins={MINUTES}\n",
            engine.system(),
            named(&self.database, "tpcc"),
            named(&self.user, "tpcc"),
            password.replace('\\', "\\\\").replace('\n', "\\n"),
        )
    }
}

/// Accepts a name that has no other meaning in a URL or in a props file.
fn plain(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_alphanumeric() || "_-.:$@".contains(c);
    if !text.is_empty() && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err("letters, digits and _ - . : $ @ only; a props file holds other names".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use saiga_tpcc::props::Engine;

    use super::*;

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        direct: Direct,
    }

    fn props(words: &str, password: &str) -> Props {
        let words = words.split_whitespace();
        let alone = Alone::parse_from(["saiga"].into_iter().chain(words));
        let engine = alone.direct.engine.unwrap();
        let text = alone.direct.text(engine, password);
        Props::parse(PathBuf::from("x"), &text).unwrap()
    }

    #[test]
    fn options_say_what_a_props_file_would() {
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
    fn names_that_would_mean_something_else_are_refused() {
        for name in ["", "a b", "shop?ssl=1", "a/b", "a\nuser=root", "a\\"] {
            assert!(plain(name).is_err(), "{name:?}");
        }
    }
}
