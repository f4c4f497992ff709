//! The reading side: finds and reads the page of another process.
//!
//! The page's content is whatever that process chose to write: numbers are
//! range-checked, text is cleaned of control characters, and the page is read,
//! not mapped, so that nothing its owner does can fault us. Counters of one
//! snapshot may be some microseconds apart.
//!
//! Deliberately absent: rights. The kernel opens `/proc/PID/fd` for root and the
//! same user only.
#![expect(unsafe_code, reason = "fcntl to ask for a file's seals")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::layout::{Entry, Flags, Header, MAGIC, MAX_ENTRIES, VERSION};
use crate::page::parse_started_ticks;
use crate::{Reason, State};

const LINK: &str = "/memfd:saiga-status (deleted)";
const HEADER_BYTES: usize = size_of::<Header>();
const ENTRY_BYTES: usize = size_of::<Entry>();

/// Why a process's page could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such process.
    #[error("no process has the number {pid}")]
    NoProcess {
        /// The number asked for.
        pid: u32,
    },
    /// The process shows no page: it runs without the library.
    #[error("process {pid} is not accelerated; start it with `saiga run`")]
    NotAccelerated {
        /// The process.
        pid: u32,
    },
    /// The process belongs to somebody else, or gave up rights and is closed to its own user.
    #[error("process {pid} belongs to another user or is closed to this one; ask as root")]
    Denied {
        /// The process.
        pid: u32,
    },
    /// The process was started with a library whose page we cannot read.
    #[error("process {pid} runs another version of Saiga (page version {found}); restart it")]
    OtherVersion {
        /// The process.
        pid: u32,
        /// The version its page claims.
        found: u32,
    },
    /// The page contradicts itself.
    #[error("the status page of process {pid} is damaged: {what}")]
    Damaged {
        /// The process.
        pid: u32,
        /// The part that makes no sense.
        what: &'static str,
    },
    /// The kernel answered something else.
    #[error("cannot read the status page of process {pid} ({path}): {source}", path = path.display())]
    Io {
        /// The process.
        pid: u32,
        /// The file under `/proc`.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// The open page of one process.
#[derive(Debug)]
pub struct Page {
    pid: u32,
    file: File,
    entries: u32,
}

/// What the page showed at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The process, by the number under which we found it.
    pub pid: u32,
    /// The library's flags.
    pub flags: Flags,
    /// Why the library stays out of everything, with the particulars it gave.
    pub disabled: Option<(Reason, String)>,
    /// Connections moved to a channel.
    pub upgrades: u64,
    /// Connections moved back to TCP.
    pub downgrades: u64,
    /// Connections reset because neither path could carry them on.
    pub resets: u64,
    /// Waits that ended while spinning.
    pub spins: u64,
    /// Waits that ended in a sleep in the kernel.
    pub sleeps: u64,
    /// Doorbells rung.
    pub rings: u64,
    /// What being woken from another CPU costs there, nanoseconds; 0 while not known.
    pub wake_cost_ns: u32,
    /// Segments of shared memory held now.
    pub segments: u64,
    /// Connections on a channel now.
    pub channels: u64,
    /// Connections not upgraded, by reason; reasons never met are left out.
    pub failures: Vec<(Reason, u64)>,
    /// What [`downgrades`](Self::downgrades) counts, by reason.
    pub taken_back: Vec<(Reason, u64)>,
    /// What [`resets`](Self::resets) counts, by reason.
    pub reset_for: Vec<(Reason, u64)>,
    /// The descriptors shown, by number.
    pub sockets: Vec<Socket>,
}

/// What the page showed of one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// The descriptor's number.
    pub fd: u32,
    /// Where it stands; never [`State::Unused`].
    pub state: State,
    /// Why it stands there.
    pub reason: Reason,
    /// Bytes received by TCP.
    pub tcp_rx: u64,
    /// Bytes sent by TCP.
    pub tcp_tx: u64,
    /// Bytes received by the channel.
    pub channel_rx: u64,
    /// Bytes sent by the channel.
    pub channel_tx: u64,
    /// The process at the other end, when known.
    pub peer_pid: Option<u32>,
    /// Counts the sockets that had this number; a change means another connection.
    pub generation: u32,
    /// The kernel socket's inode, when the library looked.
    pub inode: Option<u64>,
    /// Messages counted as evidence.
    pub messages: u32,
}

/// The processes whose page we may open, in the order of their numbers.
///
/// # Errors
/// When `/proc` itself cannot be read. Processes that end meanwhile or belong to others are
/// left out.
pub fn accelerated() -> io::Result<Vec<Page>> {
    let mut pids: Vec<u32> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    Ok(pids
        .into_iter()
        .filter_map(|pid| Page::open(pid).ok())
        .collect())
}

