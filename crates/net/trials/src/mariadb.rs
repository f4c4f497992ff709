//! A private mariadbd on the kernel or under the library.
//!
//! Each server has its own data directory (a copy of a prepared one), socket and
//! ports, and is killed by its pid when dropped. Durability is turned down to what
//! survives a kill of the process, not of the machine: starts take half a second.
//!
//! Deliberately absent: load and the clients' questions; tests bring them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use saiga_status::reader::Page;

use crate::{
    census::Census,
    parity::{self, Arm},
    port,
};

mod client;
mod log;
mod template;

pub use client::Session;

use log::Log;

/// A start includes crash recovery; an end includes the slow parts of a shutdown.
const PATIENCE: Duration = Duration::from_secs(60);

/// On what a server or a client runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Under {
    /// The kernel alone.
    Kernel,
    /// The library, every connection upgraded at its first message.
    AtOnce,
    /// The library as users have it: a connection earns its channel.
    Earned,
}

impl Under {
    /// Whether the library is loaded at all.
    pub fn has_library(self) -> bool {
        self != Self::Kernel
    }

    fn dress(self, command: &mut Command) {
        let arm = match self {
            Self::Kernel => Arm::Kernel,
            Self::AtOnce | Self::Earned => Arm::Library,
        };
        parity::dress(command, arm);
        if self == Self::Earned {
            command.env_remove("SAIGA_EVIDENCE_MESSAGES");
        }
    }
}

/// One mariadbd, running or between a kill and its next start.
#[derive(Debug)]
pub struct Server {
    /// Its port.
    pub port: u16,
    /// The port that answers administrators when the first one is full.
    pub extra_port: u16,
    /// The address by which clients reach it.
    pub host: &'static str,
    under: Under,
    options: Vec<String>,
    running: Option<Running>,
    folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Running {
    child: Child,
    log: Log,
}

impl Server {
    /// Starts mariadbd with `options`, listening at two ports of 127.0.0.1 and ::1, with an
    /// empty database `trial`, and waits until it answers.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start(under: Under, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        template::copy_to(&folder.path().join("data"));
        let mut server = Self {
            port: port::free(),
            extra_port: port::free(),
            host: "127.0.0.1",
            under,
            options: options.iter().map(|&option| option.to_owned()).collect(),
            running: None,
            folder,
        };
        server.resume();
        server.must(Under::Kernel, "CREATE DATABASE trial");
        server
    }

    /// Starts it again on the same data and ports.
    ///
    /// # Panics
    /// When it does not come up; with its log.
    pub fn resume(&mut self) {
        assert!(self.running.is_none(), "it is running already");
        let mut child = self
            .command()
            .spawn()
            .unwrap_or_else(|error| panic!("{error}; apt-get install mariadb-server"));
        let log = Log::follow(child.stderr.take().expect("stderr was asked for"));
        let up = log.await_line("ready for connections", PATIENCE);
        self.running = Some(Running { child, log });
        assert!(up, "mariadbd does not start:\n{}", self.log());
    }

    fn command(&self) -> Command {
        let mut command = Command::new(server_program());
        self.under.dress(&mut command);
        let data = self.folder.path().join("data");
        command
            .args(["--no-defaults", "--bind-address=127.0.0.1,::1"])
            .arg(format!("--datadir={}", data.display()))
            // A server that starts deletes all temporary tables that it finds: in a folder that
            // others use as well, those of servers that run.
            .arg(format!("--tmpdir={}", self.folder.path().display()))
            .arg(format!("--socket={}", data.join("socket").display()))
            .arg(format!("--pid-file={}", data.join("pid").display()))
            .arg(format!("--port={}", self.port))
            .arg(format!("--extra-port={}", self.extra_port))
            .args(template::STORAGE)
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
            .stderr(Stdio::piped());
        command
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it was started")
    }

    /// Its pid.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pid(&self) -> u32 {
        self.running().child.id()
    }

    /// The last lines of its log.
    pub fn log(&self) -> String {
        self.running
            .as_ref()
            .map_or_else(String::new, |running| running.log.tail())
    }

    /// Its folder, for files that a test wants beside the data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How many connections it has upgraded so far; 0 on the kernel.
    pub fn upgrades(&self) -> u64 {
        if self.under.has_library() {
            Census::upgrades(self.pid())
        } else {
            0
        }
    }

    /// What its status page shows of its connections and why they stayed on TCP.
    ///
    /// # Panics
    /// When it does not run under the library.
    pub fn shown(&self) -> String {
        let page = Page::open(self.pid()).expect("it runs under the library");
        let shown = page.snapshot(u32::MAX).expect("the page can be read");
        format!("{:#?}\n{:?}", shown.sockets, shown.failures)
    }

    /// SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        let mut running = self.running.take().expect("it was started");
        // It may have ended by itself; then there is nothing to kill.
        let _ = running.child.kill();
        running.child.wait().expect("a child can be waited for");
    }

    /// Waits for an end that somebody else asked for.
    ///
    /// # Panics
    /// When it does not come; with its log.
    pub fn await_end(&mut self) -> ExitStatus {
        let ended = self.running().log.await_end(PATIENCE);
        assert!(ended, "mariadbd does not end:\n{}", self.log());
        let mut running = self.running.take().expect("it was started");
        running.child.wait().expect("a child can be waited for")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
    }
}

/// Debian keeps servers in sbin, which is not everybody's path.
fn server_program() -> PathBuf {
    let sbin = PathBuf::from("/usr/sbin/mariadbd");
    if sbin.is_file() {
        sbin
    } else {
        PathBuf::from("mariadbd")
    }
}

/// mariadbd refuses to be root by accident; the tests may be.
fn as_user() -> Option<&'static str> {
    let root = fs::metadata("/proc/self").is_ok_and(|owner| owner.uid() == 0);
    root.then_some("--user=root")
}
