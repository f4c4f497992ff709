//! A hierarchical timer wheel: the next time-out of each connection or neighbour.
//!
//! Spec: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", scheme 7. Setting, cancelling
//! and expiring a timer take constant time, whatever the number of timers. Eight levels of 64 slots
//! cover 571 years in ticks of 64 µs; a later timer expires early, and its owner sets it again.
//!
//! A timer is in the level of the highest 6-bit digit in which its tick differs from the present
//! one. So all timers of a level are later than those of the levels below, no slot wraps around,
//! and the lowest bit of the first level that is not empty finds the next slot.

use alloc::vec::Vec;

use saiga_tcp::Instant;

/// Microseconds of a tick, as a power of two.
const TICK_SHIFT: u32 = 6;
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 8;
/// The last tick that the levels cover.
const END: u64 = (1 << (DIGIT_BITS as usize * LEVELS)) - 1;
const NOTHING: u32 = u32::MAX;

/// Timers with the numbers of their owners, one for each number.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// All timers before this tick have expired.
    now: u64,
    /// A bit for each slot that has timers.
    occupied: [u64; LEVELS],
    /// First timer of each slot.
    heads: [[u32; SLOTS]; LEVELS],
    links: Vec<Link>,
}

/// A timer in the doubly linked list of its slot. Each connection has one, so it is small.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// The tick and, in the lowest byte, the level; all ones while the timer is not set.
    key: u64,
    next: u32,
    previous: u32,
}

impl Link {
    const UNSET: Self = Self {
        key: u64::MAX,
        next: NOTHING,
        previous: NOTHING,
    };

    const fn is_set(&self) -> bool {
        self.key != u64::MAX
    }

    const fn tick(&self) -> u64 {
        self.key >> 8
    }

    const fn place(&self) -> Place {
        let level = (self.key & 0xff) as u32;
        Place {
            level,
            slot: digit(self.tick(), level),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    level: u32,
    slot: u32,
}

impl Wheel {
    /// A wheel without timers.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            now: now.0 >> TICK_SHIFT,
            occupied: [0; LEVELS],
            heads: [[NOTHING; SLOTS]; LEVELS],
            links: Vec::new(),
        }
    }

    /// Sets the timer of `owner`, unless it is set to an earlier tick. An early timer is cheaper
    /// than one that moves with each segment: its owner looks at the time and sets it again.
    pub(crate) fn set_at_latest(&mut self, owner: u32, at: Instant) {
        let tick = ceiling(at).min(END).max(self.now);
        self.make_room(owner);
        let link = self.links[owner as usize];
        if link.is_set() {
            if link.tick() <= tick {
                return;
            }
            self.cancel(owner);
        }
        self.insert(owner, tick);
    }

    /// Ends the timer of `owner`, if it is set.
    pub(crate) fn cancel(&mut self, owner: u32) {
        let link = self.links.get(owner as usize).copied();
        let Some(link) = link.filter(Link::is_set) else {
            return;
        };
        let Place { level, slot } = link.place();
        if link.previous == NOTHING {
            self.heads[level as usize][slot as usize] = link.next;
        } else {
            self.links[link.previous as usize].next = link.next;
        }
        if link.next != NOTHING {
            self.links[link.next as usize].previous = link.previous;
        }
        if self.heads[level as usize][slot as usize] == NOTHING {
            self.occupied[level as usize] &= !(1 << slot);
        }
        self.links[owner as usize] = Link::UNSET;
    }

    /// Takes the owner of one timer that is due at `now`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<u32> {
        let until = now.0 >> TICK_SHIFT;
        while let Some((place, tick)) = self.first() {
            if tick > until {
                break;
            }
            self.now = tick;
            let Place { level, slot } = place;
            let head = self.heads[level as usize][slot as usize];
            if level == 0 {
                self.cancel(head);
                return Some(head);
            }
            self.divide(level, slot);
        }
        self.now = self.now.max(until);
        None
    }

    /// When [`Self::expire`] has something to do: not after the first timer.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.first().map(|(_, tick)| Instant(tick << TICK_SHIFT))
    }

    /// The first slot that has timers, and its first tick.
    fn first(&self) -> Option<(Place, u64)> {
        let (level, bits) = (0..).zip(self.occupied).find(|(_, bits)| *bits != 0)?;
        let slot = bits.trailing_zeros();
        let digits = level * DIGIT_BITS;
        let above = self.now >> (digits + DIGIT_BITS) << (digits + DIGIT_BITS);
        let tick = above | u64::from(slot) << digits;
        // The slot of the present tick begins in the past.
        Some((Place { level, slot }, tick.max(self.now)))
    }

    /// Moves the timers of a slot to lower levels. `self.now` is the first tick of the slot.
    fn divide(&mut self, level: u32, slot: u32) {
        let mut owner = self.heads[level as usize][slot as usize];
        self.heads[level as usize][slot as usize] = NOTHING;
        self.occupied[level as usize] &= !(1 << slot);
        while owner != NOTHING {
            let link = self.links[owner as usize];
            self.insert(owner, link.tick());
            owner = link.next;
        }
    }

    /// Links a timer into its slot.
    fn insert(&mut self, owner: u32, tick: u64) {
        let Place { level, slot } = place(self.now, tick);
        let next = self.heads[level as usize][slot as usize];
        if next != NOTHING {
            self.links[next as usize].previous = owner;
        }
        self.heads[level as usize][slot as usize] = owner;
        self.occupied[level as usize] |= 1 << slot;
        self.links[owner as usize] = Link {
            key: tick << 8 | u64::from(level),
            next,
            previous: NOTHING,
        };
    }

    fn make_room(&mut self, owner: u32) {
        let needed = owner as usize + 1;
        if self.links.len() < needed {
            self.links.resize(needed, Link::UNSET);
        }
    }
}

