//! An installation of `saiga` whose processes, and their children, have a mark in their
//! environment.
#![allow(dead_code, reason = "each test file uses a part of this module")]

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use saiga_experiment::result::ExperimentResult;
use saiga_process::proc;
use saiga_trials::sys::await_end;
use saiga_trials::witness::await_true;
use support::Installation;
pub(crate) use support::Said;

const NAME: &str = "SAIGA_TEST_MARK";

/// An installation with a unique mark.
pub(crate) struct Marked {
    installation: Installation,
    mark: String,
}

impl Marked {
    /// An installation without a library.
    pub(crate) fn new() -> Self {
        Self::of(Installation::bare())
    }

    /// An installation with a library that does nothing.
    pub(crate) fn with_library() -> Self {
        Self::of(Installation::with_library())
    }

    /// An installation with the real library.
    pub(crate) fn with_real_library() -> Self {
        Self::of(Installation::with_real_library())
    }

    /// Installs the plug-in for DPDK.
    pub(crate) fn install_plugin(&self) {
        self.installation.install_plugin();
    }

    /// Writes an executable text file, and creates its directories.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        self.installation.script(name, text)
    }

    fn of(installation: Installation) -> Self {
        let mark = installation.path("").display().to_string();
        fs::create_dir(installation.path("tmp")).unwrap();
        Self { installation, mark }
    }

    /// `saiga` with these arguments, the mark, and a directory for temporary files.
    pub(crate) fn saiga(&self, arguments: &[&str]) -> Command {
        let mut command = self.installation.saiga(arguments);
        command
            .env(NAME, &self.mark)
            .env("TMPDIR", self.path("tmp"));
        command
    }

    /// Runs a command.
    pub(crate) fn said(&self, command: &mut Command) -> Said {
        support::said(command)
    }

    /// Runs a command that must fail: exit status 2, nothing on stdout, no files or processes left.
    /// Returns its message.
    pub(crate) fn refused(&self, command: &mut Command) -> String {
        let said = self.said(command);
        assert_eq!(said.code, Some(2), "{command:?}: {said:?}");
        assert_eq!(said.stdout, "", "{command:?}");
        self.assert_nothing_left();
        said.stderr
    }

    /// Runs `saiga` with these arguments, which must fail with `message`, printed once.
    pub(crate) fn assert_refused(&self, arguments: &[&str], message: &str) {
        let said = self.refused(&mut self.saiga(arguments));
        let complaint = format!("saiga: {message}");
        let lines = said.lines().filter(|line| line.starts_with(&complaint));
        assert_eq!(
            lines.count(),
            1,
            "{arguments:?}: not \"{message}\" but {said}"
        );
    }

    /// The result that a comparison left in `out`.
    pub(crate) fn result(&self) -> ExperimentResult {
        let text = fs::read_to_string(self.path("out/result.json")).unwrap();
        ExperimentResult::from_json(&text).unwrap()
    }

    /// A path below the installation.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.installation.path(name)
    }

    /// A path below the installation, as an argument.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Marked processes other than `but`.
    pub(crate) fn processes_but(&self, but: u32) -> Vec<u32> {
        let marked = format!("{NAME}={}", self.mark);
        let is_marked = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == marked.as_bytes())
        };
        let pids = proc::pids().unwrap().into_iter();
        pids.filter(|pid| *pid != but).filter(is_marked).collect()
    }

    /// Number of processes that work below the directory for temporary files. PostgreSQL overwrites
    /// its environment, and the mark, with its title, but its processes work in the data directory.
    pub(crate) fn servers(&self) -> usize {
        let tmp = self.path("tmp");
        let pids = proc::pids().unwrap().into_iter();
        let folders = pids.filter_map(|pid| fs::read_link(format!("/proc/{pid}/cwd")).ok());
        folders.filter(|folder| folder.starts_with(&tmp)).count()
    }

    /// Checks that no process and no temporary file is left.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(
            self.processes_but(0),
            Vec::<u32>::new(),
            "processes are left"
        );
        let files: Vec<_> = fs::read_dir(self.path("tmp")).unwrap().flatten().collect();
        assert!(files.is_empty(), "{files:?} are left");
    }

    /// Waits for the end of every marked process and every server.
    pub(crate) fn wait_until_gone(&self) {
        for pid in self.processes_but(0) {
            let ended = await_end(pid, Duration::from_secs(60)).unwrap();
            assert!(ended, "{pid} goes on");
        }
        await_true(
            || self.servers() == 0,
            || format!("{} servers are left", self.servers()),
        );
    }
}

/// A port that is held by a listener of the test.
pub(crate) fn taken_port() -> (TcpListener, String) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    (taken, port)
}

/// Sends a signal to a child that has not been waited for.
pub(crate) fn send(child: &Child, signal: Signal) {
    kill_process(pid(child.id()), signal).unwrap();
}

/// A PID in the type of rustix.
pub(crate) fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}
