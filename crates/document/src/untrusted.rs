//! The one door for texts on their way to a reader.
//!
//! A result may come from another machine, and names in it may hold anything. Characters that
//! steer a terminal or turn the reading direction are made visible instead of obeyed.
//! Escaping for HTML is the HTML writer's own business.

use std::borrow::Cow;

/// The text with every control and direction character replaced by U+FFFD; line feeds stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(steers) {
        Cow::Owned(
            text.chars()
                .map(|one| if steers(one) { '\u{fffd}' } else { one })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

fn steers(letter: char) -> bool {
    (letter.is_control() && letter != '\n')
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_direction_marks_lose_their_power() {
        assert_eq!(
            printable("a\u{1b}[2Jb\u{202e}c\r\nµ"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\nµ"
        );
        assert!(matches!(printable("plain – text\n"), Cow::Borrowed(_)));
    }
}
