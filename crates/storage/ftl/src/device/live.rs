//! One bit per physical page: does it hold what its logical page was last written with?
//!
//! The bits of a unit are set when it is opened, before its pages are written: programming then
//! need not touch them. Only closed units are asked for their live pages.

/// Live pages of all units.
#[derive(Debug)]
pub(super) struct Live {
    words: Vec<u64>,
    /// log2 of the bits that are used of each word.
    word_shift: u32,
    words_per_unit: u32,
}

impl Live {
    /// No unit has live pages.
    pub(super) fn new(units: u32, unit_shift: u32) -> Self {
        let word_shift = unit_shift.min(6);
        let words_per_unit = 1 << (unit_shift - word_shift);
        Self {
            words: vec![0; units as usize * words_per_unit as usize],
            word_shift,
            words_per_unit,
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Words that a unit has.
    pub(super) fn words_per_unit(&self) -> u32 {
        self.words_per_unit
    }

    /// Pages that a word stands for.
    pub(super) fn word_pages(&self) -> u32 {
        1 << self.word_shift
    }

    /// All pages of a unit are, or will be, live.
    pub(super) fn fill(&mut self, unit: u32) {
        let ones = u64::MAX >> (64 - self.word_pages());
        let first = self.first_word(unit);
        self.words[first..first + self.words_per_unit as usize].fill(ones);
    }

    /// A page is live no longer.
    #[inline]
    pub(super) fn clear(&mut self, place: u32) {
        let bit = place & (self.word_pages() - 1);
        self.words[(place >> self.word_shift) as usize] &= !(1 << bit);
    }

    /// The bits of one word of a unit.
    #[inline]
    pub(super) fn word(&self, unit: u32, word: u32) -> u64 {
        self.words[self.first_word(unit) + word as usize]
    }

    /// Something of the bits around a place, to have them in the caches.
    #[inline]
    pub(super) fn peek(&self, place: u32) -> u32 {
        let word = self.words.get((place >> self.word_shift) as usize);
        #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
        word.map_or(0, |word| *word as u32)
    }

    /// No page of a unit is live.
    pub(super) fn clear_unit(&mut self, unit: u32) {
        let first = self.first_word(unit);
        self.words[first..first + self.words_per_unit as usize].fill(0);
    }

    /// Is this page live?
    pub(super) fn is_live(&self, place: u32) -> bool {
        let bit = place & (self.word_pages() - 1);
        self.words[(place >> self.word_shift) as usize] >> bit & 1 == 1
    }

    fn first_word(&self, unit: u32) -> usize {
        unit as usize * self.words_per_unit as usize
    }
}
