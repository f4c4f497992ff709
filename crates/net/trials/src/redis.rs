//! A private redis-server, and redis-cli as its long-lived client, on either arm.
//!
//! The server lives in its own temporary directory and on its own port, and is
//! killed by its pid when dropped. Deliberately absent: load; tests bring it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    bounded::{self, Outcome},
    parity::{self, Arm},
    peer::Peer,
    sys::{self, Signal},
    witness,
};

/// One running redis-server.
#[derive(Debug)]
pub struct Server {
    /// Its port.
    pub port: u16,
    host: &'static str,
    pid: u32,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts redis-server with `options` on `arm`, listening on 127.0.0.1 and ::1,
    /// and waits until it answers.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start(arm: Arm, host: &'static str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let port = witness::free_port();
        let pidfile = folder.path().join("pid");
        let mut command = Command::new("redis-server");
        parity::dress(&mut command, arm);
        command
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "::1",
                "--save",
                "",
            ])
            .args([
                "--enable-debug-command",
                "yes",
                "--daemonize",
                "yes",
                "--loglevel",
                "notice",
                "--logfile",
            ])
            .arg(folder.path().join("log"))
            .arg("--pidfile")
            .arg(&pidfile)
            .arg("--dir")
            .arg(folder.path())
            .args(options);
        let outcome = bounded::run_daemon(command);
        assert!(
            outcome.stderr.is_empty(),
            "redis-server: {outcome:?}; apt-get install redis-server"
        );
        let mut server = Self {
            port,
            host,
            pid: 0,
            folder,
        };
        server.await_answer(&pidfile);
        server
    }

    /// Asks until it answers, with a limit: a starting server refuses connections.
    fn await_answer(&mut self, pidfile: &Path) {
        for _ in 0..2000 {
            let pong = self.run_cli(Arm::Kernel, &["PING"]);
            let pid = fs::read_to_string(pidfile)
                .ok()
                .and_then(|text| text.trim().parse().ok());
            if let (true, Some(pid)) = (pong.stdout == "PONG\n", pid) {
                self.pid = pid;
                return;
            }
        }
        panic!("redis-server does not answer:\n{}", self.log());
    }

    /// Its pid, as it wrote it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn cli_command(&self, program: &str, arm: Arm) -> Command {
        let mut command = Command::new(program);
        parity::dress(&mut command, arm);
        command.args(["-h", self.host, "-p", &self.port.to_string()]);
        command
    }

    /// One command by a redis-cli of its own.
    pub fn run_cli(&self, arm: Arm, words: &[&str]) -> Outcome {
        let mut command = self.cli_command("redis-cli", arm);
        command.args(words);
        bounded::run(command, std::time::Duration::from_secs(30))
    }

    /// redis-benchmark with `words`.
    pub fn benchmark(&self, arm: Arm, words: &[&str]) -> Outcome {
        let mut command = self.cli_command("redis-benchmark", arm);
        command.args(words);
        bounded::run(command, std::time::Duration::from_secs(120))
    }

    /// A redis-benchmark that goes on in the background.
    pub fn load(&self, arm: Arm, words: &[&str]) -> Peer {
        let mut command = self.cli_command("redis-benchmark", arm);
        command.args(words).stderr(Stdio::null());
        Peer::spawn(command)
    }

    /// A redis-cli that stays connected.
    pub fn client(&self, arm: Arm) -> Client {
        let mut command = Command::new("sh");
        parity::dress(&mut command, arm);
        // Its complaints belong into the conversation.
        command.args([
            "-c",
            "exec redis-cli -h $0 -p $1 2>&1",
            self.host,
            &self.port.to_string(),
        ]);
        Client {
            peer: Peer::spawn(command),
            asked: 0,
        }
    }

    /// Whether its process has gone.
    pub fn is_gone(&self) -> bool {
        // Until its parent, init, has come by it is a zombie.
        fs::read_to_string(format!("/proc/{}/stat", self.pid)).map_or(true, |stat| {
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| rest.starts_with(" Z"))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let named = fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        if self.pid != 0 && named.starts_with("redis") {
            // Gone in between: nothing left to do.
            let _ = sys::signal(self.pid, Signal::Kill);
        }
    }
}

/// A redis-cli fed on stdin: one connection for all its commands.
#[derive(Debug)]
pub struct Client {
    peer: Peer,
    asked: u64,
}

impl Client {
    /// Sends `command`; the reply's lines, as redis-cli prints them to a pipe.
    ///
    /// # Panics
    /// When no reply comes within the limit.
    pub fn ask(&mut self, command: &str) -> String {
        self.send(command);
        self.reply()
    }

    /// Sends `command` without waiting for its reply; [`Client::reply`] takes it.
    pub fn send(&mut self, command: &str) {
        self.asked += 1;
        self.peer.tell(command);
        self.peer.tell(&format!("ECHO end-of-{}", self.asked));
    }

    /// The reply to the last [`Client::send`].
    ///
    /// # Panics
    /// When no reply comes within the limit.
    pub fn reply(&mut self) -> String {
        let mark = format!("end-of-{}", self.asked);
        let mut lines = Vec::new();
        loop {
            let line = self.peer.line().expect("redis-cli stays");
            if line == mark {
                return lines.join("\n").trim_end().to_owned();
            }
            lines.push(line);
        }
    }

    /// Sends `command`, whose reply is one line, with no mark behind it: inside
    /// MULTI, where the mark would be queued.
    pub fn ask_line(&mut self, command: &str) -> String {
        self.peer.tell(command);
        self.line()
    }

    /// Sends `command` that never returns, such as MONITOR or SUBSCRIBE.
    pub fn listen_by(&mut self, command: &str) {
        self.peer.tell(command);
    }

    /// The next line that redis-cli prints.
    ///
    /// # Panics
    /// When none comes within the limit.
    pub fn line(&mut self) -> String {
        self.peer.line().expect("redis-cli stays")
    }
}
