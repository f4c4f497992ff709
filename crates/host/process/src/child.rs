//! Child processes of an experiment: start with CPUs and memory policy, wait, stop.
//!
//! Every child leads its own process group. A Ctrl-C at the terminal therefore reaches only this
//! process, which decides the order of stopping. The kernel kills a child when the thread that
//! started it ends (`PR_SET_PDEATHSIG`), and `Drop` kills a child that is still running. Killing a
//! child also kills its group, such as the rest of a shell's pipeline. Processes that left the
//! group by setsid(2) are not killed.
//!
//! Deliberately absent: search for processes by name, shells.

#![expect(
    unsafe_code,
    reason = "pre_exec, wait4 and process CPU clocks have no safe wrapper"
)]

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::account::Account;
use crate::interrupt::Interrupt;
use crate::memory::Memory;
use crate::numbers::ranges;
use crate::pidfd::{Process, WaitResult};
use crate::{group, network, secret};

mod program;

/// Time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(3);

/// A program with its arguments, environment, CPUs, memory policy, user, directory and network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Searched in `PATH` unless it contains a slash.
    pub program: String,
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// Variables added to the environment of this process; `LD_PRELOAD` is never inherited.
    pub env: BTreeMap<String, String>,
    /// CPU affinity; empty for that of this process.
    pub cpus: Vec<usize>,
    /// The user to run as; `None` for that of this process.
    pub account: Option<Account>,
    /// NUMA policy; `None` for the kernel's default.
    pub memory: Option<Memory>,
    /// Working directory; `None` for that of this process.
    pub directory: Option<PathBuf>,
    /// File of the network namespace, such as `/proc/PID/ns/net`; `None` for that of this process.
    pub network: Option<PathBuf>,
    pub stop_signals: StopSignals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopSignals {
    /// Asks the program to end.
    pub ask: Signal,
    /// Ends the program and its children at once; also sent by the kernel when this process dies.
    pub force: Signal,
}

impl Default for StopSignals {
    fn default() -> Self {
        Self {
            ask: Signal::TERM,
            force: Signal::KILL,
        }
    }
}

/// A program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("{program} is not installed (not found in PATH); on Debian: apt-get install {package}")]
    NotInstalled {
        program: String,
        /// The Debian package that contains the program.
        package: String,
    },
    /// The working directory does not exist.
    #[error(
        "cannot start {program} in {}: the directory does not exist; create it, or name another",
        directory.display()
    )]
    NoDirectory { program: String, directory: PathBuf },
    /// The program is a script whose interpreter does not exist.
    #[error(
        "cannot start {}: its first line names {interpreter}, which does not exist; install the \
         interpreter, or change the line", script.display()
    )]
    NoInterpreter {
        script: PathBuf,
        interpreter: String,
    },
    /// The file for the output cannot be created.
    #[error("cannot write {}, the file for the output of {program}: {error}", path.display())]
    Log {
        program: String,
        path: PathBuf,
        error: io::Error,
    },
    /// Any other error of fork or exec.
    #[error("cannot start {program}: {error}")]
    Refused { program: String, error: io::Error },
}

#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub status: ExitStatus,
    /// User and system time of the child and of its descendants that were waited for.
    pub cpu: Duration,
}

/// The result of a wait.
#[derive(Debug, Clone, Copy)]
pub enum Waited {
    /// The child has ended and is reaped.
    Ended(Ended),
    /// The limit has passed; the child is running.
    TimeOver,
    /// The user asked to stop; the child is running.
    Interrupted,
}

/// A child process; killed with its group and reaped when dropped.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    process: Process,
    stop_signals: StopSignals,
    ended: Option<Ended>,
}

impl CommandLine {
    /// A command line with the environment, CPUs, user and directory of this process.
    pub fn new(program: &str, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            program: program.to_owned(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cpus: Vec::new(),
            account: None,
            memory: None,
            directory: None,
            network: None,
            stop_signals: StopSignals::default(),
        }
    }

    /// Starts the program with `/dev/null` as standard input and both outputs in files.
    ///
    /// # Errors
    /// If the program does not exist, the error names `package`, its Debian package.
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
            // The standard library changes the user and clears the supplementary groups before
            // `pre_exec`. This order matters: a change of user clears the parent death signal,
            // which is set there.
            command.uid(account.uid).gid(account.gid);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let policy = self.memory.as_ref().map(Memory::policy);
        let parent = rustix::process::getpid();
        let force = self.stop_signals.force;
        // SAFETY: the closure makes system calls only: it neither allocates nor locks.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(force))?;
                if rustix::process::getppid() != Some(parent) {
                    // The parent died before the signal was set.
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
        // Not in `pre_exec`, where another user may lack the right to enter the namespace.
        let mut started = network::within(self.network.as_deref(), || command.spawn())
            .map_err(|error| self.refusal(package, error))?;
        match child_of(&started, self.stop_signals) {
            Ok(child) => Ok(child),
            Err(error) => {
                // The child cannot be waited for without a pidfd, so it must not stay. Errors are
                // impossible here, because it is an unreaped child of this process.
                let _ = started.kill();
                let _ = started.wait();
                Err(self.refusal(package, error))
            }
        }
    }

