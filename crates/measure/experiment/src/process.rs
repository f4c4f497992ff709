//! Children of an experiment: started with their cores and memory, waited for, stopped by pid.
//!
//! Every child is its own process group, so a Ctrl-C at the terminal reaches only us
//! and we decide the order of stopping; every child is killed by the kernel when we
//! die, to be exact when the thread that started it ends, and by `Drop` when we forget it.
//! Who is killed takes its group along, the rest of a shell's pipeline for example; what has left
//! the group (`setsid`) is a daemon of its own.
//!
//! Deliberately absent: search by name, shells.

#![expect(
    unsafe_code,
    reason = "pre_exec, wait4 and process CPU clocks have no safe wrapper"
)]

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
pub use rustix::process::Signal;
use rustix::process::{Pid, PidfdFlags, kill_process_group, pidfd_open, pidfd_send_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::account::Account;
use crate::interrupt::Interrupt;
use crate::memory::Memory;
use crate::numbers::ranges;
use crate::{group, secret};

mod program;

/// How long a child may take to end after SIGTERM before it gets SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(3);

/// A program with its arguments, environment and cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Looked up in `PATH` unless it contains a slash.
    pub program: String,
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// Variables added to our environment; `LD_PRELOAD` is never inherited.
    pub env: BTreeMap<String, String>,
    /// The CPUs it may use; empty for all that we may.
    pub cpus: Vec<usize>,
    /// Whose rights it has; `None` for ours.
    pub account: Option<Account>,
    /// Where its memory comes from; `None` for wherever the kernel thinks best.
    pub memory: Option<Memory>,
    /// Where it runs; `None` for where we do.
    pub directory: Option<PathBuf>,
    /// How it is ended.
    pub endings: Endings,
}

/// The signals that end a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endings {
    /// Asks it to end.
    pub ask: Signal,
    /// Ends it at once, its own children too. The kernel sends it when we die.
    pub force: Signal,
}

impl Default for Endings {
    fn default() -> Self {
        Self {
            ask: Signal::TERM,
            force: Signal::KILL,
        }
    }
}

/// A program that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No such program in `PATH`.
    #[error("{program} is not installed (not found in PATH); on Debian: apt-get install {package}")]
    NotInstalled {
        /// The program.
        program: String,
        /// The Debian package that holds it.
        package: String,
    },
    /// It has nowhere to run.
    #[error(
        "cannot start {program} in {}: there is no such directory; make it, or name another one",
        directory.display()
    )]
    NoDirectory {
        /// The program.
        program: String,
        /// Where it should run.
        directory: PathBuf,
    },
    /// It is a script for a program that is missing.
    #[error(
        "cannot start {}: its first line names {interpreter}, which is not there; install that, or \
         change the line", script.display()
    )]
    NoInterpreter {
        /// The script.
        script: PathBuf,
        /// What runs it.
        interpreter: String,
    },
    /// Its output has nowhere to go.
    #[error("cannot write {}, where the output of {program} goes: {error}", path.display())]
    Log {
        /// The program.
        program: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Any other refusal.
    #[error("cannot start {program}: {error}")]
    Refused {
        /// The program.
        program: String,
        /// What the system said.
        error: io::Error,
    },
}

/// How a child ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// User and system time of its whole life.
    pub cpu: Duration,
}

/// What a wait came back with.
#[derive(Debug, Clone, Copy)]
pub enum Waited {
    /// The child ended and is reaped.
    Ended(Ended),
    /// The time is over; the child lives.
    TimeOver,
    /// The user asked to stop; the child lives.
    Interrupted,
}

/// What a wait saw.
enum Seen {
    /// It has ended; it need not be reaped yet.
    End,
    TimeOver,
    Interrupt,
}

/// A running child; killed with its group and reaped when dropped.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pidfd: OwnedFd,
    endings: Endings,
    ended: Option<Ended>,
}

impl CommandLine {
    /// `program args`, with our environment and cores.
    pub fn new(program: &str, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            program: program.to_owned(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cpus: Vec::new(),
            account: None,
            memory: None,
            directory: None,
            endings: Endings::default(),
        }
    }

