//! Sets of pages, stored as extents.

use std::collections::BTreeMap;

/// A set of pages: the first page of each extent, mapped to its exclusive end. Extents do not
/// overlap.
#[derive(Debug, Default)]
pub(super) struct Extents {
    ends: BTreeMap<u64, u64>,
}

impl Extents {
    pub(super) fn insert(&mut self, first: u64, end: u64) {
        self.remove(first, end);
        if first < end {
            self.ends.insert(first, end);
        }
    }

    pub(super) fn remove(&mut self, first: u64, end: u64) {
        let before = self.ends.range(..end).rev();
        let touched: Vec<(u64, u64)> = before
            .map(|(from, to)| (*from, *to))
            .take_while(|(_, to)| *to > first)
            .collect();
        for (from, to) in touched {
            self.ends.remove(&from);
            if from < first {
                self.ends.insert(from, first);
            }
            if to > end {
                self.ends.insert(end, to);
            }
        }
    }

    pub(super) fn contains(&self, page: u64) -> bool {
        let before = self.ends.range(..=page).next_back();
        before.is_some_and(|(_, end)| *end > page)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extents_are_equal_to_a_list_of_pages(
            steps in prop::collection::vec((any::<bool>(), 0..40_u64, 0..12_u64), 0..40),
        ) {
            let mut extents = Extents::default();
            let mut pages = [false; 64];
            for (is_there, first, length) in steps {
                let end = first + length;
                if is_there {
                    extents.insert(first, end);
                } else {
                    extents.remove(first, end);
                }
                (first..end).for_each(|page| pages[usize::try_from(page).unwrap()] = is_there);
            }
            for (page, expected) in (0..).zip(pages) {
                prop_assert_eq!(extents.contains(page), expected);
            }
        }
    }
}
