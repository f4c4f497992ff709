//! Whether a server is at work on directories: nothing is copied from under it, nothing replaced.
//!
//! Evidence is looked for by what files *are* (device and inode), not by their names, so that a
//! server in another container or chroot is found too: open files, mapped files, working
//! directories (Redis keeps nothing open), record locks (InnoDB's) and PostgreSQL's pid file.

mod lock;
mod process;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Fault};
use crate::name::{escape, shown};
use crate::scan::{Found, scan};
use crate::stat::{Identity, Sort, Stat};
use crate::tree::{Access, Tree};
use process::{Sight, Visible};

/// PostgreSQL's and openGauss's, in the data directory: the first line is the pid.
pub(crate) const PID_FILE: &str = "postmaster.pid";

/// What to do about processes whose open files this user may not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unseen {
    /// Refuse when one of them belongs to a user who owns something in the directories: a
    /// server's files belong to the user as whom it runs. Those that started this process are no
    /// suspects either, for a server does not.
    #[default]
    Refuse,
    /// The caller answers for it that they are not at work there.
    Accept,
}

/// By what a process gave itself away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// An open descriptor.
    Open,
    /// A mapping.
    Mapped,
    /// A working directory.
    WorkingDirectory,
    /// A record lock.
    Locked,
    /// A pid file that names it.
    PidFile,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "has open",
            Self::Mapped => "has mapped",
            Self::WorkingDirectory => "has as its working directory",
            Self::Locked => "has locked",
            Self::PidFile => "is named by the pid file",
        })
    }
}

/// Why directories may not be copied or replaced.
#[derive(Debug, thiserror::Error)]
pub enum InUse {
    /// A process is at work there.
    #[error("{process} (pid {pid}) {evidence} {}; stop it first", shown(path))]
    Process {
        /// Its name.
        process: String,
        /// Its pid.
        pid: u32,
        /// How it was found.
        evidence: Evidence,
        /// What it uses.
        path: PathBuf,
    },
    /// A lock is held by a process that cannot be named from here.
    #[error(
        "a process that cannot be seen from here (in another container, or on another host) has locked {}; \
         stop it first", shown(.0)
    )]
    Locked(PathBuf),
    /// Processes whose files cannot be seen could be at work there.
    #[error(
        "this user may not see what {process} (pid {pid}) has open, and it could be at work in {}; run as root, \
         or, when you know that no server uses the directories, add --assume-stopped",
        shown(dir)
    )]
    Unseen {
        /// The name of one.
        process: String,
        /// Its pid.
        pid: u32,
        /// The first directory.
        dir: PathBuf,
    },
    /// The kernel does not show other processes.
    #[error(
        "/proc hides the processes of other users, and one could be at work in {}; run as root, or, when you know \
         that no server uses the directories, add --assume-stopped", shown(.0)
    )]
    Hidden(PathBuf),
    /// Something cannot be looked at.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What lies in the directories.
struct Ground {
    names: HashMap<Identity, PathBuf>,
    owners: HashSet<u32>,
    dirs: Vec<PathBuf>,
}

/// Refuses when a process uses anything below `dirs`; directories that do not exist are unused.
///
/// # Errors
/// The process, or why it cannot be told.
pub fn check_not_running(dirs: &[PathBuf], unseen: Unseen) -> Result<(), InUse> {
    let disk = Disk::real();
    let mut ground = Ground {
        names: HashMap::new(),
        owners: HashSet::new(),
        dirs: dirs.to_vec(),
    };
    for dir in dirs {
        let dir = match dir.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            dir => dir.map_err(Fault::at("find", dir_of(dirs)))?,
        };
        if !dir.is_dir() {
            continue;
        }
        let tree = Tree::open(&disk, &dir)?;
        let found = scan(&tree)?;
        for Found { path, stat, .. } in &found {
            ground.owners.insert(stat.uid);
            ground.names.insert(stat.identity, tree.whole(path));
        }
        check_pid_file(&tree)?;
        check_locks(&tree, &found)?;
    }
    check_processes(&ground, unseen)
}

fn dir_of(dirs: &[PathBuf]) -> &Path {
    dirs.first().map_or(Path::new(""), PathBuf::as_path)
}

