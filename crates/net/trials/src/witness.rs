//! Third-party programs: servers on their own ports and in their own folders, and their clients.
//!
//! A command runs in its own process group with its output in a file; the remaining processes of
//! the group are killed at the end of the test. The use of channels is proved by the upgrades
//! counted on the status pages of all the server's processes.

pub mod nginx;

use std::{
    fs::{self, File},
    net::TcpStream,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use saiga_status::reader::Page;

use crate::{
    bounded::{self, Ending, Outcome},
    library,
    parity::{self, Arm},
    program, reaper,
    sys::{self, Signal},
};

/// Checks, a millisecond apart, before an expected state counts as failed.
const LOOKS: u32 = 30_000;

/// The traffic that a connection needs before its upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// None: an upgrade at the first message.
    None,
    /// The default for users.
    Default,
}

/// Both values, for tests that run once with each.
pub const EVIDENCE: [Evidence; 2] = [Evidence::None, Evidence::Default];

/// A folder and an environment for third-party programs.
#[derive(Debug)]
pub struct Site {
    folder: tempfile::TempDir,
    evidence: Evidence,
}

impl Site {
    /// A new folder that every user may enter, with a copy of the library that every user may read:
    /// servers drop their privileges.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(evidence: Evidence) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("our own folder");
        fs::copy(library::path(), folder.path().join("libsaiga.so")).expect("room for the library");
        Self { folder, evidence }
    }

    /// Path of the file or folder `name` in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and returns its path.
    ///
    /// # Panics
    /// If the folder is full.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, contents).expect("room in the folder");
        path
    }

    /// Contents of a file; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// `program` on `arm`, in this folder.
    pub fn command(&self, program: impl AsRef<Path>, arm: Arm) -> Command {
        let mut command = Command::new(program.as_ref());
        parity::set_environment(&mut command, arm);
        if arm == Arm::Library {
            command.env("LD_PRELOAD", self.path("libsaiga.so"));
        }
        if self.evidence == Evidence::Default {
            command.env_remove("SAIGA_EVIDENCE_MESSAGES");
        }
        command.current_dir(self.folder.path());
        command
    }

    /// A command that runs `programs/witnesses/NAME` with python3.
    pub fn python(&self, name: &str, arm: Arm) -> Command {
        let mut command = self.command(parity::python(), arm);
        command.arg("-B").arg(source(name));
        command
    }

    /// Runs `command` to its end, which must be exit 0; returns its output.
    ///
    /// # Panics
    /// If it fails or hangs; shows its output.
    pub fn done(&self, command: Command) -> String {
        self.done_within(command, Duration::from_secs(60))
    }

    /// Runs a compiler to its end. The first build of a runtime's library takes minutes on a busy
    /// machine.
    ///
    /// # Panics
    /// If it fails or hangs; shows its output.
    pub fn compiled(&self, command: Command) {
        self.done_within(command, Duration::from_secs(600));
    }

    fn done_within(&self, command: Command, limit: Duration) -> String {
        let shown = format!("{command:?}");
        let outcome = bounded::run(command, limit);
        let Outcome {
            stdout,
            stderr,
            ending,
        } = outcome;
        assert!(
            ending == Ending::Exited(0),
            "{shown}: {ending}\n{stdout}\n{stderr}"
        );
        stdout
    }

    /// Starts a memcached with four threads under the library, and waits until it listens.
    ///
    /// # Panics
    /// If it does not listen within the limit.
    pub fn memcached(&self, port: u16) -> Server {
        let mut command = self.command("memcached", Arm::Library);
        command.args(["-l", "127.0.0.1", "-t", "4", "-U", "0", "-m", "256"]);
        command.args(["-p", &port.to_string()]);
        if sys::is_root() {
            command.args(["-u", "root"]); // Otherwise it refuses to run as root.
        }
        self.serve(command).listening(port)
    }

    /// Starts a server that stays in the foreground.
    pub fn serve(&self, command: Command) -> Server {
        Server::start(self, command)
    }
}

