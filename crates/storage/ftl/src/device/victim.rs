//! The pages of one victim by class, which determine the causes of its moved pages.

use crate::counters::Counters;

/// Dead and live pages of the current victim.
#[derive(Debug)]
pub(super) struct VictimPages {
    /// Dead and live pages by class.
    pages: Vec<[u32; 2]>,
}

impl VictimPages {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            pages: vec![[0; 2]; classes],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, class: u8, is_live: bool) {
        self.pages[usize::from(class)][usize::from(is_live)] += 1;
    }

    /// Adds the victim to the counters and resets this value. `dead` is the sum of its dead pages.
    pub(super) fn count(&mut self, owner: usize, dead: u32, counters: &mut Counters) {
        for (class, [_, live]) in self.pages.iter().enumerate() {
            let live = u64::from(*live);
            counters.moved[class] += live;
            counters.moved_from[owner].moved[class] += live;
            if dead == 0 {
                counters.moved_in_vain[class] += live;
            }
        }
        for (cause, [died, _]) in self.pages.iter().enumerate() {
            if *died == 0 {
                continue;
            }
            let share = f64::from(*died) / f64::from(dead);
            for (sum, [_, live]) in counters.charged[cause].iter_mut().zip(&self.pages) {
                *sum += share * f64::from(*live);
            }
        }
        self.pages.fill([0; 2]);
    }
}
