//! A private mariadbd, or mysqld, on the kernel or under the library.
//!
//! Each server has its own data directory (a copy of a prepared one), socket and
//! ports, and is killed by its pid when dropped. Durability is turned down to what
//! survives a kill of the process, not of the machine: starts take half a second,
//! MySQL's some more. What the two of them call differently is in `kind`.
//!
//! Deliberately absent: load and the clients' questions; tests bring them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use crate::{
    census::Census,
    leash,
    log::Log,
    parity::{self, Arm},
    port,
    sys::{self, Signal},
};

mod client;
mod kind;
mod replica;
mod template;

pub use client::Session;
pub use kind::Kind;

/// An end includes the slow parts of a shutdown.
const PATIENCE: Duration = Duration::from_secs(60);

/// One server, running or between a kill and its next start.
#[derive(Debug)]
pub struct Server {
    /// Whose.
    pub kind: Kind,
    /// Its port.
    pub port: u16,
    /// The port that answers administrators when the first one is full.
    pub extra_port: u16,
    /// The port of MySQL's X protocol.
    pub x_port: u16,
    /// The address by which clients reach it.
    pub host: &'static str,
    arm: Arm,
    options: Vec<String>,
    log: Log,
    running: Option<Child>,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server of this `kind` with `options`, listening at two ports of 127.0.0.1 and
    /// ::1, with an empty database `trial`, and waits until it answers.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
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

    /// Starts it again on the same data and ports.
    ///
    /// # Panics
    /// When it does not come up; with its log.
    pub fn resume(&mut self) {
        assert!(self.running.is_none(), "it is running already");
        let mark = self.log.mark();
        let child = leash::spawn(self.command(), Signal::Kill);
        let child = child.unwrap_or_else(|error| panic!("{error}; {}", self.kind.remedy()));
        self.running = Some(child);
        for text in self.kind.ready() {
            self.log.await_after(mark, text);
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.kind.server());
        parity::dress(&mut command, self.arm);
        let data = self.data();
        command
            .args(["--no-defaults", "--bind-address=127.0.0.1,::1"])
            .arg(format!("--datadir={}", data.display()))
            // A server that starts deletes all temporary tables that it finds: in a folder that
            // others use as well, those of servers that run.
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

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Its pid.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("it was started").id()
    }

    /// The last lines of its log.
    pub fn log(&self) -> String {
        self.log.tail()
    }

    /// Its folder, for files that a test wants beside the data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How many connections it has upgraded so far; 0 on the kernel.
    pub fn upgrades(&self) -> u64 {
        match self.arm {
            Arm::Kernel => 0,
            Arm::Library | Arm::Random(_) | Arm::Shipped => Census::upgrades(self.pid()),
        }
    }

    /// What its status page shows of its connections and why they stayed on TCP.
    ///
    /// # Panics
    /// When it does not run under the library.
    pub fn shown(&self) -> String {
        let shown = Census::shown(self.pid());
        format!("{:#?}\n{:?}", shown.sockets, shown.failures)
    }

    /// SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        let mut child = self.running.take().expect("it was started");
        // It may have ended by itself; then there is nothing to kill.
        let _ = child.kill();
        child.wait().expect("a child can be waited for");
    }

    /// Waits for an end that somebody else asked for.
    ///
    /// # Panics
    /// When it does not come; with its log.
    pub fn await_end(&mut self) -> ExitStatus {
        let ended = sys::await_end(self.pid(), PATIENCE).expect("it can be watched");
        assert!(ended, "it does not end:\n{}", self.log());
        let mut child = self.running.take().expect("it was started");
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

/// Either refuses to be root by accident; the tests may be.
fn as_user() -> Option<&'static str> {
    let root = fs::metadata("/proc/self").is_ok_and(|owner| owner.uid() == 0);
    root.then_some("--user=root")
}
