//! How long a recording lasts: as long as a program that is started for it, a process that is there, or a time.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::{Child, CommandLine, Waited};

use crate::exit;

/// What is recorded.
pub(in crate::streams) enum Target {
    Command(CommandLine),
    Process {
        pid: u32,
        pidfd: OwnedFd,
        time: Option<Duration>,
    },
    Time(Duration),
}

/// What is waited for.
pub(super) struct Running<'a> {
    target: &'a Target,
    child: Option<Child>,
    deadline: Option<Instant>,
}

/// How it ended.
pub(in crate::streams) enum End {
    /// As it should, or by the user.
    Wanted,
    /// The program did not do what it should; in words.
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
            "--for must be longer than nothing"
        );
        if let Some((program, words)) = command.split_first() {
            return Ok(Self::Command(CommandLine::new(
                program,
                words.iter().cloned(),
            )));
        }
        match (pid, time) {
            (Some(pid), time) => {
                let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
                let pidfd = number.map(|number| pidfd_open(number, PidfdFlags::empty()));
                let pidfd = pidfd.and_then(Result::ok);
                let pidfd = pidfd.with_context(|| format!("there is no process {pid}"))?;
                Ok(Self::Process { pid, pidfd, time })
            }
            (None, Some(time)) => Ok(Self::Time(time)),
            (None, None) => {
                anyhow::bail!("how long? Give a program (-- CMD), --pid PID, or --for TIME")
            }
        }
    }

    /// What is given, or the working directory of the process.
    pub(super) fn directories(&self, given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        if !given.is_empty() {
            return Ok(given.to_vec());
        }
        let Self::Process { pid, .. } = self else {
            anyhow::bail!("which directory? Give DIR");
        };
        let link = PathBuf::from(format!("/proc/{pid}/cwd"));
        let dir = std::fs::read_link(&link)
            .with_context(|| format!("cannot see the working directory of {pid}; give DIR"))?;
        let same = |path: &Path| path.metadata().map(|it| (it.dev(), it.ino())).ok();
        // In a container, the same path is another directory.
        anyhow::ensure!(
            same(&dir).is_some() && same(&dir) == same(&link),
            "the working directory of {pid} is {} for itself and something else from here; give DIR as it is called here",
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
            // A time beyond all clocks is no deadline.
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
        })
    }
}

/// Starts a program that says what it says where we do.
pub(super) fn start(command: &CommandLine) -> anyhow::Result<Child> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    Ok(command.spawn("the package that has it", stdout, stderr)?)
}

impl Running<'_> {
    /// Waits until there is an end, or for a while.
    pub(super) fn wait(
        &mut self,
        pause: Duration,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<End>> {
        if let Some(child) = &mut self.child {
            return Ok(match child.wait(pause, interrupt)? {
                Waited::Ended(ended) => Some(ending(ended.status)),
                Waited::Interrupted => {
                    exit::say("ending the program and the recording");
                    Some(End::Wanted)
                }
                Waited::TimeOver => None,
            });
        }
        if interrupt.wait(pause)? {
            exit::say("ending the recording");
            return Ok(Some(End::Wanted));
        }
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Ok(Some(End::Wanted));
        }
        if let Target::Process { pid, pidfd, .. } = self.target {
            let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
            if poll(&mut ended, Some(&Timespec::default()))? > 0 {
                exit::say(&format!("process {pid} has ended"));
                return Ok(Some(End::Wanted));
            }
        }
        Ok(None)
    }

    /// Ends a program that was started for the recording, with its group.
    pub(super) fn end(self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child {
            stop(&mut child)?;
        }
        Ok(())
    }
}

/// Asks the whole group of a program to end, and insists.
pub(super) fn stop(child: &mut Child) -> io::Result<()> {
    if !child.has_ended() {
        let group = i32::try_from(child.pid()).ok().and_then(Pid::from_raw);
        // It fails when nobody is left in it.
        let _ = group.map(|group| kill_process_group(group, Signal::TERM));
    }
    child.stop().map(drop)
}

/// In words, unless it is success.
pub(super) fn ending(status: ExitStatus) -> End {
    if status.success() {
        End::Wanted
    } else {
        End::Failed(format!("the program failed ({status})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beyond_all_clocks_is_no_deadline() {
        for (time, has_deadline) in [(Duration::MAX, false), (Duration::from_secs(1), true)] {
            let target = Target::of(&[], None, Some(time)).unwrap();
            assert_eq!(target.start().unwrap().deadline.is_some(), has_deadline);
        }
    }
}
