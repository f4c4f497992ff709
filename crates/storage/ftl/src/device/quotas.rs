//! Chooses the handle whose units are collected if handles have shares of the spare space.
//!
//! An account has the pages of the units of one handle; the shared units of initially isolated
//! handles for moved pages are an account of their own. The spare space is all dead pages.

use crate::config::Quota;

/// The pages of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AccountPages {
    /// Valid pages of its units, including unwritten pages of open units.
    pub(super) valid: u64,
    /// Dead pages of its units.
    pub(super) dead: u64,
    /// Dead pages in closed units.
    pub(super) collectable: u64,
}

/// All accounts with the rule for shares.
#[derive(Debug)]
pub(super) struct Quotas {
    rule: Quota,
    held: Vec<AccountPages>,
}

impl Quotas {
    /// Creates empty accounts.
    pub(super) fn new(rule: Quota, accounts: usize) -> Self {
        Self {
            rule,
            held: vec![AccountPages::default(); accounts],
        }
    }

    pub(super) fn held(&self) -> &[AccountPages] {
        &self.held
    }

    /// Adds an opened unit.
    pub(super) fn opened(&mut self, account: u8, pages: u32) {
        self.held[usize::from(account)].valid += u64::from(pages);
    }

    /// Updates an account whose unit with `dead` pages was closed.
    pub(super) fn closed(&mut self, account: u8, dead: u32) {
        self.held[usize::from(account)].collectable += u64::from(dead);
    }

    /// Updates an account of which a page has died.
    #[inline]
    pub(super) fn died(&mut self, account: u8, is_closed: bool) {
        let held = &mut self.held[usize::from(account)];
        held.valid -= 1;
        held.dead += 1;
        held.collectable += u64::from(is_closed);
    }

    /// Removes a closed unit that was erased after its valid pages were moved.
    pub(super) fn erased(&mut self, account: u8, valid: u32, dead: u32) {
        let held = &mut self.held[usize::from(account)];
        held.valid -= u64::from(valid);
        held.dead -= u64::from(dead);
        held.collectable -= u64::from(dead);
    }

    /// Returns the account with the next victim.
    pub(super) fn choose(&self) -> usize {
        choose(self.rule, &self.held)
    }
}

/// Returns, of the accounts with dead pages in closed units, the one that exceeds its share of dead
/// pages most; of several, the first.
pub(super) fn choose(rule: Quota, held: &[AccountPages]) -> usize {
    let valid: u64 = held.iter().map(|held| held.valid).sum();
    let dead: u64 = held.iter().map(|held| held.dead).sum();
    let excess = |held: &AccountPages| match rule {
        // Equal shares do not change the order.
        Quota::None | Quota::Even => i128::from(held.dead),
        // Multiplied by the number of valid pages, to be exact.
        Quota::Data => {
            i128::from(held.dead) * i128::from(valid) - i128::from(dead) * i128::from(held.valid)
        }
    };
    let accounts = held.iter().enumerate();
    let candidates = accounts.filter(|(_, held)| held.collectable > 0);
    let most = candidates.min_by_key(|(_, held)| -excess(held));
    most.map_or(0, |(account, _)| account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_that_exceeds_its_share_most_is_chosen() {
        let held = |valid, dead, collectable| AccountPages {
            valid,
            dead,
            collectable,
        };
        for (what, rule, accounts, expected) in [
            (
                "even: the most dead pages",
                Quota::Even,
                [held(100, 30, 30), held(900, 40, 40)],
                1,
            ),
            // 7 % of the whole for each: the first may have 7, the second 63.
            (
                "data: the densest is full",
                Quota::Data,
                [held(100, 30, 30), held(900, 40, 40)],
                0,
            ),
            (
                "nothing to gain from the first",
                Quota::Even,
                [held(9, 50, 0), held(9, 1, 1)],
                1,
            ),
            (
                "of equals the first",
                Quota::Even,
                [held(9, 5, 5), held(99, 5, 5)],
                0,
            ),
            (
                "one holds nothing",
                Quota::Data,
                [held(0, 0, 0), held(99, 5, 5)],
                1,
            ),
        ] {
            assert_eq!(choose(rule, &accounts), expected, "{what}");
        }
    }
}
