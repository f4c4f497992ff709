//! The pages of one victim by class, and who is charged for moving them.

use crate::counters::Counters;

/// Live and dead pages of the victim at hand.
#[derive(Debug)]
pub(super) struct Tally {
    /// By class: pages that are dead, pages that are live.
    pages: Vec<[u32; 2]>,
}

impl Tally {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            pages: vec![[0; 2]; classes],
        }
    }

    /// Counts one page.
    #[inline]
    pub(super) fn add(&mut self, class: u8, is_live: bool) {
        self.pages[usize::from(class)][usize::from(is_live)] += 1;
    }

    /// Enters the victim into the counters and forgets it. `dead` is the sum of its dead pages.
    pub(super) fn settle(&mut self, owner: usize, dead: u32, counters: &mut Counters) {
        for (class, [_, live]) in self.pages.iter().enumerate() {
            let live = u64::from(*live);
            counters.moved[class] += live;
            counters.moved_from[owner].moved[class] += live;
            if dead == 0 {
                counters.moved_in_vain[class] += live;
            }
        }
        for (killer, [died, _]) in self.pages.iter().enumerate() {
            if *died == 0 {
                continue;
            }
            let share = f64::from(*died) / f64::from(dead);
            for (sum, [_, live]) in counters.charged[killer].iter_mut().zip(&self.pages) {
                *sum += share * f64::from(*live);
            }
        }
        self.pages.fill([0; 2]);
    }
}
