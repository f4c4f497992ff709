//! Reads little-endian fields of a page; `None` beyond the end of the page.

fn field<const N: usize>(page: &[u8], at: usize) -> Option<[u8; N]> {
    page.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(page: &[u8], at: usize) -> Option<u16> {
    field(page, at).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(page: &[u8], at: usize) -> Option<u32> {
    field(page, at).map(u32::from_le_bytes)
}

/// Reads a field of six bytes.
pub(crate) fn u48_at(page: &[u8], at: usize) -> Option<u64> {
    let [a, b, c, d, e, f] = field(page, at)?;
    Some(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
}

pub(crate) fn u64_at(page: &[u8], at: usize) -> Option<u64> {
    field(page, at).map(u64::from_le_bytes)
}

pub(crate) fn u128_at(page: &[u8], at: usize) -> Option<u128> {
    field(page, at).map(u128::from_le_bytes)
}

/// Reads a field of ASCII padded with blanks (NVMe Base 2.0, 1.5). Other bytes become `?`.
pub(crate) fn text_at(page: &[u8], at: usize, length: usize) -> Option<String> {
    let bytes = page.get(at..at.checked_add(length)?)?;
    let letter = |byte: &u8| match byte {
        0 => ' ',
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    };
    Some(
        bytes
            .iter()
            .map(letter)
            .collect::<String>()
            .trim()
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_and_end_with_the_page() {
        let page: Vec<u8> = (0..20).collect();
        assert_eq!(u16_at(&page, 1), Some(0x0201));
        assert_eq!(u32_at(&page, 1), Some(0x0403_0201));
        assert_eq!(u48_at(&page, 2), Some(0x0706_0504_0302));
        assert_eq!(u64_at(&page, 0), Some(0x0706_0504_0302_0100));
        assert_eq!(
            u128_at(&page, 4),
            Some(0x1312_1110_0f0e_0d0c_0b0a_0908_0706_0504)
        );
        assert_eq!(u128_at(&page, 5), None);
        assert_eq!(u16_at(&page, usize::MAX), None);
    }

    #[test]
    fn texts_lose_their_padding_and_control_characters() {
        assert_eq!(
            text_at(b"xHWE \x1b[0m\0\0", 1, 10),
            Some("HWE ?[0m".to_owned())
        );
        assert_eq!(text_at(b"short", 0, 6), None);
    }
}
