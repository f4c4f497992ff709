//! Programs that run beside a test and end with it, and the Redis servers of the gateway's tests.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use saiga_trials::{Signal, reaper, sys};

use super::Installation;

/// A process that ends with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Ended {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// kill -9, and waits until the process has ended.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Ends a gateway as systemd does.
    pub(crate) fn stop(mut self) {
        sys::signal(self.pid(), Signal::TERM).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Starts a program and waits for a line of its output that contains `ready`.
pub(crate) fn start(command: &mut Command, ready: &str) -> Ended {
    reaper::end_with_parent(command, Signal::KILL);
    let mut child = Ended(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let is_ready = lines.any(|line| line.unwrap().contains(ready));
    assert!(is_ready, "{command:?} has ended");
    // The program must not be stopped by a full pipe.
    thread::spawn(move || lines.for_each(drop));
    child
}

impl Installation {
    /// A Redis server that keeps nothing on disk and serves other hosts.
    pub(crate) fn redis(
        &self,
        is_accelerated: bool,
        addresses: &[&str],
        port: u16,
        more: &[&str],
    ) -> Ended {
        let mut command = if is_accelerated {
            self.saiga(&["run", "--require", "--", "redis-server"])
        } else {
            Command::new("redis-server")
        };
        command
            .arg("--bind")
            .args(addresses)
            .args(["--port", &port.to_string(), "--save", ""])
            .args(["--protected-mode", "no"])
            .args(more)
            .current_dir(self.path(""));
        start(&mut command, "Ready to accept connections")
    }
}
