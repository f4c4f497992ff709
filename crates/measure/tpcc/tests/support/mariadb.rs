//! A private mariadbd, or mysqld, of `saiga_trials`, and sessions of ours with it. `crate::KIND` says
//! which of them a test program speaks to.
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

/// Small, and large enough for a warehouse.
const BUFFERS: &str = "--innodb-buffer-pool-size=64M";

/// One server, running or killed.
pub(crate) struct Server {
    pub(crate) port: u16,
    server: Mutex<mariadb::Server>,
}

impl Server {
    /// Starts one with more options, and waits until it answers.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_of(crate::KIND, options)
    }

    /// The same of another kind than the test program's.
    pub(crate) fn start_of(kind: Kind, options: &[&str]) -> Self {
        let options = [&[BUFFERS], options].concat();
        let server = mariadb::Server::start(kind, Arm::Kernel, &options);
        Self {
            port: server.port,
            server: Mutex::new(server),
        }
    }

    /// One that tests share; each uses a database of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Server> = LazyLock::new(|| Server::start(&[]));
        &SHARED
    }

    /// Its URL for a database, with `params` behind the `?`.
    pub(crate) fn url(&self, database: &str, params: &str) -> String {
        format!("jdbc:mysql://127.0.0.1:{}/{database}?{params}", self.port)
    }

    /// A session of its administrator.
    pub(crate) fn admin(&self) -> Box<dyn Session> {
        open(&self.url("mysql", ""), "root", "").expect("root may log in")
    }

    /// A new, empty database.
    pub(crate) fn database(&self, name: &str) {
        run_sql(&mut *self.admin(), &format!("create database {name}"));
    }

    /// Its Unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.data().join("socket")
    }

    /// SIGKILL, and waits for its end.
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

/// Runs SQL that must work. What it says, field by field.
pub(crate) fn run_sql(session: &mut dyn Session, sql: &str) -> Vec<Vec<String>> {
    let mut rows = Rows::new();
    if let Err(error) = session.run(sql, &mut rows) {
        panic!("{error}");
    }
    shown(&rows)
}

/// Every field as a reader would write it.
pub(crate) fn shown(rows: &Rows) -> Vec<Vec<String>> {
    let field = |row, column| rows.shown(row, column).expect("it is there");
    let line = |row| {
        (0..rows.columns())
            .map(|column| field(row, column))
            .collect()
    };
    (0..rows.len()).map(line).collect()
}

/// The server's counters.
pub(crate) fn counters(session: &mut dyn Session) -> BTreeMap<String, f64> {
    session
        .status()
        .expect("it has counters")
        .into_iter()
        .collect()
}
