//! Disks in the mount namespace of one thread, and a labeller on them whose log lines tests wait
//! for.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use saiga_disks::Disks;
pub(crate) use saiga_disks::run;
use saiga_streams::hint::Hint;
use saiga_streams::setter::{Fcntl, Setter as _};
use saiga_trials::sys::wait_stopped;
use saiga_trials::witness::await_true;

use crate::support::{Installation, text};

/// A directory for disks and an installation of `saiga`.
pub(crate) struct Site {
    pub(crate) saiga: Installation,
    disks: Disks,
}

impl Site {
    pub(crate) fn new() -> Self {
        // First, because it waits for its turn.
        let disks = Disks::new();
        let saiga = Installation::bare();
        Self { saiga, disks }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.disks.path(name)
    }

    /// Makes a file system of `kind` in a file, and mounts it.
    pub(crate) fn disk(&mut self, kind: &str) -> PathBuf {
        self.disks.disk(kind)
    }

    /// Mounts a disk of this site once more.
    pub(crate) fn mount(&mut self, kind: &str) {
        self.disks.mount(kind);
    }

    /// Mounts something without a disk at `name`.
    pub(crate) fn mount_as(&mut self, kind: &str, options: &str, name: &str) -> PathBuf {
        self.disks.mount_as(kind, options, name)
    }

    /// Bind-mounts a directory at another place.
    pub(crate) fn bind(&mut self, from: &Path, to: &Path) {
        self.disks.bind(from, to);
    }

    /// `saiga streams VERB` with a lock directory of the site.
    pub(crate) fn streams(&self, words: &[&str]) -> Command {
        self.saiga.saiga(&[&["streams"], words].concat())
    }

    /// Starts a labeller and waits until all files are labelled.
    pub(crate) fn labeller(&self, dir: &Path, more: &[&str]) -> Labeller {
        self.labeller_after("true", dir, more)
    }

    /// Starts a labeller from a shell that runs a command first.
    pub(crate) fn labeller_after(&self, first: &str, dir: &Path, more: &[&str]) -> Labeller {
        let locks = self.path("locks");
        let words = ["run", text(dir), "-v", "--lock-dir", text(&locks)];
        let labeller = self.streams(&[&words, more].concat());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{first} && exec \"$@\""), "sh"]);
        command
            .arg(labeller.get_program())
            .args(labeller.get_args());
        let mut labeller = Labeller::warning(&mut command);
        labeller.wait_for("; labelling files ");
        labeller
    }
}

/// `saiga streams run`, or another long-running verb, killed on drop.
pub(crate) struct Labeller {
    pub(crate) child: Child,
    lines: Receiver<String>,
    pub(crate) said: Vec<String>,
}

impl Labeller {
    /// Reads lines from its stderr.
    pub(crate) fn warning(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        Self::listen(child, stderr)
    }

    /// Reads lines from the stdout of another program.
    pub(crate) fn telling(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self::listen(child, stdout)
    }

    fn listen(child: Child, said: impl Read + Send + 'static) -> Self {
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            said: Vec::new(),
        }
    }

    /// Waits for the next line that contains `part`.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        loop {
            // Much longer than any answer takes; a silent labeller must end the test.
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {part:?}: {error}; {:#?}", self.said),
            }
        }
    }

    /// Repeats an action until a line contains `part`.
    pub(crate) fn wait_while(&mut self, part: &str, mut doing: impl FnMut()) {
        let is_said = || {
            doing();
            self.said.extend(self.lines.try_iter());
            self.said.iter().any(|line| line.contains(part))
        };
        await_true(is_said, || format!("no line with {part:?}"));
    }

    /// The remaining lines up to its end.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        self.lines.iter().collect()
    }

    /// Waits until it has no thread of this name.
    pub(crate) fn wait_until_ended(&self, name: &str) {
        await_true(
            || !self.has_thread(name, ""),
            || format!("{name} goes on; {:#?}", self.said),
        );
    }

    /// Waits until the thread of this name sleeps in a kernel function whose name contains `place`.
    pub(crate) fn wait_until_in(&self, name: &str, place: &str) {
        await_true(
            || self.has_thread(name, place),
            || format!("{name} is not in {place}; {:#?}", self.said),
        );
    }

    /// Whether the thread of this name is in a kernel function whose name contains `place`.
    fn has_thread(&self, name: &str, place: &str) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        // A thread that has just ended has no files in /proc.
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        tasks.flatten().any(|task| {
            read(task.path().join("comm")).trim_end() == name
                && read(task.path().join("wchan")).contains(place)
        })
    }

    pub(crate) fn signal(&self, name: &str) {
        run("kill", &[&format!("-{name}"), &self.child.id().to_string()]);
        if name == "STOP" {
            // `kill` returns before all threads have stopped.
            wait_stopped(self.child.id()).unwrap();
        }
    }

    /// Stops it as an administrator does; returns its exit status.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Labeller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn hint(path: &Path) -> Hint {
    let file = fs::File::open(path).unwrap();
    Fcntl.read(file.as_fd()).unwrap()
}

pub(crate) fn set_hint(path: &Path, hint: Hint) {
    let file = fs::File::open(path).unwrap();
    Fcntl.set(file.as_fd(), hint).unwrap();
}

/// The value of a metric in a file of metrics.
pub(crate) fn metric(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let start = format!("saiga_streams_{name} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}

/// The bytes under a hint in a file of metrics, on all devices.
pub(crate) fn written(path: &Path, hint: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let label = format!(",hint=\"{hint}\"}} ");
    let rows = text.lines().filter_map(|line| line.split_once(&label));
    let rows = rows.filter(|(name, _)| name.starts_with("saiga_streams_written_bytes_total{"));
    rows.map(|(_, bytes)| bytes.parse::<u64>().unwrap()).sum()
}