/// A pid file counts when its process may be a postmaster of this directory.
fn check_pid_file(tree: &Tree<'_>) -> Result<(), InUse> {
    let path = tree.path().join(PID_FILE);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(());
    };
    // A single-user backend writes its pid with a minus sign.
    let first = text.lines().next().unwrap_or_default().trim();
    let Ok(pid) = first.trim_start_matches('-').parse::<u32>() else {
        return Ok(());
    };
    match Stat::through_links(Path::new(&format!("/proc/{pid}/cwd"))) {
        // It works elsewhere: the pid was given to somebody else since. A postmaster's working
        // directory is its data directory; that is found below.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(InUse::Process {
            process: process::name(pid),
            pid,
            evidence: Evidence::PidFile,
            path,
        }),
        Err(_) => Ok(()),
    }
}

fn check_locks(tree: &Tree<'_>, found: &[Found]) -> Result<(), InUse> {
    for found in found.iter().filter(|found| found.stat.sort == Sort::File) {
        // What this user may not even read, the copy complains about.
        let Ok(file) = tree.file(&found.path, Access::Read) else {
            continue;
        };
        let path = || file.path().to_owned();
        match lock::holder(file.file()).map_err(Fault::at("ask for locks of", file.path()))? {
            None => {}
            Some(lock::Holder::Process(pid)) => {
                return Err(InUse::Process {
                    process: process::name(pid),
                    pid,
                    evidence: Evidence::Locked,
                    path: path(),
                });
            }
            // An open file description's lock: whoever has it open is found below, or is far away.
            Some(lock::Holder::Unknown) if has_it_open(found) => {}
            Some(lock::Holder::Unknown) => return Err(InUse::Locked(path())),
        }
    }
    Ok(())
}

/// Whether a process that can be seen has this file open.
fn has_it_open(found: &Found) -> bool {
    let ground = Ground {
        names: HashMap::from([(found.stat.identity, found.path.clone())]),
        owners: HashSet::new(),
        dirs: Vec::new(),
    };
    check_processes(&ground, Unseen::Accept).is_err()
}

fn check_processes(ground: &Ground, unseen: Unseen) -> Result<(), InUse> {
    let ourselves = std::process::id();
    let ancestors = process::ancestors(ourselves);
    let visible = process::all().map_err(Fault::at("list", Path::new("/proc")))?;
    let Visible { pids, is_complete } = visible;
    let refuses = unseen == Unseen::Refuse && !ground.names.is_empty();
    if !is_complete && refuses {
        return Err(InUse::Hidden(dir_of(&ground.dirs).to_owned()));
    }
    for pid in pids.into_iter().filter(|pid| *pid != ourselves) {
        let use_of = |evidence, path: &PathBuf| InUse::Process {
            process: process::name(pid),
            pid,
            evidence,
            path: path.clone(),
        };
        match process::look(pid, |identity| ground.names.contains_key(identity)) {
            Sight::Uses(Evidence::WorkingDirectory, _) if ancestors.contains(&pid) => {}
            Sight::Uses(evidence, identity) => {
                if let Some(path) = ground.names.get(&identity) {
                    return Err(use_of(evidence, path));
                }
            }
            Sight::Barred(_) if ancestors.contains(&pid) => {}
            Sight::Barred(uids)
                if refuses && is_suspect(&uids, &ground.owners) && !process::ends_soon(pid) =>
            {
                return Err(InUse::Unseen {
                    process: process::name(pid),
                    pid,
                    dir: dir_of(&ground.dirs).to_owned(),
                });
            }
            Sight::Barred(_) | Sight::Clear => {}
        }
    }
    Ok(())
}

/// Nothing is known of the users of a process without any.
fn is_suspect(uids: &[u32], owners: &HashSet<u32>) -> bool {
    uids.is_empty() || uids.iter().any(|uid| owners.contains(uid))
}

/// The pid file of a server that did not end cleanly, as a note.
pub(crate) fn stale_pid_file(path: &Path) -> String {
    format!(
        "{} is left out: its server did not end cleanly, and a later process may have its pid; the server will \
         recover at each start after a restore, so better start and stop it once and take the snapshot again",
        escape(path.as_os_str().as_encoded_bytes())
    )
}
