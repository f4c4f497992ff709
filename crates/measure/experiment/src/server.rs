//! [`Server`]: a server process with its log, from start to readiness.
//!
//! Deliberately absent: addresses and readiness checks, which the workload knows.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::workload::Failure;
use saiga_process::child::{Child, CommandLine, SpawnError, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::log;
use saiga_process::port;

/// A server process that this process started; killed when dropped.
#[derive(Debug)]
pub struct Server {
    pub child: Child,
    program: String,
    log: PathBuf,
}

/// Timeout and interval of readiness checks.
#[derive(Debug, Clone, Copy)]
pub struct WaitLimits {
    /// A server that is not ready by then has failed.
    pub limit: Duration,
    /// Interval between two checks; the end of the process ends the wait at once.
    pub pause: Duration,
}

/// A server did not become ready.
#[derive(Debug)]
pub enum NotReady {
    Died(Died),
    /// The timeout, an interrupt, or a system call that failed.
    Failed(Failure),
}

/// A server that ended before it was ready.
#[derive(Debug, thiserror::Error)]
#[error("{program} ended before it was ready; its output: {output}")]
pub struct Died {
    program: String,
    /// The lines of the log that name the cause.
    output: String,
    /// Whether its port was in use by another process.
    port_taken: bool,
}

impl From<Failure> for NotReady {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Server {
    /// Starts `line` with all its output in `log`. Messages call the server `program`; `package` is
    /// its Debian package.
    pub fn start(
        line: &CommandLine,
        program: &str,
        package: &str,
        log: PathBuf,
    ) -> Result<Self, SpawnError> {
        let child = line.spawn_logged(package, &log)?;
        Ok(Self {
            child,
            program: program.to_owned(),
            log,
        })
    }

    /// Waits until `is_ready` returns true.
    ///
    /// # Errors
    /// A server that is not ready in time is a failure of this run only.
    pub fn await_ready(
        &mut self,
        limits: WaitLimits,
        interrupt: &Interrupt,
        mut is_ready: impl FnMut(&Self) -> bool,
    ) -> Result<(), NotReady> {
        let WaitLimits { limit, pause } = limits;
        let began = Instant::now();
        while began.elapsed() < limit {
            if is_ready(self) {
                return Ok(());
            }
            match self.child.wait(pause, interrupt) {
                Ok(Waited::TimeOver) => {}
                Ok(Waited::Ended(_)) => return Err(NotReady::Died(self.died())),
                Ok(Waited::Interrupted) => return Err(Failure::Interrupted.into()),
                Err(error) => return Err(Failure::impossible(error).into()),
            }
        }
        Err(Failure::run(format!(
            "{} was not ready after {} s; its output: {}",
            self.program,
            limit.as_secs(),
            self.last_lines()
        ))
        .into())
    }

    fn died(&self) -> Died {
        Died {
            program: self.program.clone(),
            output: log::cause(&self.log),
            port_taken: port::was_taken(&self.output()),
        }
    }

    /// The whole log so far.
    #[must_use]
    pub fn output(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The last lines of the log, joined.
    #[must_use]
    pub fn last_lines(&self) -> String {
        log::last_lines(&self.log)
    }

    /// The exit status and last lines of a server that has ended; `None` while it runs.
    pub fn exit_report(&mut self) -> Option<String> {
        match self.child.wait(Duration::ZERO, &Interrupt::never()) {
            Ok(Waited::Ended(ended)) => Some(format!(
                "{} ended ({}); its output: {}",
                self.program,
                ended.status,
                self.last_lines()
            )),
            Ok(Waited::TimeOver | Waited::Interrupted) | Err(_) => None,
        }
    }
}

/// Calls `attempt` to start servers, up to three times if another process took a port that was free
/// before. `refusal` returns the failure if the user chose the ports; then there is no second
/// attempt.
///
/// # Errors
/// [`Failure`].
pub fn start_with_retries<S>(
    mut attempt: impl FnMut() -> Result<S, NotReady>,
    refusal: impl Fn() -> Option<Failure>,
) -> Result<S, Failure> {
    let mut tries = port::TRIES;
    loop {
        tries -= 1;
        let died = match attempt() {
            Ok(started) => return Ok(started),
            Err(NotReady::Failed(failure)) => return Err(failure),
            Err(NotReady::Died(died)) => died,
        };
        if !died.port_taken {
            return Err(Failure::impossible(died));
        }
        if let Some(refusal) = refusal() {
            return Err(refusal);
        }
        if tries == 0 {
            return Err(Failure::impossible(died));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SOON: WaitLimits = WaitLimits {
        limit: Duration::from_secs(30),
        pause: Duration::from_millis(1),
    };

    fn started(script: &str, log: &Path) -> Server {
        let line = CommandLine::new("sh", ["-c", script]);
        Server::start(&line, "server", "dash", log.to_owned()).unwrap()
    }

    fn attempt(script: &str, log: &Path) -> Result<Server, NotReady> {
        let mut server = started(script, log);
        let ready = |server: &Server| server.output().contains("listening");
        server.await_ready(SOON, &Interrupt::never(), ready)?;
        Ok(server)
    }

    #[test]
    fn a_server_is_ready_when_the_check_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let mut server =
            attempt("echo listening; exec sleep 1000", &dir.path().join("log")).unwrap();
        assert_eq!(server.exit_report(), None);
        server.child.kill().unwrap();
        let report = server.exit_report().unwrap();
        assert!(report.starts_with("server ended (signal: 9"), "{report}");
        assert!(report.ends_with("; its output: listening"), "{report}");
    }

    #[test]
    fn the_output_of_a_server_that_ends_or_is_not_ready_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let ended = start_with_retries(|| attempt("echo a; echo b >&2; exit 1", &log), || None);
        let text = "server ended before it was ready; its output: a | b";
        assert_eq!(ended.unwrap_err().to_string(), text);

        let mut server = started("echo looking; exec sleep 1000", &log);
        let limits = WaitLimits {
            limit: Duration::from_millis(1),
            ..SOON
        };
        while server.output().is_empty() {
            std::thread::yield_now();
        }
        let stuck = server.await_ready(limits, &Interrupt::never(), |_| false);
        let Err(NotReady::Failed(Failure::Run { reason })) = stuck else {
            panic!("{stuck:?}")
        };
        assert_eq!(
            reason,
            "server was not ready after 0 s; its output: looking"
        );
    }

    /// The message about the port need not be among the last lines.
    #[test]
    fn a_taken_port_is_retried_unless_the_user_chose_it() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let taken = "echo bind: Address already in use; for i in 1 2 3 4 5; do echo $i; done";
        let mut tries = 0;
        let never = start_with_retries(
            || {
                tries += 1;
                attempt(taken, &log)
            },
            || None,
        );
        assert_eq!(tries, port::TRIES);
        assert!(never.unwrap_err().to_string().ends_with("2 | 3 | 4 | 5"));
        let refusal = || Some(Failure::run("your port is in use"));
        let chosen = start_with_retries(|| attempt(taken, &log), refusal);
        assert_eq!(chosen.unwrap_err().to_string(), "your port is in use");
    }
}
