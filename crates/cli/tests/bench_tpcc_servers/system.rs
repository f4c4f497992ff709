//! A MariaDB or a PostgreSQL server behind one interface.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use saiga_tpcc::db::Session;
use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::props::Props;
use saiga_trials::parity::Arm;
use saiga_trials::witness::await_true;
use saiga_trials::{Signal, mariadb, postgres, sys};

/// User that owns the tables.
pub(crate) const OWNER: &str = "tpcc";
/// Password of that user; unique, so that a file that contains it is found.
pub(crate) const PASSWORD: &str = "PWbmsql";
pub(crate) const DATABASE: &str = "tpcc";

/// A server with a database and its owner.
pub(crate) enum System {
    MariaDb(mariadb::Server),
    Postgres(postgres::Server),
}

impl System {
    pub(crate) fn mariadb() -> Self {
        let server = mariadb::Server::start(
            mariadb::Kind::MariaDb,
            Arm::Kernel,
            &["--innodb-buffer-pool-size=192M"],
        );
        let system = Self::MariaDb(server);
        system.admin(
            "mysql",
            &[
                &format!("create database {DATABASE}"),
                &format!("create user {OWNER}@'%' identified by '{PASSWORD}'"),
                &format!("grant all on {DATABASE}.* to {OWNER}@'%'"),
            ],
        );
        system
    }

    pub(crate) fn postgres() -> Self {
        let system = Self::Postgres(postgres::Server::start(
            Arm::Kernel,
            &["shared_buffers=64MB"],
        ));
        system.admin(
            "postgres",
            &[
                &format!("create role {OWNER} login password '{PASSWORD}'"),
                &format!("create database {DATABASE} owner {OWNER}"),
            ],
        );
        system
    }

    /// `db=`, `driver=` and `conn=` as in real props files.
    pub(crate) fn props(&self) -> String {
        let conn = self.conn(DATABASE);
        match self {
            Self::MariaDb(_) => format!(
                "db=mysql\ndriver=com.mysql.cj.jdbc.Driver\nconn={conn}?useSSL=false&\
                 useServerPrepStmts=true&useConfigs=maxPerformance&rewriteBatchedStatements=true\n"
            ),
            Self::Postgres(_) => {
                format!("db=postgres\ndriver=org.postgresql.Driver\nconn={conn}\n")
            }
        }
    }

    /// The value of `--engine`, the variable of the password, and the port.
    pub(crate) fn named(&self) -> (&'static str, &'static str, u16) {
        match self {
            Self::MariaDb(server) => ("mariadb", "MYSQL_PWD", server.port),
            Self::Postgres(server) => ("postgres", "PGPASSWORD", server.port),
        }
    }

    /// The Unix socket; for PostgreSQL its directory.
    pub(crate) fn socket(&self) -> PathBuf {
        match self {
            Self::MariaDb(server) => server.data().join("socket"),
            Self::Postgres(server) => server.folder().to_owned(),
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        let (engine, port) = match self {
            Self::MariaDb(server) => ("mysql", server.port),
            Self::Postgres(server) => ("postgres", server.port),
        };
        format!("{engine} at 127.0.0.1:{port}, database {DATABASE}")
    }

    /// The directory of the built-in statements that drop tables.
    pub(crate) fn db(&self) -> &'static str {
        match self {
            Self::MariaDb(_) => "mysql",
            Self::Postgres(_) => "common",
        }
    }

    fn conn(&self, database: &str) -> String {
        match self {
            Self::MariaDb(server) => format!("jdbc:mysql://127.0.0.1:{}/{database}", server.port),
            Self::Postgres(server) => {
                format!("jdbc:postgresql://127.0.0.1:{}/{database}", server.port)
            }
        }
    }

    pub(crate) fn session(&self) -> Box<dyn Session> {
        self.open(DATABASE, OWNER)
    }

    /// Runs statements as the administrator.
    pub(crate) fn admin(&self, database: &str, statements: &[&str]) {
        let user = match self {
            Self::MariaDb(_) => "root",
            Self::Postgres(_) => "postgres",
        };
        let mut session = self.open(database, user);
        for sql in statements {
            session.run(sql, &mut Rows::new()).unwrap();
        }
    }

    fn open(&self, database: &str, user: &str) -> Box<dyn Session> {
        let password = if user == OWNER { PASSWORD } else { "" };
        let conn = self.conn(database);
        let text = format!("conn={conn}\nuser={user}\npassword={password}\nwarehouses=1\n");
        let props = Props::parse(PathBuf::from("test.props"), &text).unwrap();
        let options = Options::of(&props.url).unwrap();
        connect(&props.url, &props.user, &props.password, &options).unwrap()
    }

    /// Sends SIGKILL to all processes of the server.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::MariaDb(server) => server.kill(),
            Self::Postgres(server) => server.kill(),
        }
    }

    /// Starts the server again on the same data and port.
    pub(crate) fn resume(&mut self) {
        match self {
            Self::MariaDb(server) => server.resume(),
            Self::Postgres(server) => server.launch(),
        }
    }

    /// A standby with all data, which receives all further commits.
    pub(crate) fn standby(&self) -> postgres::Server {
        let Self::Postgres(server) = self else {
            panic!("PostgreSQL's standbys are told of each commit before the client is")
        };
        let standby = server.standby(Arm::Kernel, &["shared_buffers=64MB"]);
        self.admin(
            "postgres",
            &["alter system set synchronous_standby_names = '*'"],
        );
        self.admin("postgres", &["select pg_reload_conf()"]);
        let follows = "select count(*) from pg_stat_replication where sync_state = 'sync';";
        server.await_query(follows, "1");
        standby
    }

    /// Promotes the standby of a killed server, with the address of that server.
    pub(crate) fn fail_over(&mut self, mut standby: postgres::Server) {
        let Self::Postgres(server) = self else {
            panic!("it has no standby")
        };
        standby.query("select pg_promote()");
        standby.kill();
        standby.port = server.port;
        standby.launch();
        *server = standby;
    }

    /// Number of sessions of the owner, including this one.
    pub(crate) fn sessions(&self) -> String {
        let (list, user) = match self {
            Self::MariaDb(_) => ("information_schema.processlist", "user"),
            Self::Postgres(_) => ("pg_stat_activity", "usename"),
        };
        format!("select count(*) from {list} where {user} = '{OWNER}'")
    }

    /// Sends SIGSTOP to all processes, runs `meanwhile` once the last one is stopped, and sends
    /// SIGCONT.
    pub(crate) fn with_stopped_processes<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        let processes = match self {
            Self::MariaDb(server) => vec![server.pid()],
            Self::Postgres(server) => server.processes(),
        };
        for pid in &processes {
            // A process that has just ended counts as stopped.
            let _ = sys::signal(*pid, Signal::STOP);
        }
        for pid in &processes {
            await_true(|| is_stopped(*pid), || format!("{pid} does not stop"));
        }
        let happened = meanwhile();
        for pid in &processes {
            let _ = sys::signal(*pid, Signal::CONT);
        }
        happened
    }
}

/// Whether all threads are stopped or gone; a zombie's parent may be stopped, too.
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let mut states = threads.flatten().filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        // The command name may contain spaces and parentheses.
        stat.rsplit_once(") ")?.1.chars().next()
    });
    states.all(|state| matches!(state, 'T' | 'Z' | 'X'))
}

/// The length of a disturbance, which is the subject of the test; nothing is waited for.
#[expect(clippy::disallowed_methods, reason = "the length is what is tested")]
pub(crate) fn wait_out(time: Duration) {
    thread::sleep(time);
}
