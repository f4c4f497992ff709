//! The writing half: creates and maps the memfd, and returns its entries.
//!
//! This code runs in the library's constructor and in forked children, so it uses system calls
//! only, no allocation and no std. The page exists until the process ends. The caller keeps its
//! descriptor open, and moves the descriptor to a high number.
#![expect(unsafe_code, reason = "system calls and a shared mapping")]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use saiga_channel::sys::{self, Errno};

use crate::layout::{CHUNK_ENTRIES, Entry, Header, MAGIC, MAX_ENTRIES, NAME, VERSION};

/// Of Linux 5.1: forbids later mappings and calls to write; the first mapping still may.
const F_SEAL_FUTURE_WRITE: c_int = 0x10;

/// The page of this process, or an inert page that no other process sees.
#[derive(Debug, Clone, Copy)]
pub struct StatusPage {
    header: &'static Header,
    entries: &'static [Entry],
}

/// The header of inert pages: counters are added to it and never read.
static INERT: Header = Header::zeroed();

impl StatusPage {
    /// Returns a page without entries, whose counters no other process can read.
    #[must_use]
    pub const fn inert() -> Self {
        Self {
            header: &INERT,
            entries: &[],
        }
    }

    /// Creates a page for descriptors `0..entries`, at most [`MAX_ENTRIES`].
    ///
    /// Memory is allocated when a descriptor is first shown, 4 KiB for 64 numbers. The returned
    /// descriptor is close-on-exec. Other processes can open the page while this descriptor is
    /// open; the caller may move it to another number.
    ///
    /// # Errors
    /// Errors of memfd_create, ftruncate, fcntl or mmap; `EFBIG` if the process's limit on file
    /// sizes is below the size of the page, because ftruncate would then raise SIGXFSZ.
    pub fn create(entries: u32) -> Result<(c_int, Self), Errno> {
        let entries = entries.min(MAX_ENTRIES);
        let (fd, base) = make(ptr::null_mut(), page_bytes(entries))?;
        // SAFETY: `make` mapped exactly `page_bytes(entries)` zeroed bytes at a page boundary,
        // for good; a zeroed Header is valid, and it consists of atomics only.
        let header: &'static Header = unsafe { &*base.cast::<Header>() };
        // SAFETY: the entries follow the header inside the same mapping.
        let first = unsafe { base.add(size_of::<Header>()) }.cast::<Entry>();
        // SAFETY: as above; the mapping has room for `entries` entries.
        let entries = unsafe { core::slice::from_raw_parts(first, entries as usize) };
        let page = Self { header, entries };
        page.write_header();
        Ok((fd, page))
    }

    /// Replaces the page of its parent in a forked child by an empty page at the same address.
    ///
    /// References to entries and header stay valid. Before this call the child writes into its
    /// parent's page. The caller closes the old descriptor.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create). The parent's page is then replaced by private
    /// memory, unless the kernel has no memory for that either.
    pub fn replace_after_fork(&self) -> Result<c_int, Errno> {
        if self.entries.is_empty() {
            return Err(Errno(libc::EBADF));
        }
        let base = ptr::from_ref(self.header).cast_mut().cast::<u8>();
        let entries = u32::try_from(self.entries.len()).unwrap_or(MAX_ENTRIES);
        let bytes = page_bytes(entries);
        match make(base, bytes) {
            Ok((fd, _)) => {
                self.write_header();
                Ok(fd)
            }
            Err(error) => {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                // SAFETY: replaces our own mapping by zeroed private memory of the same size,
                // which is valid for the existing references once it is accessible.
                unsafe { libc::mmap(base.cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
                make_accessible(base, size_of::<Header>())?;
                Err(error)
            }
        }
    }

    /// Returns the counters and flags of the process.
    #[must_use]
    pub fn header(&self) -> &'static Header {
        self.header
    }

    /// Returns the entry of a descriptor; `None` if its number is beyond the page, if the page is
    /// inert, or if the kernel has no memory for the entry. Does not change errno.
    #[must_use]
    pub fn entry(&self, fd: c_int) -> Option<&'static Entry> {
        let index = u32::try_from(fd).ok()?;
        let entry = self.entries.get(index as usize)?;
        let chunk = index / CHUNK_ENTRIES;
        if self.header.is_populated(chunk) || populate(self.header, entry) {
            self.header.mark_populated(chunk);
            return Some(entry);
        }
        None
    }

    /// Fills in the header; the magic number is stored last.
    fn write_header(&self) {
        let header = self.header;
        header.version.store(VERSION, Relaxed);
        header.entry_bytes.store(64, Relaxed);
        header.entries.store(
            u32::try_from(self.entries.len()).unwrap_or(MAX_ENTRIES),
            Relaxed,
        );
        // SAFETY: getpid has no preconditions.
        let pid = unsafe { libc::getpid() };
        header.pid.store(u32::try_from(pid).unwrap_or(0), Relaxed);
        header
            .started_ticks
            .store(started_ticks().unwrap_or(0), Relaxed);
        header
            .magic
            .store(MAGIC, core::sync::atomic::Ordering::Release);
    }
}

const fn page_bytes(entries: u32) -> usize {
    size_of::<Header>() + entries as usize * size_of::<Entry>()
}

/// Creates a sealed memfd of `bytes` and maps it: at `at` in place of the mapping there, or at an
/// address that the kernel chooses if `at` is null.
fn make(at: *mut u8, bytes: usize) -> Result<(c_int, *mut u8), Errno> {
    let fd = sys::memfd(NAME, bytes)?;
    let mapped = map_and_seal(fd, at, bytes);
    if mapped.is_err() {
        sys::close(fd);
    }
    mapped.map(|base| (fd, base))
}

