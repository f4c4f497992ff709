//! Synthetic workloads: random writes to parts of the logical space, and rings.

use crate::device::Device;
use crate::device::fetch::AHEAD;

/// An endless source of writes to a device.
pub trait Workload {
    /// Returns the host pages after which it repeats; measurements use whole repetitions.
    fn period(&self) -> u64 {
        1
    }

    /// Writes the data that exist before the first measured write.
    fn fill(&mut self, device: &mut Device);

    /// Writes the next `pages` pages.
    fn advance(&mut self, device: &mut Device, pages: u64);
}

/// A range of logical pages of one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Number of pages, which follow those of the previous part.
    pub pages: u32,
    /// Its share of all writes, from 0 to 1.
    pub writes: f64,
    pub class: u8,
}

/// Random writes: each part has its own probability, and all pages of a part have the same.
#[derive(Debug)]
pub struct Random {
    stretches: Vec<Stretch>,
    rng: fastrand::Rng,
}

#[derive(Debug)]
struct Stretch {
    first: u32,
    pages: u32,
    class: u8,
    /// Draws up to this value, and above that of the previous stretch, select this one.
    below: u32,
}

impl Random {
    /// Creates random writes to `parts`, whose shares are scaled to a sum of one.
    #[must_use]
    pub fn new(parts: &[Part], seed: u64) -> Self {
        let total: f64 = parts.iter().map(|part| part.writes).sum();
        let mut stretches = Vec::new();
        let (mut first, mut sum) = (0, 0.0);
        for part in parts.iter().filter(|part| part.pages > 0) {
            sum += part.writes / total;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of 2^32, and the cast saturates"
            )]
            let below = (sum * 4_294_967_296.0).round() as u32;
            stretches.push(Stretch {
                first,
                pages: part.pages,
                class: part.class,
                below,
            });
            first += part.pages;
        }
        if let Some(last) = stretches.last_mut() {
            last.below = u32::MAX;
        }
        let rng = fastrand::Rng::with_seed(seed);
        Self { stretches, rng }
    }

    /// Creates uniform random writes in one class.
    #[must_use]
    pub fn uniform(pages: u32, seed: u64) -> Self {
        let all = Part {
            pages,
            writes: 1.0,
            class: 0,
        };
        Self::new(&[all], seed)
    }

    /// Draws the next page and its class.
    fn draw(&mut self) -> (u32, u8) {
        let Self { stretches, rng } = self;
        let found = match &stretches[..] {
            // No draw needed.
            [all] => Some(all),
            _ => {
                let draw = rng.u32(..);
                stretches.iter().find(|stretch| draw <= stretch.below)
            }
        };
        // Always found: the last stretch ends at the greatest draw.
        found.map_or((0, 0), |it| (it.first + rng.u32(..it.pages), it.class))
    }
}

impl Workload for Random {
    fn fill(&mut self, device: &mut Device) {
        for stretch in &self.stretches {
            for page in stretch.first..stretch.first + stretch.pages {
                device.write(page, stretch.class);
            }
        }
    }

    fn advance(&mut self, device: &mut Device, pages: u64) {
        let mut left = if self.stretches.is_empty() { 0 } else { pages };
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(AHEAD).min(AHEAD);
            let mut pages = [0; AHEAD];
            let mut classes = [0; AHEAD];
            for (page, class) in pages.iter_mut().zip(&mut classes).take(count) {
                (*page, *class) = self.draw();
            }
            device.expect(&pages[..count]);
            for (page, class) in pages.iter().zip(&classes).take(count) {
                device.write(*page, *class);
            }
            left -= count as u64;
        }
    }
}

/// Rings: writes each part from its first page to its last and again, one page of each part in
/// turn.
#[derive(Debug)]
pub struct Rings {
    rings: Vec<Ring>,
    turn: usize,
}

#[derive(Debug)]
struct Ring {
    first: u32,
    pages: u32,
    next: u32,
    class: u8,
}

impl Rings {
    /// Creates rings of these lengths in pages, with classes 0, 1, and so on; empty ones are left
    /// out.
    #[must_use]
    pub fn new(lengths: &[u32]) -> Self {
        let mut first = 0;
        let mut rings = Vec::new();
        for (class, &pages) in (0..=u8::MAX).zip(lengths).filter(|(_, pages)| **pages > 0) {
            rings.push(Ring {
                first,
                pages,
                next: 0,
                class,
            });
            first += pages;
        }
        Self { rings, turn: 0 }
    }
}

impl Workload for Rings {
    fn fill(&mut self, device: &mut Device) {
        let pages = self.rings.iter().map(|ring| u64::from(ring.pages)).sum();
        self.advance(device, pages);
    }

    fn advance(&mut self, device: &mut Device, pages: u64) {
        for _ in 0..pages {
            let Some(ring) = self.rings.get_mut(self.turn) else {
                return;
            };
            device.write(ring.first + ring.next, ring.class);
            ring.next = if ring.next + 1 == ring.pages {
                0
            } else {
                ring.next + 1
            };
            self.turn = if self.turn + 1 == self.rings.len() {
                0
            } else {
                self.turn + 1
            };
        }
    }
}
