//! A ring of descriptors in shared memory, with the words that both ends use.
//!
//! The client moves the head and the server the tail, in both directions: to the server, the head
//! publishes frames and the tail gives their buffers back; to the client, the head lends empty
//! buffers and the tail publishes frames. Positions have 16 bits and wrap.
//!
//! # A sleeping receiver is woken
//! The receiver clears MASK_INT, executes a fence, and looks for frames once more; then it sleeps.
//! The sender publishes, executes a fence, and reads MASK_INT. Both fences are sequentially
//! consistent, so one of them is first: if it is the receiver's, the sender reads that MASK_INT is
//! clear, and writes the eventfd; if it is the sender's, the receiver sees the frames.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering, fence};

use super::peer::Breach;
use crate::mapping::Mapping;

/// The first word of a ring.
const COOKIE: u32 = 0x03e3_1f20;
/// Places in a ring.
const FLAGS_AT: usize = 4;
const HEAD_AT: usize = 6;
const TAIL_AT: usize = 64;
const DESCRIPTORS_AT: usize = 128;
const DESCRIPTOR_BYTES: usize = 16;
/// The flag of a ring whose receiver needs no interrupt.
const MASK_INT: u16 = 1;
/// The flag of a descriptor whose frame goes on in the next one.
const NEXT: u16 = 1;

/// The end of the link that this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// One ring, as one end uses it.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) side: Side,
    /// The region with the ring, and the place there.
    pub(super) region: usize,
    pub(super) at: usize,
    /// Binary logarithm of the number of descriptors.
    pub(super) shift: u8,
    /// The next descriptor that this end uses.
    pub(super) position: u16,
    /// The position up to which the peer has published, when it was read.
    pub(super) seen: u16,
    /// Wakes the receiver.
    pub(super) bell: OwnedFd,
}

/// A descriptor, read once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    pub(super) has_next: bool,
    pub(super) region: u16,
    pub(super) length: u32,
    pub(super) offset: u32,
}

/// Bytes of a ring with `1 << shift` descriptors.
pub(super) const fn ring_bytes(shift: u8) -> usize {
    DESCRIPTORS_AT + (DESCRIPTOR_BYTES << shift)
}

impl Ring {
    pub(super) const fn size(&self) -> u16 {
        1 << self.shift
    }

    /// Marks the ring as one, which the client does.
    pub(super) fn begin(&self, regions: &[Mapping]) -> Result<(), Breach> {
        let word = self.memory(regions)?.word(self.at).ok_or(OUTSIDE)?;
        word.store(COOKIE, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the ring is in its region, and is marked.
    pub(super) fn check(&self, regions: &[Mapping]) -> Result<(), Breach> {
        let memory = self.memory(regions)?;
        let last = self
            .at
            .checked_add(ring_bytes(self.shift) - DESCRIPTOR_BYTES);
        memory
            .double_words(last.ok_or(OUTSIDE)?, 2)
            .ok_or(OUTSIDE)?;
        let cookie = memory.word(self.at).ok_or(OUTSIDE)?;
        if cookie.load(Ordering::Relaxed) != COOKIE {
            return Err(Breach("a ring does not begin with its cookie"));
        }
        Ok(())
    }

    /// Reads how far the peer has published. Its descriptors up to there can be read afterwards.
    pub(super) fn look(&mut self, regions: &[Mapping]) -> Result<(), Breach> {
        let at = match self.side {
            Side::Server => HEAD_AT,
            Side::Client => TAIL_AT,
        };
        self.seen = self.half_word(regions, at)?.load(Ordering::Acquire);
        Ok(())
    }

    /// Publishes everything before `position`.
    pub(super) fn publish(&self, regions: &[Mapping], position: u16) -> Result<(), Breach> {
        let at = match self.side {
            Side::Server => TAIL_AT,
            Side::Client => HEAD_AT,
        };
        self.half_word(regions, at)?
            .store(position, Ordering::Release);
        Ok(())
    }

    /// Asks for interrupts, or for none.
    pub(super) fn mask(&self, regions: &[Mapping], is_masked: bool) -> Result<(), Breach> {
        let flags = self.half_word(regions, FLAGS_AT)?;
        flags.store(if is_masked { MASK_INT } else { 0 }, Ordering::Relaxed);
        if !is_masked {
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    /// Wakes the receiver if it asks for that, after [`Self::publish`].
    pub(super) fn ring(&self, regions: &[Mapping]) -> Result<(), Breach> {
        fence(Ordering::SeqCst);
        let flags = self.half_word(regions, FLAGS_AT)?;
        if flags.load(Ordering::Relaxed) & MASK_INT != 0 {
            return Ok(());
        }
        match rustix::io::write(&self.bell, &1_u64.to_ne_bytes()).map_err(io::Error::from) {
            // A counter at its limit is readable.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                Err(Breach("its eventfd cannot be written"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads the descriptor at a position.
    pub(super) fn descriptor(
        &self,
        regions: &[Mapping],
        position: u16,
    ) -> Result<Descriptor, Breach> {
        let words = self.words(regions, position)?;
        let bytes = words[0].load(Ordering::Relaxed).to_ne_bytes();
        let [a, b, c, d, length @ ..] = bytes;
        let [offset @ .., _, _, _, _] = words[1].load(Ordering::Relaxed).to_ne_bytes();
        Ok(Descriptor {
            has_next: u16::from_ne_bytes([a, b]) & NEXT != 0,
            region: u16::from_ne_bytes([c, d]),
            length: u32::from_ne_bytes(length),
            offset: u32::from_ne_bytes(offset),
        })
    }

    /// Writes the descriptor at a position.
    pub(super) fn set(
        &self,
        regions: &[Mapping],
        position: u16,
        descriptor: &Descriptor,
    ) -> Result<(), Breach> {
        let Descriptor {
            has_next,
            region,
            length,
            offset,
        } = *descriptor;
        let words = self.words(regions, position)?;
        let [a, b] = (if has_next { NEXT } else { 0 }).to_ne_bytes();
        let [c, d] = region.to_ne_bytes();
        let [e, f, g, h] = length.to_ne_bytes();
        words[0].store(
            u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            Ordering::Relaxed,
        );
        let [a, b, c, d] = offset.to_ne_bytes();
        // No metadata.
        words[1].store(
            u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]),
            Ordering::Relaxed,
        );
        Ok(())
    }

    fn words<'a>(&self, regions: &'a [Mapping], position: u16) -> Result<&'a [AtomicU64], Breach> {
        let slot = usize::from(position & (self.size() - 1));
        let at = self.at + DESCRIPTORS_AT + slot * DESCRIPTOR_BYTES;
        self.memory(regions)?.double_words(at, 2).ok_or(OUTSIDE)
    }

    fn half_word<'a>(&self, regions: &'a [Mapping], at: usize) -> Result<&'a AtomicU16, Breach> {
        self.memory(regions)?.half_word(self.at + at).ok_or(OUTSIDE)
    }

    fn memory<'a>(&self, regions: &'a [Mapping]) -> Result<&'a Mapping, Breach> {
        regions.get(self.region).ok_or(OUTSIDE)
    }
}

const OUTSIDE: Breach = Breach("a ring is not in its region, or not aligned");
