//! Where a process runs: threads with their CPUs, and memory and code by NUMA node.
//!
//! Source: `man 5 proc` and `man 5 numa`. `numa_maps` counts the pages that the process has mapped;
//! pages of a library that only other processes use are not counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use saiga_process::proc::bytes;
use saiga_process::proc::field;
use saiga_process::root::Root;
use serde::{Deserialize, Serialize};

use crate::read::ReadError;
use crate::read::unescaped;
use crate::source::{Source, numbers};

/// Bytes by node.
pub type ByNode = BTreeMap<u32, u64>;

/// A process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub name: String,
    pub threads: Vec<Thread>,
    pub resident_bytes: u64,
    /// Resident memory by node, shared pages included; `None` if the kernel does not support NUMA.
    pub memory: Option<ByNode>,
    /// The executable and the mapped libraries, largest first; empty if the kernel does not support
    /// NUMA.
    pub texts: Vec<Text>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    /// CPUs on which it may run.
    pub allowed: Vec<u32>,
    /// The CPU on which it runs or ran last.
    pub last_cpu: u32,
}

/// Machine code of one file in the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    pub path: String,
    pub bytes: ByNode,
}

/// Why a process cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("process {pid} does not exist")]
    NoProcess { pid: u32 },
    #[error("process {pid} ended while it was read")]
    Ended { pid: u32 },
    #[error("process {pid} has no memory: it is a thread of the kernel or has ended")]
    NoMemory { pid: u32 },
    #[error("{path}: only root and the owner of the process may read this file")]
    NotPermitted { path: PathBuf },
    #[error(transparent)]
    Read(ReadError),
}

impl From<ReadError> for ProcessError {
    fn from(failure: ReadError) -> Self {
        match failure {
            ReadError::Unreadable { path, error }
                if error.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Self::NotPermitted { path }
            }
            ReadError::Unreadable { .. }
            | ReadError::Damaged { .. }
            | ReadError::NotAMachine { .. } => Self::Read(failure),
        }
    }
}

impl Process {
    /// Reads the process below a root.
    ///
    /// # Errors
    /// There is no such process, it ends during the read, or its files cannot be read.
    pub fn read(root: &Root, pid: u32) -> Result<Self, ProcessError> {
        let source = Source::new(root);
        let file = |name: &str| format!("/proc/{pid}/{name}");
        let status = source.text(&file("status"))?;
        let status = status.ok_or(ProcessError::NoProcess { pid })?;
        let resident = bytes(&status, "VmRSS").ok_or(ProcessError::NoMemory { pid })?;
        let mut threads = Vec::new();
        for tid in source.numbered(&file("task"), "")? {
            threads.extend(thread(&source, pid, tid)?);
        }
        let maps = source
            .text(&file("maps"))?
            .ok_or(ProcessError::Ended { pid })?;
        let numa = source.text(&file("numa_maps"))?;
        if threads.is_empty() {
            return Err(ProcessError::Ended { pid });
        }
        Ok(Self {
            pid,
            name: source.text(&file("comm"))?.unwrap_or_default(),
            threads,
            resident_bytes: resident,
            memory: numa.as_deref().map(memory),
            texts: numa
                .as_deref()
                .map_or_else(Vec::new, |numa| texts(&maps, numa)),
        })
    }

    /// CPUs on which at least one thread may run.
    #[must_use]
    pub fn allowed(&self) -> BTreeSet<u32> {
        self.threads
            .iter()
            .flat_map(|thread| thread.allowed.iter().copied())
            .collect()
    }
}

/// A thread; `None` if it has ended.
fn thread(source: &Source, pid: u32, tid: u32) -> Result<Option<Thread>, ProcessError> {
    let file = |name: &str| format!("/proc/{pid}/task/{tid}/{name}");
    let (Some(status), Some(stat)) = (source.text(&file("status"))?, source.text(&file("stat"))?)
    else {
        return Ok(None);
    };
    let allowed = field(&status, "Cpus_allowed_list").and_then(numbers);
    // The name may contain any character, so fields are counted from its closing parenthesis:
    // the state is the third field, the CPU the 39th.
    let last = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(36));
    let last = last.and_then(|cpu| cpu.parse().ok());
    let last = last.ok_or_else(|| source.damaged(&file("stat"), &stat, "the state of a thread"))?;
    Ok(Some(Thread {
        tid,
        name: field(&status, "Name").unwrap_or_default().to_owned(),
        allowed: allowed.unwrap_or_default(),
        last_cpu: last,
    }))
}

/// A line of `numa_maps`: `7f32d0000000 default file=/usr/lib/a.so mapped=4 N0=3 N1=1
/// kernelpagesize_kB=4`.
struct Mapping<'a> {
    start: &'a str,
    file: Option<String>,
    bytes: ByNode,
}

fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut words = line.split_whitespace();
    let start = words.next()?;
    let words: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
    let value = |name: &str| {
        words
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    };
    let page_kib: u64 = value("kernelpagesize_kB")
        .and_then(|size| size.parse().ok())
        .unwrap_or(4);
    let on_node = |(key, value): &(&str, &str)| {
        let node: u32 = key.strip_prefix('N')?.parse().ok()?;
        Some((
            node,
            value.parse::<u64>().ok()?.saturating_mul(page_kib * 1024),
        ))
    };
    Some(Mapping {
        start,
        file: value("file").map(unescaped),
        bytes: words.iter().filter_map(on_node).collect(),
    })
}

fn add(sum: &mut ByNode, bytes: &ByNode) {
    for (node, bytes) in bytes {
        let total = sum.entry(*node).or_default();
        *total = total.saturating_add(*bytes);
    }
}

/// The pages of the last mapping that starts at or below an address, by node.
pub(crate) fn placed(numa_maps: &str, address: usize) -> ByNode {
    let start = |mapping: &Mapping| usize::from_str_radix(mapping.start, 16).ok();
    let mappings = numa_maps.lines().rev().filter_map(mapping);
    let mut below = mappings.filter(|one| start(one).is_some_and(|start| start <= address));
    below
        .next()
        .map(|mapping| mapping.bytes)
        .unwrap_or_default()
}

fn memory(numa_maps: &str) -> ByNode {
    let mut sum = ByNode::new();
    for mapping in numa_maps.lines().filter_map(mapping) {
        add(&mut sum, &mapping.bytes);
    }
    sum
}

/// The files behind executable mappings. `numa_maps` does not show permissions; `maps` does, and
/// both start a line with the address.
fn texts(maps: &str, numa_maps: &str) -> Vec<Text> {
    let executable = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let start = range.split_once('-')?.0;
        let is_executable = rest.split_once(' ')?.0.contains('x');
        is_executable.then(|| start.trim_start_matches('0').to_owned())
    };
    let starts: BTreeSet<String> = maps.lines().filter_map(executable).collect();
    let mut files: BTreeMap<String, ByNode> = BTreeMap::new();
    for mapping in numa_maps.lines().filter_map(mapping) {
        if let Some(file) = mapping.file
            && starts.contains(mapping.start.trim_start_matches('0'))
        {
            add(files.entry(file).or_default(), &mapping.bytes);
        }
    }
    let mut texts: Vec<Text> = files
        .into_iter()
        .map(|(path, bytes)| Text { path, bytes })
        .collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.bytes.values().sum::<u64>()));
    texts
}
