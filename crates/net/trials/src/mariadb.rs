//! A private mariadbd, or mysqld, on the kernel or under the library.
//!
//! Each server has its own data directory (a copy of a prepared one), socket and ports, and is
//! killed by its PID when dropped. Durability is reduced: data survive a kill of the process, not
//! of the machine. So a start takes half a second, MySQL's a little more. Differences of names
//! between the two are in `kind`.
//!
//! Deliberately absent: load and queries; tests bring them.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use saiga_process::account::Account;

use crate::{
    census::Census,
    log::Log,
    parity::{self, Arm},
    port, reaper,
    sys::{self, Signal},
};

mod client;
mod kind;
mod replica;
mod template;

pub use client::Session;
pub use kind::Kind;

/// Longest wait for an end, which includes the slow parts of a shutdown.
const PATIENCE: Duration = Duration::from_secs(60);

/// One server, running or between a kill and its next start.
#[derive(Debug)]
pub struct Server {
    pub kind: Kind,
    pub port: u16,
    /// The port for administrators when the first one has no free connection.
    pub extra_port: u16,
    /// The port of MySQL's X protocol.
    pub x_port: u16,
    /// The address that clients use.
    pub host: &'static str,
    arm: Arm,
    options: Vec<String>,
    log: Log,
    running: Option<Child>,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server of this `kind` with `options`, listening on two ports of 127.0.0.1 and ::1,
    /// with an empty database `trial`, and waits until it is ready.
    ///
    /// # Panics
    /// If it is not installed or does not become ready.
    pub fn start(kind: Kind, arm: Arm, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        template::copy_to(kind, &folder.path().join("data"));
        let mut server = Self {
            kind,
            port: port::free(),
            extra_port: port::free(),
            x_port: port::free(),
            host: "127.0.0.1",
            arm,
            options: options.iter().map(|&option| option.to_owned()).collect(),
            log: Log::new(),
            running: None,
            folder,
        };
        server.resume();
        server.must(Arm::Kernel, "CREATE DATABASE trial");
        server
    }

    /// Starts the server again on the same data and ports.
    ///
    /// # Panics
    /// If it does not become ready; shows its log.
    pub fn resume(&mut self) {
        assert!(self.running.is_none(), "the server is running already");
        let mark = self.log.mark();
        let child = reaper::spawn(self.command(), Signal::KILL);
        self.running = Some(child.expect("the server can be started"));
        for text in self.kind.ready() {
            self.log.await_after(mark, text);
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.kind.server());
        parity::set_environment(&mut command, self.arm);
        let data = self.data();
        command
            .args(["--no-defaults", "--bind-address=127.0.0.1,::1"])
            .arg(format!("--datadir={}", data.display()))
            // A starting server deletes all temporary tables that it finds: in a folder shared with
            // others, those of running servers.
            .arg(format!("--tmpdir={}", self.folder.path().display()))
            .arg(format!("--socket={}", data.join("socket").display()))
            .arg(format!("--pid-file={}", data.join("pid").display()))
            .arg(format!("--port={}", self.port))
            .args(self.kind.listening(self))
            .args(self.kind.storage())
            .args([
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-buffer-pool-load-at-startup=0",
                "--innodb-buffer-pool-dump-at-shutdown=0",
                "--skip-name-resolve",
                "--local-infile=1",
                "--max-connections=400",
            ])
            .args(as_user())
            .args(&self.options)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log.writer());
        command
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// PID of the running server.
    ///
    /// # Panics
    /// If it is not running.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("a running server").id()
    }

    /// The last lines of the server's log.
    pub fn log(&self) -> String {
        self.log.tail()
    }

    /// The server's folder, for files that a test needs beside the data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Number of connections that the server has upgraded so far; 0 on the kernel.
    pub fn upgrades(&self) -> u64 {
        match self.arm {
            Arm::Kernel => 0,
            Arm::Library | Arm::Random(_) | Arm::Shipped => Census::upgrades(self.pid()),
        }
    }

    /// The status page's connections and reasons for staying on TCP, as text.
    ///
    /// # Panics
    /// If the server does not run under the library.
    pub fn shown(&self) -> String {
        let shown = Census::shown(self.pid());
        format!("{:#?}\n{:?}", shown.sockets, shown.failures)
    }

    /// Sends SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        let mut child = self.running.take().expect("a running server");
        // It may have ended by itself; then there is nothing to kill.
        let _ = child.kill();
        child.wait().expect("a child can be waited for");
    }

    /// Waits for an end that another program has requested.
    ///
    /// # Panics
    /// If the server does not end; shows its log.
    pub fn await_end(&mut self) -> ExitStatus {
        let ended = sys::await_end(self.pid(), PATIENCE).expect("a process to watch");
        assert!(ended, "the server does not end:\n{}", self.log());
        let mut child = self.running.take().expect("a running server");
        child.wait().expect("a child can be waited for")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
    }
}

/// The option without which both servers refuse to run as root, if the tests do.
fn as_user() -> Option<&'static str> {
    Account::is_root().then_some("--user=root")
}
