//! The memory of a queue's frames (UMEM), and which of them the kernel has.
//!
//! Kernel: Documentation/networking/af_xdp.rst. The memory is divided into chunks of one frame
//! each. A chunk is lent to the kernel through a ring, and comes back through another as an
//! address. The kernel is trusted with the contents, but an address is checked before use: within
//! the memory, and of a chunk that was lent. So an error in the kernel, or in the use of the rings,
//! ends as a dropped frame, and never as two users of a chunk. Other processes cannot reach rings
//! or chunks.
#![expect(unsafe_code, reason = "chunks are memory that the kernel writes")]

use std::io;

use crate::mapping::Mapping;

/// Frames of one queue.
#[derive(Debug)]
pub(super) struct Umem {
    memory: Mapping,
    chunk_bytes: usize,
    /// Whether the kernel has the chunk.
    lent: Vec<bool>,
    is_huge: bool,
}

impl Umem {
    /// `chunks` chunks of `chunk_bytes` bytes, a power of two. `wants_huge`: in huge pages, if
    /// there are enough.
    pub(super) fn new(chunks: u32, chunk_bytes: usize, wants_huge: bool) -> io::Result<Self> {
        let bytes = chunks as usize * chunk_bytes;
        let huge = if wants_huge {
            Mapping::huge(bytes).ok()
        } else {
            None
        };
        let is_huge = huge.is_some();
        let memory = match huge {
            Some(memory) => memory,
            None => Mapping::anonymous(bytes)?,
        };
        Ok(Self {
            memory,
            chunk_bytes,
            lent: vec![false; chunks as usize],
            is_huge,
        })
    }

    /// The address of the memory, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.memory.address()
    }

    pub(super) fn bytes(&self) -> usize {
        self.lent.len() * self.chunk_bytes
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    pub(super) fn is_huge(&self) -> bool {
        self.is_huge
    }

    /// Marks a chunk as the kernel's; returns its address in the memory. `None` if the kernel has
    /// the chunk already.
    pub(super) fn lend(&mut self, chunk: u32) -> Option<u64> {
        let lent = self.lent.get_mut(chunk as usize).filter(|lent| !**lent)?;
        *lent = true;
        Some(u64::from(chunk) * self.chunk_bytes as u64)
    }

    /// The chunk that the kernel gives back with an address, and the offset in the chunk. `None` if
    /// the kernel does not have such a chunk.
    pub(super) fn take_back(&mut self, address: u64) -> Option<(u32, usize)> {
        let address = usize::try_from(address).ok()?;
        let number = address / self.chunk_bytes;
        let lent = self.lent.get_mut(number).filter(|lent| **lent)?;
        *lent = false;
        Some((u32::try_from(number).ok()?, address % self.chunk_bytes))
    }

    /// `length` bytes from `offset` on in a chunk; `None` if they are not in the chunk, or the
    /// kernel has it.
    pub(super) fn frame(&self, chunk: u32, offset: usize, length: usize) -> Option<&[u8]> {
        let start = self.start(chunk, offset, length)?;
        // SAFETY: the kernel does not have the chunk, and this process writes chunks only through
        // `&mut self`.
        unsafe { self.memory.bytes(start, length) }
    }

    /// All bytes of a chunk; `None` if the kernel has it.
    pub(super) fn room(&mut self, chunk: u32) -> Option<&mut [u8]> {
        let start = self.start(chunk, 0, self.chunk_bytes)?;
        // SAFETY: the kernel does not have the chunk, and `&mut self` excludes other slices.
        unsafe { self.memory.bytes_mut(start, self.chunk_bytes) }
    }

    fn start(&self, chunk: u32, offset: usize, length: usize) -> Option<usize> {
        let is_lent = *self.lent.get(chunk as usize)?;
        let fits = length <= self.chunk_bytes.checked_sub(offset)?;
        (fits && !is_lent).then_some(chunk as usize * self.chunk_bytes + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn umem() -> Umem {
        Umem::new(4, 2048, false).unwrap()
    }

    #[test]
    fn a_chunk_has_one_user() {
        let mut umem = umem();
        umem.room(2).unwrap()[2000..2003].copy_from_slice(&[1, 2, 3]);
        assert_eq!(umem.frame(2, 2000, 3), Some(&[1, 2, 3][..]));
        assert_eq!(umem.lend(2), Some(4096));
        assert_eq!(umem.lend(2), None, "the kernel has the chunk");
        assert_eq!(umem.frame(2, 0, 1), None);
        assert_eq!(umem.room(2), None);
        assert_eq!(umem.take_back(4096 + 256), Some((2, 256)));
        assert_eq!(umem.take_back(4096 + 256), None, "it came back already");
        assert_eq!(umem.frame(2, 2000, 3), Some(&[1, 2, 3][..]));
    }

    #[test]
    fn addresses_and_lengths_stay_within_chunks() {
        let mut umem = umem();
        assert_eq!((umem.lend(4), umem.lend(u32::MAX)), (None, None));
        for chunk in 0..4 {
            assert_eq!(umem.lend(chunk), Some(2048 * u64::from(chunk)));
        }
        for address in [8192, u64::MAX, 1 << 32] {
            assert_eq!(umem.take_back(address), None, "{address}");
        }
        assert_eq!(umem.take_back(8191), Some((3, 2047)));
        for (offset, length, is_valid) in [
            (0, 2048, true),
            (2047, 1, true),
            (2048, 0, true),
            (1, 2048, false),
            (2049, 0, false),
            (2047, usize::MAX, false),
        ] {
            let found = umem.frame(3, offset, length);
            assert_eq!(found.is_some(), is_valid, "{length} bytes at {offset}");
        }
    }
}
