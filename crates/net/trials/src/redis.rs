//! A private redis-server, and redis-cli as its long-lived client, on either arm.
//!
//! The server has its own temporary directory and port, and is killed by its PID when dropped.
//! Deliberately absent: load; tests bring it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    bounded::{self, Outcome},
    census::Census,
    parity::{self, Arm},
    peer::Peer,
    port,
    scale::patient,
    sys::{self, Signal},
};

/// An expected state that does not come within this time counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two checks of a server.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// A running redis-server, or a sentinel.
#[derive(Debug)]
pub struct Server {
    pub port: u16,
    host: &'static str,
    arm: Arm,
    words: Vec<String>,
    pid: u32,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts redis-server with `options` on `arm`, listening on 127.0.0.1 and ::1, and waits until
    /// it answers.
    ///
    /// # Panics
    /// If it is not installed or does not answer.
    pub fn start(arm: Arm, host: &'static str, options: &[&str]) -> Self {
        Self::start_on_port(arm, host, port::free(), options)
    }

    /// Starts a server on a port that the caller chose: a cluster's bus port depends on it.
    ///
    /// # Panics
    /// If it is not installed or does not answer.
    pub fn start_on_port(arm: Arm, host: &'static str, port: u16, options: &[&str]) -> Self {
        let mut words = vec!["--save", "", "--enable-debug-command", "yes"];
        words.extend(options);
        Self::launch(arm, host, port, &words, None)
    }

    /// Starts a server with a configuration file that has the further `lines`.
    ///
    /// # Panics
    /// If it is not installed or does not answer.
    pub fn configured(arm: Arm, host: &'static str, lines: &[String]) -> Self {
        let own = ["save \"\"", "enable-debug-command yes"].map(str::to_owned);
        let file = ("redis.conf", &[&own, lines].concat()[..]);
        Self::launch(arm, host, port::free(), &[], Some(file))
    }

    /// Starts a sentinel with `rules`, the lines of its configuration file.
    ///
    /// # Panics
    /// If it is not installed or does not answer.
    pub fn sentinel(arm: Arm, host: &'static str, rules: &[String]) -> Self {
        let file = ("sentinel.conf", rules);
        Self::launch(arm, host, port::free(), &["--sentinel"], Some(file))
    }

    fn launch(
        arm: Arm,
        host: &'static str,
        port: u16,
        options: &[&str],
        file: Option<(&str, &[String])>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut words = Vec::new();
        if let Some((name, lines)) = file {
            let file = at(name);
            fs::write(&file, lines.join("\n") + "\n").expect("a configuration file");
            words.push(file);
        }
        let (port_text, dir) = (port.to_string(), folder.path().display().to_string());
        let (log, pidfile) = (at("log"), at("pid"));
        words.extend(
            [
                &["--port", &port_text, "--bind", "127.0.0.1", "::1"][..],
                &["--daemonize", "yes", "--loglevel", "notice"],
                &["--logfile", &log, "--pidfile", &pidfile, "--dir", &dir],
                options,
            ]
            .concat()
            .into_iter()
            .map(str::to_owned),
        );
        let mut server = Self {
            port,
            host,
            arm,
            words,
            pid: 0,
            folder,
        };
        server.run();
        server
    }

    fn run(&mut self) {
        let pidfile = self.folder.path().join("pid");
        let mut command = Command::new("redis-server");
        parity::set_environment(&mut command, self.arm);
        command.args(&self.words);
        let outcome = bounded::run_daemon(command);
        assert!(
            outcome.stderr.is_empty(),
            "redis-server: {outcome:?}; apt-get install redis-server"
        );
        self.await_answer(&pidfile);
    }

    /// Sends SIGKILL, and waits until the process has ended.
    ///
    /// # Panics
    /// If it does not end.
    pub fn kill(&self) {
        sys::signal(self.pid, Signal::KILL).expect("a running server");
        self.await_gone();
    }

    /// Waits until the process has ended.
    ///
    /// # Panics
    /// If it does not end.
    pub fn await_gone(&self) {
        self.until("end", |server| server.is_gone());
    }

    /// Starts the server again in the same folder and on the same port.
    ///
    /// # Panics
    /// If it is still running, or does not answer.
    pub fn start_again(&mut self) {
        assert!(self.is_gone(), "the server is still running");
        self.pid = 0;
        // A server that was killed could not remove the file.
        let _ = fs::remove_file(self.folder.path().join("pid"));
        self.run();
    }

    /// Runs one command with a client on the kernel; returns the answer.
    pub fn ask(&self, words: &[&str]) -> String {
        self.run_cli(Arm::Kernel, words)
            .stdout
            .trim_end()
            .to_owned()
    }

    /// The value of one field of INFO; empty if there is no such field.
    pub fn info(&self, section: &str, field: &str) -> String {
        let info = self.ask(&["INFO", section]);
        let mut lines = info.lines().filter_map(|line| line.trim().split_once(':'));
        let found = lines.find(|(name, _)| *name == field);
        found.map_or_else(String::new, |(_, value)| value.to_owned())
    }