/// The first tick that is not before `at`: no timer expires early by rounding.
fn ceiling(at: Instant) -> u64 {
    at.0.div_ceil(1 << TICK_SHIFT)
}

/// Level and slot of a tick that is not before `now`.
const fn place(now: u64, tick: u64) -> Place {
    let differing = (now ^ tick) | 1;
    let level = differing.ilog2() / DIGIT_BITS;
    Place {
        level,
        slot: digit(tick, level),
    }
}

/// The digit of a tick that is its slot in a level.
#[expect(clippy::cast_possible_truncation, reason = "a slot is below 64")]
const fn digit(tick: u64, level: u32) -> u32 {
    ((tick >> (level * DIGIT_BITS)) % SLOTS as u64) as u32
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::collections::BTreeMap;

    /// Every owner that is due at `now`, in the order of expiry.
    fn expired(wheel: &mut Wheel, now: u64) -> Vec<u32> {
        core::iter::from_fn(|| wheel.expire(Instant(now))).collect()
    }

    #[test]
    fn timers_expire_at_their_tick_and_not_before() {
        for (name, at, not_yet, due) in [
            ("now", 1_000_000, 999_935, 1_000_000),
            ("the next tick", 1_000_001, 1_000_063, 1_000_064),
            ("40 ms", 1_040_000, 1_039_999, 1_040_000),
            ("2 h", 7_201_000_000, 7_200_999_999, 7_201_000_000),
            (
                "a year",
                31_536_000_000_000,
                31_535_999_999_999,
                31_536_000_000_000,
            ),
        ] {
            let mut wheel = Wheel::new(Instant(999_936));
            wheel.set_at_latest(3, Instant(at));
            assert_eq!(expired(&mut wheel, not_yet), [], "{name}");
            assert_eq!(expired(&mut wheel, due), [3], "{name}");
            assert_eq!(wheel.next(), None, "{name}");
        }
    }

    #[test]
    fn a_timer_moves_to_an_earlier_tick_only() {
        let mut wheel = Wheel::new(Instant(0));
        wheel.set_at_latest(0, Instant(640));
        wheel.set_at_latest(0, Instant(64_000));
        assert_eq!(wheel.next(), Some(Instant(640)));
        wheel.set_at_latest(0, Instant(128));
        assert_eq!(wheel.next(), Some(Instant(128)));
        wheel.cancel(0);
        assert_eq!(wheel.next(), None);
    }

    /// The wheel against a map, with random timers, spans from microseconds to weeks, and jumps.
    #[test]
    fn the_wheel_agrees_with_a_map() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut wheel = Wheel::new(Instant(0));
        let mut model = BTreeMap::new();
        let mut now = 0_u64;
        for step in 0..200_000 {
            let owner = random.u32(0..300);
            match random.u8(0..10) {
                0..=5 => {
                    let bits = random.u32(1..42);
                    let span = random.u64(0..1 << bits);
                    let tick = ceiling(Instant(now + span)).max(wheel.now);
                    wheel.set_at_latest(owner, Instant(now + span));
                    let known = model.entry(owner).or_insert(tick);
                    *known = tick.min(*known);
                }
                6 => {
                    wheel.cancel(owner);
                    model.remove(&owner);
                }
                _ => {
                    // The wake-up that the wheel asks for, or any other.
                    let bits = random.u32(1..36);
                    now = match wheel.next() {
                        Some(next) if random.bool() => next.0.max(now),
                        _ => now + random.u64(0..1 << bits),
                    };
                    let mut due = expired(&mut wheel, now);
                    due.sort_unstable();
                    let until = now >> TICK_SHIFT;
                    let expected: Vec<u32> = model
                        .iter()
                        .filter(|(_, tick)| **tick <= until)
                        .map(|(owner, _)| *owner)
                        .collect();
                    assert_eq!(due, expected, "step {step}");
                    model.retain(|_, tick| *tick > until);
                }
            }
            let first = model.values().min().map(|tick| tick << TICK_SHIFT);
            let asked = wheel.next().map(|at| at.0);
            assert_eq!(asked.is_some(), first.is_some(), "step {step}");
            assert!(asked <= first, "step {step}: {asked:?} {first:?}");
        }
    }
}