fn map_and_seal(fd: c_int, at: *mut u8, bytes: usize) -> Result<*mut u8, Errno> {
    // The memfd is populated and mapped before the last seal, which forbids both.
    // SAFETY: `fd` is our memfd. Without memory this call fails; otherwise the first store would
    // raise SIGBUS.
    check(unsafe { libc::fallocate(fd, 0, 0, 4096) })?;
    let flags = libc::MAP_SHARED | if at.is_null() { 0 } else { libc::MAP_FIXED };
    // PROT_NONE, because mlockall(2) makes accessible memory resident.
    // SAFETY: at null the kernel chooses; otherwise the caller owns `bytes` at `at`.
    let base = unsafe { libc::mmap(at.cast::<c_void>(), bytes, libc::PROT_NONE, flags, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(last_errno());
    }
    // Keeps the page out of core dumps; a kernel that refuses writes larger dumps.
    // SAFETY: the advice changes no byte of our own mapping.
    unsafe { libc::madvise(base, bytes, libc::MADV_DONTDUMP) };
    // After mlockall(2) new mappings are locked.
    // SAFETY: unlocking changes no byte of our own mapping.
    unsafe { libc::munlock(base, bytes) };
    make_accessible(base.cast(), size_of::<Header>())?;
    let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: sealing takes an integer and touches no memory.
    let sealed = unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE) };
    if sealed == -1 {
        // SAFETY: as above. A kernel before 5.1 has only the seals of the size.
        check(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, size) })?;
    }
    Ok(base.cast())
}

/// Makes the first `bytes` of the page's mapping at `base` accessible.
fn make_accessible(base: *mut u8, bytes: usize) -> Result<(), Errno> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the range lies in our own mapping; more access breaks no reference.
    check(unsafe { libc::mprotect(base.cast(), bytes, prot) }).map(drop)
}

/// Allocates memory for the chunk of `entry`. Returns false if the kernel has no memory: a store
/// into the chunk would raise SIGBUS. All earlier chunks become accessible too, so that the page
/// consists of two mappings in the kernel.
#[cold]
fn populate(header: &Header, entry: &Entry) -> bool {
    let saved = last_errno();
    let base = ptr::from_ref(header).cast_mut().cast::<u8>();
    let end = ptr::from_ref(entry).addr() + size_of::<Entry>();
    let accessible = make_accessible(base, end - base.addr()).is_ok();
    // SAFETY: sysconf has no preconditions.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page_bytes = usize::try_from(page_bytes).unwrap_or(4096);
    let start = ptr::from_ref(entry)
        .cast_mut()
        .map_addr(|address| address & !(page_bytes - 1));
    // SAFETY: the range lies in our own mapping; populating changes no byte of it.
    let result = unsafe { libc::madvise(start.cast(), page_bytes, libc::MADV_POPULATE_WRITE) };
    // A kernel before 5.14 answers EINVAL: the first store allocates the memory there.
    let populated = accessible && (result == 0 || last_errno() == Errno(libc::EINVAL));
    // SAFETY: no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the location is this thread's own and always valid.
    unsafe { *errno = saved.0 };
    populated
}

/// Field 22 of `/proc/self/stat`.
fn started_ticks() -> Option<u64> {
    let path = c"/proc/self/stat";
    // SAFETY: `path` is a C string.
    let fd = check(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }).ok()?;
    let mut text = [0_u8; 1024];
    // SAFETY: `text` is writable for its length.
    let read = unsafe { libc::read(fd, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: `fd` is ours.
    unsafe { libc::close(fd) };
    let text = text.get(..usize::try_from(read).ok()?)?;
    parse_started_ticks(text)
}

/// Parses field 22 of `/proc/PID/stat`. Fields are counted after the last `)`, because the
/// program's name, in parentheses, may contain any character.
pub(crate) fn parse_started_ticks(stat: &[u8]) -> Option<u64> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let field = stat
        .get(end_of_name + 2..)?
        .split(|byte| *byte == b' ')
        .nth(19)?;
    core::str::from_utf8(field).ok()?.parse().ok()
}

fn check(result: c_int) -> Result<c_int, Errno> {
    if result == -1 {
        Err(last_errno())
    } else {
        Ok(result)
    }
}

fn last_errno() -> Errno {
    // SAFETY: no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the location is this thread's own and always valid.
    Errno(unsafe { *errno })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reason, State};

    #[test]
    fn the_start_time_is_found_after_a_name_with_parentheses() {
        let stat = b"7 (a) R 1 (x) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0";
        assert_eq!(parse_started_ticks(stat), Some(98765));
        assert_eq!(parse_started_ticks(b"7 (cut"), None);
        assert_eq!(parse_started_ticks(b"7 (a)"), None);
    }

    #[test]
    fn an_inert_page_has_counters_and_no_entries() {
        let page = StatusPage::inert();
        page.header().upgrades.fetch_add(1, Relaxed);
        assert!(page.entry(0).is_none());
        assert_eq!(page.replace_after_fork(), Err(Errno(libc::EBADF)));
    }

    #[test]
    fn a_page_has_entries_for_its_numbers_only() {
        let (fd, page) = StatusPage::create(100).unwrap();
        assert!(page.entry(-1).is_none());
        assert!(page.entry(100).is_none());
        let entry = page.entry(99).unwrap();
        entry.begin(State::Tracked, Reason::NotEnoughMessages);
        assert_eq!(page.entry(99).unwrap().state(), State::Tracked);
        assert_eq!(page.entry(98).unwrap().state(), State::Unused);
        // SAFETY: reading the seals takes no argument.
        let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
        let wanted = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        assert_eq!(seals & wanted, wanted);
        // SAFETY: this test opened `fd`.
        unsafe { libc::close(fd) };
    }
}
