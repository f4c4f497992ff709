//! Shared memory: a memfd that the client makes, and that the server maps.
//!
//! Its size is sealed, so that a peer cannot take pages away (SIGBUS). The client allocates all of
//! it at once, so a lack of memory is an error there.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    fstatfs, ftruncate, memfd_create,
};

use super::peer::Breach;
use crate::mapping::Mapping;

/// Bytes of all regions of a peer.
const MOST_BYTES: u64 = 1 << 30;
/// Regions of a peer.
pub(super) const MOST_REGIONS: usize = 16;
/// `TMPFS_MAGIC` of linux/magic.h: the file system of a memfd without huge pages.
const TMPFS: u64 = 0x0102_1994;

/// Makes shared memory of zeros.
pub(super) fn create(bytes: usize) -> io::Result<(OwnedFd, Mapping)> {
    let file = memfd_create(
        "saiga-memif",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    ftruncate(&file, bytes as u64)?;
    fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let mapping = Mapping::of(file.as_fd(), bytes, 0)?;
    Ok((file, mapping))
}

/// The regions of a peer.
#[derive(Debug, Default)]
pub(super) struct Regions {
    pub(super) mapped: Vec<Mapping>,
    bytes: u64,
}

impl Regions {
    /// Maps the next region.
    pub(super) fn add(&mut self, index: u16, bytes: u64, file: &OwnedFd) -> Result<(), Breach> {
        if usize::from(index) != self.mapped.len() {
            return Err(Breach("regions are not numbered in their order"));
        }
        if self.mapped.len() == MOST_REGIONS {
            return Err(Breach("there are more than 16 regions"));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes == 0 || self.bytes > MOST_BYTES {
            return Err(Breach("the regions have no bytes, or more than 1 GiB"));
        }
        check(file, bytes)?;
        let failed = |_| Breach("a region cannot be mapped");
        let bytes = usize::try_from(bytes).map_err(|_| Breach("a region is too large"))?;
        self.mapped
            .push(Mapping::of(file.as_fd(), bytes, 0).map_err(failed)?);
        Ok(())
    }
}

/// Whether the pages of a file are there as long as it is mapped.
fn check(file: &OwnedFd, bytes: u64) -> Result<(), Breach> {
    // A hole in a file of huge pages cannot be filled if none is free.
    let is_memory = fstatfs(file).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS));
    if !is_memory {
        return Err(Breach("a region is not a memfd of ordinary pages"));
    }
    // Files of tmpfs other than memfds have F_SEAL_SEAL alone.
    let is_sealed = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    if !is_sealed {
        return Err(Breach(
            "a region is not sealed against shrinking (F_SEAL_SHRINK)",
        ));
    }
    let has_bytes =
        fstat(file).is_ok_and(|found| u64::try_from(found.st_size).is_ok_and(|size| size >= bytes));
    if !has_bytes {
        return Err(Breach("a region is larger than its memfd"));
    }
    Ok(())
}
