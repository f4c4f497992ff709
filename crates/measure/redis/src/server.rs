//! One private redis-server: started in its own folder, filled, stopped by pid.
//!
//! It is ready when it answers and says that its process is the one we started: a
//! stranger that holds the port cannot be measured by mistake. Deliberately absent:
//! anything that outlives a run.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::log::last_line;
use saiga_experiment::plan::Cell;
use saiga_experiment::port::{self, PortError};
use saiga_experiment::process::{Child, Waited};
use saiga_experiment::workload::Failure;
use tempfile::TempDir;

use crate::arm::{Endpoint, RedisArm};
use crate::load::{RedisLoad, Test};
use crate::resp::Control;

/// A server that is not ready by then is stuck.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Between two looks whether it listens; a death ends the pause at once.
const READY_PAUSE: Duration = Duration::from_millis(2);
/// After SHUTDOWN; then by signals.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);
/// Ports that we try when strangers take the ones that were free a moment ago.
const PORT_TRIES: u32 = 3;
/// SETs under way while keys are filled in.
const FILL_BATCH: u32 = 500;
/// The Debian package with both programs.
pub(crate) const PACKAGE: &str = "redis-server";

/// Why a server did not come up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// No folder or descriptor for it.
    #[error("cannot prepare a private redis-server: {0}")]
    Prepare(#[from] io::Error),
    /// It ended instead of listening.
    #[error("redis-server ended before it was ready; it said: {last_words}")]
    Died {
        /// The last line of its output.
        last_words: String,
    },
}

/// A running server in its folder.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) endpoint: Endpoint,
    /// Removed with everything in it when dropped, after the child.
    pub(crate) dir: TempDir,
}

impl Server {
    /// Starts a server for `arm` and waits until it is ready and filled.
    pub(crate) fn start(
        arm: &RedisArm,
        cell: &Cell<RedisLoad>,
        port: Option<u16>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let mut tries = PORT_TRIES;
        loop {
            tries -= 1;
            let chosen = port::choose(port).map_err(Failure::impossible)?;
            let mut server = Self::spawn(arm, cell, chosen)?;
            match server.wait_until_ready(interrupt) {
                Ok(mut control) => {
                    fill(&mut control, &cell.load).map_err(|error| {
                        Failure::run(format!("cannot fill redis-server: {error}"))
                    })?;
                    return Ok(server);
                }
                Err(Some(failure)) => return Err(failure),
                Err(None) => {
                    let last_words = last_line(&server.dir.path().join("server.log"));
                    let taken = last_words.contains("Address already in use");
                    match port {
                        Some(port) if taken => {
                            return Err(Failure::impossible(PortError::Taken { port }));
                        }
                        None if taken && tries > 0 => {}
                        _ => return Err(Failure::impossible(ServerError::Died { last_words })),
                    }
                }
            }
        }
    }

    fn spawn(arm: &RedisArm, cell: &Cell<RedisLoad>, port: u16) -> Result<Self, Failure> {
        let prepare = |error: io::Error| Failure::impossible(ServerError::Prepare(error));
        let dir = tempfile::Builder::new()
            .prefix("saiga-redis-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(prepare)?;
        let path = dir.path().display().to_string();
        let log = File::create(dir.path().join("server.log")).map_err(prepare)?;
        let errors = log.try_clone().map_err(prepare)?;
        let endpoint = arm.endpoint(&port.to_string(), &path);
        let mut line = arm.server(&endpoint, &path, &cell.load);
        line.cpus.clone_from(&cell.cpus[0]);
        let child = line
            .spawn(PACKAGE, log, errors)
            .map_err(Failure::impossible)?;
        Ok(Self {
            child,
            endpoint,
            dir,
        })
    }

    /// `Err(None)` when the server ended by itself.
    fn wait_until_ready(&mut self, interrupt: &Interrupt) -> Result<Control, Option<Failure>> {
        let began = Instant::now();
        while began.elapsed() < READY_LIMIT {
            if let Ok(control) = self.greet() {
                return Ok(control);
            }
            match self.child.wait(READY_PAUSE, interrupt) {
                Ok(Waited::TimeOver) => {}
                Ok(Waited::Ended(_)) => return Err(None),
                Ok(Waited::Interrupted) => return Err(Some(Failure::Interrupted)),
                Err(error) => return Err(Some(Failure::impossible(error))),
            }
        }
        let seconds = READY_LIMIT.as_secs();
        Err(Some(Failure::run(format!(
            "redis-server was not ready after {seconds} s"
        ))))
    }

    fn greet(&self) -> io::Result<Control> {
        let mut control = Control::connect(&self.endpoint)?;
        control.ask(&[b"PING"])?;
        let info = control.ask(&[b"INFO", b"server"])?;
        let ours = format!("process_id:{}", self.child.pid());
        if info.lines().any(|line| line == ours) {
            return Ok(control);
        }
        Err(io::Error::other("another server answers"))
    }

    /// What it said last, when it has ended.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        match self.child.wait(Duration::ZERO, &Interrupt::never()) {
            Ok(Waited::Ended(ended)) => {
                let words = last_line(&self.dir.path().join("server.log"));
                Some(format!(
                    "redis-server died ({}); it said: {words}",
                    ended.status
                ))
            }
            Ok(Waited::TimeOver | Waited::Interrupted) | Err(_) => None,
        }
    }

    /// Stops it: by SHUTDOWN, which needs no tick of its clock, else by signals.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        let asked = Control::connect(&self.endpoint)
            .and_then(|mut control| control.send(&[b"SHUTDOWN", b"NOSAVE"]));
        if asked.is_ok() {
            let waited = self.child.wait(SHUTDOWN_LIMIT, &Interrupt::never())?;
            if matches!(waited, Waited::Ended(_)) {
                return Ok(());
            }
        }
        self.child.stop().map(|_| ())
    }
}

/// Creates the keys that a GET will ask for, as redis-benchmark spells them.
fn fill(control: &mut Control, load: &RedisLoad) -> io::Result<()> {
    if load.test != Test::Get {
        return Ok(());
    }
    let value = vec![b'x'; usize::try_from(load.value_bytes).unwrap_or(0)];
    if load.keys == 0 {
        return control
            .ask(&[b"SET", b"key:__rand_int__", &value])
            .map(|_| ());
    }
    let mut next = 0;
    while next < load.keys {
        let end = load.keys.min(next + FILL_BATCH);
        for key in next..end {
            control.send(&[b"SET", format!("key:{key:012}").as_bytes(), &value])?;
        }
        (next..end).try_for_each(|_| control.answer().map(|_| ()))?;
        next = end;
    }
    Ok(())
}
