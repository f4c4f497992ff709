//! Clients of a server: one-shot `mariadb` or `mysql`, a lasting session, `sysbench`.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use super::Server;
use crate::{
    bounded::{self, Ending, Outcome},
    parity::{self, Arm},
    peer::Peer,
};

/// A client that runs longer than this counts as hung.
const LIMIT: Duration = Duration::from_secs(120);

/// Options for machine-readable output: rows only, tabs between columns.
const ROWS: [&str; 4] = [
    "--batch",
    "--skip-column-names",
    "--unbuffered",
    "--skip-reconnect",
];

impl Server {
    /// Runs the server's own client with `words`, to its end.
    pub fn client(&self, arm: Arm, words: &[&str]) -> Outcome {
        let mut command = Command::new(self.kind.client());
        parity::set_environment(&mut command, arm);
        command.args(["--no-defaults", "-uroot", "--local-infile=1"]);
        command.args(["-h", self.host, "-P", &self.port.to_string()]);
        command.args(self.kind.client_options());
        command.args(ROWS).args(words);
        bounded::run(command, LIMIT)
    }

    /// Runs `statements` in a client of their own; returns the rows.
    ///
    /// # Panics
    /// If a statement fails; shows the client's output and the server's log.
    pub fn must(&self, arm: Arm, statements: &str) -> String {
        let outcome = self.client(arm, &["-e", statements]);
        assert!(
            outcome.ending == Ending::Exited(0),
            "{statements}: {}{}\n{}",
            outcome.stderr,
            outcome.ending,
            self.log()
        );
        outcome.stdout.trim_end().to_owned()
    }

    /// The server's counter `name`, since the server's start.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn count(&self, name: &str) -> u64 {
        let row = self.must(Arm::Kernel, &format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        let count = row.split('\t').nth(1).and_then(|count| count.parse().ok());
        count.unwrap_or_else(|| panic!("{name} is '{row}'"))
    }

    /// A session as root that goes on after errors.
    pub fn session(&self, arm: Arm) -> Session {
        self.session_with(arm, "")
    }

    /// A session with further options for the client, as words of a shell.
    pub fn session_with(&self, arm: Arm, options: &str) -> Session {
        // Error messages belong into the conversation.
        let words = format!("--force {options} 2>&1");
        Session {
            peer: self.conversation(arm, &words),
            asked: 0,
        }
    }

    /// A client that executes the statements in `script` and stops at the first error.
    pub fn batch(&self, arm: Arm, script: &Path) -> Peer {
        self.conversation(arm, &format!("trial <{} 2>/dev/null", script.display()))
    }

    /// A client whose command line ends with `words` of a shell.
    fn conversation(&self, arm: Arm, words: &str) -> Peer {
        let mut command = Command::new("sh");
        parity::set_environment(&mut command, arm);
        let script = format!(
            "exec '{}' --no-defaults -uroot -h {} -P {} {} {} {words}",
            self.kind.client().display(),
            self.host,
            self.port,
            self.kind.client_options().join(" "),
            ROWS.join(" "),
        );
        command.args(["-c", &script]);
        Peer::spawn(command)
    }

    fn sysbench_command(&self, arm: Arm, test: &str, words: &[&str]) -> Command {
        let mut command = Command::new("sysbench");
        parity::set_environment(&mut command, arm);
        command
            .args([test, "--db-driver=mysql", "--mysql-user=root"])
            .args(["--mysql-db=trial", "--tables=2", "--table-size=1000"])
            .arg(format!("--mysql-host={}", self.host))
            .arg(format!("--mysql-port={}", self.port))
            .args(words);
        command
    }

    /// Fills the two tables of sysbench's tests.
    ///
    /// # Panics
    /// If it fails.
    pub fn prepare_sysbench(&self, arm: Arm) {
        let command = self.sysbench_command(arm, "oltp_read_write", &["--threads=2", "prepare"]);
        let outcome = bounded::run(command, LIMIT);
        assert!(
            outcome.ending == Ending::Exited(0),
            "sysbench prepare: {outcome:?}\n{}",
            self.log()
        );
    }

    /// Runs `events` of sysbench's `test` in `threads` threads, all of which must succeed.
    ///
    /// # Panics
    /// If one fails, or sysbench counts another number of events.
    pub fn sysbench(&self, arm: Arm, test: &str, threads: u32, events: u32) {
        let (threads, wanted) = (format!("--threads={threads}"), format!("--events={events}"));
        let words = [threads.as_str(), &wanted, "--time=0", "run"];
        let outcome = bounded::run(self.sysbench_command(arm, test, &words), LIMIT);
        let counted = outcome
            .stdout
            .lines()
            .find_map(|line| line.trim().strip_prefix("total number of events:"))
            .map(|count| count.trim().to_owned());
        assert!(
            outcome.ending == Ending::Exited(0) && counted == Some(events.to_string()),
            "sysbench {test} {words:?} {arm:?}: {outcome:?}\n{}",
            self.log()
        );
    }

