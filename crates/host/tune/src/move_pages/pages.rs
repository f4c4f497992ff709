//! The resident pages of a file: which they are, where they are, and how they move.

#![expect(
    unsafe_code,
    reason = "mincore, process_vm_readv and move_pages have no safe wrapper"
)]

use std::fs::File;
use std::io;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Moves pages that other processes map, too (`linux/mempolicy.h`).
const MPOL_MF_MOVE_ALL: libc::c_int = 1 << 2;

/// What the kernel says of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Node(u32),
    Error(i32),
}

/// A file mapped for reading.
#[derive(Debug)]
pub(super) struct Mapping {
    begin: *mut libc::c_void,
    bytes: usize,
    page_bytes: usize,
}

impl Mapping {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if bytes == 0 {
            return Err(io::Error::other("the file is empty"));
        }
        // SAFETY: the kernel chooses the address, so no memory of this process is replaced.
        let begin = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Ok(Self {
            begin,
            bytes,
            page_bytes: rustix::param::page_size(),
        })
    }

    /// Returns the numbers of the pages that are in the page cache.
    pub(super) fn resident(&self) -> io::Result<Vec<usize>> {
        let mut states = vec![0_u8; self.bytes.div_ceil(self.page_bytes)];
        // SAFETY: the range is the mapping, and `states` has a byte for each of its pages.
        let result = unsafe { libc::mincore(self.begin, self.bytes, states.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let resident = states
            .iter()
            .enumerate()
            .filter(|(_, state)| **state & 1 == 1);
        Ok(resident.map(|(page, _)| page).collect())
    }

    /// Makes the page tables of this process point to the pages, which move_pages(2) requires.
    ///
    /// The kernel reads a byte of each on behalf of this process: an access to a page behind the
    /// end of a file that was truncated is an error there, and SIGBUS here.
    pub(super) fn fault_in(&self, pages: &[usize]) {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        for page in pages {
            let mut byte = 0_u8;
            let local = libc::iovec {
                iov_base: (&raw mut byte).cast(),
                iov_len: 1,
            };
            let remote = libc::iovec {
                iov_base: self.address(*page),
                iov_len: 1,
            };
            // An error means that the page is gone; its state will say so.
            // SAFETY: `local` is one writable byte; the kernel checks `remote`.
            let _ = unsafe {
                libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0)
            };
        }
    }

    /// Returns the node of each page.
    pub(super) fn nodes(&self, pages: &[usize]) -> io::Result<Vec<Outcome>> {
        self.call(pages, None)
    }

    /// Moves pages to a node. A page that does not move has the reason as its outcome.
    pub(super) fn move_to(&self, pages: &[usize], node: u32) -> io::Result<Vec<Outcome>> {
        let node = libc::c_int::try_from(node).map_err(io::Error::other)?;
        self.call(pages, Some(node))
    }

    fn call(&self, pages: &[usize], node: Option<libc::c_int>) -> io::Result<Vec<Outcome>> {
        let addresses: Vec<*mut libc::c_void> =
            pages.iter().map(|page| self.address(*page)).collect();
        let nodes = node.map(|node| vec![node; pages.len()]);
        let mut states = vec![-libc::ENOENT; pages.len()];
        // SAFETY: all three arrays have `pages.len()` elements (or `nodes` is null, which only
        // asks for the states); pid 0 is this process.
        let result = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                pages.len(),
                addresses.as_ptr(),
                nodes.as_ref().map_or(ptr::null(), Vec::as_ptr),
                states.as_mut_ptr(),
                if node.is_some() { MPOL_MF_MOVE_ALL } else { 0 },
            )
        };
        // A positive result is the number of pages that did not move; their states say why.
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let outcome = |state: &libc::c_int| match u32::try_from(*state) {
            Ok(node) => Outcome::Node(node),
            Err(_) => Outcome::Error(-state),
        };
        Ok(states.iter().map(outcome).collect())
    }

    fn address(&self, page: usize) -> *mut libc::c_void {
        self.begin.wrapping_byte_add(page * self.page_bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it exists.
        let _ = unsafe { munmap(self.begin, self.bytes) };
    }
}
