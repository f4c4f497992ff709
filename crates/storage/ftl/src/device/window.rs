//! Greedy victims among the units that were closed longest ago.
//!
//! All units stand in the order in which they were closed; the first of them, as many as the
//! window is wide, stand in a ranking as well. One that leaves lets the next one in, so that
//! each unit enters at most once.

use super::Unit;
use super::ages::Ages;
use super::ranking::Ranking;

/// Closed units, the oldest of them ranked.
#[derive(Debug)]
pub(super) struct Window {
    ages: Ages,
    ranking: Ranking,
    is_inside: Vec<bool>,
    /// Units inside, and how many there may be.
    count: u32,
    width: u32,
    /// The unit inside that was closed last.
    newest: Option<u32>,
}

impl Window {
    /// No unit of `unit_pages` pages.
    pub(super) fn new(width: u32, units: u32, unit_pages: u32) -> Self {
        Self {
            ages: Ages::new(units),
            ranking: Ranking::new(units, unit_pages),
            is_inside: vec![false; units as usize],
            count: 0,
            width,
            newest: None,
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.ages.heap_bytes() + self.ranking.heap_bytes() + self.is_inside.capacity()
    }

    /// A unit with `valid` pages is closed.
    pub(super) fn insert(&mut self, unit: u32, valid: u32) {
        self.ages.insert(unit);
        if self.count < self.width {
            self.enter(unit, valid);
        }
    }

    /// A unit has lost a page; with none left it leaves.
    #[inline]
    pub(super) fn lost_page(&mut self, unit: u32, units: &[Unit]) {
        let valid = units[unit as usize].valid;
        if self.is_inside[unit as usize] {
            self.ranking.lost_page(unit, valid);
            if valid == 0 {
                // Nothing is emptier, and no other empty unit is here.
                self.ranking.take_emptiest(0);
                self.leave(unit, units);
            }
        } else if valid == 0 {
            self.ages.remove(unit);
        }
    }

    /// Takes the emptiest unit inside, with several as [`Ranking::take_emptiest`] does.
    pub(super) fn take_victim(&mut self, units: &[Unit]) -> Option<u32> {
        let least = units[self.ranking.first()? as usize].valid;
        let unit = self.ranking.take_emptiest(least)?;
        self.leave(unit, units);
        Some(unit)
    }

    /// All units, the oldest first.
    pub(super) fn members(&self) -> Vec<u32> {
        self.ages.members()
    }

    /// Something of what is kept of a unit, to have it in the caches.
    #[inline]
    pub(super) fn peek(&self, unit: usize) -> u32 {
        self.ranking.peek(unit)
    }

    fn enter(&mut self, unit: u32, valid: u32) {
        self.ranking.insert(unit, valid);
        self.is_inside[unit as usize] = true;
        self.count += 1;
        self.newest = Some(unit);
    }

    /// A unit that is ranked no longer goes, and the oldest one outside comes in.
    fn leave(&mut self, unit: u32, units: &[Unit]) {
        if self.newest == Some(unit) {
            self.newest = self.ages.older_than(unit);
        }
        self.ages.remove(unit);
        self.is_inside[unit as usize] = false;
        self.count -= 1;
        let next = match self.newest {
            Some(newest) => self.ages.newer_than(newest),
            None => self.ages.oldest(),
        };
        if let Some(next) = next {
            self.enter(next, units[next as usize].valid);
        }
    }
}
