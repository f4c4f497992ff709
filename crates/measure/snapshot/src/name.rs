//! File names as text: valid UTF-8 stays readable, every other byte becomes `\xNN`.
//!
//! File names are bytes; manifests and messages are text. Control characters become `\xNN`, too,
//! so that a name can neither break a line nor control a terminal.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The text form of `bytes`; [`unescape`] is its inverse.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    push_bytes(&mut text, c.encode_utf8(&mut utf8).as_bytes());
                }
                c => text.push(c),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing into a String cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

/// The inverse of [`escape`]; `None` if `escape` never produces `text`.
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(rest.get(..at)?.as_bytes());
        rest = rest.get(at + 1..)?;
        if let Some(after) = rest.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = rest.strip_prefix('x')?.get(..2)?;
            if digits.starts_with('+') {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = rest.get(3..)?;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

/// The text form of a path, for messages and manifests.
pub(crate) fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_bytes())
}

/// The inverse of [`shown`]; `None` if `shown` never produces `text`.
pub(crate) fn path(text: &str) -> Option<PathBuf> {
    unescape(text).map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_have_a_readable_form() {
        for (bytes, text) in [
            (&b"ibdata1"[..], "ibdata1"),
            (b"a\nb", "a\\x0ab"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("größe".as_bytes(), "größe"),
            (b"back\\slash", "back\\\\slash"),
            (b"\x1b[2J", "\\x1b[2J"),
            (b"", ""),
        ] {
            assert_eq!(escape(bytes), text);
            assert_eq!(unescape(text).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn invalid_escapes_are_refused() {
        for text in ["\\", "\\x", "\\x1", "\\xg0", "\\x+1", "\\n", "a\\é"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn unescape_is_the_inverse_of_escape(bytes: Vec<u8>) {
            proptest::prop_assert_eq!(unescape(&escape(&bytes)), Some(bytes));
        }
    }
}
