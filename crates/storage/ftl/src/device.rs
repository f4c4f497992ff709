//! A simulated SSD with a page-mapped flash translation layer, which counts moved pages.
//!
//! The host writes or discards one logical page at a time. Pages are written to the open unit of
//! their stream's handle. If a new unit is needed and only the reserve is left, a closed unit is
//! chosen, its valid pages are moved, and it is erased. docs/ftl.md describes the model.
//!
//! Deliberately absent: time, channels, wear, failures, buffers; caching of the mapping.

mod ages;
mod check;
mod closed;
pub(crate) mod fetch;
mod live;
mod memory;
#[cfg(test)]
mod model;
mod moving;
mod occupancy;
mod pool;
mod quotas;
mod ranking;
mod scores;
mod victim;

use std::collections::VecDeque;

pub use check::Broken;
pub use occupancy::Occupancy;

use crate::config::{Config, ConfigError, Quota};
use crate::counters::{Counters, VALID_STEPS};
use crate::layout::{Layout, Role};
use closed::Closed;
use live::Live;
use moving::MoveBatch;
use quotas::Quotas;
use victim::VictimPages;

/// The place of an unmapped logical page.
const NOWHERE: u32 = u32::MAX;

/// A simulated device.
#[derive(Debug)]
pub struct Device {
    config: Config,
    layout: Layout,
    /// The place of each logical page.
    place: Vec<u32>,
    /// The logical page that each physical one was last programmed with.
    page: Vec<u32>,
    /// The class that each physical page was last programmed with.
    class: Vec<u8>,
    live: Live,
    units: Vec<Unit>,
    /// Closed units by account; a single account without quotas.
    closed: Vec<Closed>,
    quotas: Option<Quotas>,
    /// Erased units, the first erased first.
    free: VecDeque<u32>,
    frontiers: Vec<Frontier>,
    /// Host writes so far.
    clock: u64,
    counters: Counters,
    victim_pages: VictimPages,
    moving: MoveBatch,
    rng: fastrand::Rng,
    /// All victims in order, for the comparison with the model.
    #[cfg(test)]
    victims: VecDeque<u32>,
}

/// A reclaim unit.
#[derive(Debug, Clone, Copy)]
struct Unit {
    /// Valid pages; unwritten pages of an open unit count as valid.
    valid: u32,
    /// The frontier that filled it.
    owner: u16,
    state: State,
    /// The account of its owner.
    account: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
}

/// The position of the next write to an open unit.
#[derive(Debug, Clone, Copy)]
struct Frontier {
    unit: u32,
    next: u32,
    /// The exclusive end of the unit; equal to `next` without an open unit.
    end: u32,
}

