//! A private MariaDB or MySQL server, started with `saiga_trials`, and sessions with it. Each test
//! program defines `crate::KIND`, the kind of its server.
#![allow(dead_code, reason = "each test program uses its own part of it")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::{ConnectError, Session, connect::connect};
use saiga_tpcc::props::Props;
use saiga_trials::mariadb;
pub(crate) use saiga_trials::mariadb::Kind;
use saiga_trials::parity::Arm;

/// A small buffer pool, sufficient for one warehouse.
const BUFFERS: &str = "--innodb-buffer-pool-size=64M";

/// A server, running or killed.
pub(crate) struct Server {
    pub(crate) port: u16,
    server: Mutex<mariadb::Server>,
}

impl Server {
    /// Starts a server of the test program's kind with further options, and waits until it answers.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_of(crate::KIND, options)
    }

    /// As [`start`](Self::start), for a server of the given kind.
    pub(crate) fn start_of(kind: Kind, options: &[&str]) -> Self {
        let options = [&[BUFFERS], options].concat();
        let server = mariadb::Server::start(kind, Arm::Kernel, &options);
        Self {
            port: server.port,
            server: Mutex::new(server),
        }
    }

    /// The server that the tests of a program share. Each test uses its own database.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Server> = LazyLock::new(|| Server::start(&[]));
        &SHARED
    }

    /// The URL of a database, with parameters.
    pub(crate) fn url(&self, database: &str, params: &str) -> String {
        format!("jdbc:mysql://127.0.0.1:{}/{database}?{params}", self.port)
    }

    /// A session as root.
    pub(crate) fn admin(&self) -> Box<dyn Session> {
        open(&self.url("mysql", ""), "root", "").expect("root may log in")
    }

    pub(crate) fn database(&self, name: &str) {
        run_sql(&mut *self.admin(), &format!("create database {name}"));
    }

    /// The path of the Unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.data().join("socket")
    }

    /// Kills the server (SIGKILL) and waits for its end.
    pub(crate) fn kill(&self) {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.kill();
    }
}

/// Opens a session by a URL.
pub(crate) fn open(
    url: &str,
    user: &str,
    password: &str,
) -> Result<Box<dyn Session>, ConnectError> {
    let text = format!("conn={url}\nuser={user}\npassword={password}\nwarehouses=1\n");
    let props = Props::parse(PathBuf::from("test.props"), &text).expect("good props");
    let options = Options::of(&props.url).expect("good options");
    connect(&props.url, &props.user, &props.password, &options)
}

/// Executes SQL that must succeed. Returns the fields of all rows.
pub(crate) fn run_sql(session: &mut dyn Session, sql: &str) -> Vec<Vec<String>> {
    let mut rows = Rows::new();
    if let Err(error) = session.run(sql, &mut rows) {
        panic!("{error}");
    }
    shown(&rows)
}

/// The fields of all rows as text.
pub(crate) fn shown(rows: &Rows) -> Vec<Vec<String>> {
    let field = |row, column| rows.shown(row, column).expect("the row exists");
    let line = |row| {
        (0..rows.columns())
            .map(|column| field(row, column))
            .collect()
    };
    (0..rows.len()).map(line).collect()
}

/// The server's status counters.
pub(crate) fn counters(session: &mut dyn Session) -> BTreeMap<String, f64> {
    session
        .status()
        .expect("the server has counters")
        .into_iter()
        .collect()
}
