//! What ends a recording: the end of a program, the end of a process, or a time.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use saiga_process::child::{Child, CommandLine, Waited};
use saiga_process::interrupt::Interrupt;
use saiga_process::pidfd;

use super::ending::Ending;
use crate::exit;

/// Placeholder in the error for a program that is not installed: its package is unknown here.
const PACKAGE: &str = "the package that contains it";

/// What ends the recording.
pub(in crate::streams) enum Target {
    Command(Box<CommandLine>),
    Process {
        pid: u32,
        process: pidfd::Process,
        time: Option<Duration>,
    },
    Time(Duration),
}

/// A recording in progress.
pub(super) struct Running<'a> {
    target: &'a Target,
    child: Option<Child>,
    /// Set once the child was sent SIGTERM.
    ending: Option<Ending>,
    deadline: Option<Instant>,
}

/// Why a recording ended.
pub(in crate::streams) enum End {
    /// The target ended successfully, or the user ended the recording.
    Success,
    /// The program failed; the text says how.
    Failed(String),
}

impl Target {
    pub(super) fn of(
        command: &[String],
        pid: Option<u32>,
        time: Option<Duration>,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(
            time.is_none_or(|time| !time.is_zero()),
            "--for must be greater than zero"
        );
        if let Some((program, words)) = command.split_first() {
            let command = CommandLine::new(program, words.iter().cloned());
            // Fails before the data are loaded rather than after.
            command.find(PACKAGE)?;
            return Ok(Self::Command(Box::new(command)));
        }
        match (pid, time) {
            (Some(pid), time) => {
                let process = pidfd::Process::open(pid)?;
                let process = process.with_context(|| format!("no process has PID {pid}"))?;
                Ok(Self::Process { pid, process, time })
            }
            (None, Some(time)) => Ok(Self::Time(time)),
            (None, None) => {
                anyhow::bail!("give a program to record (-- CMD), --pid PID, or --for TIME")
            }
        }
    }

    /// The given directories, or the working directory of the process.
    pub(super) fn directories(&self, given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        if !given.is_empty() {
            return Ok(given.to_vec());
        }
        let Self::Process { pid, .. } = self else {
            anyhow::bail!("give a data directory (DIR)");
        };
        let link = PathBuf::from(format!("/proc/{pid}/cwd"));
        let dir = std::fs::read_link(&link)
            .with_context(|| format!("cannot read the working directory of {pid}; give DIR"))?;
        let same = |path: &Path| path.metadata().map(|it| (it.dev(), it.ino())).ok();
        // In another mount namespace, the same path may lead to another directory.
        anyhow::ensure!(
            same(&dir).is_some() && same(&dir) == same(&link),
            "the working directory of {pid} is {} in its own mount namespace, which is another \
             directory here; give the path of DIR as seen from here",
            dir.display()
        );
        Ok(vec![dir])
    }

    pub(super) fn start(&self) -> anyhow::Result<Running<'_>> {
        let time = match self {
            Self::Command(_) => None,
            Self::Process { time, .. } => *time,
            Self::Time(time) => Some(*time),
        };
        let child = match self {
            Self::Command(command) => Some(start(command)?),
            Self::Process { .. } | Self::Time(_) => None,
        };
        Ok(Running {
            target: self,
            child,
            ending: None,
            // `None` if the end is beyond the range of the clock.
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
        })
    }
}

/// Starts a program with the stdout and stderr of this process.
pub(super) fn start(command: &CommandLine) -> anyhow::Result<Child> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    Ok(command.spawn(PACKAGE, stdout, stderr)?)
}

impl Running<'_> {
    /// Waits for at most `pause`; returns the end if there is one. After SIGTERM, recording
    /// continues until the program has ended.
    pub(super) fn wait(
        &mut self,
        pause: Duration,
        interrupt: &Interrupt,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<Option<End>> {
        if let Some(ending) = &mut self.ending {
            let is_over = ending.wait(pause, interrupt, say)?;
            return Ok(is_over.then_some(End::Success));
        }
        if let Some(child) = &mut self.child {
            return Ok(match child.wait(pause, interrupt)? {
                Waited::Ended(ended) => Some(ending(ended.status)),
                Waited::Interrupted => {
                    say("stopping the program and the recording");
                    self.ending = self.child.take().map(Ending::ask);
                    None
                }
                Waited::TimeOver => None,
            });
        }
        if interrupt.wait(pause)? {
            say("stopping the recording");
            return Ok(Some(End::Success));
        }
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Ok(Some(End::Success));
        }
        if let Target::Process { pid, process, .. } = self.target
            && process.ends_within(Duration::ZERO)?
        {
            say(&format!("process {pid} has ended"));
            return Ok(Some(End::Success));
        }
        Ok(None)
    }

    /// Stops the program after a failed recording, and waits for its end.
    pub(super) fn give_up(self, interrupt: &Interrupt) -> io::Result<()> {
        let running = self.child.filter(|child| !child.has_ended());
        let ending = self.ending.or_else(|| {
            let child = running?;
            exit::say("the recording failed; stopping the program");
            Some(Ending::ask(child))
        });
        ending.map_or(Ok(()), |ending| ending.finish(interrupt))
    }
}

pub(super) fn ending(status: ExitStatus) -> End {
    if status.success() {
        End::Success
    } else {
        End::Failed(format!("the program failed ({status})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beyond_the_clock_sets_no_deadline() {
        for (time, has_deadline) in [(Duration::MAX, false), (Duration::from_secs(1), true)] {
            let target = Target::of(&[], None, Some(time)).unwrap();
            assert_eq!(target.start().unwrap().deadline.is_some(), has_deadline);
        }
    }
}
