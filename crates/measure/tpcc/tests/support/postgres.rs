//! A private PostgreSQL server in its own folder, on a free port of the loopback interface.
//!
//! If the tests run as root, the server runs as `postgres` or `nobody`. Dropping the [`Server`]
//! stops the server. If the thread that started it ends without that, the kernel stops the server
//! (`setpriv --pdeathsig`).
#![allow(dead_code, reason = "each test program uses its own part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::props::{Password, Props, Url};

/// The superuser, and the database that every cluster has.
pub(crate) const ADMIN: &str = "postgres";
/// A pg_hba.conf that admits all users without a password.
pub(crate) const TRUST: &str = "host all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n";

/// Settings for a fast start. fsync is off, because tests kill processes but not machines.
const SETTINGS: [&str; 8] = [
    "listen_addresses=127.0.0.1,::1",
    "unix_socket_directories=",
    "fsync=off",
    "dynamic_shared_memory_type=mmap",
    "shared_buffers=32MB",
    "max_connections=20",
    "superuser_reserved_connections=3",
    "log_min_messages=warning",
];
/// First port of a range below the ephemeral ports. The range does not overlap the ports of other
/// trials.
const FIRST_PORT: u16 = 10_000;
const PORTS: u32 = 9_000;

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    child: Child,
    said: Arc<Mutex<String>>,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server on a new cluster, with the given pg_hba.conf and settings, and waits until
    /// it accepts connections.
    pub(crate) fn start(hba: &str, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).unwrap();
        own(folder.path());
        let mut untar = as_server("tar");
        untar.arg("-C").arg(folder.path()).args(["-xf", "-"]);
        feed(untar, &CLUSTER);
        fs::write(folder.path().join("data/pg_hba.conf"), hba).unwrap();
        let port = free_port();
        let mut command = as_server(program("postgres"));
        command.arg("-D").arg(folder.path().join("data"));
        command.args(["-p", &port.to_string()]).current_dir(&folder);
        for setting in SETTINGS.iter().chain(settings) {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = listen(child.stderr.take().unwrap());
        Self {
            port,
            child,
            said,
            folder,
        }
    }

    /// The log of the server so far.
    pub(crate) fn log(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// The superuser's URL, with parameters such as `?prepareThreshold=0`.
    pub(crate) fn url(&self, params: &str) -> Url {
        let port = self.port;
        Url::parse(&format!(
            "jdbc:postgresql://127.0.0.1:{port}/{ADMIN}{params}"
        ))
        .unwrap()
    }

    /// Opens a session of the superuser.
    pub(crate) fn session(&self, params: &str) -> Box<dyn Session> {
        log_in(&self.url(params), ADMIN, "").unwrap()
    }

    /// Sends a signal to the postmaster.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        // The postmaster may have ended already.
        let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
    }

    /// Waits for the end of the postmaster.
    pub(crate) fn wait(&mut self) {
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::INT);
        self.wait();
        if thread::panicking() {
            eprintln!(
                "{}: the server said:\n{}",
                self.folder.path().display(),
                self.log()
            );
        }
    }
}

/// Opens a session by a URL, in the same way as Saiga.
pub(crate) fn log_in(
    url: &Url,
    user: &str,
    password: &str,
) -> Result<Box<dyn Session>, ConnectError> {
    connect(url, user, &secret(password), &Options::of(url).unwrap())
}

/// A [`Password`], read from a props file because there is no other way to create one.
pub(crate) fn secret(text: &str) -> Password {
    let text = format!("conn=jdbc:postgresql://h/t\nwarehouses=1\npassword={text}\n");
    Props::parse(PathBuf::from("test.props"), &text)
        .unwrap()
        .password
}

/// Collects the log of a server in the background. Returns when the server is ready.
fn listen(stderr: ChildStderr) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    loop {
        let Some(line) = lines.next() else {
            panic!("no server: {}", said.lock().unwrap());
        };
        let is_ready = line.contains("ready to accept connections");
        said.lock().unwrap().push_str(&(line + "\n"));
        if is_ready {
            break;
        }
    }
    let heard = Arc::clone(&said);
    thread::spawn(move || {
        for line in lines {
            heard.lock().unwrap().push_str(&(line + "\n"));
        }
    });
    said
}

/// An archive of a new cluster, created once.
static CLUSTER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    own(folder.path());
    let mut init = as_server(program("initdb"));
    init.args(["-U", ADMIN, "-A", "trust", "--no-sync", "--encoding=UTF8"]);
    init.args(["--locale=C", "--wal-segsize=1", "-D"]);
    init.arg(folder.path().join("data")).current_dir(&folder);
    output(init);
    let mut tar = as_server("tar");
    tar.arg("-C").arg(folder.path()).args(["-cf", "-", "data"]);
    output(tar)
});

fn output(mut command: Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    output.stdout
}

fn feed(mut command: Command, bytes: &[u8]) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    assert!(child.wait().unwrap().success(), "{command:?}");
}

/// A command that runs as the server's user and ends with this thread.
fn as_server(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if let Some((user, group)) = account() {
        command
            .arg(format!("--reuid={user}"))
            .arg(format!("--regid={group}"));
        command.arg("--clear-groups");
    }
    command.arg(program.as_ref()).env("LC_ALL", "C");
    command
}

/// Makes the server's user the owner of a file or folder.
pub(crate) fn own(path: &Path) {
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

/// User and group of the server, if they differ from those of this process.
fn account() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let of = |name: &str| {
        let mut lines = users.lines().map(|line| line.split(':'));
        let mut fields = lines.find_map(|mut all| (all.next() == Some(name)).then_some(all))?;
        let (_password, user, group) = (fields.next()?, fields.next()?, fields.next()?);
        Some((user.parse().ok()?, group.parse().ok()?))
    };
    Some(of("postgres").or_else(|| of("nobody")).unwrap())
}

/// The path of a program of the newest PostgreSQL.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .expect("PostgreSQL is installed; tools/setup test");
    PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin/{name}"))
}

/// A port on which no process listens.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(61);
    let mut ports = (0..PORTS).map(|_| {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed);
        FIRST_PORT + u16::try_from(first.wrapping_add(turn) % PORTS).unwrap()
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).expect("a free port")
}