/// Path of the file `programs/witnesses/NAME`.
pub fn source(name: &str) -> PathBuf {
    program::folder().join("witnesses").join(name)
}

/// Repeats `happened` until it returns a value.
///
/// # Panics
/// If it returns none within half a minute; the message is `complaint`.
pub fn await_some<T>(
    mut happened: impl FnMut() -> Option<T>,
    complaint: impl FnOnce() -> String,
) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = happened() {
            return found;
        }
        sys::pause_1ms();
    }
    panic!("{}", complaint());
}

/// Repeats `holds` until it is true.
///
/// # Panics
/// If it is not true within half a minute; the message is `complaint`.
pub fn await_true(mut holds: impl FnMut() -> bool, complaint: impl FnOnce() -> String) {
    await_some(|| holds().then_some(()), complaint);
}

/// Waits until a server listens on `port` of 127.0.0.1.
///
/// # Panics
/// If none does within half a minute.
pub fn await_listener(port: u16) {
    await_some(
        || TcpStream::connect(("127.0.0.1", port)).ok(),
        || format!("no server listens on {port}"),
    );
}

/// Upgrades so far by the process `pid`; 0 if it has ended or has no library.
pub fn upgrades_of(pid: u32) -> u64 {
    let page = Page::open(pid).ok();
    let snapshot = page.and_then(|page| page.snapshot(0).ok());
    snapshot.map_or(0, |seen| seen.upgrades)
}

/// Upgrades so far by all processes of a process group.
pub fn upgrades_in_group(leader: u32) -> u64 {
    let members = bounded::group_members(leader).unwrap_or_default();
    members.into_iter().map(upgrades_of).sum()
}

/// A running server; killed by its PID when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    fn start(site: &Site, mut command: Command) -> Self {
        let shown = format!("{command:?}");
        let (_, log) = tempfile::NamedTempFile::new_in(site.folder.path())
            .and_then(|file| file.keep().map_err(|error| error.error))
            .expect("room for a log");
        let output = File::create(&log).expect("our own file");
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a descriptor"))
            .stderr(output)
            .process_group(0);
        let child = reaper::spawn(command, Signal::KILL)
            .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        Self { child, log }
    }

    /// Waits until it listens on `port`.
    ///
    /// # Panics
    /// If it ends before, or does not listen within the limit; shows its output.
    #[must_use]
    pub fn listening(mut self, port: u16) -> Self {
        for _ in 0..LOOKS {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return self;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the server ended: {status}\n{}", self.said());
            }
            sys::pause_1ms();
        }
        panic!("the server does not listen on {port}\n{}", self.said());
    }

    /// Its output so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// PID of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Upgrades so far by the server and its children.
    pub fn upgrades(&self) -> u64 {
        upgrades_in_group(self.pid())
    }

    /// Sends SIGKILL, and waits for the end.
    ///
    /// # Panics
    /// If it has ended before.
    pub fn kill(mut self) {
        sys::signal(self.pid(), Signal::KILL).expect("a running server");
        let status = self.child.wait().expect("a child can be waited for");
        let ending = Ending::from(status);
        assert_eq!(ending, Ending::Signalled(libc::SIGKILL), "{}", self.said());
    }

    /// Sends SIGTERM, waits, and checks that the end was not a crash.
    ///
    /// # Panics
    /// If it was killed by another signal, or does not end.
    pub fn end(mut self) {
        sys::signal(self.pid(), Signal::TERM).expect("a running server");
        let status = await_some(
            || self.child.try_wait().ok().flatten(),
            || "the server does not end".to_owned(),
        );
        let ending = Ending::from(status);
        let fine = matches!(
            ending,
            Ending::Exited(0 | 143) | Ending::Signalled(libc::SIGTERM)
        );
        assert!(fine, "the server ended by {ending}\n{}", self.said());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            sys::kill_group(self.pid());
            let _ = self.child.wait();
        }
    }
}