    /// [`spawn`](Self::spawn) with both outputs in one file.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
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
            // The kernel also returns ENOENT for a script whose interpreter does not exist.
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

/// A shell command with the same effect, except that passwords are masked.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(directory) = &self.directory {
            write!(f, "cd {} && ", quoted(&directory.to_string_lossy()))?;
        }
        if let Some(network) = &self.network {
            write!(f, "nsenter --net={} ", quoted(&network.to_string_lossy()))?;
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
        // Masking needs the program's name, because the meaning of options depends on it.
        let words = [std::slice::from_ref(&self.program), &self.args].concat();
        let shown = secret::words(&words);
        shown
            .iter()
            .skip(1)
            .try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn child_of(started: &std::process::Child, stop_signals: StopSignals) -> io::Result<Child> {
    let pid = i32::try_from(started.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
    let process = Process::open(started.id())?.ok_or(io::ErrorKind::NotFound)?;
    Ok(Child {
        pid,
        process,
        stop_signals,
        ended: None,
    })
}

/// Quotes `text` as one word for a shell.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@{}".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Child {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether the child has ended and is reaped, so that its PID may belong to another process.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// User and system time of all threads of the child so far, with nanosecond resolution.
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        cpu_time_of(self.pid)
    }

    /// Waits until the child ends, the user interrupts, or `limit` has passed.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait(&mut self, limit: Duration, interrupt: &Interrupt) -> io::Result<Waited> {
        match self.wait_without_reaping(limit, interrupt)? {
            WaitResult::End => self.reap().map(Waited::Ended),
            WaitResult::TimeOver => Ok(Waited::TimeOver),
            WaitResult::Interrupt => Ok(Waited::Interrupted),
        }
    }

    /// [`wait`](Self::wait) without reaping. The PID stays reserved until the child is reaped.
    fn wait_without_reaping(
        &self,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> io::Result<WaitResult> {
        if self.ended.is_some() {
            return Ok(WaitResult::End);
        }
        self.process.wait(limit, interrupt)
    }

    /// Waits until all processes of the child's group have ended, or `limit` has passed. The child
    /// is reaped last, because its PID, and so the number of the group, is reserved until then.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait_for_group(&mut self, limit: Duration) -> io::Result<Option<Ended>> {
        let deadline = Instant::now() + limit;
        let is_alive = matches!(
            self.wait_without_reaping(limit, &Interrupt::never())?,
            WaitResult::TimeOver | WaitResult::Interrupt
        );
        if is_alive {
            return Ok(None);
        }
        // Only one check per call, because it reads all processes of the machine.
        if self.ended.is_none() && group::outlives(self.pid) {
            Interrupt::never().wait(deadline.saturating_duration_since(Instant::now()))?;
            return Ok(None);
        }
        self.reap().map(Some)
    }

    /// The living processes of the child's group, as `name (PID)`; empty once the child is reaped.
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

    /// Asks the child to end, kills it after three seconds, and reaps it. Kills the rest of its
    /// group.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn stop(&mut self) -> io::Result<Ended> {
        self.signal(self.stop_signals.ask);
        match self.wait_without_reaping(TERM_GRACE, &Interrupt::never())? {
            WaitResult::End => self.kill_group_and_reap(),
            WaitResult::TimeOver | WaitResult::Interrupt => self.kill(),
        }
    }

    /// Kills the child with its group at once, and reaps it. If its `force` signal is not SIGKILL,
    /// processes that have not ended after three seconds are killed.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn kill(&mut self) -> io::Result<Ended> {
        if self.stop_signals.force != Signal::KILL {
            self.signal(self.stop_signals.force);
            self.wait_without_reaping(TERM_GRACE, &Interrupt::never())?;
        }
        self.kill_group_and_reap()
    }

    /// Kills all processes of the group and reaps the child. The number of the group is reserved
    /// until the child is reaped.
    fn kill_group_and_reap(&mut self) -> io::Result<Ended> {
        if self.ended.is_none() {
            self.signal(Signal::KILL);
            group::end(self.pid, TERM_GRACE);
        }
        self.reap()
    }

    /// Sends a signal to the child only.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            // An error means that the child has ended; the next wait reports that.
            let _ = self.process.signal(signal);
        }
    }

    /// Sends a signal to all processes of the child's group.
    pub fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            // An error means that no process is left in the group.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    fn reap(&mut self) -> io::Result<Ended> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let mut status = 0;
        // SAFETY: all-zero bytes are a valid `rusage`, which consists of integers.
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
            // If this fails, the kernel kills the child when this process ends.
            let _ = self.kill();
        }
    }
}

/// User and system time of all threads of a process so far, with nanosecond resolution.
///
/// # Errors
/// Fails if the process has ended.
pub(crate) fn cpu_time_of(pid: Pid) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid for the one value that the call writes.
    let errno = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &mut clock) };
    if errno != 0 {
        return Err(io::Error::from_raw_os_error(errno));
    }
    read_clock(clock)
}

/// CPU time of this process so far.
///
/// # Errors
/// Fails if a system call fails.
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