    /// Repeats the check `holds` until it is true, for at most thirty seconds.
    ///
    /// # Panics
    /// If it never is; shows the log.
    #[expect(clippy::disallowed_methods, reason = "servers announce nothing")]
    pub fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while began.elapsed() < patient(PATIENCE) {
            if holds(self) {
                return;
            }
            // Every check costs CPU time that the servers need.
            thread::sleep(LOOK_PAUSE);
        }
        let port = self.port;
        panic!(
            "the server at {port} should {what}, and does not:\n{}",
            self.log()
        );
    }

    /// Number of its connections to the process `pid` that have moved bytes by channels.
    ///
    /// # Panics
    /// If the server does not run under the library.
    pub fn channels_to(&self, pid: u32) -> usize {
        Census::channels_to(self.pid, pid)
    }

    /// Repeats PING until the server answers: a starting server refuses connections.
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

    /// The PID in the server's PID file.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The contents of the log file.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn cli_command(&self, program: &str, arm: Arm) -> Command {
        let mut command = Command::new(program);
        parity::set_environment(&mut command, arm);
        command.args(["-h", self.host, "-p", &self.port.to_string()]);
        command
    }

    /// Runs one command with a separate redis-cli.
    pub fn run_cli(&self, arm: Arm, words: &[&str]) -> Outcome {
        let mut command = self.cli_command("redis-cli", arm);
        command.args(words);
        bounded::run(command, Duration::from_secs(30))
    }

    /// Runs redis-benchmark with `words`.
    pub fn benchmark(&self, arm: Arm, words: &[&str]) -> Outcome {
        let mut command = self.cli_command("redis-benchmark", arm);
        command.args(words);
        bounded::run(command, Duration::from_secs(120))
    }

    /// Starts a redis-benchmark in the background.
    pub fn load(&self, arm: Arm, words: &[&str]) -> Peer {
        let mut command = self.cli_command("redis-benchmark", arm);
        command.args(words).stderr(Stdio::null());
        Peer::spawn(command)
    }

    /// A redis-cli that stays connected.
    pub fn client(&self, arm: Arm) -> Client {
        self.client_with(arm, "")
    }

    /// A redis-cli that stays connected, with further `options`.
    pub fn client_with(&self, arm: Arm, options: &str) -> Client {
        let mut command = Command::new("sh");
        parity::set_environment(&mut command, arm);
        // Error messages belong into the conversation.
        command.args([
            "-c",
            "exec redis-cli -h $0 -p $1 $2 2>&1",
            self.host,
            &self.port.to_string(),
            options,
        ]);
        Client {
            peer: Peer::spawn(command),
            asked: 0,
        }
    }

    /// Whether the process has ended with all its threads: each thread keeps the listener open.
    pub fn is_gone(&self) -> bool {
        // The process is a zombie until its parent, the keeper, reaps it.
        fs::read_to_string(format!("/proc/{}/stat", self.pid)).map_or(true, |stat| {
            let rest = stat.rsplit(')').next().unwrap_or_default();
            // Fields from 3 on (`man 5 proc_pid_stat`): the state; field 20 is the thread count.
            let mut fields = rest.split_whitespace();
            fields.next() == Some("Z") && fields.nth(16) == Some("1")
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.pid != 0 && saiga_process::proc::name(self.pid).starts_with("redis") {
            // A server that has just ended needs no signal.
            let _ = sys::signal(self.pid, Signal::KILL);
        }
    }
}

/// A redis-cli with commands on stdin: one connection for all of them.
#[derive(Debug)]
pub struct Client {
    peer: Peer,
    asked: u64,
}

impl Client {
    /// Sends `command`; returns the reply's lines, as redis-cli prints them to a pipe.
    ///
    /// # Panics
    /// If no reply comes within the limit.
    pub fn ask(&mut self, command: &str) -> String {
        self.send(command);
        self.reply()
    }

    /// Sends `command` without waiting for its reply; [`Client::reply`] returns it.
    pub fn send(&mut self, command: &str) {
        self.asked += 1;
        self.peer.tell(command);
        self.peer.tell(&format!("ECHO end-of-{}", self.asked));
    }

    /// The reply to the last [`Client::send`].
    ///
    /// # Panics
    /// If no reply comes within the limit.
    pub fn reply(&mut self) -> String {
        let mark = format!("end-of-{}", self.asked);
        let mut lines = Vec::new();
        loop {
            let line = self.peer.line().expect("a running redis-cli");
            if line == mark {
                return lines.join("\n").trim_end().to_owned();
            }
            lines.push(line);
        }
    }

    /// Sends `command`, whose reply is one line, without an end mark: inside MULTI the mark would
    /// be queued.
    pub fn ask_line(&mut self, command: &str) -> String {
        self.peer.tell(command);
        self.line()
    }

    /// Sends `command` without an end mark: [`Client::line`] returns its answer.
    pub fn tell(&mut self, command: &str) {
        self.peer.tell(command);
    }

    /// Sends a `command` that never ends, such as MONITOR or SUBSCRIBE.
    pub fn listen_by(&mut self, command: &str) {
        self.peer.tell(command);
    }

    /// The next line that redis-cli prints.
    ///
    /// # Panics
    /// If none comes within the limit.
    pub fn line(&mut self) -> String {
        self.peer.line().expect("a running redis-cli")
    }
}
