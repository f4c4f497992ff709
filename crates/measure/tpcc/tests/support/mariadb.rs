//! A private mariadbd, or mysqld: its own folder, a free port of 127.0.0.1, killed with the test
//! process. `crate::KIND` says which of them a test program speaks to.
//!
//! Data directories are copies of one that is prepared once for each version. Durability is
//! turned down to what survives a kill of the process.
#![allow(dead_code, reason = "each test program uses its own part of it")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, mpsc};
use std::{fs, io, thread};

use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::{ConnectError, Session, connect::connect};
use saiga_tpcc::props::Props;

const READY: &str = "ready for connections";
/// MySQL knows but root@localhost, which without a resolver nobody is.
const ACCOUNTS: &str = "create user root@'127.0.0.1';\n\
    grant all on *.* to root@'127.0.0.1' with grant option;\n";

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// MariaDB of this host.
    MariaDb,
    /// MySQL of `target/mysql`, where `make soak` puts it.
    MySql,
}

impl Kind {
    /// Debian keeps servers in sbin, which is not everybody's path.
    fn program(self) -> PathBuf {
        let sbin = Path::new("/usr/sbin/mariadbd");
        match self {
            Self::MariaDb if sbin.is_file() => sbin.to_owned(),
            Self::MariaDb => "mariadbd".into(),
            Self::MySql => {
                let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
                root.join("target/mysql/mysqld")
            }
        }
    }

    /// What the files depend on; small, so that a copy and a start are fast. And what either does
    /// otherwise by itself: take files, log changes, listen at more ports.
    fn storage(self) -> &'static [&'static str] {
        match self {
            Self::MariaDb => &[
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=32M",
                "--innodb-doublewrite=0",
            ],
            Self::MySql => &[
                "--innodb-buffer-pool-size=64M",
                "--innodb-redo-log-capacity=32M",
                "--innodb-doublewrite=0",
                "--local-infile=1",
                "--mysqlx=OFF",
                "--secure-file-priv=NULL",
                "--skip-log-bin",
            ],
        }
    }

    /// What helps when it is missing.
    fn remedy(self) -> &'static str {
        match self {
            Self::MariaDb => "apt-get install mariadb-server",
            Self::MySql => "tools/mysql target/mysql",
        }
    }
}

/// One server, running or killed.
pub(crate) struct Server {
    pub(crate) port: u16,
    child: Mutex<Child>,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts one with more options, and waits until it answers.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_of(crate::KIND, options)
    }

    /// The same of another kind than the test program's.
    pub(crate) fn start_of(kind: Kind, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let data = folder.path().join("data");
        run(Command::new("cp").arg("-a").arg(prepared(kind)).arg(&data));
        let port = free_port();
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(kind.program())
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", folder.path().display()))
            .arg(format!(
                "--socket={}",
                folder.path().join("socket").display()
            ))
            .arg(format!(
                "--pid-file={}",
                folder.path().join("pid").display()
            ))
            .arg(format!("--port={port}"))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args(kind.storage())
            .args([
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-buffer-pool-load-at-startup=0",
                "--innodb-buffer-pool-dump-at-shutdown=0",
            ])
            .args(as_user())
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = spawn(command).unwrap_or_else(|error| panic!("no setpriv: {error}"));
        let log = child.stderr.take().expect("it is piped");
        await_ready(kind, log);
        Self {
            port,
            child: Mutex::new(child),
            _folder: folder,
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

    /// SIGKILL, and waits for its end.
    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().expect("nobody panics while holding it");
        child.kill().expect("it runs");
        child.wait().expect("a child can be waited for");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self
            .child
            .get_mut()
            .expect("nobody panics while holding it");
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
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

/// A port below the ephemeral range (`man 7 ip`), so that no outgoing connection takes it before
/// the server does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin far from each other.
    let first = std::process::id().wrapping_mul(61);
    let mut ports = (0..12_000).map(|_| {
        let turn = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        20_000 + u16::try_from(turn % 12_000).expect("it is small")
    });
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

/// Reads the server's log until it is ready; a thread reads the rest, so that it never waits.
fn await_ready(kind: Kind, log: impl io::Read + Send + 'static) {
    let mut lines = BufReader::new(log).lines().map_while(Result::ok);
    let mut said = Vec::new();
    for line in lines.by_ref() {
        if line.contains(READY) {
            thread::spawn(move || lines.for_each(drop));
            return;
        }
        said.push(line);
    }
    panic!("the server ended; {}?\n{}", kind.remedy(), said.join("\n"));
}

/// Starts a process from a thread that never ends: `pdeathsig` is about threads.
fn spawn(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
        let (order, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, tell) in orders {
                // Who ordered it waits for the answer.
                let _ = tell.send(command.spawn());
            }
        });
        order
    });
    let (tell, told) = mpsc::channel();
    STARTER.send((command, tell)).expect("it takes orders");
    told.recv().expect("it answers each")
}

/// The prepared data directory.
fn prepared(kind: Kind) -> &'static Path {
    static PREPARED: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    let (name, prepared) = match kind {
        Kind::MariaDb => ("mariadb", &PREPARED[0]),
        Kind::MySql => ("mysql", &PREPARED[1]),
    };
    prepared.get_or_init(|| {
        let name = format!("{name}-{}", version(kind));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if !folder.is_dir() {
            install(kind, &folder);
        }
        folder
    })
}

/// Another test process may do the same: the first to rename its result wins.
fn install(kind: Kind, folder: &Path) {
    let fresh = folder.with_extension(std::process::id().to_string());
    match kind {
        Kind::MariaDb => install_mariadb(&fresh),
        Kind::MySql => install_mysql(&fresh),
    }
    if fs::rename(&fresh, folder).is_err() {
        assert!(folder.is_dir(), "the build folder is not writable");
        fs::remove_dir_all(&fresh).expect("our own folder can be removed");
    }
}

fn install_mariadb(folder: &Path) {
    let mut command = Command::new("mariadb-install-db");
    command
        .args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ])
        .args(Kind::MariaDb.storage())
        .args(as_user())
        .arg(format!("--datadir={}", folder.display()));
    run(&mut command);
}

fn install_mysql(folder: &Path) {
    let accounts = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(&accounts, ACCOUNTS).expect("room on the disk");
    let mut command = Command::new(Kind::MySql.program());
    command
        .args(["--no-defaults", "--initialize-insecure"])
        .arg(format!("--init-file={}", accounts.path().display()))
        .args(Kind::MySql.storage())
        .args(as_user())
        .arg(format!("--datadir={}", folder.display()));
    run(&mut command);
}

fn version(kind: Kind) -> String {
    let output = Command::new(kind.program())
        .args(["--no-defaults", "--version"])
        .output();
    let output = output.unwrap_or_else(|error| panic!("{error}; {}", kind.remedy()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().skip_while(|&word| word != "Ver");
    words
        .nth(1)
        .expect("a server says its version")
        .replace('.', "-")
}

/// Either refuses to be root by accident; the tests may be.
fn as_user() -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let is_root = fs::metadata("/proc/self").is_ok_and(|owner| owner.uid() == 0);
    is_root.then_some("--user=root")
}

fn run(command: &mut Command) {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
}
