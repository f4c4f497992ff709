//! A link that is up: frames in and out by two rings.
//!
//! Frames are copied, so that no byte changes after it was checked. In one direction or the other,
//! the lengths of buffers come from the peer; the client knows the places of its own buffers, and
//! does not read them from shared memory.

use super::memory;
use super::peer::Breach;
use super::ring::{Descriptor, Ring, Side, ring_bytes};
use crate::mapping::Mapping;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Bytes of a buffer of the client.
const BUFFER_BYTES: u32 = 2048;
/// Where the client's region has the rings to the server and to the client, and the buffers.
const REGION: u16 = 0;

/// What became of a frame that was to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// There is no room until the peer has received.
    Full,
    /// The frame does not even fit into an empty ring.
    TooLong,
}

/// Two rings and their memory.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) regions: Vec<Mapping>,
    pub(super) incoming: Ring,
    pub(super) outgoing: Ring,
    /// Whether a virtio header is in front of each frame: the peer is another end of Saiga.
    pub(super) has_headers: bool,
    /// Positions that were published, of received and of sent frames.
    published: [u16; 2],
    /// The buffers of the frame that is being sent.
    chain: Vec<Descriptor>,
}

/// A client's link before its server has accepted it, with what the server is given.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) link: Link,
    pub(super) file: OwnedFd,
    pub(super) bytes: u64,
}

impl Link {
    /// The link of a server, of what its client has named.
    pub(super) fn new(
        regions: Vec<Mapping>,
        [incoming, outgoing]: [Ring; 2],
        has_headers: bool,
    ) -> Result<Self, Breach> {
        incoming.check(&regions)?;
        outgoing.check(&regions)?;
        let link = Self {
            published: [incoming.position, outgoing.position],
            regions,
            incoming,
            outgoing,
            has_headers,
            chain: Vec::new(),
        };
        link.incoming.mask(&link.regions, false)?;
        Ok(link)
    }

    /// Makes the memory of a client with rings of `1 << shift` descriptors.
    pub(super) fn offer(shift: u8, has_headers: bool, bells: [OwnedFd; 2]) -> io::Result<Offer> {
        let buffers = (BUFFER_BYTES as usize) << shift;
        let bytes = 2 * (ring_bytes(shift) + buffers);
        let (file, mapping) = memory::create(bytes)?;
        let [from_server, to_server] = bells;
        let ring = |at, bell| Ring {
            side: Side::Client,
            region: usize::from(REGION),
            at,
            shift,
            position: 0,
            seen: 0,
            bell,
        };
        let rings = [ring(ring_bytes(shift), from_server), ring(0, to_server)];
        let regions = vec![mapping];
        let made = rings.iter().try_for_each(|one| one.begin(&regions));
        let made = made.and_then(|()| Self::new(regions, rings, has_headers));
        Ok(Offer {
            link: made.map_err(io::Error::other)?,
            file,
            bytes: bytes as u64,
        })
    }

    /// Lends all buffers of a client. A server of DPDK resets the positions before it is connected.
    pub(super) fn begin(&self) -> Result<(), Breach> {
        let size = self.incoming.size();
        for slot in 0..size {
            self.lend(slot)?;
        }
        self.incoming.publish(&self.regions, size)
    }

