//! The settings of a running server, read over its protocol, and files of new ones.

use std::collections::BTreeMap;
use std::env;
use std::net::{ToSocketAddrs as _, UdpSocket};

use anyhow::Context as _;
use saiga_redis::remote::Remote;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::{Session, SqlError};
use saiga_tpcc::driver::connection::Sessions;
use saiga_tpcc::props::{Password, Url};
use saiga_tune::database::Engine;
use saiga_tune::database::diff::{Running, Settings};
use saiga_tune::database::mysql_variables::{self, Origin};

/// Where the server is.
#[derive(Debug, clap::Args)]
pub(crate) struct At {
    /// Host of the server (Redis: this host only)
    #[arg(long, value_name = "NAME", default_value = "127.0.0.1")]
    host: String,
    /// Port of the server (default: 3306, 5432 or 6379)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// User to log in as (default: root or postgres)
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Unix socket to connect to instead of a host
    #[arg(long, value_name = "PATH", conflicts_with = "host")]
    socket: Option<String>,
}

impl At {
    /// A server of this host.
    pub(crate) fn here(port: Option<u16>, user: Option<String>, socket: Option<String>) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port,
            user,
            socket,
        }
    }

    /// Whether the address of the server is one of this host.
    pub(super) fn is_this_host(&self) -> bool {
        let mut addresses = (self.host.as_str(), 0)
            .to_socket_addrs()
            .into_iter()
            .flatten();
        // The kernel refuses to bind addresses of other hosts.
        self.socket.is_some() || addresses.any(|address| UdpSocket::bind(address).is_ok())
    }
}

/// A server with its settings.
pub(super) struct Server {
    /// Such as `MariaDB 10.11.6`.
    pub(super) version: String,
    pub(super) settings: Settings,
}

/// Logs in and reads all settings.
pub(super) fn read(engine: Engine, at: &At) -> anyhow::Result<Server> {
    let settings = match engine {
        Engine::Redis => return redis(at),
        Engine::MySql => mysql,
        Engine::Postgres | Engine::OpenGauss => postgres,
    };
    let mut session = sessions(engine, at)?.session()?;
    let version = session.server().version.clone();
    let settings = settings(&mut *session).context("cannot read the settings of the server")?;
    Ok(Server { version, settings })
}

/// Logs in with the password of MYSQL_PWD or PGPASSWORD.
pub(crate) fn sessions(engine: Engine, at: &At) -> anyhow::Result<Sessions> {
    let (system, user, database, variable) = match engine {
        Engine::MySql => ("mysql", "root", "information_schema", "MYSQL_PWD"),
        Engine::OpenGauss => ("opengauss", "postgres", "postgres", "PGPASSWORD"),
        Engine::Postgres | Engine::Redis => ("postgresql", "postgres", "postgres", "PGPASSWORD"),
    };
    let port = at.port.map_or(String::new(), |port| format!(":{port}"));
    let host = if at.host.contains(':') {
        format!("[{}]", at.host)
    } else {
        at.host.clone()
    };
    let socket = at.socket.as_ref();
    let socket = socket.map_or(String::new(), |path| format!("?localSocket={path}"));
    let url = Url::parse(&format!("jdbc:{system}://{host}{port}/{database}{socket}"))?;
    let password = env::var(variable).unwrap_or_default();
    Ok(Sessions {
        options: Options::of(&url)?,
        url,
        user: at.user.clone().unwrap_or_else(|| user.to_owned()),
        password: Password::new(password),
    })
}

/// The rows of a query, as text; NULL is empty.
fn rows<const N: usize>(
    session: &mut dyn Session,
    sql: &str,
) -> Result<Vec<[String; N]>, SqlError> {
    let mut rows = Rows::new();
    session.run(sql, &mut rows)?;
    let cell = |row: usize, column: usize| {
        if rows.is_null(row, column)? {
            Ok(String::new())
        } else {
            rows.text(row, column).map(str::to_owned)
        }
    };
    let row = |row: usize| -> Result<[String; N], SqlError> {
        let mut cells = [const { String::new() }; N];
        for (column, text) in cells.iter_mut().enumerate() {
            *text = cell(row, column)?;
        }
        Ok(cells)
    };
    (0..rows.len()).map(row).collect()
}

/// MySQL does not say which variables can be set while it runs; MariaDB does.
fn mysql(session: &mut dyn Session) -> Result<Settings, SqlError> {
    let variables = rows(session, "show global variables")?;
    let is_mariadb = session.server().version.starts_with("MariaDB");
    let sources = if is_mariadb {
        "select lower(variable_name), lower(global_value_origin), global_value_path, read_only \
         from information_schema.system_variables"
    } else {
        "select variable_name, lower(variable_source), variable_path, '' \
         from performance_schema.variables_info"
    };
    let origins: Vec<[String; 4]> = match rows(session, sources) {
        Ok(origins) => origins,
        // MySQL 5.7 has no such table, and a user may lack the privilege to read it.
        Err(SqlError::Refused { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let origin = |[name, kind, path, read_only]: [String; 4]| Origin {
        name,
        kind,
        path,
        is_read_only: is_mariadb.then_some(read_only == "YES"),
    };
    let origins = origins.into_iter().map(origin).collect();
    Ok(mysql_variables::settings(variables, origins))
}

fn postgres(session: &mut dyn Session) -> Result<Settings, SqlError> {
    let sql = "select name, setting, unit, source, sourcefile, context from pg_settings";
    let rows: Vec<[String; 6]> = rows(session, sql)?;
    let setting = |[name, value, unit, source, file, context]: [String; 6]| {
        let running = Running {
            value,
            unit: Some(unit).filter(|unit| !unit.is_empty()),
            from: Some(if file.is_empty() { source } else { file }),
            needs_restart: context == "postmaster",
        };
        (name, running)
    };
    Ok(rows.into_iter().map(setting).collect())
}

fn redis(at: &At) -> anyhow::Result<Server> {
    let port = at.port.unwrap_or(6379);
    let values = Remote::at(port).settings();
    let values: BTreeMap<String, String> =
        values.with_context(|| format!("cannot read the settings of redis at port {port}"))?;
    let setting = |(name, value): (String, String)| {
        // The number of threads is read at the start only.
        let needs_restart = matches!(name.as_str(), "io-threads" | "tcp-backlog");
        let running = Running {
            value,
            unit: None,
            from: None,
            needs_restart,
        };
        (name, running)
    };
    Ok(Server {
        version: format!("Redis at port {port}"),
        settings: values.into_iter().map(setting).collect(),
    })
}
