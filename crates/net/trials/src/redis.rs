//! A private redis-server, and redis-cli as its long-lived client, on either arm.
//!
//! The server lives in its own temporary directory and on its own port, and is
//! killed by its pid when dropped. Deliberately absent: load; tests bring it.

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
    sys::{self, Signal},
};

/// What does not come about within this time never will.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a server.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// One running redis-server, or a sentinel.
#[derive(Debug)]
pub struct Server {
    /// Its port.
    pub port: u16,
    host: &'static str,
    arm: Arm,
    words: Vec<String>,
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
        Self::start_on_port(arm, host, port::free(), options)
    }

    /// The same on a port that the caller chose: a cluster's bus port follows from it.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn start_on_port(arm: Arm, host: &'static str, port: u16, options: &[&str]) -> Self {
        let mut words = vec!["--save", "", "--enable-debug-command", "yes"];
        words.extend(options);
        Self::launch(arm, host, port, &words, None)
    }

    /// The same as its configuration file says, whose further `lines` are given.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn configured(arm: Arm, host: &'static str, lines: &[String]) -> Self {
        let own = ["save \"\"", "enable-debug-command yes"].map(str::to_owned);
        let file = ("redis.conf", &[&own, lines].concat()[..]);
        Self::launch(arm, host, port::free(), &[], Some(file))
    }

    /// Starts a sentinel with `rules`, the lines of its configuration file.
    ///
    /// # Panics
    /// As [`Server::start`].
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
        parity::dress(&mut command, self.arm);
        command.args(&self.words);
        let outcome = bounded::run_daemon(command);
        assert!(
            outcome.stderr.is_empty(),
            "redis-server: {outcome:?}; apt-get install redis-server"
        );
        self.await_answer(&pidfile);
    }

    /// SIGKILL, and waits until it is gone.
    ///
    /// # Panics
    /// When it stays.
    pub fn kill(&self) {
        sys::signal(self.pid, Signal::Kill).expect("it runs");
        self.await_gone();
    }

    /// Waits until its process is gone.
    ///
    /// # Panics
    /// When it stays.
    pub fn await_gone(&self) {
        self.until("be gone", |server| server.is_gone());
    }

    /// Starts it again as it was started first: same folder, same port.
    ///
    /// # Panics
    /// When it has not gone, or does not come up.
    pub fn start_again(&mut self) {
        assert!(self.is_gone(), "it still runs");
        self.pid = 0;
        // The old one may have had no time to remove it.
        let _ = fs::remove_file(self.folder.path().join("pid"));
        self.run();
    }

    /// The answer to one command by a client on the kernel.
    pub fn ask(&self, words: &[&str]) -> String {
        self.run_cli(Arm::Kernel, words)
            .stdout
            .trim_end()
            .to_owned()
    }

    /// One field of INFO; empty when it is not there.
    pub fn info(&self, section: &str, field: &str) -> String {
        let info = self.ask(&["INFO", section]);
        let mut lines = info.lines().filter_map(|line| line.trim().split_once(':'));
        let found = lines.find(|(name, _)| *name == field);
        found.map_or_else(String::new, |(_, value)| value.to_owned())
    }

    /// Asks until `holds`, for at most thirty seconds.
    ///
    /// # Panics
    /// With its log when it never holds.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if holds(self) {
                return;
            }
            // Every look costs the servers time; theirs is what we wait for.
            thread::sleep(LOOK_PAUSE);
        }
        let port = self.port;
        panic!(
            "the server at {port} should {what}, and does not:\n{}",
            self.log()
        );
    }

    /// Its connections to the process `pid` that run through channels now.
    ///
    /// # Panics
    /// When it does not run under the library.
    pub fn channels_to(&self, pid: u32) -> usize {
        Census::channels_to(self.pid, pid)
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
        bounded::run(command, Duration::from_secs(30))
    }

    /// redis-benchmark with `words`.
    pub fn benchmark(&self, arm: Arm, words: &[&str]) -> Outcome {
        let mut command = self.cli_command("redis-benchmark", arm);
        command.args(words);
        bounded::run(command, Duration::from_secs(120))
    }

    /// A redis-benchmark that goes on in the background.
    pub fn load(&self, arm: Arm, words: &[&str]) -> Peer {
        let mut command = self.cli_command("redis-benchmark", arm);
        command.args(words).stderr(Stdio::null());
        Peer::spawn(command)
    }

    /// A redis-cli that stays connected.
    pub fn client(&self, arm: Arm) -> Client {
        self.client_with(arm, "")
    }

    /// The same, with further `options` of redis-cli.
    pub fn client_with(&self, arm: Arm, options: &str) -> Client {
        let mut command = Command::new("sh");
        parity::dress(&mut command, arm);
        // Its complaints belong into the conversation.
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

    /// Whether its process has gone, with all its threads: as long as one is left, so is the listener.
    pub fn is_gone(&self) -> bool {
        // Until its parent, the keeper, has come by it is a zombie.
        fs::read_to_string(format!("/proc/{}/stat", self.pid)).map_or(true, |stat| {
            let rest = stat.rsplit(')').next().unwrap_or_default();
            // From field 3 on (`man 5 proc_pid_stat`): the state, and as field 20 the number of threads.
            let mut fields = rest.split_whitespace();
            fields.next() == Some("Z") && fields.nth(16) == Some("1")
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

    /// Sends `command` with no mark behind it: [`Client::line`] takes its answer.
    pub fn tell(&mut self, command: &str) {
        self.peer.tell(command);
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
