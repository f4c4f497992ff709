//! Numbers from the input.

/// What is left of the input. After its end, all numbers are zero.
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        first
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A distance, to be added with wrapping: mostly none, often a small one, seldom any.
    pub(crate) fn near(&mut self) -> u32 {
        let byte = self.byte();
        let small = i32::from(byte & 63) - 32;
        match byte {
            0..=127 => 0,
            128..=191 => small.cast_unsigned(),
            192..=247 => (small * 500).cast_unsigned(),
            _ => u32::from(self.short()) << 16 | u32::from(self.short()),
        }
    }
}
