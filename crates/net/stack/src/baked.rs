//! The flows to which SYN cookies were sent lately.
//!
//! A segment without a valid cookie can follow a lost acknowledgement. It gets no answer, because a
//! reset would end a connection whose cookie is only late. Segments of other flows without a
//! connection are reset, also while cookies are under way.

use alloc::vec;
use alloc::vec::Vec;

use saiga_tcp::{Instant, Micros};

/// How long a cookie is valid, at most: two periods of a minute.
const COOKIE_LIFETIME: Micros = Micros::from_secs(120);
/// Bits of a generation: a hash sets one of them. While a flood has set all of them, no segment
/// without a connection is reset.
const BITS: u32 = 1 << 16;

/// The flows, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct Baked {
    /// The present generation, and the one before it; empty until there is a cookie.
    generations: [Vec<u64>; 2],
    /// When the present generation becomes the one before, and when the last cookie ends.
    turns_at: Instant,
    ends_at: Instant,
}

impl Baked {
    /// A cookie is sent to a flow.
    pub(crate) fn note(&mut self, hash: u32, now: Instant) {
        if now >= self.ends_at {
            self.generations = Default::default();
        }
        if now >= self.turns_at {
            self.generations.swap(0, 1);
            self.generations[0] = vec![0; (BITS / u64::BITS) as usize];
            self.turns_at = now + COOKIE_LIFETIME;
        }
        self.ends_at = now + COOKIE_LIFETIME;
        let (word, bit) = place(hash);
        self.generations[0][word] |= bit;
    }

    /// Whether a cookie of the flow can still come back. It can also be that of another flow with
    /// the same bit.
    pub(crate) fn may_have(&self, hash: u32, now: Instant) -> bool {
        let (word, bit) = place(hash);
        let has = |one: &Vec<u64>| one.get(word).is_some_and(|word| word & bit != 0);
        now < self.ends_at && self.generations.iter().any(has)
    }
}

fn place(hash: u32) -> (usize, u64) {
    let bit = hash % BITS;
    ((bit / u64::BITS) as usize, 1 << (bit % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_known_for_the_life_of_its_cookie() {
        let mut baked = Baked::default();
        let at = |seconds| Instant(0) + Micros::from_secs(seconds);
        assert!(!baked.may_have(7, at(0)));
        baked.note(7, at(0));
        baked.note(8, at(100));
        assert!(baked.may_have(7, at(119)));
        assert!(!baked.may_have(9, at(119)));
        // In the generation before.
        baked.note(9, at(130));
        assert!(baked.may_have(8, at(219)));
        assert!(!baked.may_have(9, at(250)));
        baked.note(10, at(249));
        baked.note(11, at(300));
        assert!(baked.may_have(10, at(300)));
        assert!(!baked.may_have(7, at(300)));
        // After a pause, none of those before is left.
        baked.note(12, at(420));
        assert!(!baked.may_have(11, at(420)));
        assert!(baked.may_have(12, at(420)));
    }
}
