//! The results on stdout.

use std::io::Write as _;

use serde::Serialize;

/// Prints a text. Control characters other than newline and tab are replaced, so that names in the
/// text cannot control the terminal.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(printable(text).as_bytes())?)
}

pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_text(&(serde_json::to_string_pretty(value)? + "\n"))
}

fn printable(text: &str) -> String {
    let is_order = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.replace(is_order, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        for (text, expected) in [
            ("one\ttwo\n", "one\ttwo\n"),
            ("\u{1b}]0;title\u{7}\r", "?]0;title??"),
            ("\u{9b}31m red\u{7f}", "?31m red?"),
            ("größe µ", "größe µ"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
}
