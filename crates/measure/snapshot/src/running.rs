//! Detects processes that use the directories of a snapshot, so that no file of a running server
//! is copied or replaced.
//!
//! Files are compared by device and inode and not by name, so that a server in another container
//! or chroot is found, too. Evidence are open files, mapped files, working directories (Redis has
//! no file open), record locks (InnoDB) and PostgreSQL's pid file.

mod lock;
mod process;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Fault};
use crate::name::{escape, shown};
use crate::scan::{Found, scan};
use crate::stat::{FileType, Identity, Stat};
use crate::tree::{Access, Tree};
use process::{Inspection, Visible};

/// The pid file of PostgreSQL and openGauss in the data directory; its first line is the pid.
pub(crate) const PID_FILE: &str = "postmaster.pid";

/// Treatment of processes whose open files this user has no permission to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unseen {
    /// Refuse if such a process runs as a user who owns a file in the directories, because a
    /// server owns its files. Ancestors of this process are ignored; they are not servers.
    #[default]
    Refuse,
    /// Ignore such processes. The caller knows that none of them uses the directories.
    Accept,
}

/// The way in which a process uses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The process has the file open (`/proc/PID/fd`).
    Open,
    /// The process maps the file into memory (`/proc/PID/maps`).
    Mapped,
    WorkingDirectory,
    /// A record lock (`man 2 fcntl_locking`).
    Locked,
    /// The pid file names the process.
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

/// The directories are in use, or may be in use.
#[derive(Debug, thiserror::Error)]
pub enum InUse {
    #[error("{process} (pid {pid}) {evidence} {}; stop it first", shown(path))]
    Process {
        /// Name of the process, as in `/proc/PID/comm`.
        process: String,
        pid: u32,
        evidence: Evidence,
        path: PathBuf,
    },
    /// The holder of a record lock has no pid here.
    #[error(
        "a process that is not visible here (in another container, or on another host) has locked \
         {}; stop it first",
        shown(.0)
    )]
    Locked(PathBuf),
    /// A process whose open files are not visible may use the directories.
    #[error(
        "this user has no permission to see the open files of {process} (pid {pid}), which may be \
         using {}; run as root, or add --assume-stopped if you know that no server uses the \
         directories",
        shown(dir)
    )]
    Unseen {
        process: String,
        pid: u32,
        /// The first of the directories.
        dir: PathBuf,
    },
    /// `/proc` is mounted with `hidepid`.
    #[error(
        "/proc hides the processes of other users, and one of them may be using {}; run as root, \
         or add --assume-stopped if you know that no server uses the directories",
        shown(.0)
    )]
    Hidden(PathBuf),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The files in the directories, and their owners.
struct Inventory {
    paths: HashMap<Identity, PathBuf>,
    owners: HashSet<u32>,
    dirs: Vec<PathBuf>,
}

/// Checks that no process uses a file below `dirs`. Directories that do not exist are skipped.
pub fn check_not_running(dirs: &[PathBuf], unseen: Unseen) -> Result<(), InUse> {
    let disk = Disk::real();
    let mut inventory = Inventory {
        paths: HashMap::new(),
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
            inventory.owners.insert(stat.uid);
            inventory.paths.insert(stat.identity, tree.full_path(path));
        }
        check_pid_file(&tree)?;
        check_locks(&tree, &found)?;
    }
    check_processes(&inventory, unseen)
}

fn dir_of(dirs: &[PathBuf]) -> &Path {
    dirs.first().map_or(Path::new(""), PathBuf::as_path)
}

/// Refuses if the pid file names a process that may be the postmaster of this directory.
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
        // A visible process. The working directory of a postmaster is its data directory, which
        // `check_processes` finds; any other process has got the pid of an ended postmaster.
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
    for found in found
        .iter()
        .filter(|found| found.stat.file_type == FileType::File)
    {
        // The copy reports files that this user may not read.
        let Ok(file) = tree.file(&found.path, Access::Read) else {
            continue;
        };
        let path = || file.path().to_owned();
        match lock::holder(file.file()).map_err(Fault::at("query the locks of", file.path()))? {
            None => {}
            Some(lock::Holder::Process(pid)) => {
                return Err(InUse::Process {
                    process: process::name(pid),
                    pid,
                    evidence: Evidence::Locked,
                    path: path(),
                });
            }
            // Perhaps the lock of an open file description. If a visible process has the file
            // open, `check_processes` names that process.
            Some(lock::Holder::Unknown) if is_open_here(found) => {}
            Some(lock::Holder::Unknown) => return Err(InUse::Locked(path())),
        }
    }
    Ok(())
}

/// Whether a visible process uses this file.
fn is_open_here(found: &Found) -> bool {
    let inventory = Inventory {
        paths: HashMap::from([(found.stat.identity, found.path.clone())]),
        owners: HashSet::new(),
        dirs: Vec::new(),
    };
    check_processes(&inventory, Unseen::Accept).is_err()
}

fn check_processes(inventory: &Inventory, unseen: Unseen) -> Result<(), InUse> {
    let own_pid = std::process::id();
    let ancestors = process::ancestors(own_pid);
    let visible = process::all().map_err(Fault::at("list", Path::new("/proc")))?;
    let Visible { pids, is_complete } = visible;
    let refuses = unseen == Unseen::Refuse && !inventory.paths.is_empty();
    if !is_complete && refuses {
        return Err(InUse::Hidden(dir_of(&inventory.dirs).to_owned()));
    }
    for pid in pids.into_iter().filter(|pid| *pid != own_pid) {
        let use_of = |evidence, path: &PathBuf| InUse::Process {
            process: process::name(pid),
            pid,
            evidence,
            path: path.clone(),
        };
        match process::inspect(pid, |identity| inventory.paths.contains_key(identity)) {
            Inspection::Uses(Evidence::WorkingDirectory, _) if ancestors.contains(&pid) => {}
            Inspection::Uses(evidence, identity) => {
                if let Some(path) = inventory.paths.get(&identity) {
                    return Err(use_of(evidence, path));
                }
            }
            Inspection::Denied(_) if ancestors.contains(&pid) => {}
            Inspection::Denied(uids)
                if refuses && is_suspect(&uids, &inventory.owners) && !process::ends_soon(pid) =>
            {
                return Err(InUse::Unseen {
                    process: process::name(pid),
                    pid,
                    dir: dir_of(&inventory.dirs).to_owned(),
                });
            }
            Inspection::Denied(_) | Inspection::Unused => {}
        }
    }
    Ok(())
}

/// Whether a process may be a server of the directories. An empty list means unknown users.
fn is_suspect(uids: &[u32], owners: &HashSet<u32>) -> bool {
    uids.is_empty() || uids.iter().any(|uid| owners.contains(uid))
}

/// The note about the pid file of a server that did not end cleanly.
pub(crate) fn stale_pid_file(path: &Path) -> String {
    format!(
        "{} is left out: its server did not end cleanly, and a later process may have its pid. The \
         server will run recovery at each start after a restore; to avoid this, start and stop the \
         server once and take the snapshot again",
        escape(path.as_os_str().as_encoded_bytes())
    )
}
