//! Clients of a server: one-shot `mariadb`, a session that stays, `sysbench`.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use super::{Server, Under};
use crate::{
    bounded::{self, Ending, Outcome},
    peer::Peer,
};

/// After this long a client counts as hung.
const LIMIT: Duration = Duration::from_secs(120);

/// Options of a `mariadb` whose output is for us: rows only, tabs between columns.
const ROWS: [&str; 4] = [
    "--batch",
    "--skip-column-names",
    "--unbuffered",
    "--skip-reconnect",
];

impl Server {
    /// `program` of MariaDB's clients, pointed at the server as root.
    fn client_command(&self, program: &str, under: Under) -> Command {
        let mut command = Command::new(program);
        under.dress(&mut command);
        command.args(["--no-defaults", "-uroot", "--local-infile=1"]);
        command.args(["-h", self.host, "-P", &self.port.to_string()]);
        command
    }

    /// `mariadb` with `words`, to its end.
    pub fn client(&self, under: Under, words: &[&str]) -> Outcome {
        let mut command = self.client_command("mariadb", under);
        command.args(ROWS).args(words);
        bounded::run(command, LIMIT)
    }

    /// `statements` by a `mariadb` of their own; the rows.
    ///
    /// # Panics
    /// When one fails; with the client's words and the server's log.
    pub fn must(&self, under: Under, statements: &str) -> String {
        let outcome = self.client(under, &["-e", statements]);
        assert!(
            outcome.ending == Ending::Exited(0),
            "{statements}: {}{}\n{}",
            outcome.stderr,
            outcome.ending,
            self.log()
        );
        outcome.stdout.trim_end().to_owned()
    }

    /// `mariadb-admin` with `words`, to its end.
    pub fn admin(&self, under: Under, words: &[&str]) -> Outcome {
        let mut command = Command::new("mariadb-admin");
        under.dress(&mut command);
        command
            .args(["--no-defaults", "-uroot", "-h", self.host])
            .args(["-P", &self.port.to_string()])
            .args(words);
        bounded::run(command, LIMIT)
    }

    /// A session as root that goes on after errors.
    pub fn session(&self, under: Under) -> Session {
        self.session_with(under, "")
    }

    /// A session with further options of `mariadb`, words of a shell.
    pub fn session_with(&self, under: Under, options: &str) -> Session {
        let mut command = Command::new("sh");
        under.dress(&mut command);
        // Its complaints belong into the conversation.
        let script = format!(
            "exec mariadb --no-defaults -uroot -h {} -P {} {} --force {options} 2>&1",
            self.host,
            self.port,
            ROWS.join(" "),
        );
        command.args(["-c", &script]);
        Session {
            peer: Peer::spawn(command),
            asked: 0,
        }
    }

    /// A `mariadb` that works through the statements in `script` and stops at the first error.
    pub fn batch(&self, under: Under, script: &Path) -> Peer {
        let mut command = Command::new("sh");
        under.dress(&mut command);
        let line = format!(
            "exec mariadb --no-defaults -uroot -h {} -P {} {} trial <{} 2>/dev/null",
            self.host,
            self.port,
            ROWS.join(" "),
            script.display()
        );
        command.args(["-c", &line]);
        Peer::spawn(command)
    }

    fn sysbench_command(&self, under: Under, test: &str, words: &[&str]) -> Command {
        let mut command = Command::new("sysbench");
        under.dress(&mut command);
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
    /// When it fails.
    pub fn prepare_sysbench(&self, under: Under) {
        let command = self.sysbench_command(under, "oltp_read_write", &["--threads=2", "prepare"]);
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
    /// When one fails, or sysbench counts another number of them.
    pub fn sysbench(&self, under: Under, test: &str, threads: u32, events: u32) {
        let (threads, wanted) = (format!("--threads={threads}"), format!("--events={events}"));
        let words = [threads.as_str(), &wanted, "--time=0", "run"];
        let outcome = bounded::run(self.sysbench_command(under, test, &words), LIMIT);
        let counted = outcome
            .stdout
            .lines()
            .find_map(|line| line.trim().strip_prefix("total number of events:"))
            .map(|count| count.trim().to_owned());
        assert!(
            outcome.ending == Ending::Exited(0) && counted == Some(events.to_string()),
            "sysbench {test} {words:?} {under:?}: {outcome:?}\n{}",
            self.log()
        );
    }

    /// Runs `queries` on each of `connections` connections at a time by mariadb-slap.
    ///
    /// # Panics
    /// When one fails.
    pub fn slap(&self, under: Under, connections: u32, queries: u32) {
        let mut command = Command::new("mariadb-slap");
        under.dress(&mut command);
        command
            .args(["--no-defaults", "-uroot", "-h", self.host])
            .args(["-P", &self.port.to_string()])
            .args(["--no-drop", "--create-schema=trial", "--query=SELECT 1"])
            .arg(format!("--concurrency={connections}"))
            .arg(format!("--number-of-queries={}", connections * queries));
        let outcome = bounded::run(command, LIMIT);
        assert!(
            outcome.ending == Ending::Exited(0) && !outcome.stderr.contains("ERROR"),
            "mariadb-slap {under:?}: {outcome:?}\n{}",
            self.log()
        );
    }

    /// A sysbench that goes on until it is killed.
    pub fn load(&self, under: Under, test: &str, threads: u32) -> Peer {
        let threads = format!("--threads={threads}");
        let words = [threads.as_str(), "--time=0", "run"];
        let mut command = self.sysbench_command(under, test, &words);
        command.stderr(Stdio::null());
        Peer::spawn(command)
    }
}

/// A `mariadb` fed on stdin: one connection for all its statements.
#[derive(Debug)]
pub struct Session {
    peer: Peer,
    asked: u64,
}

impl Session {
    /// Sends `statement`; the rows, or the error, as `mariadb` prints them to a pipe.
    ///
    /// # Panics
    /// When no answer comes within the limit.
    pub fn ask(&mut self, statement: &str) -> String {
        self.send(statement);
        self.answer()
    }

    /// Sends `statement` without waiting; [`Session::answer`] takes what comes.
    pub fn send(&mut self, statement: &str) {
        self.asked += 1;
        self.peer.tell(&format!("{statement};"));
        self.peer
            .tell(&format!("SELECT 'end of answer {}';", self.asked));
    }

    /// The answer to the last [`Session::send`].
    ///
    /// # Panics
    /// When no answer comes within the limit, or the connection was lost: then none will.
    pub fn answer(&mut self) -> String {
        let mark = format!("end of answer {}", self.asked);
        let mut lines = Vec::new();
        loop {
            let line = self
                .peer
                .line()
                .unwrap_or_else(|| panic!("mariadb ended after {lines:?}"));
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

    /// Sends `statement` with nothing behind it, on a connection that should have ended;
    /// the error.
    ///
    /// # Panics
    /// When no error comes within the limit.
    pub fn fail(&mut self, statement: &str) -> String {
        self.peer.tell(&format!("{statement};"));
        self.error()
    }

    /// The next error; `mariadb` repeats the statement in front of it.
    ///
    /// # Panics
    /// When none comes within the limit.
    pub fn error(&mut self) -> String {
        loop {
            let line = self.peer.line().expect("mariadb stays");
            assert!(!line.starts_with("end of answer"), "no error came");
            if line.starts_with("ERROR") {
                return line;
            }
        }
    }

    /// Its connection's number at the server.
    pub fn id(&mut self) -> String {
        self.ask("SELECT CONNECTION_ID()")
    }

    /// SIGKILL.
    pub fn kill(self) {
        self.peer.kill();
    }
}
