//! The reading half: finds and reads the page of another process.
//!
//! The other process may write any bytes into its page. So numbers are range-checked, control
//! characters in text are replaced by spaces, and the page is read, not mapped: a truncated
//! mapping would raise SIGBUS here. Counters of one snapshot may be some microseconds apart.
//!
//! Permissions are checked by the kernel, which opens `/proc/PID/fd` for root and the same user
//! only.
#![expect(unsafe_code, reason = "fcntl to ask for a file's seals")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use crate::layout::{Entry, Flags, Header, MAGIC, MAX_ENTRIES, VERSION};
use crate::page::parse_started_ticks;
use crate::{Reason, State};

const LINK: &str = "/memfd:saiga-status (deleted)";
const HEADER_BYTES: usize = size_of::<Header>();
const ENTRY_BYTES: usize = size_of::<Entry>();

/// An error of opening the page of a process.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("no process has the number {pid}")]
    NoProcess { pid: u32 },
    /// The process has no page, because it runs without the library.
    #[error("process {pid} is not accelerated; start it with `saiga run`")]
    NotAccelerated { pid: u32 },
    /// The process belongs to another user, or is not dumpable (PR_SET_DUMPABLE).
    #[error("no permission to read process {pid}; run this command as root")]
    Denied { pid: u32 },
    /// The process was started with a library whose page has another layout.
    #[error("process {pid} runs another version of Saiga (page version {found}); restart it")]
    OtherVersion { pid: u32, found: u32 },
    #[error("the status page of process {pid} is damaged: {problem}")]
    Damaged { pid: u32, problem: &'static str },
    #[error(
        "cannot read the status page of process {pid} ({path}): {source}",
        path = path.display()
    )]
    Io {
        pid: u32,
        /// A path below `/proc`.
        path: PathBuf,
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

/// A copy of a page's values. [`Header`] explains fields without a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// PID in the reader's namespace.
    pub pid: u32,
    pub flags: Flags,
    /// If the library upgrades no connection: the reason, and a text with details.
    pub disabled: Option<(Reason, String)>,
    pub upgrades: u64,
    pub downgrades: u64,
    pub resets: u64,
    pub spins: u64,
    pub sleeps: u64,
    pub rings: u64,
    /// Cost of a wake-up from another CPU on that host; 0 until measured.
    pub wake_cost_ns: u32,
    pub segments: u64,
    pub channels: u64,
    /// Connections that were not upgraded, by reason; counts of zero are left out.
    pub failures: Vec<(Reason, u64)>,
    /// [`downgrades`](Self::downgrades) by reason; counts of zero are left out.
    pub taken_back: Vec<(Reason, u64)>,
    /// [`resets`](Self::resets) by reason; counts of zero are left out.
    pub reset_for: Vec<(Reason, u64)>,
    /// Sorted by descriptor number.
    pub sockets: Vec<Socket>,
}

/// A copy of the values of one descriptor, never in [`State::Unused`]. [`Entry`] explains fields
/// without a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    pub fd: u32,
    pub state: State,
    pub reason: Reason,
    pub tcp_rx: u64,
    pub tcp_tx: u64,
    pub channel_rx: u64,
    pub channel_tx: u64,
    pub peer_pid: Option<u32>,
    /// Number of sockets that have had this descriptor number: a change means another connection.
    pub generation: u32,
    pub inode: Option<u64>,
    pub messages: u32,
}

