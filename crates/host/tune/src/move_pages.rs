//! Moves the page cache of a running program to a NUMA node.
//!
//! The text of a program is where it was first read, and one node has the only copy. Procedure 003
//! stopped the server, evicted its files and read them again on the right node; here the pages move
//! by move_pages(2) with `MPOL_MF_MOVE_ALL` while every process keeps its mappings. Only pages that
//! are resident move; nothing is read from the disk.

mod files;
mod pages;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use saiga_process::numbers::Numbers;
use saiga_process::root::Root;
use serde::Serialize;

use files::MappedFile;
use pages::{Mapping, Outcome};

/// Pages that are moved by one system call.
const BATCH: usize = 512;

/// The files whose pages move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The executable.
    Text,
    /// The executable and its shared libraries.
    Libraries,
    /// All files that the process maps.
    All,
}

/// A move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveRequest {
    pub pid: u32,
    pub node: u32,
    pub what: What,
    /// The most bytes that are moved in a second; `None` is as fast as possible.
    pub bytes_per_second: Option<u64>,
}

/// Why nothing was moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("there is no process {pid}, or it has ended")]
    NoProcess { pid: u32 },
    #[error("there is no node {node}; this host has {nodes}")]
    NoNode { node: u32, nodes: String },
    #[error("node {node} has no memory; nodes with memory: {nodes}")]
    NoMemory { node: u32, nodes: String },
    #[error("cannot read the mappings of process {pid}: {error}; run this as root")]
    Maps { pid: u32, error: io::Error },
    #[error("cannot map {}: {error}", path.display())]
    Map { path: PathBuf, error: io::Error },
    #[error("cannot move pages: {0}; CAP_SYS_NICE is needed (run this as root)")]
    Move(io::Error),
}

/// The pages of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileMove {
    pub path: PathBuf,
    /// Resident pages by node, before and after.
    pub before: BTreeMap<u32, u64>,
    pub after: BTreeMap<u32, u64>,
    /// Pages that are still on another node, by reason.
    pub not_moved: BTreeMap<String, u64>,
    /// Why no page of the file could be examined.
    pub error: Option<String>,
}

/// The result of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MoveReport {
    pub page_bytes: u64,
    pub files: Vec<FileMove>,
    pub is_interrupted: bool,
}

impl MoveReport {
    /// Whether every resident page is on the node.
    #[must_use]
    pub fn is_complete(&self, node: u32) -> bool {
        !self.is_interrupted
            && self
                .files
                .iter()
                .all(|file| file.error.is_none() && file.after.keys().all(|found| *found == node))
    }
}

/// Moves the pages, until `stop` returns true. `progress` receives each file when it is done.
///
/// # Errors
/// The process or the node does not exist, the node has no memory, or the right is missing. A file
/// that cannot be opened is reported, not an error.
pub fn move_pages(
    request: &MoveRequest,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&FileMove),
) -> Result<MoveReport, MoveError> {
    check_node(&Root::host(), request.node)?;
    let files = files::of(request.pid, request.what)?;
    let page_bytes = rustix::param::page_size() as u64;
    let mut pace = Pace::new(request.bytes_per_second);
    let mut report = MoveReport {
        page_bytes,
        files: Vec::new(),
        is_interrupted: false,
    };
    for file in files {
        let moved = move_file(&file, request.node, &mut pace, stop)?;
        progress(&moved);
        report.files.push(moved);
        if stop() {
            report.is_interrupted = true;
            break;
        }
    }
    Ok(report)
}

/// Checks that a node exists and has memory.
fn check_node(root: &Root, node: u32) -> Result<(), MoveError> {
    let list = |name: &str| {
        let text = root.text(format!("/sys/devices/system/node/{name}"));
        // Kernels without NUMA have one node, and no directory.
        text.ok().flatten().unwrap_or_else(|| "0".to_owned())
    };
    let is_in = |list: &str| {
        let numbers: Result<Numbers, _> = list.parse();
        numbers.is_ok_and(|numbers| numbers.0.contains(&(node as usize)))
    };
    let (online, memory) = (list("online"), list("has_memory"));
    if !is_in(&online) {
        return Err(MoveError::NoNode {
            node,
            nodes: online,
        });
    }
    if !is_in(&memory) {
        return Err(MoveError::NoMemory {
            node,
            nodes: memory,
        });
    }
    Ok(())
}

