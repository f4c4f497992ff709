//! Makes untrusted text safe to print. Every text of a document passes [`printable`].
//!
//! A result may come from another machine, and its names may contain any character. U+FFFD replaces
//! characters that control a terminal or change the text direction. The HTML writer does its own
//! escaping.

use std::borrow::Cow;

/// The text with every control and direction character replaced by U+FFFD; line feeds stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_control) {
        Cow::Owned(
            text.chars()
                .map(|one| if is_control(one) { '\u{fffd}' } else { one })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

fn is_control(letter: char) -> bool {
    (letter.is_control() && letter != '\n')
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_characters_are_replaced() {
        assert_eq!(
            printable("a\u{1b}[2Jb\u{202e}c\r\nµ"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\nµ"
        );
        assert!(matches!(printable("plain – text\n"), Cow::Borrowed(_)));
    }
}
