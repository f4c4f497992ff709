//! The resources of a process: descriptors, mappings, resident memory, and its status page.
//!
//! They are read from `/proc`, so they include descriptors that the library hides from its program.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{fs, io};

use saiga_channel::layout::HEADER_BYTES;
use saiga_status::reader::{Page, Snapshot, Socket};

/// Descriptors whose sockets are read: more than any server of the trials has, and far fewer than a
/// page may show.
const DESCRIPTORS: u32 = 4096;

/// Largest memory of a ring, in KiB.
const RING_KIB: u64 = 4 << 10;

/// The resources of one process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// Open descriptors, hidden ones included.
    pub descriptors: usize,
    /// Memory mappings.
    pub mappings: usize,
    /// Resident memory, private and shared, in KiB.
    pub resident_kib: u64,
    /// The part of it that no other process and no file shares.
    pub private_kib: u64,
}

impl Census {
    /// Reads the resources of the process `pid`.
    ///
    /// # Errors
    /// If `/proc/PID` cannot be read: the process has ended or belongs to another user.
    pub fn of(pid: u32) -> io::Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |name| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
                .ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no {name}")))
        };
        Ok(Self {
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
            mappings: maps.lines().count(),
            resident_kib: kib("VmRSS")?,
            private_kib: kib("RssAnon")?,
        })
    }

    /// Fails the test if `later` exceeds `self` by more than `links` links to other processes (a
    /// descriptor, three mappings and a ring each; links to dead processes are dropped at the next
    /// opportunity), or by more than `slack_kib` of other memory.
    ///
    /// # Panics
    /// On growth; the message names `what` was done in between.
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
            later.private_kib <= self.private_kib + slack_kib,
            "private memory grew by more than {slack_kib} KiB over {what}"
        );
        let rings_kib = links as u64 * RING_KIB;
        assert!(
            later.resident_kib <= self.resident_kib + slack_kib + rings_kib,
            "memory grew by more than {slack_kib} KiB and {links} rings over {what}"
        );
    }

    /// Memory of the segments that the process `pid` has open, in KiB, including segments that
    /// other processes also have open.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn segments_kib(pid: u32) -> u64 {
        let held = fs::read_dir(format!("/proc/{pid}/fd")).expect("a running process");
        let segments = held
            .flatten()
            .map(|entry| entry.path())
            .filter(|fd| is_segment(fd));
        segments
            .filter_map(|fd| fs::metadata(fd).ok())
            .map(|file| file.blocks() / 2)
            .sum()
    }

    /// The value of [`Census::segments_kib`] while no ring has memory.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn empty_segments_kib(pid: u32) -> u64 {
        let held = fs::read_dir(format!("/proc/{pid}/fd")).expect("a running process");
        let segments = held.flatten().filter(|entry| is_segment(&entry.path()));
        let each = HEADER_BYTES.next_multiple_of(rustix::param::page_size());
        segments.count() as u64 * each as u64 / 1024
    }

    /// The status page of the process `pid`, with its sockets.
    ///
    /// # Panics
    /// If the process has no status page: it does not run under the library.
    pub fn shown(pid: u32) -> Snapshot {
        Self::look(pid, DESCRIPTORS)
    }

    /// The status page without its sockets.
    fn totals(pid: u32) -> Snapshot {
        Self::look(pid, 0)
    }

    fn look(pid: u32, descriptors: u32) -> Snapshot {
        let page = Page::open(pid).expect("a process under the library");
        page.snapshot(descriptors).expect("the page can be read")
    }

    /// Number of connections that the process `pid` has upgraded so far.
    ///
    /// # Panics
    /// As [`Census::shown`].
    pub fn upgrades(pid: u32) -> u64 {
        Self::totals(pid).upgrades
    }

    /// Number of its connections that are on a channel now.
    ///
    /// # Panics
    /// As [`Census::shown`].
    pub fn channels(pid: u32) -> u64 {
        Self::totals(pid).channels
    }

    /// Number of its connections to the process `peer` that have moved bytes by a channel.
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
