//! Connections at fixed places, found by numbers that are not used twice.
//!
//! Places come in blocks, so that no connection is ever moved in memory, and growth takes no more
//! memory than the connections need. A place that is free again gets another generation: a number
//! of a connection that has ended finds nothing.

use alloc::vec::Vec;

/// Places of a block, as a power of two.
const BLOCK_SHIFT: u32 = 10;
const BLOCK: usize = 1 << BLOCK_SHIFT;
const NOTHING: u32 = u32::MAX;

/// The number of a connection of one stack. Numbers are not used again before a place has had four
/// thousand million connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    index: u32,
    generation: u32,
}

impl ConnectionId {
    /// The place: below the largest number of connections, and used by one connection at a time.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }
}

/// A collection with fixed places.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    blocks: Vec<Vec<Slot<T>>>,
    /// First place of the list of free places.
    free: u32,
    used: u32,
    limit: u32,
}

/// A place. It begins with a line of the cache, so that it takes no more lines than it must.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<T> {
    generation: u32,
    content: Content<T>,
}

#[derive(Debug)]
enum Content<T> {
    Free { next: u32 },
    Used(T),
}

impl<T> Slab<T> {
    /// Memory of a value.
    pub(crate) const PLACE_BYTES: usize = size_of::<Slot<T>>();

    /// An empty slab for at most `limit` values.
    pub(crate) const fn new(limit: u32) -> Self {
        Self {
            blocks: Vec::new(),
            free: NOTHING,
            used: 0,
            limit,
        }
    }

    /// Number of values.
    pub(crate) const fn len(&self) -> u32 {
        self.used
    }

    /// Number of places, those that are free included.
    pub(crate) fn places(&self) -> u32 {
        let last = self.blocks.last().map_or(0, Vec::len);
        let places = self.blocks.len().saturating_sub(1) * BLOCK + last;
        u32::try_from(places).unwrap_or(u32::MAX)
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.used >= self.limit
    }

    /// Stores a value; gives it back if the slab is full.
    pub(crate) fn insert(&mut self, value: T) -> Result<ConnectionId, T> {
        if self.is_full() {
            return Err(value);
        }
        self.used += 1;
        let index = self.free;
        if let Some(slot) = self.slot(index)
            && let Content::Free { next } = slot.content
        {
            slot.content = Content::Used(value);
            let generation = slot.generation;
            self.free = next;
            return Ok(ConnectionId { index, generation });
        }
        Ok(self.append(value))
    }

    fn append(&mut self, value: T) -> ConnectionId {
        let slot = Slot {
            generation: 0,
            content: Content::Used(value),
        };
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(slot);
        }
        // No place is free, so the values fill all places.
        ConnectionId {
            index: self.used - 1,
            generation: 0,
        }
    }

    /// The value at a place.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        let block = self.blocks.get((index >> BLOCK_SHIFT) as usize)?;
        match &block.get(index as usize % BLOCK)?.content {
            Content::Used(value) => Some(value),
            Content::Free { .. } => None,
        }
    }

    /// The value at a place.
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        match &mut self.slot(index)?.content {
            Content::Used(value) => Some(value),
            Content::Free { .. } => None,
        }
    }

    /// The value at a place, and its number.
    #[inline]
    pub(crate) fn entry(&mut self, index: u32) -> Option<(ConnectionId, &mut T)> {
        let slot = self.slot(index)?;
        let generation = slot.generation;
        match &mut slot.content {
            Content::Used(value) => Some((ConnectionId { index, generation }, value)),
            Content::Free { .. } => None,
        }
    }

    /// The value with a number.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        let slot = self.slot(id.index)?;
        match &mut slot.content {
            Content::Used(value) if slot.generation == id.generation => Some(value),
            Content::Used(_) | Content::Free { .. } => None,
        }
    }

    /// The number of the value at a place.
    pub(crate) fn id(&self, index: u32) -> Option<ConnectionId> {
        let block = self.blocks.get((index >> BLOCK_SHIFT) as usize)?;
        let slot = block.get(index as usize % BLOCK)?;
        match slot.content {
            Content::Used(_) => Some(ConnectionId {
                index,
                generation: slot.generation,
            }),
            Content::Free { .. } => None,
        }
    }

    /// Takes the value at a place out.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let next = self.free;
        let slot = self.slot(index)?;
        match core::mem::replace(&mut slot.content, Content::Free { next }) {
            Content::Used(value) => {
                slot.generation = slot.generation.wrapping_add(1);
                self.free = index;
                self.used -= 1;
                Some(value)
            }
            free @ Content::Free { .. } => {
                slot.content = free;
                None
            }
        }
    }

    #[inline]
    fn slot(&mut self, index: u32) -> Option<&mut Slot<T>> {
        let block = self.blocks.get_mut((index >> BLOCK_SHIFT) as usize)?;
        block.get_mut(index as usize % BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_finds_its_value_and_no_later_one() {
        let mut slab = Slab::new(2);
        let first = slab.insert('a').unwrap();
        let second = slab.insert('b').unwrap();
        assert_eq!(slab.insert('c'), Err('c'));
        assert_eq!(slab.remove(first.index()), Some('a'));
        assert_eq!(slab.remove(first.index()), None);
        let third = slab.insert('c').unwrap();
        assert_eq!(third.index(), first.index());
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!(slab.get_mut(third), Some(&mut 'c'));
        assert_eq!(slab.id(third.index()), Some(third));
        assert_eq!(slab.len(), 2);
    }

    #[test]
    fn values_stay_over_the_borders_of_blocks() {
        let mut slab = Slab::new(5000);
        for value in 0..5000 {
            assert_eq!(slab.insert(value).unwrap().index(), value);
        }
        for index in (0..5000).step_by(3) {
            assert_eq!(slab.remove(index), Some(index));
        }
        assert_eq!((slab.len(), slab.places()), (3333, 5000));
        for index in 0..5000 {
            let expected = (index % 3 != 0).then_some(&index);
            assert_eq!(slab.at(index), expected);
        }
        assert_eq!(slab.at(5000), None);
    }
}