fn move_file(
    file: &MappedFile,
    node: u32,
    pace: &mut Pace,
    stop: &dyn Fn() -> bool,
) -> Result<FileMove, MoveError> {
    let mut moved = FileMove {
        path: file.path.clone(),
        before: BTreeMap::new(),
        after: BTreeMap::new(),
        not_moved: BTreeMap::new(),
        error: None,
    };
    let mapping = match file.open().and_then(|opened| Mapping::of(&opened)) {
        Ok(mapping) => mapping,
        Err(error) => {
            moved.error = Some(error.to_string());
            return Ok(moved);
        }
    };
    let resident = mapping.resident().map_err(|error| MoveError::Map {
        path: file.path.clone(),
        error,
    })?;
    for batch in resident.chunks(BATCH) {
        mapping.fault_in(batch);
        let before = mapping.nodes(batch).map_err(MoveError::Move)?;
        let misplaced: Vec<usize> = batch
            .iter()
            .zip(&before)
            .filter(|(_, outcome)| matches!(outcome, Outcome::Node(found) if *found != node))
            .map(|(page, _)| *page)
            .collect();
        let outcomes = if misplaced.is_empty() {
            Vec::new()
        } else {
            mapping.move_to(&misplaced, node).map_err(MoveError::Move)?
        };
        let after = mapping.nodes(batch).map_err(MoveError::Move)?;
        let refused = misplaced.iter().zip(&outcomes);
        for (page, outcome) in refused {
            // A page of a large folio is busy when another page of it has begun to move, and moves
            // with that one.
            let now = batch.binary_search(page).ok().and_then(|at| after.get(at));
            if let Outcome::Error(errno) = outcome
                && now != Some(&Outcome::Node(node))
            {
                *moved.not_moved.entry(reason(*errno)).or_default() += 1;
            }
        }
        count(&mut moved.before, &before);
        count(&mut moved.after, &after);
        pace.wait(misplaced.len() as u64 * rustix::param::page_size() as u64);
        if stop() {
            break;
        }
    }
    Ok(moved)
}

fn count(nodes: &mut BTreeMap<u32, u64>, outcomes: &[Outcome]) {
    for outcome in outcomes {
        if let Outcome::Node(node) = outcome {
            *nodes.entry(*node).or_default() += 1;
        }
    }
}

/// The reason in words (`man 2 move_pages`, page states).
fn reason(errno: i32) -> String {
    match errno {
        libc::EACCES => "mapped by other processes, and CAP_SYS_NICE is missing".to_owned(),
        libc::EBUSY => "in use for I/O or locked; try again".to_owned(),
        libc::ENOMEM => "the node has no free memory".to_owned(),
        libc::ENOENT => "no longer resident".to_owned(),
        libc::EFAULT => "not a page of the file (the zero page, or past its end)".to_owned(),
        errno => io::Error::from_raw_os_error(errno).to_string(),
    }
}

/// Keeps moves below a rate.
struct Pace {
    bytes_per_second: Option<u64>,
    began: Instant,
    moved: u64,
}

impl Pace {
    fn new(bytes_per_second: Option<u64>) -> Self {
        Self {
            bytes_per_second,
            began: Instant::now(),
            moved: 0,
        }
    }

    fn wait(&mut self, bytes: u64) {
        self.moved += bytes;
        let Some(rate) = self.bytes_per_second else {
            return;
        };
        let due = Duration::from_secs_f64(self.moved as f64 / rate.max(1) as f64);
        if let Some(early) = due.checked_sub(self.began.elapsed()) {
            #[expect(clippy::disallowed_methods, reason = "paces real memory traffic")]
            thread::sleep(early);
        }
    }
}

#[cfg(test)]
mod tests;