/// Returns the pages of all processes that this process may read, sorted by PID.
///
/// Processes that end during the search and processes of other users are left out.
///
/// # Errors
/// Fails if `/proc` cannot be read.
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
    pub fn open(pid: u32) -> Result<Self, OpenError> {
        let folder = PathBuf::from(format!("/proc/{pid}/fd"));
        let list = fs::read_dir(&folder).map_err(|source| classify(pid, &folder, source))?;
        let mut result = Err(OpenError::NotAccelerated { pid });
        for entry in list {
            let path = match entry {
                Ok(entry) => entry.path(),
                Err(source) => return Err(classify(pid, &folder, source)),
            };
            if fs::read_link(&path).is_ok_and(|link| link == Path::new(LINK)) {
                // Read here, because most processes have no page.
                match Self::open_file(pid, &path, Identity::of(pid)) {
                    Ok(page) => return Ok(page),
                    // A forked child still holds its parent's page; its own may follow.
                    Err(OpenError::NotAccelerated { .. }) => {}
                    Err(error) => result = Err(error),
                }
            }
        }
        result
    }

    fn open_file(pid: u32, path: &Path, identity: Identity) -> Result<Self, OpenError> {
        let io_error = |source| classify(pid, path, source);
        let damaged = |problem| OpenError::Damaged { pid, problem };
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
        if metadata.file_type().is_fifo() || !metadata.is_file() || !is_sealed(&file) {
            return Err(damaged("it is not a sealed memfd"));
        }
        let header = read_header(&file).map_err(|_| damaged("it is too short"))?;
        let header = Fields(&header);
        if header.u64(offset_of!(Header, magic)) != MAGIC {
            return Err(damaged("it does not begin with the magic number"));
        }
        let found = header.u32(offset_of!(Header, version));
        if found != VERSION {
            return Err(OpenError::OtherVersion { pid, found });
        }
        if header.u32(offset_of!(Header, entry_bytes)) as usize != ENTRY_BYTES {
            return Err(damaged("the size of its entries is wrong"));
        }
        let entries = header.u32(offset_of!(Header, entries));
        let bytes = HEADER_BYTES as u64 + u64::from(entries) * ENTRY_BYTES as u64;
        if entries > MAX_ENTRIES || bytes != metadata.size() {
            return Err(damaged("its size contradicts its number of entries"));
        }
        let ticks = header.u64(offset_of!(Header, started_ticks));
        if !identity.matches(header.u32(offset_of!(Header, pid)), ticks) {
            return Err(OpenError::NotAccelerated { pid });
        }
        Ok(Self { pid, file, entries })
    }

    /// Returns the PID of the page's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads the page's current values, with entries up to descriptor `last`.
    pub fn snapshot(&self, last: u32) -> io::Result<Snapshot> {
        let bytes = read_header(&self.file)?;
        let header = Fields(&bytes);
        let count = self.entries.min(last.saturating_add(1));
        let mut entries = vec![0; count as usize * ENTRY_BYTES];
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

/// Reads the header. The words that the writer stores last, the magic number and the reason for
/// which upgrades are off, are as they were before the others were read: a CPU may read in any
/// order, and so may pread(2).
fn read_header(file: &File) -> io::Result<[u8; HEADER_BYTES]> {
    let (mut first, mut header) = ([0; HEADER_BYTES], [0; HEADER_BYTES]);
    file.read_exact_at(&mut first, 0)?;
    fence(Ordering::Acquire);
    file.read_exact_at(&mut header, 0)?;
    for at in [offset_of!(Header, magic), Header::DISABLED_AT] {
        let word = at & !7;
        header[word..word + 8].copy_from_slice(&first[word..word + 8]);
    }
    Ok(header)
}

/// The PID and start time of a process as the process itself reads them; they distinguish its
/// own page from the inherited page of its parent.
#[derive(Clone, Copy)]
struct Identity {
    /// PID in the innermost namespace of the process.
    inner_pid: u32,
    started_ticks: Option<u64>,
}

impl Identity {
    fn of(pid: u32) -> Self {
        // The last number of NSpid is the PID in the innermost namespace.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let inner_pid = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))
            .and_then(|pids| pids.split_whitespace().last()?.parse().ok())
            .unwrap_or(pid);
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        Self {
            inner_pid,
            started_ticks: parse_started_ticks(&stat),
        }
    }

    /// Compares with the values of a page. A start time of 0 matches (the process could not read
    /// `/proc`), and any start time matches in another time namespace, which shifts the times.
    fn matches(self, pid: u32, ticks: u64) -> bool {
        let same_start = match self.started_ticks {
            Some(started) => ticks == 0 || ticks == started || in_other_time_namespace(),
            None => true,
        };
        pid == self.inner_pid && same_start
    }
}

/// Returns true if the time namespace of this process has an offset.
fn in_other_time_namespace() -> bool {
    fs::read_to_string("/proc/self/timens_offsets").is_ok_and(|offsets| {
        offsets
            .split_whitespace()
            .filter_map(|word| word.parse::<i64>().ok())
            .any(|n| n != 0)
    })
}

/// Reads fields from a copied header or entry. Fields beyond its end read as zero.
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

    /// Reads an array with one counter per reason; counters of zero are left out.
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

/// Returns true if `file` is a memfd that cannot shrink.
fn is_sealed(file: &File) -> bool {
    // SAFETY: returns an integer and touches no memory; `file` is open.
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

    #[test]
    fn arbitrary_bytes_give_values_in_range_and_text_without_control_characters() {
        let mut state = 1_u64;
        let mut random = || {
            // Knuth's MMIX generator. Any sequence serves that is the same in every run.
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
        assert_eq!(Fields(&[]).u64(0), 0, "beyond the end");
    }
}
