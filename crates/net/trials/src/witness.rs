//! Other people's programs: servers on ports and in folders of their own, and their clients.
//!
//! In goes a command; it runs in its own process group with its output in a file, and whatever
//! is left of the group is killed when the test is done with it. Proof that channels were used
//! is the count of upgrades on the server's status pages, over all its processes.

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
    leash, library,
    parity::{self, Arm},
    program,
    sys::{self, Signal},
};

/// Looks, a millisecond apart, before something that must happen counts as failed.
const LOOKS: u32 = 30_000;

/// How much traffic a connection needs before it is upgraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// None: at the first message.
    None,
    /// What users have.
    Default,
}

/// Both, for tests that run once with each.
pub const EVIDENCE: [Evidence; 2] = [Evidence::None, Evidence::Default];

/// A folder and an environment in which witnesses run.
#[derive(Debug)]
pub struct Site {
    folder: tempfile::TempDir,
    evidence: Evidence,
}

impl Site {
    /// A fresh folder that every user may enter, with a copy of the library that every user may
    /// read: servers give up their rights.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(evidence: Evidence) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("our own folder");
        fs::copy(library::path(), folder.path().join("libsaiga.so")).expect("room for the library");
        Self { folder, evidence }
    }

    /// The file or folder `name` in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    ///
    /// # Panics
    /// When the folder is full.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, contents).expect("room in the folder");
        path
    }

    /// The text of a file; empty when there is none.
    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// `program` on `arm`, in this folder.
    pub fn command(&self, program: impl AsRef<Path>, arm: Arm) -> Command {
        let mut command = Command::new(program.as_ref());
        parity::dress(&mut command, arm);
        if arm == Arm::Library {
            command.env("LD_PRELOAD", self.path("libsaiga.so"));
        }
        if self.evidence == Evidence::Default {
            command.env_remove("SAIGA_EVIDENCE_MESSAGES");
        }
        command.current_dir(self.folder.path());
        command
    }

    /// `programs/witnesses/NAME` by python3.
    pub fn python(&self, name: &str, arm: Arm) -> Command {
        let mut command = self.command(parity::python(), arm);
        command.arg("-B").arg(source(name));
        command
    }

    /// Runs `command` to its end, which must be a good one; what it printed.
    ///
    /// # Panics
    /// When it fails or hangs, with its output.
    pub fn done(&self, command: Command) -> String {
        let shown = format!("{command:?}");
        let outcome = bounded::run(command, Duration::from_secs(60));
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
    /// When it does not come up.
    pub fn memcached(&self, port: u16) -> Server {
        let mut command = self.command("memcached", Arm::Library);
        command.args(["-l", "127.0.0.1", "-t", "4", "-U", "0", "-m", "256"]);
        command.args(["-p", &port.to_string()]);
        if sys::is_root() {
            command.args(["-u", "root"]); // It refuses to run as root unless told so.
        }
        self.serve(command).listening(port)
    }

    /// Starts a server that stays in the foreground.
    pub fn serve(&self, command: Command) -> Server {
        Server::start(self, command)
    }
}

/// The file `programs/witnesses/NAME`.
pub fn source(name: &str) -> PathBuf {
    program::folder().join("witnesses").join(name)
}

/// Looks again and again until `happened` gives something.
///
/// # Panics
/// When it does not within half a minute, with what `complaint` says.
pub fn await_some<T>(
    mut happened: impl FnMut() -> Option<T>,
    complaint: impl FnOnce() -> String,
) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = happened() {
            return found;
        }
        sys::between_looks();
    }
    panic!("{}", complaint());
}

/// Looks again and again until `holds` does.
///
/// # Panics
/// When it does not within half a minute, with what `complaint` says.
pub fn await_true(mut holds: impl FnMut() -> bool, complaint: impl FnOnce() -> String) {
    await_some(|| holds().then_some(()), complaint);
}

/// Waits until somebody listens on `port` of 127.0.0.1.
///
/// # Panics
/// When nobody does within half a minute.
pub fn await_listener(port: u16) {
    await_some(
        || TcpStream::connect(("127.0.0.1", port)).ok(),
        || format!("nobody listens on {port}"),
    );
}

/// Upgrades so far by the process `pid`; none when it has gone or has no library.
pub fn upgrades_of(pid: u32) -> u64 {
    let page = Page::open(pid).ok();
    let snapshot = page.and_then(|page| page.snapshot(0).ok());
    snapshot.map_or(0, |seen| seen.upgrades)
}

/// Upgrades so far by all processes of a group.
pub fn upgrades_in_group(leader: u32) -> u64 {
    let members = bounded::group_members(leader).unwrap_or_default();
    members.into_iter().map(upgrades_of).sum()
}

/// A running server, ended by its pid.
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
        let child = leash::spawn(command, Signal::Kill)
            .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        Self { child, log }
    }

    /// Waits until it listens on `port`.
    ///
    /// # Panics
    /// When it ends before, or does not come up, with what it said.
    #[must_use]
    pub fn listening(mut self, port: u16) -> Self {
        for _ in 0..LOOKS {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return self;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the server ended: {status}\n{}", self.said());
            }
            sys::between_looks();
        }
        panic!("the server does not listen on {port}\n{}", self.said());
    }

    /// What it has printed.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Upgrades so far by it and its children.
    pub fn upgrades(&self) -> u64 {
        upgrades_in_group(self.pid())
    }

    /// SIGKILL, and waits until it is gone.
    ///
    /// # Panics
    /// When it has ended before.
    pub fn kill(mut self) {
        sys::signal(self.pid(), Signal::Kill).expect("it runs");
        let status = self.child.wait().expect("a child can be waited for");
        let ending = Ending::from(status);
        assert_eq!(ending, Ending::Signalled(libc::SIGKILL), "{}", self.said());
    }

    /// Asks it to end, waits, and demands that it was not a crash.
    ///
    /// # Panics
    /// When it was killed by another signal, or stays.
    pub fn end(mut self) {
        sys::signal(self.pid(), Signal::Terminate).expect("it runs");
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
