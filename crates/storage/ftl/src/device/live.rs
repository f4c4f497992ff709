//! One bit per physical page: whether it has the current data of its logical page.
//!
//! All bits of a unit are set when it is opened, so that writes of pages need not change them. Only
//! the live pages of closed units are read.

/// The bits of live pages of all units.
#[derive(Debug)]
pub(super) struct Live {
    words: Vec<u64>,
    /// log2 of the used bits of each word.
    word_shift: u32,
    words_per_unit: u32,
}

impl Live {
    /// Creates bits without live pages.
    pub(super) fn new(units: u32, unit_shift: u32) -> Self {
        let word_shift = unit_shift.min(6);
        let words_per_unit = 1 << (unit_shift - word_shift);
        Self {
            words: vec![0; units as usize * words_per_unit as usize],
            word_shift,
            words_per_unit,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    pub(super) fn words_per_unit(&self) -> u32 {
        self.words_per_unit
    }

    /// Returns the number of pages in a word.
    pub(super) fn word_pages(&self) -> u32 {
        1 << self.word_shift
    }

    /// Marks all pages of a unit as live, also unwritten ones.
    pub(super) fn fill(&mut self, unit: u32) {
        let ones = u64::MAX >> (64 - self.word_pages());
        let first = self.first_word(unit);
        self.words[first..first + self.words_per_unit as usize].fill(ones);
    }

    /// Marks a page as dead.
    #[inline]
    pub(super) fn clear(&mut self, place: u32) {
        let bit = place & (self.word_pages() - 1);
        self.words[(place >> self.word_shift) as usize] &= !(1 << bit);
    }

    #[inline]
    pub(super) fn word(&self, unit: u32, word: u32) -> u64 {
        self.words[self.first_word(unit) + word as usize]
    }

    /// Returns some bits around a place, to load them into the caches.
    #[inline]
    pub(super) fn peek(&self, place: u32) -> u32 {
        let word = self.words.get((place >> self.word_shift) as usize);
        #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
        word.map_or(0, |word| *word as u32)
    }

    /// Marks all pages of a unit as dead.
    pub(super) fn clear_unit(&mut self, unit: u32) {
        let first = self.first_word(unit);
        self.words[first..first + self.words_per_unit as usize].fill(0);
    }

    pub(super) fn is_live(&self, place: u32) -> bool {
        let bit = place & (self.word_pages() - 1);
        self.words[(place >> self.word_shift) as usize] >> bit & 1 == 1
    }

    fn first_word(&self, unit: u32) -> usize {
        unit as usize * self.words_per_unit as usize
    }
}