    /// Starts it with standard input closed and both outputs in files.
    ///
    /// # Errors
    /// [`SpawnError`]; `package` is named in it when the program does not exist.
    pub fn spawn(&self, package: &str, stdout: File, stderr: File) -> Result<Child, SpawnError> {
        if let Some(directory) = self.directory.as_ref().filter(|dir| !dir.is_dir()) {
            return Err(SpawnError::NoDirectory {
                program: self.program.clone(),
                directory: directory.clone(),
            });
        }
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_remove("LD_PRELOAD")
            .envs(&self.env)
            .process_group(0);
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let mut cpus = CpuSet::new();
        self.cpus.iter().for_each(|&cpu| cpus.set(cpu));
        let pin = !self.cpus.is_empty();
        if let Some(account) = &self.account {
            // The standard library gives up our groups with the user, before `pre_exec`: a
            // change of user would disarm the signal that is armed there.
            command.uid(account.uid).gid(account.gid);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let policy = self.memory.as_ref().map(Memory::policy);
        let parent = rustix::process::getpid();
        let force = self.endings.force;
        // SAFETY: the closure makes system calls only: it neither allocates nor locks.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(force))?;
                if rustix::process::getppid() != Some(parent) {
                    // We died before the signal was armed.
                    return Err(rustix::io::Errno::SRCH.into());
                }
                if pin {
                    sched_setaffinity(None, &cpus)?;
                }
                if let Some(policy) = &policy {
                    policy.apply()?;
                }
                Ok(())
            });
        }
        let mut started = command
            .spawn()
            .map_err(|error| self.refusal(package, error))?;
        match watch(&started, self.endings) {
            Ok(child) => Ok(child),
            Err(error) => {
                // We cannot watch it, so it must not stay; it was ours, so both succeed.
                let _ = started.kill();
                let _ = started.wait();
                Err(self.refusal(package, error))
            }
        }
    }

    /// The same with both outputs in one file.
    ///
    /// # Errors
    /// As of [`spawn`](Self::spawn).
    pub fn spawn_logged(&self, package: &str, log: &Path) -> Result<Child, SpawnError> {
        let files = File::create(log).and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = files.map_err(|error| SpawnError::Log {
            program: self.program.clone(),
            path: log.to_owned(),
            error,
        })?;
        self.spawn(package, out, err)
    }

    fn refusal(&self, package: &str, error: io::Error) -> SpawnError {
        let mut program = self.program.clone();
        if error.kind() == io::ErrorKind::NotFound {
            // The kernel says the same of a script whose interpreter is missing.
            if let Some((script, interpreter)) = self.script() {
                return SpawnError::NoInterpreter {
                    script,
                    interpreter,
                };
            }
            let package = package.to_owned();
            return SpawnError::NotInstalled { program, package };
        }
        if let Some(Account { name, .. }) = &self.account {
            program = format!("{program} as {name}");
        }
        SpawnError::Refused { program, error }
    }
}