impl Page {
    /// Opens the page of process `pid`.
    ///
    /// # Errors
    /// Each variant of [`OpenError`].
    pub fn open(pid: u32) -> Result<Self, OpenError> {
        let folder = PathBuf::from(format!("/proc/{pid}/fd"));
        let list = fs::read_dir(&folder).map_err(|source| classify(pid, &folder, source))?;
        let identity = Identity::of(pid);
        let mut answer = Err(OpenError::NotAccelerated { pid });
        for entry in list {
            let path = match entry {
                Ok(entry) => entry.path(),
                Err(source) => return Err(classify(pid, &folder, source)),
            };
            if fs::read_link(&path).is_ok_and(|link| link == Path::new(LINK)) {
                match Self::open_file(pid, &path, identity) {
                    Ok(page) => return Ok(page),
                    // A forked child still holds its parent's page: look for its own.
                    Err(OpenError::NotAccelerated { .. }) => {}
                    Err(error) => answer = Err(error),
                }
            }
        }
        answer
    }

    fn open_file(pid: u32, path: &Path, identity: Identity) -> Result<Self, OpenError> {
        let io_error = |source| classify(pid, path, source);
        let damaged = |what| OpenError::Damaged { pid, what };
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
        if metadata.file_type().is_fifo() || !metadata.is_file() || !is_sealed(&file) {
            return Err(damaged("it is not a sealed memfd"));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)
            .map_err(|_| damaged("it is too short"))?;
        let header = Fields(&header);
        if header.u64(offset_of!(Header, magic)) != MAGIC {
            return Err(damaged("it does not begin with the magic number"));
        }
        let found = header.u32(offset_of!(Header, version));
        if found != VERSION {
            return Err(OpenError::OtherVersion { pid, found });
        }
        if header.u32(offset_of!(Header, entry_bytes)) as usize != ENTRY_BYTES {
            return Err(damaged("its entries have another size"));
        }
        let entries = header.u32(offset_of!(Header, entries));
        let bytes = HEADER_BYTES as u64 + u64::from(entries) * ENTRY_BYTES as u64;
        if entries > MAX_ENTRIES || bytes != metadata.size() {
            return Err(damaged(
                "its size does not follow from its number of entries",
            ));
        }
        let ticks = header.u64(offset_of!(Header, started_ticks));
        if !identity.is(header.u32(offset_of!(Header, pid)), ticks) {
            return Err(OpenError::NotAccelerated { pid });
        }
        Ok(Self { pid, file, entries })
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads what the page shows now, entries up to descriptor `last` only.
    ///
    /// # Errors
    /// What the kernel answers to a read of the page.
    pub fn snapshot(&self, last: u32) -> io::Result<Snapshot> {
        let mut bytes = [0; HEADER_BYTES];
        self.file.read_exact_at(&mut bytes, 0)?;
        let header = Fields(&bytes);
        let shown = self.entries.min(last.saturating_add(1));
        let mut entries = vec![0; shown as usize * ENTRY_BYTES];
        self.file.read_exact_at(&mut entries, HEADER_BYTES as u64)?;
        Ok(Snapshot {
            pid: self.pid,
            flags: Flags(header.u32(Header::FLAGS_AT)),
            disabled: header.disabled(),
            upgrades: header.u64(offset_of!(Header, upgrades)),
            downgrades: header.u64(offset_of!(Header, downgrades)),
            resets: header.u64(offset_of!(Header, resets)),
            spins: header.u64(offset_of!(Header, spins)),
            sleeps: header.u64(offset_of!(Header, sleeps)),
            rings: header.u64(offset_of!(Header, rings)),
            wake_cost_ns: header.u32(offset_of!(Header, wake_cost_ns)),
            segments: header.u64(offset_of!(Header, segments)),
            channels: header.u64(offset_of!(Header, channels)),
            failures: header.by_reason(Header::FAILURES_AT),
            taken_back: header.by_reason(Header::TAKEN_BACK_AT),
            reset_for: header.by_reason(Header::RESET_FOR_AT),
            sockets: (0..)
                .zip(entries.chunks_exact(ENTRY_BYTES))
                .filter_map(|(fd, entry)| Fields(entry).socket(fd))
                .collect(),
        })
    }
}

/// The numbers by which a process knows itself, to tell its page from an inherited one.
#[derive(Clone, Copy)]
struct Identity {
    pid_inside: u32,
    started_ticks: Option<u64>,
}

impl Identity {
    fn of(pid: u32) -> Self {
        // In another pid namespace the process knows itself by the last of these numbers.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pid_inside = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))
            .and_then(|pids| pids.split_whitespace().last()?.parse().ok())
            .unwrap_or(pid);
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        Self {
            pid_inside,
            started_ticks: parse_started_ticks(&stat),
        }
    }