    /// Runs `queries` on each of `connections` concurrent connections, with the load program that
    /// comes with the server.
    ///
    /// # Panics
    /// If one fails.
    pub fn slap(&self, arm: Arm, connections: u32, queries: u32) {
        self.slapped(arm, connections, connections * queries, &[]);
    }

    /// Opens about `connections` connections, `at_a_time`, with the same program, which closes each
    /// after `queries`.
    ///
    /// # Panics
    /// If one fails.
    pub fn come_and_go(&self, arm: Arm, connections: u32, at_a_time: u32, queries: u32) {
        let detach = format!("--detach={queries}");
        self.slapped(arm, at_a_time, connections * queries, &[&detach]);
    }

    fn slapped(&self, arm: Arm, at_a_time: u32, queries: u32, words: &[&str]) {
        let mut command = Command::new(self.kind.slap());
        parity::set_environment(&mut command, arm);
        command
            .args(["--no-defaults", "-uroot", "-h", self.host])
            .args(["-P", &self.port.to_string()])
            .args(self.kind.client_options())
            .args(["--no-drop", "--create-schema=trial", "--query=SELECT 1"])
            .arg(format!("--concurrency={at_a_time}"))
            .arg(format!("--number-of-queries={queries}"))
            .args(words);
        // Two million queries, every twentieth on a new connection, take minutes on two cores.
        let outcome = bounded::run(command, LIMIT.max(Duration::from_millis(1) * queries));
        assert!(
            outcome.ending == Ending::Exited(0) && !outcome.stderr.contains("ERROR"),
            "{:?} {arm:?}: {outcome:?}\n{}",
            self.kind.slap(),
            self.log()
        );
    }

    /// Starts a sysbench that runs until it is killed.
    pub fn load(&self, arm: Arm, test: &str, threads: u32) -> Peer {
        let threads = format!("--threads={threads}");
        let words = [threads.as_str(), "--time=0", "run"];
        let mut command = self.sysbench_command(arm, test, &words);
        command.stderr(Stdio::null());
        Peer::spawn(command)
    }
}

/// A client with statements on stdin: one connection for all of them.
#[derive(Debug)]
pub struct Session {
    peer: Peer,
    asked: u64,
}

impl Session {
    /// Sends `statement`; returns the rows, or the error, as the client prints them to a pipe.
    ///
    /// # Panics
    /// If no answer comes within the limit.
    pub fn ask(&mut self, statement: &str) -> String {
        self.send(statement);
        self.answer()
    }

    /// Sends `statement` without waiting; [`Session::answer`] returns the answer.
    pub fn send(&mut self, statement: &str) {
        self.asked += 1;
        self.peer.tell(&format!("{statement};"));
        self.peer
            .tell(&format!("SELECT 'end of answer {}';", self.asked));
    }

    /// The answer to the last [`Session::send`].
    ///
    /// # Panics
    /// If no answer comes within the limit, or the connection was lost, so that none will come.
    pub fn answer(&mut self) -> String {
        let mark = format!("end of answer {}", self.asked);
        let mut lines = Vec::new();
        loop {
            let line = self
                .peer
                .line()
                .unwrap_or_else(|| panic!("the client ended after {lines:?}"));
            if line == mark {
                return lines.join("\n");
            }
            lines.push(line);
            let lost =
                |line: &String| line.starts_with("ERROR 2006") || line.starts_with("ERROR 2013");
            assert!(
                lines.iter().filter(|line| lost(line)).count() < 2,
                "lost the connection: {lines:?}"
            );
        }
    }

    /// Sends `statement` without a mark, on a connection that should have ended; returns the error.
    ///
    /// # Panics
    /// If no error comes within the limit.
    pub fn fail(&mut self, statement: &str) -> String {
        self.peer.tell(&format!("{statement};"));
        self.error()
    }

    /// The next error. The client repeats the statement before it.
    ///
    /// # Panics
    /// If none comes within the limit.
    pub fn error(&mut self) -> String {
        loop {
            let line = self.peer.line().expect("a running client");
            assert!(!line.starts_with("end of answer"), "no error came");
            if line.starts_with("ERROR") {
                return line;
            }
        }
    }

    /// The connection's id at the server.
    pub fn id(&mut self) -> String {
        self.ask("SELECT CONNECTION_ID()")
    }

    /// Kills the client with SIGKILL.
    pub fn kill(self) {
        self.peer.kill();
    }
}
