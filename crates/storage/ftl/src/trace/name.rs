//! Escapes file names for one line of text: `%` and control characters become `%XX`.

/// Escapes a name.
pub(super) fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_control() || letter == '%' {
            text.push_str(&format!("%{:02X}", u32::from(letter)));
        } else {
            text.push(letter);
        }
    }
    text
}

/// Restores a name; `None` if a `%` is not followed by two hexadecimal digits.
///
/// Bytes that are not UTF-8 become U+FFFD, because rules and reports need text.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = char::from(*rest.next()?).to_digit(16)?;
            u8::try_from(digit).ok()
        };
        bytes.push(digit()? << 4 | digit()?);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
