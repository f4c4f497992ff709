//! A private server: a child of ours and its log, watched until it is ready.
//!
//! Where it listens, and how it shows that it is ready, is the workload's knowledge.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::interrupt::Interrupt;
use crate::log;
use crate::port;
use crate::process::{Child, CommandLine, SpawnError, Waited};
use crate::workload::Failure;

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Its process.
    pub child: Child,
    program: String,
    log: PathBuf,
}

/// How long a server may take to be ready.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// One that is not ready by then is stuck.
    pub limit: Duration,
    /// Between two looks; a death ends the pause at once.
    pub pause: Duration,
}

/// Why a server did not come up.
#[derive(Debug)]
pub enum NotReady {
    /// It ended.
    Died(Died),
    /// Anything else.
    Failed(Failure),
}

/// A server that ended instead of listening.
#[derive(Debug, thiserror::Error)]
#[error("{program} ended before it was ready; it said: {said}")]
pub struct Died {
    program: String,
    /// What its log says of the cause.
    said: String,
    /// Whether it found somebody else on its port.
    port_taken: bool,
}

impl From<Failure> for NotReady {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Server {
    /// Starts `line`, which is called `program` and belongs to `package`, with all its output
    /// in `log`.
    ///
    /// # Errors
    /// [`SpawnError`].
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

    /// Waits until `is_ready` says so.
    ///
    /// # Errors
    /// [`NotReady`]; a server that takes too long is a failure of this run.
    pub fn await_ready(
        &mut self,
        patience: Patience,
        interrupt: &Interrupt,
        mut is_ready: impl FnMut(&Self) -> bool,
    ) -> Result<(), NotReady> {
        let Patience { limit, pause } = patience;
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
            "{} was not ready after {} s; it said: {}",
            self.program,
            limit.as_secs(),
            self.last_lines()
        ))
        .into())
    }

    fn died(&self) -> Died {
        Died {
            program: self.program.clone(),
            said: log::cause(&self.log),
            port_taken: port::is_lost(&self.said()),
        }
    }

    /// All that it said so far.
    #[must_use]
    pub fn said(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The end of it, in one line.
    #[must_use]
    pub fn last_lines(&self) -> String {
        log::last_lines(&self.log)
    }

    /// What it said last, when it has ended.
    pub fn obituary(&mut self) -> Option<String> {
        match self.child.wait(Duration::ZERO, &Interrupt::never()) {
            Ok(Waited::Ended(ended)) => Some(format!(
                "{} died ({}); it said: {}",
                self.program,
                ended.status,
                self.last_lines()
            )),
            Ok(Waited::TimeOver | Waited::Interrupted) | Err(_) => None,
        }
    }
}

/// Attempts to start servers, again when strangers took ports that were free a moment ago.
/// `refusal` is the failure where the user chose the ports.
///
/// # Errors
/// [`Failure`].
pub fn insist<S>(
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

    const SOON: Patience = Patience {
        limit: Duration::from_secs(30),
        pause: Duration::from_millis(1),
    };

    fn started(script: &str, log: &Path) -> Server {
        let line = CommandLine::new("sh", ["-c", script]);
        Server::start(&line, "server", "dash", log.to_owned()).unwrap()
    }

    fn attempt(script: &str, log: &Path) -> Result<Server, NotReady> {
        let mut server = started(script, log);
        let ready = |server: &Server| server.said().contains("listening");
        server.await_ready(SOON, &Interrupt::never(), ready)?;
        Ok(server)
    }

    #[test]
    fn a_server_is_ready_when_its_workload_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut server =
            attempt("echo listening; exec sleep 1000", &dir.path().join("log")).unwrap();
        assert_eq!(server.obituary(), None);
        server.child.kill().unwrap();
        let said = server.obituary().unwrap();
        assert!(said.starts_with("server died (signal: 9"), "{said}");
        assert!(said.ends_with("; it said: listening"), "{said}");
    }

    #[test]
    fn one_that_ends_or_is_stuck_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let ended = insist(|| attempt("echo a; echo b >&2; exit 1", &log), || None);
        let text = "server ended before it was ready; it said: a | b";
        assert_eq!(ended.unwrap_err().to_string(), text);

        let mut server = started("echo looking; exec sleep 1000", &log);
        let patience = Patience {
            limit: Duration::from_millis(1),
            ..SOON
        };
        while server.said().is_empty() {
            std::thread::yield_now();
        }
        let stuck = server.await_ready(patience, &Interrupt::never(), |_| false);
        let Err(NotReady::Failed(Failure::Run { reason })) = stuck else {
            panic!("{stuck:?}")
        };
        assert_eq!(reason, "server was not ready after 0 s; it said: looking");
    }

    /// What says so need not be among the last lines.
    #[test]
    fn a_lost_port_is_tried_again_unless_the_user_chose_it() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let lost = "echo bind: Address already in use; for i in 1 2 3 4 5; do echo $i; done";
        let mut tries = 0;
        let never = insist(
            || {
                tries += 1;
                attempt(lost, &log)
            },
            || None,
        );
        assert_eq!(tries, port::TRIES);
        assert!(never.unwrap_err().to_string().ends_with("2 | 3 | 4 | 5"));
        let refusal = || Some(Failure::run("yours is taken"));
        let chosen = insist(|| attempt(lost, &log), refusal);
        assert_eq!(chosen.unwrap_err().to_string(), "yours is taken");
    }
}
