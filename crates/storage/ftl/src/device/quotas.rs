//! Whose units are collected when handles have shares of the spare space.
//!
//! An account is what the units of one handle hold; the units that initially isolated handles
//! share for moved pages are an account of their own. The spare space is the pages that are dead.

use crate::config::Quota;

/// What one account holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Pages of its units that are valid, or that open units have still to be written.
    pub(super) valid: u64,
    /// The other pages of its units.
    pub(super) dead: u64,
    /// Those of them that are in closed units.
    pub(super) collectable: u64,
}

/// All accounts, under a rule.
#[derive(Debug)]
pub(super) struct Quotas {
    rule: Quota,
    held: Vec<Held>,
}

impl Quotas {
    /// Nothing is held.
    pub(super) fn new(rule: Quota, accounts: usize) -> Self {
        Self {
            rule,
            held: vec![Held::default(); accounts],
        }
    }

    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }

    /// An account opens a unit.
    pub(super) fn opened(&mut self, account: u8, pages: u32) {
        self.held[usize::from(account)].valid += u64::from(pages);
    }

    /// A unit with so many dead pages is closed.
    pub(super) fn closed(&mut self, account: u8, dead: u32) {
        self.held[usize::from(account)].collectable += u64::from(dead);
    }

    /// A page of an account dies.
    #[inline]
    pub(super) fn died(&mut self, account: u8, is_closed: bool) {
        let held = &mut self.held[usize::from(account)];
        held.valid -= 1;
        held.dead += 1;
        held.collectable += u64::from(is_closed);
    }

    /// A closed unit is erased; its valid pages were moved.
    pub(super) fn erased(&mut self, account: u8, valid: u32, dead: u32) {
        let held = &mut self.held[usize::from(account)];
        held.valid -= u64::from(valid);
        held.dead -= u64::from(dead);
        held.collectable -= u64::from(dead);
    }

    /// The account that gives the victim.
    pub(super) fn choose(&self) -> usize {
        choose(self.rule, &self.held)
    }
}

/// Of the accounts with something to gain, the one whose dead pages exceed its share of all dead
/// pages most; of several, the first.
pub(super) fn choose(rule: Quota, held: &[Held]) -> usize {
    let valid: u64 = held.iter().map(|held| held.valid).sum();
    let dead: u64 = held.iter().map(|held| held.dead).sum();
    let excess = |held: &Held| match rule {
        // An equal share of all is the same for each.
        Quota::None | Quota::Even => i128::from(held.dead),
        // Multiplied by all valid pages, to be exact.
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
    fn who_holds_more_than_its_share_gives_the_victim() {
        let held = |valid, dead, collectable| Held {
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
