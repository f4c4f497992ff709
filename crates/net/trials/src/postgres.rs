//! A private PostgreSQL server, and its client programs, on either arm.
//!
//! The server has its own temporary directory and port, and is shut down by its PID when dropped.
//! As root the server runs as `postgres`, so that client and server are different users.
//! Deliberately absent: load.

mod client;
mod cluster;
mod install;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::Duration,
};

pub use self::{client::Client, install::Account};
use saiga_process::proc;

use crate::{
    bounded::{self, Outcome},
    library,
    log::Log,
    parity::{self, Arm},
    peer::Peer,
    port, reaper,
    sys::{self, Signal},
};

/// A server that has not ended after this time counts as hung.
const SHUTDOWN: Duration = Duration::from_secs(30);
/// A client program that has not ended after this time counts as hung.
const CLIENT: Duration = Duration::from_secs(150);
/// Settings of every server: crashes of processes, not of machines, are tested.
const SETTINGS: [&str; 10] = [
    "listen_addresses=127.0.0.1,::1",
    "fsync=off",
    // A server that is killed leaves its shared memory in its own folder, not in /dev/shm.
    "dynamic_shared_memory_type=mmap",
    "max_connections=120",
    "shared_buffers=16MB",
    "max_wal_size=64MB",
    // Keeps changes for a standby that was killed until it is back.
    "wal_keep_size=128MB",
    "wal_receiver_status_interval=1s",
    "log_line_prefix=%p ",
    // Otherwise concurrent readers would change the order of a table's rows.
    "synchronize_seqscans=off",
];

