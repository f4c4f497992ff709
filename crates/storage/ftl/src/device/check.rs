//! Checks the invariants of a device from scratch, in time proportional to its size.

use super::closed::Closed;
use super::quotas::AccountPages;
use super::{Device, NOWHERE, State};

/// A broken invariant: always an error of the simulator, never of its input.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Broken {
    #[error("logical page {page} is mapped to place {place}, which does not hold it")]
    Lost { page: u32, place: u32 },
    #[error("unit {unit} counts {counted} valid pages and has {found}")]
    Valid { unit: u32, counted: u32, found: u32 },
    /// A unit is in several lists, in none, or in the wrong one.
    #[error("unit {unit} is in {lists} of the lists of closed, open and erased units")]
    Listed { unit: u32, lists: u32 },
    /// An account differs from the sum over its units.
    #[error("account {account} of the quotas differs from the sum over its units")]
    Quota { account: usize },
    /// Programmed pages differ from written plus moved pages.
    #[error("{programmed} pages were programmed, but {host} were written and {moved} moved")]
    Programmed {
        programmed: u64,
        host: u64,
        moved: u64,
    },
    /// The sums over classes, frontiers and causes differ.
    #[error(
        "{moved} pages of class {class} were moved, but {by_frontier} by frontier and {charged} by charge"
    )]
    Accounts {
        class: usize,
        moved: u64,
        by_frontier: u64,
        charged: f64,
    },
}

impl Device {
    /// Checks every invariant.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn check(&self) -> Result<(), Broken> {
        self.check_pages()?;
        self.check_units()?;
        self.check_quotas()?;
        self.check_programmed()?;
        self.check_accounts()
    }

    /// Checks that each mapped page is at its place, and that every live bit has a page.
    fn check_pages(&self) -> Result<(), Broken> {
        let mut found = vec![0; self.units.len()];
        for (page, &place) in (0..).zip(&self.place) {
            if place == NOWHERE {
                continue;
            }
            let unit = place >> self.layout.shift;
            let is_held = self.page[place as usize] == page && self.live.is_live(place);
            let end = ((unit + 1) << self.layout.shift) - self.unwritten(unit);
            let is_written = self.units[unit as usize].state != State::Free && place < end;
            if !is_held || !is_written {
                return Err(Broken::Lost { page, place });
            }
            found[unit as usize] += 1;
        }
        for (unit, &found) in (0..).zip(&found) {
            let unwritten = self.unwritten(unit);
            let counted = self.units[unit as usize].valid - unwritten;
            let words = 0..self.live.words_per_unit();
            let live: u32 = words
                .map(|word| self.live.word(unit, word).count_ones())
                .sum();
            if counted != found || live != found + unwritten {
                return Err(Broken::Valid {
                    unit,
                    counted,
                    found,
                });
            }
        }
        Ok(())
    }

    /// Checks that each unit is only in the list of its state.
    fn check_units(&self) -> Result<(), Broken> {
        let mut lists = vec![0; self.units.len()];
        let open = self.frontiers.iter().filter(|frontier| frontier.has_room());
        let open: Vec<u32> = open.map(|frontier| frontier.unit).collect();
        let closed = self.closed.iter().flat_map(Closed::members).collect();
        let free = self.free.iter().copied().collect();
        for (state, members) in [
            (State::Closed, closed),
            (State::Open, open),
            (State::Free, free),
        ] {
            for unit in members {
                let is_right = self.units[unit as usize].state == state;
                lists[unit as usize] += if is_right { 1 } else { 2 };
            }
        }
        match (0..).zip(lists).find(|(_, lists)| *lists != 1) {
            Some((unit, lists)) => Err(Broken::Listed { unit, lists }),
            None => Ok(()),
        }
    }

    /// Checks that each account is the sum over its units, and that its list has its own units.
    fn check_quotas(&self) -> Result<(), Broken> {
        let mut found = vec![AccountPages::default(); self.layout.accounts];
        for unit in self.units.iter().filter(|unit| unit.state != State::Free) {
            let dead = u64::from(self.config.unit_pages - unit.valid);
            let held = &mut found[usize::from(unit.account)];
            held.valid += u64::from(unit.valid);
            held.dead += dead;
            held.collectable += if unit.state == State::Closed { dead } else { 0 };
        }
        for (account, found) in found.iter().enumerate() {
            let counted = self
                .quotas
                .as_ref()
                .is_none_or(|all| all.held()[account] == *found);
            let members = self.closed[account].members();
            let is_own = |unit: &u32| usize::from(self.units[*unit as usize].account) == account;
            if !counted || !members.iter().all(is_own) {
                return Err(Broken::Quota { account });
            }
        }
        Ok(())
    }

    /// Checks that programmed = written by the host + moved.
    fn check_programmed(&self) -> Result<(), Broken> {
        let pages = u64::from(self.config.unit_pages);
        let written: u64 = (0..)
            .zip(&self.units)
            .filter(|(_, unit)| unit.state != State::Free)
            .map(|(number, _)| pages - u64::from(self.unwritten(number)))
            .sum();
        let programmed = self.counters.erased * pages + written;
        let (host, moved) = (self.counters.host_pages(), self.counters.moved_pages());
        if programmed != host + moved || host != self.clock {
            return Err(Broken::Programmed {
                programmed,
                host,
                moved,
            });
        }
        Ok(())
    }

    /// Checks that the divisions of moved pages have the same sum.
    fn check_accounts(&self) -> Result<(), Broken> {
        let counters = &self.counters;
        for (class, &moved) in counters.moved.iter().enumerate() {
            let from = counters.moved_from.iter();
            let by_frontier = from.map(|from| from.moved[class]).sum();
            let charged = counters.charged.iter().map(|row| row[class]).sum::<f64>()
                + counters.moved_in_vain[class] as f64;
            // Charges are sums of fractions, with rounding errors.
            let tolerance = 1e-6 * (moved as f64 + 1.0);
            if by_frontier != moved || (charged - moved as f64).abs() > tolerance {
                return Err(Broken::Accounts {
                    class,
                    moved,
                    by_frontier,
                    charged,
                });
            }
        }
        Ok(())
    }
}