    /// Start times are compared loosely: time namespaces shift them by whole constants, and a
    /// process without `/proc` does not know its own.
    fn is(self, pid: u32, ticks: u64) -> bool {
        let same_start = match self.started_ticks {
            Some(started) => ticks == 0 || ticks == started || in_other_time_namespace(),
            None => true,
        };
        pid == self.pid_inside && same_start
    }
}

/// Whether this process lives in a time namespace with an offset of its own.
fn in_other_time_namespace() -> bool {
    fs::read_to_string("/proc/self/timens_offsets").is_ok_and(|offsets| {
        offsets
            .split_whitespace()
            .filter_map(|word| word.parse::<i64>().ok())
            .any(|n| n != 0)
    })
}

/// Fields of a page copied out of another process; every offset is one of ours.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0
            .get(at..at + N)
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or([0; N])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(at))
    }

    /// The counters of an array that has one for each reason; those at zero are left out.
    fn by_reason(&self, at: usize) -> Vec<(Reason, u64)> {
        let count = |reason: &Reason| (*reason, self.u64(at + 8 * *reason as usize));
        let counts = Reason::ALL.iter().map(count);
        counts.filter(|(_, count)| *count > 0).collect()
    }

    fn disabled(&self) -> Option<(Reason, String)> {
        let number = self.u32(Header::DISABLED_AT);
        if number == Reason::None as u32 {
            return None;
        }
        let text = self.bytes::<{ Header::TEXT_BYTES }>(Header::TEXT_AT);
        let length = (self.u32(Header::TEXT_BYTES_AT) as usize).min(text.len());
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default())
            .replace(char::is_control, " ");
        Some((
            Reason::from_number(number).unwrap_or(Reason::Internal),
            text,
        ))
    }

    fn socket(&self, fd: u32) -> Option<Socket> {
        let state = State::from_number(self.u32(Entry::STATE_AT))?;
        if state == State::Unused {
            return None;
        }
        let inode = self.u64(offset_of!(Entry, inode));
        let peer_pid = self.u32(offset_of!(Entry, peer_pid));
        Some(Socket {
            fd,
            state,
            reason: Reason::from_number(self.u32(Entry::REASON_AT)).unwrap_or(Reason::Internal),
            tcp_rx: self.u64(offset_of!(Entry, tcp_rx)),
            tcp_tx: self.u64(offset_of!(Entry, tcp_tx)),
            channel_rx: self.u64(offset_of!(Entry, channel_rx)),
            channel_tx: self.u64(offset_of!(Entry, channel_tx)),
            peer_pid: (peer_pid != 0).then_some(peer_pid),
            generation: self.u32(Entry::GENERATION_AT),
            inode: (inode != 0).then_some(inode),
            messages: self.u32(offset_of!(Entry, messages)),
        })
    }
}

/// Only a memfd whose size cannot shrink has these seals.
fn is_sealed(file: &File) -> bool {
    // SAFETY: asks for an integer; `file` is open.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals != -1 && seals & libc::F_SEAL_SHRINK != 0
}

fn classify(pid: u32, path: &Path, source: io::Error) -> OpenError {
    if source.raw_os_error() == Some(libc::ESRCH) || source.kind() == ErrorKind::NotFound {
        OpenError::NoProcess { pid }
    } else if source.kind() == ErrorKind::PermissionDenied {
        OpenError::Denied { pid }
    } else {
        OpenError::Io {
            pid,
            path: path.to_owned(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the bytes are, they become values in range, and text without control characters.
    #[test]
    fn arbitrary_bytes_are_read_without_a_fault() {
        let mut state = 1_u64;
        let mut random = || {
            // Knuth's MMIX generator: any sequence will do, as long as it is always the same.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        };
        for _ in 0..2000 {
            let header: Vec<u8> = (0..HEADER_BYTES).map(|_| random()).collect();
            if let Some((_, text)) = Fields(&header).disabled() {
                assert!(!text.contains(char::is_control));
            }
            let mut entry: Vec<u8> = (0..ENTRY_BYTES).map(|_| random()).collect();
            if let Some(socket) = Fields(&entry).socket(7) {
                assert_ne!(socket.state, State::Unused);
            }
            entry[..4].copy_from_slice(&4_u32.to_ne_bytes());
            assert_eq!(
                Fields(&entry).socket(7).map(|socket| socket.state),
                Some(State::Upgraded)
            );
        }
        assert_eq!(Fields(&[]).u64(0), 0, "beyond the end is zero");
    }
}