/// One PostgreSQL server.
#[derive(Debug)]
pub struct Server {
    pub port: u16,
    pub log: Log,
    arm: Arm,
    settings: Vec<String>,
    child: Option<Child>,
    library: OnceLock<PathBuf>,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server with a fresh cluster and further `settings` (`name=value`) on `arm`, and
    /// waits until it accepts connections.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn start(arm: Arm, settings: &[&str]) -> Self {
        Self::start_with(arm, settings, |_| ())
    }

    /// Like [`start`](Self::start). `change` gets the directory of the cluster before the start.
    ///
    /// # Panics
    /// If the server does not become ready.
    pub fn start_with(arm: Arm, settings: &[&str], change: impl FnOnce(&Path)) -> Self {
        let mut server = Self::prepare(arm, settings);
        cluster::copy_to(server.folder.path());
        change(&server.data());
        server.launch();
        server
    }

    /// Starts a standby of `self` on `arm`, from a base backup taken on the same arm.
    ///
    /// # Panics
    /// If the backup fails or the standby does not become ready.
    pub fn standby(&self, arm: Arm, settings: &[&str]) -> Self {
        let mut standby = Self::prepare(arm, settings);
        let mut backup = self.command("pg_basebackup", Account::Server, arm);
        backup
            .args([
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--wal-method=stream",
            ])
            .arg("-D")
            .arg(standby.data());
        let outcome = bounded::run(backup, CLIENT);
        assert!(
            outcome.is_success(),
            "pg_basebackup: {outcome:?}\n{}",
            self.log.tail()
        );
        standby.launch();
        standby
    }

    fn prepare(arm: Arm, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        Account::Server.own(folder.path());
        Self {
            port: port::free(),
            log: Log::new(),
            arm,
            settings: settings.iter().map(|text| (*text).to_owned()).collect(),
            child: None,
            library: OnceLock::new(),
            folder,
        }
    }

    /// A copy of the library, because the server's account may be unable to read the build
    /// directory.
    fn library(&self) -> &Path {
        self.library.get_or_init(|| {
            let copy = self.folder.path().join("libsaiga.so");
            fs::copy(library::path(), &copy).expect("the library can be copied");
            copy
        })
    }

    /// Starts the server on its cluster, which a former server may have left behind.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn launch(&mut self) {
        let mark = self.log.mark();
        let mut command = self.command("postgres", Account::Server, self.arm);
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string(), "-k"])
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(self.log.writer())
            .stderr(self.log.writer());
        let own = self.settings.iter().map(String::as_str);
        for setting in SETTINGS.into_iter().chain(own) {
            command.args(["-c", setting]);
        }
        // PostgreSQL ends its children, too, on SIGQUIT.
        let child = reaper::spawn(command, Signal::QUIT);
        self.child = Some(child.unwrap_or_else(|error| panic!("cannot start postgres: {error}")));
        self.log.await_after(mark, "ready to accept");
    }

    /// The directory of the cluster.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The server's directory, in which client programs run as well.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The PID in the postmaster's PID file.
    ///
    /// # Panics
    /// If no postmaster is running.
    pub fn pid(&self) -> u32 {
        self.running().expect("a running postmaster")
    }

    fn running(&self) -> Option<u32> {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// A PostgreSQL program on `arm`, with the server's address in its environment.
    pub fn command(&self, program: &str, account: Account, arm: Arm) -> Command {
        let mut command = Command::new(install::program(program));
        self.set_environment(&mut command, account, arm);
        command
    }

    /// Gives `command` the environment of a client of `account` on `arm`.
    pub fn set_environment(&self, command: &mut Command, account: Account, arm: Arm) {
        parity::set_environment(command, arm);
        account.take_on(command);
        if arm != Arm::Kernel {
            command.env("LD_PRELOAD", self.library());
        }
        command
            .env("HOME", self.folder.path())
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres")
            .current_dir(self.folder.path());
    }

    /// Runs a client program to its end.
    pub fn run(&self, program: &str, arm: Arm, words: &[&str]) -> Outcome {
        let mut command = self.command(program, Account::Ours, arm);
        command.args(words);
        bounded::run(command, CLIENT)
    }

    /// Runs a client program that must succeed; returns its output.
    ///
    /// # Panics
    /// If it fails; shows the server's last lines.
    pub fn must(&self, program: &str, arm: Arm, words: &[&str]) -> String {
        let outcome = self.run(program, arm, words);
        assert!(
            outcome.is_success(),
            "{program} {words:?} on {arm:?}: {outcome:?}\n{}",
            self.log.tail()
        );
        outcome.stdout
    }

    /// Runs one SQL command with a separate psql on the kernel, beside the connections under test.
    ///
    /// # Panics
    /// If it fails.
    pub fn query(&self, sql: &str) -> String {
        let words = ["-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql];
        self.must("psql", Arm::Kernel, &words).trim_end().to_owned()
    }

    /// Repeats `sql` until the result is `wanted`, for work in the background.
    ///
    /// # Panics
    /// If the result never is `wanted`.
    pub fn await_query(&self, sql: &str, wanted: &str) {
        let mut answer = String::new();
        let mut control = self.client(Arm::Kernel);
        for _ in 0..100_000 {
            answer = control.ask(sql);
            if answer == wanted {
                return;
            }
        }
        panic!("{sql} stays {answer}, not {wanted}\n{}", self.log.tail());
    }

    /// A client program that runs in the background.
    pub fn background(&self, program: &str, arm: Arm, words: &[&str]) -> Peer {
        let mut command = self.command(program, Account::Ours, arm);
        command.args(words).stderr(Stdio::null());
        Peer::spawn(command)
    }

    /// A psql that stays connected.
    pub fn client(&self, arm: Arm) -> Client {
        self.client_as(Account::Ours, arm, &[])
    }

    /// A psql that stays connected, of `account` and with further variables such as PGOPTIONS.
    pub fn client_as(&self, account: Account, arm: Arm, env: &[(&str, &str)]) -> Client {
        let mut command = Command::new("sh");
        self.set_environment(&mut command, account, arm);
        // Error messages belong into the conversation.
        command
            .args(["-c", "exec \"$0\" -XqAt 2>&1"])
            .arg(install::program("psql"))
            .envs(env.iter().copied());
        Client::spawn(command)
    }

    /// Runs `pg_ctl` with `words`, as the administrator on the server's own arm.
    fn ctl(&self, words: &[&str]) {
        let mut command = self.command("pg_ctl", Account::Server, self.arm);
        command.arg("-D").arg(self.data()).args(words);
        command.stdout(self.log.writer()).stderr(self.log.writer());
        // A postmaster that pg_ctl starts is a daemon.
        reaper::keep(&mut command);
        let status = command.stdin(Stdio::null()).status();
        let status = status.expect("pg_ctl can be started");
        assert!(
            status.success(),
            "pg_ctl {words:?}: {status}\n{}",
            self.log.tail()
        );
    }

    /// Runs `pg_ctl restart -m fast`: sessions are ended, the same cluster goes on.
    ///
    /// # Panics
    /// If it fails.
    pub fn restart(&mut self) {
        self.ctl(&["-m", "fast", "-w", "restart"]);
        self.reap();
    }

    /// The postmaster and its children.
    pub fn processes(&self) -> Vec<u32> {
        let leader = self.pid();
        let path = format!("/proc/{leader}/task/{leader}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        let children = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        std::iter::once(leader).chain(children).collect()
    }

    /// Sends SIGKILL to all processes of the server at once, as when memory runs out.
    ///
    /// # Panics
    /// If they do not end.
    pub fn kill(&mut self) {
        let processes = self.processes();
        for pid in &processes {
            // A process that has just ended by itself needs no signal.
            let _ = sys::signal(*pid, Signal::KILL);
        }
        for pid in processes {
            assert!(
                sys::await_end(pid, SHUTDOWN).expect("it can be watched"),
                "{pid} lives on"
            );
        }
        self.reap();
    }

    /// Reaps a postmaster that has ended; until then its lock file is valid.
    pub fn reap(&mut self) {
        if let Some(mut child) = self.child.take() {
            // After a restart by pg_ctl this is the former postmaster, which has ended.
            let _ = child.wait();
        }
    }

    /// Sends SIGQUIT, on which the postmaster and its children end at once, and waits for the end.
    pub fn quit(&mut self) {
        self.ends_by(self.pid(), Signal::QUIT);
        self.reap();
    }

    /// Whether the process ends after `signal`.
    fn ends_by(&self, pid: u32, signal: Signal) -> bool {
        sys::signal(pid, signal).is_err() || sys::await_end(pid, SHUTDOWN).unwrap_or(true)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("port {}, last said:\n{}", self.port, self.log.tail());
        }
        let Some(pid) = self.running() else { return };
        if !proc::name(pid).starts_with("postgres") {
            return;
        }
        let clean = self.ends_by(pid, Signal::INT);
        if !clean {
            self.kill();
        }
        self.reap();
        let tail = self.log.tail();
        assert!(clean || thread::panicking(), "no end after SIGINT:\n{tail}");
    }
}