/// A line that a shell would run to the same effect, but for its passwords, which are masked.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(directory) = &self.directory {
            write!(f, "cd {} && ", quoted(&directory.to_string_lossy()))?;
        }
        if !self.cpus.is_empty() {
            write!(f, "taskset -c {} ", ranges(&self.cpus))?;
        }
        if let Some(memory) = &self.memory {
            write!(f, "numactl {memory} ")?;
        }
        if let Some(account) = &self.account {
            let Account { name, .. } = account;
            write!(f, "setpriv --reuid {name} --regid {name} --clear-groups ")?;
        }
        if !self.env.is_empty() {
            f.write_str("env ")?;
        }
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(&secret::value(name, value)))?;
        }
        f.write_str(&self.program)?;
        // What an option means depends on the program.
        let words = [std::slice::from_ref(&self.program), &self.args].concat();
        let shown = secret::words(&words);
        shown
            .iter()
            .skip(1)
            .try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn watch(started: &std::process::Child, endings: Endings) -> io::Result<Child> {
    let pid = i32::try_from(started.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(Child {
        pid,
        pidfd,
        endings,
        ended: None,
    })
}

/// `text` as one word of a shell.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@{}".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Child {
    /// Its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether it has ended and is reaped, so that its number may be somebody else's.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// User and system time that all its threads used so far, to the nanosecond.
    ///
    /// # Errors
    /// The process is gone.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        cpu_time_of(self.pid)
    }

    /// Waits until it ends, the user interrupts, or the time is over.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn wait(&mut self, limit: Duration, interrupt: &Interrupt) -> io::Result<Waited> {
        match self.watch_for_end(limit, interrupt)? {
            Seen::End => self.reap().map(Waited::Ended),
            Seen::TimeOver => Ok(Waited::TimeOver),
            Seen::Interrupt => Ok(Waited::Interrupted),
        }
    }

    /// The same without reaping: as long as that is not done, nobody else gets its number.
    fn watch_for_end(&self, limit: Duration, interrupt: &Interrupt) -> io::Result<Seen> {
        if self.ended.is_some() {
            return Ok(Seen::End);
        }
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = vec![PollFd::from_borrowed_fd(self.pidfd.as_fd(), PollFlags::IN)];
            fds.extend(
                interrupt
                    .wake_fd()
                    .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            );
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(Seen::TimeOver),
                Ok(_) if !fds[0].revents().is_empty() => return Ok(Seen::End),
                Ok(_) => return Ok(Seen::Interrupt),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until nobody of its group lives, itself included, or the time is over. It is reaped
    /// last: until then, the number of the group is nobody else's.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn wait_for_group(&mut self, limit: Duration) -> io::Result<Option<Ended>> {
        let deadline = Instant::now() + limit;
        let is_alive = matches!(
            self.watch_for_end(limit, &Interrupt::never())?,
            Seen::TimeOver | Seen::Interrupt
        );
        if is_alive {
            return Ok(None);
        }
        // One look for each call: it goes through all processes of the machine.
        if self.ended.is_none() && group::outlives(self.pid) {
            Interrupt::never().wait(deadline.saturating_duration_since(Instant::now()))?;
            return Ok(None);
        }
        self.reap().map(Some)
    }

    /// Who is alive of its group, as `name (number)`; nobody once it is reaped.
    #[must_use]
    pub fn group(&self) -> Vec<String> {
        if self.ended.is_some() {
            return Vec::new();
        }
        let living = group::living(self.pid);
        living
            .map(|(pid, name)| format!("{name} ({pid})"))
            .collect()
    }

    /// Asks it to end, insists after three seconds, and reaps it. What is left of its group is
    /// killed.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn stop(&mut self) -> io::Result<Ended> {
        self.signal(self.endings.ask);
        match self.watch_for_end(TERM_GRACE, &Interrupt::never())? {
            Seen::End => self.bury(),
            Seen::TimeOver | Seen::Interrupt => self.kill(),
        }
    }

    /// Ends it at once with its group, and reaps it; what does not end within three seconds is
    /// killed.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn kill(&mut self) -> io::Result<Ended> {
        if self.endings.force != Signal::KILL {
            self.signal(self.endings.force);
            self.watch_for_end(TERM_GRACE, &Interrupt::never())?;
        }
        self.bury()
    }

    /// Kills what lives of its group, itself included, and reaps it. Before it is reaped, the number
    /// of the group can be nobody else's.
    fn bury(&mut self) -> io::Result<Ended> {
        if self.ended.is_none() {
            self.signal(Signal::KILL);
            group::end(self.pid, TERM_GRACE);
        }
        self.reap()
    }

    /// Sends a signal that has a meaning of its own to this program.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            // It may have ended meanwhile; the wait that follows finds out.
            let _ = pidfd_send_signal(&self.pidfd, signal);
        }
    }

    /// The same to everybody in its group.
    pub fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            // It fails when nobody is left in it.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    fn reap(&mut self) -> io::Result<Ended> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let mut status = 0;
        // SAFETY: all-zero is a valid `rusage`: it holds integers only.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let pid = self.pid.as_raw_nonzero().get();
        loop {
            // SAFETY: both pointers are valid for the writes of this one call.
            if unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } == pid {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let cpu = duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
        let ended = Ended {
            status: ExitStatus::from_raw(status),
            cpu,
        };
        self.ended = Some(ended);
        Ok(ended)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Nothing is left to do when even this fails: the kernel kills it with us.
            let _ = self.kill();
        }
    }
}

/// User and system time that all threads of a process used so far, to the nanosecond.
///
/// # Errors
/// The process is gone.
pub(crate) fn cpu_time_of(pid: Pid) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid for the one value that the call writes.
    let errno = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &mut clock) };
    if errno != 0 {
        return Err(io::Error::from_raw_os_error(errno));
    }
    read_clock(clock)
}

/// CPU time that this process used so far.
///
/// # Errors
/// The system call that failed.
pub fn own_cpu_time() -> io::Result<Duration> {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the one value that the call writes.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(Duration::new(
        seconds,
        u32::try_from(time.tv_nsec).unwrap_or(0),
    ))
}

fn duration_of(time: libc::timeval) -> Duration {
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0)) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests;
