//! A helper process with which a test communicates by stdin and stdout.
//!
//! Every wait has a limit, and the process is killed by its PID when dropped.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

use crate::{
    census::Census,
    parity::{self, Arm},
    reaper,
    scale::{by_scale, patient},
    sys::{self, Signal},
};

/// A helper without the expected output for this long counts as hung.
fn patience() -> Duration {
    patient(Duration::from_secs(by_scale(30, 600)))
}

/// A running helper process.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    pending: Vec<u8>,
    name: String,
}

impl Peer {
    /// Starts `program` with `args` on `arm`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(program: PathBuf, args: &[&str], arm: Arm) -> Self {
        let mut command = Command::new(&program);
        parity::set_environment(&mut command, arm);
        command.args(args);
        Self::spawn(command)
    }

    /// Starts `command` unchanged, except for stdin and stdout.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn spawn(mut command: Command) -> Self {
        let name = format!("{:?} {:?}", command.get_program(), command.get_args());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = reaper::spawn(command, Signal::KILL)
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let input = child.stdin.take();
        let output = child.stdout.take().expect("stdout was asked for");
        Self {
            child,
            input,
            output,
            pending: Vec::new(),
            name,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The helper's resources now.
    ///
    /// # Panics
    /// If it has ended.
    pub fn census(&self) -> Census {
        Census::of(self.pid()).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Writes `text` and a line end to the helper's stdin.
    ///
    /// # Panics
    /// If the helper does not read any more.
    pub fn tell(&mut self, text: &str) {
        let input = self
            .input
            .as_mut()
            .expect("stdin was asked for and is open");
        let written = input.write_all(format!("{text}\n").as_bytes());
        written.unwrap_or_else(|error| panic!("{} does not read its stdin: {error}", self.name));
    }

    /// Closes the helper's stdin.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// The next line of stdout, without the line end; `None` at the end.
    ///
    /// # Panics
    /// If none comes within the limit.
    pub fn line(&mut self) -> Option<String> {
        let mut searched = 0;
        loop {
            let mut new = self.pending[searched..].iter();
            if let Some(end) = new.position(|&byte| byte == b'\n') {
                let end = searched + end;
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            searched = self.pending.len();
            if !self.more() {
                return None;
            }
        }
    }

    /// Reads the next line, which must start with `prefix`; returns the rest.
    ///
    /// # Panics
    /// If another line comes, or none.
    pub fn expect(&mut self, prefix: &str) -> String {
        let line = self
            .line()
            .unwrap_or_else(|| panic!("{} ended without '{prefix}'", self.name));
        let rest = line.strip_prefix(prefix);
        rest.unwrap_or_else(|| panic!("{} said '{line}', not '{prefix}...'", self.name))
            .trim()
            .to_owned()
    }

    /// Waits for `count` further bytes of stdout; false if it ends before.
    ///
    /// # Panics
    /// If they do not come within the limit.
    pub fn await_bytes(&mut self, count: usize) -> bool {
        while self.pending.len() < count {
            if !self.more() {
                return false;
            }
        }
        self.pending.drain(..count);
        true
    }

    /// Reads the available bytes, waiting if there are none; false at the end.
    fn more(&mut self) -> bool {
        let came = sys::readable(&self.output, patience());
        if !came.expect("stdout can be polled") {
            panic!(
                "{} hangs: no output for {:?}\n{}",
                self.name,
                patience(),
                self.whereabouts()
            );
        }
        let mut buffer = [0; 4096];
        let got = self.output.read(&mut buffer).expect("stdout can be read");
        self.pending.extend_from_slice(&buffer[..got]);
        got > 0
    }

    fn whereabouts(&self) -> String {
        let look = |name: &str| {
            fs::read_to_string(format!("/proc/{}/{name}", self.pid())).unwrap_or_default()
        };
        let mut text = format!("in {}, system call {}", look("wchan"), look("syscall"));
        if std::env::var_os("SAIGA_TRIALS_GDB").is_some() {
            let gdb = Command::new("gdb")
                .args([
                    "-batch",
                    "-p",
                    &self.pid().to_string(),
                    "-ex",
                    "thread apply all bt 16",
                ])
                .output();
            text += &gdb.map_or_else(
                |_| String::new(),
                |out| String::from_utf8_lossy(&out.stdout).into(),
            );
        }
        text
    }

    /// Sends a signal to the helper.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        sys::signal(self.pid(), signal)
            .unwrap_or_else(|error| panic!("{:?} to {}: {error}", signal, self.name));
    }

    /// Sends SIGKILL, and waits for the end.
    pub fn kill(mut self) -> ExitStatus {
        // It may have ended by itself: the status shows it.
        let _ = self.child.kill();
        self.child.wait().expect("a child can be waited for")
    }

    /// Closes stdin, reads the rest of stdout and waits for the end.
    ///
    /// # Panics
    /// If the helper stays silent and alive for longer than the limit.
    pub fn finish(mut self) -> (String, ExitStatus) {
        self.hang_up();
        while self.more() {}
        let status = self.child.wait().expect("a child can be waited for");
        (String::from_utf8_lossy(&self.pending).into_owned(), status)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Usually ended and reaped already; then neither call has an effect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
