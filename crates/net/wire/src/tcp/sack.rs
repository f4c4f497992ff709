//! Selective acknowledgements: the blocks of one option.
//!
//! Spec: RFC 2018 §3. The order of the blocks matters: the first one holds the segment that caused
//! the acknowledgement, or reports a duplicate (RFC 2883).

use crate::SeqNum;

/// A range of received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SackBlock {
    /// Number of the first byte.
    pub left: SeqNum,
    /// Number of the byte after the last byte.
    pub right: SeqNum,
}

/// Up to four blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    /// The first `length` entries are the blocks; the others are zero.
    blocks: [SackBlock; Self::MAX],
    length: u8,
}

impl SackBlocks {
    /// Blocks that fit into one option.
    pub const MAX: usize = 4;
    /// No blocks: the segment has no such option.
    pub const NONE: Self = Self {
        blocks: [SackBlock {
            left: SeqNum(0),
            right: SeqNum(0),
        }; Self::MAX],
        length: 0,
    };

    /// Appends a block. Returns `false` if there are [`Self::MAX`] blocks already.
    pub const fn push(&mut self, block: SackBlock) -> bool {
        let length = self.length as usize;
        if length == Self::MAX {
            return false;
        }
        self.blocks[length] = block;
        self.length += 1;
        true
    }

    /// The blocks.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..self.len()]
    }

    /// Number of blocks.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether there are no blocks.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The first [`SackBlocks::MAX`] blocks.
impl FromIterator<SackBlock> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = SackBlock>>(blocks: I) -> Self {
        let mut all = Self::NONE;
        for block in blocks.into_iter().take(Self::MAX) {
            all.push(block);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(n: u32) -> SackBlock {
        SackBlock {
            left: SeqNum(n),
            right: SeqNum(n + 10),
        }
    }

    #[test]
    fn four_blocks_have_room() {
        let mut blocks = SackBlocks::default();
        assert_eq!(blocks, SackBlocks::NONE);
        assert!(blocks.is_empty() && blocks.as_slice().is_empty());
        for n in 1..=4 {
            assert!(blocks.push(block(n)));
        }
        assert!(!blocks.push(block(5)));
        assert_eq!(blocks.as_slice(), [block(1), block(2), block(3), block(4)]);
        assert_eq!(blocks.len(), 4);
        assert!(!blocks.is_empty());
        assert_eq!((1..9).map(block).collect::<SackBlocks>(), blocks);
    }
}
