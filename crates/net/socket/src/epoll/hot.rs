//! The segments of a set that recently had events.
//!
//! A server with thousands of connections has hundreds of segments, most of them idle. A wait that
//! finds events in active segments does not check the others, except once every 200 µs, as with
//! the kernel's descriptors. Without events it checks all: otherwise it would sleep while requests
//! come one at a time, each on another connection. Bits are hints: a wrong bit makes a wait check
//! too much, or a little later.

use super::SEGMENTS;
use core::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = SEGMENTS.div_ceil(64);
/// Up to this number of segments, checking all is faster than selecting.
const FEW: usize = 8;

/// One bit for each segment of a set. All zero: none had events.
#[derive(Debug)]
pub(crate) struct Hot {
    /// Segments with events since the turn before the last.
    recent: [AtomicU64; WORDS],
    /// Segments with events since the last turn.
    since_turn: [AtomicU64; WORDS],
}

impl Hot {
    /// Records that the segment at `index` has an event.
    pub(crate) fn note(&self, index: usize) {
        for bits in [&self.recent, &self.since_turn] {
            if let Some(word) = bits.get(index / 64) {
                // Written by the holder of the set's lock, and by `turn`: a lost bit is harmless.
                let now = word.load(Ordering::Relaxed);
                word.store(now | 1 << (index % 64), Ordering::Relaxed);
            }
        }
    }

    /// Starts a turn: clears segments without events for a whole turn, of the first `used` ones.
    pub(crate) fn turn(&self, used: usize) {
        let words = self.recent.iter().zip(&self.since_turn);
        for (recent, since_turn) in words.take(used.div_ceil(64)) {
            recent.store(since_turn.load(Ordering::Relaxed), Ordering::Relaxed);
            since_turn.store(0, Ordering::Relaxed);
        }
    }

    /// The segments with recent events among the first `used`; all, when there are few.
    pub(crate) fn indices(&self, used: usize) -> impl Iterator<Item = usize> {
        let all = used <= FEW;
        let words = self.recent.iter().take(used.div_ceil(64));
        words.enumerate().flat_map(move |(word, bits)| {
            let mut left = if all {
                u64::MAX
            } else {
                bits.load(Ordering::Relaxed)
            };
            core::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(word * 64 + bit).filter(|index| *index < used)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cold() -> Hot {
        let zero = || [const { AtomicU64::new(0) }; WORDS];
        Hot {
            recent: zero(),
            since_turn: zero(),
        }
    }

    fn indices(hot: &Hot, used: usize) -> Vec<usize> {
        hot.indices(used).collect()
    }

    #[test]
    fn an_event_is_remembered_for_its_turn_and_the_next() {
        let hot = cold();
        assert_eq!(indices(&hot, 300), [0; 0]);
        for index in [299, 3, 64] {
            hot.note(index);
        }
        assert_eq!(indices(&hot, 300), [3, 64, 299]);
        hot.turn(300);
        hot.note(64);
        assert_eq!(indices(&hot, 300), [3, 64, 299]);
        hot.turn(300);
        assert_eq!(indices(&hot, 300), [64]);
        hot.turn(300);
        assert_eq!(indices(&hot, 300), [0; 0]);
    }

    #[test]
    fn few_segments_are_all_hot_and_none_beyond_them() {
        let hot = cold();
        assert_eq!(indices(&hot, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(indices(&hot, 0), [0; 0]);
        hot.note(70);
        assert_eq!(indices(&hot, 70), [0; 0], "the set has fewer by now");
        hot.note(SEGMENTS);
        assert_eq!(indices(&hot, SEGMENTS), [70]);
    }
}
