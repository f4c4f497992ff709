//! What a process holds: descriptors, mappings, resident memory, and what its status page shows.
//!
//! The former is read from `/proc`, so it counts what the library hides from its program too.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{fs, io};

use saiga_channel::layout::DATA_AT;
use saiga_status::reader::{Page, Snapshot, Socket};

/// Descriptors whose sockets are looked at: more than a server of ours has, and far fewer than
/// a page may show.
const DESCRIPTORS: u32 = 4096;

/// A count of one process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// Open descriptors, hidden ones included.
    pub descriptors: usize,
    /// Mappings.
    pub mappings: usize,
    /// Resident memory that is its own or shared, in KiB.
    pub resident_kib: u64,
}

impl Census {
    /// Counts the process `pid`.
    ///
    /// # Errors
    /// When `/proc/PID` cannot be read: the process is gone or another user's.
    pub fn of(pid: u32) -> io::Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let resident_kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
            .ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no VmRSS")))?;
        Ok(Self {
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
            mappings: maps.lines().count(),
            resident_kib,
        })
    }

    /// Fails the test when `later` holds more than `self`: more than `links` further
    /// links to other processes (a descriptor and three mappings each; those to dead ones
    /// are dropped at the next opportunity), or more than `slack_kib` of memory.
    ///
    /// # Panics
    /// On growth, naming `what` was done in between.
    pub fn assert_no_growth(&self, later: &Self, links: usize, slack_kib: u64, what: &str) {
        println!("{what}: before {self:?}, after {later:?}");
        assert!(
            later.descriptors <= self.descriptors + links,
            "descriptors leaked over {what}"
        );
        assert!(
            later.mappings <= self.mappings + 3 * links,
            "mappings leaked over {what}"
        );
        assert!(
            later.resident_kib <= self.resident_kib + slack_kib,
            "memory grew by more than {slack_kib} KiB over {what}"
        );
    }

    /// Memory of the segments that the process `pid` holds, in KiB; those that other processes
    /// hold as well included.
    ///
    /// # Panics
    /// When it is gone.
    pub fn segments_kib(pid: u32) -> u64 {
        let held = fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
        let segments = held
            .flatten()
            .map(|entry| entry.path())
            .filter(|fd| is_segment(fd));
        segments
            .filter_map(|fd| fs::metadata(fd).ok())
            .map(|file| file.blocks() / 2)
            .sum()
    }

    /// What [`Census::segments_kib`] says while no ring has memory.
    ///
    /// # Panics
    /// When it is gone.
    pub fn empty_segments_kib(pid: u32) -> u64 {
        let held = fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
        let segments = held.flatten().filter(|entry| is_segment(&entry.path()));
        segments.count() as u64 * DATA_AT as u64 / 1024
    }

    /// What the status page of the process `pid` shows.
    ///
    /// # Panics
    /// When it has none: it does not run under the library.
    pub fn shown(pid: u32) -> Snapshot {
        Self::look(pid, DESCRIPTORS)
    }

    /// The same without its sockets.
    fn totals(pid: u32) -> Snapshot {
        Self::look(pid, 0)
    }

    fn look(pid: u32, descriptors: u32) -> Snapshot {
        let page = Page::open(pid).expect("it runs under the library");
        page.snapshot(descriptors).expect("the page can be read")
    }

    /// How many connections the process `pid` has upgraded so far.
    ///
    /// # Panics
    /// As [`Census::shown`].
    pub fn upgrades(pid: u32) -> u64 {
        Self::totals(pid).upgrades
    }

    /// How many of its connections are on a channel now.
    ///
    /// # Panics
    /// As [`Census::shown`].
    pub fn channels(pid: u32) -> u64 {
        Self::totals(pid).channels
    }

    /// How many of its connections to the process `peer` have carried bytes in a channel.
    ///
    /// # Panics
    /// As [`Census::shown`].
    pub fn channels_to(pid: u32, peer: u32) -> usize {
        let moved = |one: &&Socket| one.channel_rx + one.channel_tx > 0;
        let sockets = Self::shown(pid).sockets;
        let theirs = sockets.iter().filter(|one| one.peer_pid == Some(peer));
        theirs.filter(moved).count()
    }
}

fn is_segment(fd: &Path) -> bool {
    fs::read_link(fd).is_ok_and(|to| to.to_string_lossy().contains("saiga-segment"))
}
