//! A psql that stays connected and reads commands from stdin: one connection for all of them.

use std::process::{Command, ExitStatus};

use saiga_process::proc::Stat;

use crate::{census::Census, peer::Peer, sys::Signal, witness::await_some};

/// A running psql.
#[derive(Debug)]
pub struct Client {
    peer: Peer,
    asked: u64,
}

impl Client {
    /// Starts `command`, a psql whose stderr goes to its stdout.
    pub(super) fn spawn(command: Command) -> Self {
        Self {
            peer: Peer::spawn(command),
            asked: 0,
        }
    }

    /// PID of psql.
    pub fn pid(&self) -> u32 {
        self.peer.pid()
    }

    /// Runs `sql`; returns the output of psql, errors included.
    ///
    /// # Panics
    /// If no reply comes within the limit, or psql ends.
    pub fn ask(&mut self, sql: &str) -> String {
        self.send(sql);
        self.reply()
    }

    /// Sends `sql` without waiting for its end; [`Client::reply`] does.
    pub fn send(&mut self, sql: &str) {
        self.asked += 1;
        self.peer.tell(sql);
        self.peer.tell(&format!("\\echo end-of-{}", self.asked));
    }

    /// The reply to the last [`Client::send`].
    ///
    /// # Panics
    /// If none comes within the limit, or psql ends.
    pub fn reply(&mut self) -> String {
        let mark = format!("end-of-{}", self.asked);
        let mut lines = Vec::new();
        loop {
            let Some(line) = self.peer.line() else {
                panic!("psql ended: {}", lines.join("\n"));
            };
            if line == mark {
                return lines.join("\n");
            }
            lines.push(line);
        }
    }

    /// PID of the backend that serves this connection.
    pub fn backend(&mut self) -> u32 {
        let answer = self.ask("select pg_backend_pid();");
        answer
            .parse()
            .unwrap_or_else(|_| panic!("no pid: {answer}"))
    }

    /// Runs small queries, enough for an upgrade on every arm. The backend has to wait for each: if
    /// psql and the test were always scheduled before it, it would find the next query there
    /// already, and a connection whose waits were never seen stays on TCP.
    pub fn warm(&mut self) {
        let backend = self.backend();
        for i in 0..80 {
            await_asleep(backend);
            assert_eq!(self.ask(&format!("select {i} * 7;")), (i * 7).to_string());
        }
    }

    /// Fails the test unless both psql and its backend have upgraded.
    pub fn assert_upgraded(&mut self) {
        let backend = self.backend();
        assert!(Census::upgrades(backend) > 0, "the backend is on TCP");
        assert!(Census::upgrades(self.pid()) > 0, "psql is on TCP");
    }

    /// Runs `sql` on a connection that may have ended, and ends psql. Returns its last output and
    /// its exit status.
    pub fn farewell(mut self, sql: &str) -> String {
        self.peer.tell(sql);
        let (rest, status) = self.peer.finish();
        format!("{rest}\n{status}\n")
    }

    /// Sends a signal to psql.
    pub fn signal(&self, signal: Signal) {
        self.peer.signal(signal);
    }

    /// Kills psql with SIGKILL.
    pub fn kill(self) {
        self.peer.kill();
    }

    /// Ends psql's input; returns its last output and its exit status.
    pub fn finish(self) -> (String, ExitStatus) {
        self.peer.finish()
    }
}

/// Waits until the process sleeps in the kernel.
fn await_asleep(pid: u32) {
    let sleeps = || {
        let stat = Stat::of(pid).ok()?;
        (stat.state == 'S').then_some(())
    };
    await_some(sleeps, || format!("process {pid} does not go to sleep"));
}
