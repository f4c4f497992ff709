//! The elements of a payload: little-endian integers, and length-encoded integers and strings.
//!
//! Parsing returns a value or [`None`], whatever bytes the server sends.

/// Parses a payload from its beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a>(pub(super) &'a [u8]);

impl<'a> Parts<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length-encoded integer.
    pub(super) fn number(&mut self) -> Option<u64> {
        let wide = |bytes: &[u8]| {
            let digits = bytes.iter().rev();
            digits.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        match self.u8()? {
            small @ 0..=0xfa => Some(u64::from(small)),
            0xfc => self.bytes(2).map(wide),
            0xfd => self.bytes(3).map(wide),
            0xfe => self.bytes(8).map(wide),
            0xfb | 0xff => None,
        }
    }

    /// A length-encoded string.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.bytes(length)
    }

    /// A length-encoded string, or `Some(None)` for NULL.
    pub(super) fn text_or_null(&mut self) -> Option<Option<&'a [u8]>> {
        if self.0.first() == Some(&0xfb) {
            self.0 = &self.0[1..];
            return Some(None);
        }
        self.text().map(Some)
    }

    /// The bytes before the next NUL, or all remaining bytes.
    pub(super) fn until_nul(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = &self.0[end.map_or(self.0.len(), |end| end + 1)..];
        text
    }
}

/// Appends a length-encoded string.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..=0xfa => out.push(u8::try_from(length).unwrap_or(0)),
        length @ 0xfb..=0xffff => {
            out.push(0xfc);
            out.extend(&length.to_le_bytes()[..2]);
        }
        length @ 0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend(&length.to_le_bytes()[..3]);
        }
        length => {
            out.push(0xfe);
            out.extend(length.to_le_bytes());
        }
    }
    out.extend(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_to_nine_bytes() {
        for (length, head) in [
            (0, &[0][..]),
            (250, &[250]),
            (251, &[0xfc, 251, 0]),
            (65_535, &[0xfc, 255, 255]),
            (65_536, &[0xfd, 0, 0, 1]),
        ] {
            let mut out = Vec::new();
            put_text(&mut out, &vec![b'x'; length]);
            assert_eq!(&out[..head.len()], head);
            assert_eq!(Parts(&out).text().map(<[u8]>::len), Some(length));
        }
        let mut wide = Parts(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(wide.number(), Some(1 << 56 | 1));
    }

    #[test]
    fn what_is_cut_off_is_no_value() {
        assert_eq!(Parts(&[3, b'a', b'b']).text(), None);
        assert_eq!(Parts(&[0xfc, 1]).number(), None);
        assert_eq!(Parts(&[0xff]).number(), None);
        assert_eq!(Parts(&[]).text_or_null(), None);
        assert_eq!(Parts(&[0xfb]).text_or_null(), Some(None));
        let mut cut = Parts(b"ab\0cd");
        assert_eq!((cut.until_nul(), cut.until_nul()), (&b"ab"[..], &b"cd"[..]));
    }
}