    /// What is readable when the peer has written to it.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.incoming.bell.as_fd()
    }

    /// Copies the next frame to `to`; returns its length. `None` if none waits.
    pub(super) fn take(&mut self, to: &mut [u8]) -> Result<Option<usize>, Breach> {
        let Self {
            regions, incoming, ..
        } = self;
        let mut waiting = incoming.seen.wrapping_sub(incoming.position);
        if waiting == 0 {
            incoming.look(regions)?;
            waiting = incoming.seen.wrapping_sub(incoming.position);
        }
        if waiting > incoming.size() {
            return Err(Breach("a position is beyond the end of the ring"));
        }
        let mut length = 0_usize;
        for number in 0..waiting {
            let position = incoming.position.wrapping_add(number);
            let descriptor = incoming.descriptor(regions, position)?;
            let (memory, offset) = match incoming.side {
                Side::Server => (descriptor.region, descriptor.offset as usize),
                Side::Client if descriptor.length > BUFFER_BYTES => {
                    return Err(Breach("a buffer has more bytes than it was lent with"));
                }
                Side::Client => (REGION, own_buffer(incoming, position, true)),
            };
            let memory = regions.get(usize::from(memory));
            let part = to.get_mut(length..length.saturating_add(descriptor.length as usize));
            let part = part.ok_or(Breach("a frame is longer than the largest one"))?;
            if !memory.is_some_and(|memory| memory.copy_out(offset, part)) {
                return Err(Breach("a buffer is not in a region"));
            }
            length += part.len();
            if !descriptor.has_next {
                incoming.position = position.wrapping_add(1);
                return Ok(Some(length));
            }
        }
        // Frames are published as a whole.
        match waiting {
            0 => Ok(None),
            _ => Err(Breach("a frame has no last buffer")),
        }
    }

    /// Gives the buffers of received frames back.
    pub(super) fn release(&mut self) -> Result<(), Breach> {
        let position = self.incoming.position;
        let mut slot = self.published[0];
        if slot == position {
            return Ok(());
        }
        let end = match self.incoming.side {
            Side::Server => position,
            Side::Client => {
                while slot != position {
                    self.lend(slot)?;
                    slot = slot.wrapping_add(1);
                }
                position.wrapping_add(self.incoming.size())
            }
        };
        self.incoming.publish(&self.regions, end)?;
        self.published[0] = position;
        Ok(())
    }

    /// Lends the empty buffer at a position to the server.
    fn lend(&self, position: u16) -> Result<(), Breach> {
        let offset = own_buffer(&self.incoming, position, true);
        let descriptor = own_descriptor(offset, BUFFER_BYTES);
        self.incoming.set(&self.regions, position, &descriptor)
    }

    /// Writes a frame, which [`Self::publish`] sends.
    pub(super) fn put(&mut self, frame: &[u8]) -> Result<Put, Breach> {
        let mut fit = self.plan(frame.len())?;
        if fit == Put::Full {
            self.outgoing.look(&self.regions)?;
            fit = self.plan(frame.len())?;
        }
        if fit != Put::Done {
            return Ok(fit);
        }
        let Self {
            regions,
            outgoing,
            chain,
            ..
        } = self;
        let mut rest = frame;
        for descriptor in &*chain {
            let part;
            (part, rest) = rest.split_at(descriptor.length as usize);
            let memory = regions.get(usize::from(descriptor.region));
            if !memory.is_some_and(|memory| memory.copy_in(descriptor.offset as usize, part)) {
                return Err(Breach("a lent buffer is not in a region"));
            }
            let last = Descriptor {
                has_next: !rest.is_empty(),
                ..*descriptor
            };
            outgoing.set(regions, outgoing.position, &last)?;
            outgoing.position = outgoing.position.wrapping_add(1);
        }
        Ok(Put::Done)
    }

    /// Finds the buffers for a frame, each with the length of its part.
    fn plan(&mut self, bytes: usize) -> Result<Put, Breach> {
        let Self {
            regions,
            outgoing,
            chain,
            ..
        } = self;
        let free = match outgoing.side {
            Side::Server => Some(outgoing.seen.wrapping_sub(outgoing.position)),
            Side::Client => {
                let used = outgoing.position.wrapping_sub(outgoing.seen);
                outgoing.size().checked_sub(used)
            }
        };
        let free = free.filter(|free| *free <= outgoing.size());
        let free = free.ok_or(Breach("a position is beyond the end of the ring"))?;
        chain.clear();
        let mut left = bytes;
        for number in 0..free {
            let position = outgoing.position.wrapping_add(number);
            let mut descriptor = match outgoing.side {
                Side::Server => outgoing.descriptor(regions, position)?,
                Side::Client => own_descriptor(own_buffer(outgoing, position, false), BUFFER_BYTES),
            };
            if descriptor.length == 0 {
                return Err(Breach("a lent buffer has no bytes"));
            }
            let length = left.min(descriptor.length as usize);
            descriptor.length = u32::try_from(length).unwrap_or(descriptor.length);
            chain.push(descriptor);
            left -= length;
            if left == 0 {
                return Ok(Put::Done);
            }
        }
        Ok(if free == outgoing.size() {
            Put::TooLong
        } else {
            Put::Full
        })
    }

    /// Sends what was written, and wakes a peer that sleeps. Returns whether there was anything.
    pub(super) fn publish(&mut self) -> Result<bool, Breach> {
        let position = self.outgoing.position;
        if position == self.published[1] {
            return Ok(false);
        }
        self.published[1] = position;
        self.outgoing.publish(&self.regions, position)?;
        self.outgoing.ring(&self.regions)?;
        Ok(true)
    }

    /// Lets the peer poll, or makes it write to the bell with its next frames. Returns whether
    /// frames wait.
    pub(super) fn mask(&mut self, is_masked: bool) -> Result<bool, Breach> {
        self.incoming.mask(&self.regions, is_masked)?;
        if is_masked {
            return Ok(false);
        }
        self.incoming.look(&self.regions)?;
        Ok(self.incoming.seen != self.incoming.position)
    }
}

/// The place of the client's buffer of a descriptor.
fn own_buffer(ring: &Ring, position: u16, is_incoming: bool) -> usize {
    let slot = usize::from(position & (ring.size() - 1));
    let before = if is_incoming {
        usize::from(ring.size())
    } else {
        0
    };
    2 * ring_bytes(ring.shift) + (before + slot) * BUFFER_BYTES as usize
}

fn own_descriptor(offset: usize, length: u32) -> Descriptor {
    Descriptor {
        has_next: false,
        region: REGION,
        length,
        // The client's region is far below 4 GiB.
        offset: u32::try_from(offset).unwrap_or(u32::MAX),
    }
}