impl Device {
    /// Creates an empty, erased device.
    ///
    /// # Errors
    /// The configuration is not valid, or exceeds the memory limit; no memory was allocated then.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let layout = Layout::new(&config)?;
        memory::check(&config, &layout)?;
        let physical = (layout.units << layout.shift) as usize;
        let unit = Unit {
            valid: 0,
            owner: 0,
            state: State::Free,
            account: 0,
        };
        let frontier = Frontier {
            unit: 0,
            next: 0,
            end: 0,
        };
        let classes = config.classes.len();
        let closed = || Closed::new(config.policy, layout.units, config.unit_pages);
        let quotas = || Quotas::new(config.quota, layout.accounts);
        Ok(Self {
            place: vec![NOWHERE; config.logical_pages as usize],
            page: vec![0; physical],
            class: vec![0; physical],
            live: Live::new(layout.units, layout.shift),
            units: vec![unit; layout.units as usize],
            closed: std::iter::repeat_with(closed)
                .take(layout.accounts)
                .collect(),
            quotas: (config.quota != Quota::None).then(quotas),
            free: (0..layout.units).collect(),
            frontiers: vec![frontier; layout.roles.len()],
            clock: 0,
            counters: Counters::new(classes, &layout.roles),
            victim_pages: VictimPages::new(classes),
            moving: MoveBatch::new(classes),
            rng: fastrand::Rng::with_seed(config.seed),
            #[cfg(test)]
            victims: VecDeque::new(),
            config,
            layout,
        })
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the number of reclaim units, including open and reserved ones.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.layout.units
    }

    /// Returns the physical pages of the formulas (T): those of closed units at the choice of a
    /// victim.
    #[must_use]
    pub fn closed_pages(&self) -> u64 {
        u64::from(self.layout.closed_units) << self.layout.shift
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the memory of the device on the heap, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        (self.place.capacity() + self.page.capacity() + self.free.capacity()) * size_of::<u32>()
            + self.class.capacity()
            + self.units.capacity() * size_of::<Unit>()
            + self.live.heap_bytes()
            + self.closed.iter().map(Closed::heap_bytes).sum::<usize>()
    }

    /// Returns the class of a logical page; `None` if it has no data.
    #[must_use]
    pub fn class_of(&self, page: u32) -> Option<usize> {
        let place = self.place[page as usize];
        (place != NOWHERE).then(|| self.class[place as usize].into())
    }

    /// Writes a page of a class from the host.
    ///
    /// # Panics
    /// When the device has no such page or no such class.
    #[inline]
    pub fn write(&mut self, page: u32, class: u8) {
        let frontier = self.layout.route[usize::from(class)];
        if !self.frontiers[frontier].has_room() {
            self.make_room(frontier);
        }
        self.clock += 1;
        self.counters.host[usize::from(class)] += 1;
        let before = self.place[page as usize];
        self.program(frontier, page, class);
        if before != NOWHERE {
            self.invalidate(before);
        }
    }

    /// Discards a page from the host. A page without data is unchanged.
    ///
    /// # Panics
    /// When the device has no such page.
    #[inline]
    pub fn trim(&mut self, page: u32) {
        let before = std::mem::replace(&mut self.place[page as usize], NOWHERE);
        if before != NOWHERE {
            self.counters.trimmed[usize::from(self.class[before as usize])] += 1;
            self.invalidate(before);
        }
    }

    /// Writes one page at a frontier with space.
    #[inline]
    fn program(&mut self, frontier: usize, page: u32, class: u8) {
        let open = &mut self.frontiers[frontier];
        let place = open.next;
        open.next += 1;
        let is_full = !open.has_room();
        self.page[place as usize] = page;
        self.class[place as usize] = class;
        self.place[page as usize] = place;
        if is_full {
            self.close(frontier);
        }
    }

    /// Marks the page at a place as dead.
    #[inline]
    fn invalidate(&mut self, place: u32) {
        self.live.clear(place);
        let number = place >> self.layout.shift;
        let unit = &mut self.units[number as usize];
        unit.valid -= 1;
        let Unit {
            valid,
            state,
            account,
            owner: _,
        } = *unit;
        let is_closed = state == State::Closed;
        if let Some(quotas) = &mut self.quotas {
            quotas.died(account, is_closed);
        }
        if is_closed {
            self.closed[usize::from(account)].lost_page(number, &self.units, self.clock);
            if valid == 0 {
                self.erase(number);
            }
        }
    }

    /// Closes the full unit of a frontier.
    fn close(&mut self, frontier: usize) {
        let number = self.frontiers[frontier].unit;
        let unit = &mut self.units[number as usize];
        unit.state = State::Closed;
        let Unit {
            valid,
            account,
            owner: _,
            state: _,
        } = *unit;
        if let Some(quotas) = &mut self.quotas {
            quotas.closed(account, self.config.unit_pages - valid);
        }
        if valid == 0 {
            self.erase(number);
        } else {
            self.closed[usize::from(account)].insert(number, valid, self.clock);
        }
    }

    /// Erases a closed unit, which is in no list and whose valid pages were moved.
    fn erase(&mut self, number: u32) {
        let unit = &mut self.units[number as usize];
        if let Some(quotas) = &mut self.quotas {
            let dead = self.config.unit_pages - unit.valid;
            quotas.erased(unit.account, unit.valid, dead);
        }
        unit.valid = 0;
        unit.state = State::Free;
        self.free.push_back(number);
        self.counters.erased += 1;
    }

    /// Opens an erased unit at a frontier without space.
    fn open(&mut self, frontier: usize) {
        #[expect(
            clippy::expect_used,
            reason = "the layout leaves a reserve, and a collection takes at most one unit and returns one"
        )]
        let unit = self.free.pop_front().expect("an erased unit in reserve");
        let next = unit << self.layout.shift;
        let end = next + self.config.unit_pages;
        self.frontiers[frontier] = Frontier { unit, next, end };
        #[expect(clippy::cast_possible_truncation, reason = "at most 257 frontiers")]
        let owner = frontier as u16;
        self.units[unit as usize] = Unit {
            valid: self.config.unit_pages,
            owner,
            state: State::Open,
            account: self.layout.account_of[frontier],
        };
        if let Some(quotas) = &mut self.quotas {
            quotas.opened(self.layout.account_of[frontier], self.config.unit_pages);
        }
        self.live.fill(unit);
    }

    /// Collects units until a host frontier has space.
    #[cold]
    fn make_room(&mut self, frontier: usize) {
        // A collection may open a unit at this frontier if garbage collection shares it.
        while !self.frontiers[frontier].has_room() {
            if self.free.len() > self.config.reserve_units as usize {
                self.open(frontier);
            } else {
                self.collect();
            }
        }
    }

    /// Moves the valid pages of one victim and erases it.
    fn collect(&mut self) {
        let pages = self.config.unit_pages;
        let account = self.quotas.as_ref().map_or(0, Quotas::choose);
        let victim =
            self.closed[account].take_victim(&self.units, pages, self.clock, &mut self.rng);
        #[expect(
            clippy::expect_used,
            reason = "the layout has more units than frontiers and reserve"
        )]
        let victim = victim.expect("a closed unit");
        #[cfg(test)]
        self.victims.push_back(victim);
        self.account(victim);
        let to = self.layout.gc_of[usize::from(self.units[victim as usize].owner)];
        self.move_live(victim, to);
        self.live.clear_unit(victim);
        self.erase(victim);
    }

    /// Counts a victim before its pages are moved.
    fn account(&mut self, victim: u32) {
        let Unit { valid, owner, .. } = self.units[victim as usize];
        let step = u64::from(valid) * VALID_STEPS as u64 / u64::from(self.config.unit_pages);
        #[expect(clippy::cast_possible_truncation, reason = "at most VALID_STEPS")]
        let step = (step as usize).min(VALID_STEPS - 1);
        self.counters.victims[step] += 1;
        let from = &mut self.counters.moved_from[usize::from(owner)];
        from.victims += 1;
        let dead = self.config.unit_pages - valid;
        if self.config.classes.len() == 1 {
            // With one class, the cause is known without the pages.
            from.moved[0] += u64::from(valid);
            self.counters.moved[0] += u64::from(valid);
            if dead == 0 {
                self.counters.moved_in_vain[0] += u64::from(valid);
            } else {
                self.counters.charged[0][0] += f64::from(valid);
            }
            return;
        }
        let first = victim << self.layout.shift;
        for place in first..first + self.config.unit_pages {
            self.victim_pages
                .add(self.class[place as usize], self.live.is_live(place));
        }
        self.victim_pages
            .count(usize::from(owner), dead, &mut self.counters);
    }

    /// Returns the frontiers in the order of [`Counters::moved_from`].
    #[must_use]
    pub fn roles(&self) -> &[Role] {
        &self.layout.roles
    }
}

impl Frontier {
    #[inline]
    fn has_room(&self) -> bool {
        self.next != self.end
    }
}
