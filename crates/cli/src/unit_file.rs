//! Paths as words of a systemd unit.

use std::path::Path;

use anyhow::Context as _;

/// A path as a word of a command, where variables are replaced as well.
pub(crate) fn command_word(path: &Path) -> anyhow::Result<String> {
    Ok(word(path)?.replace('$', "$$"))
}

/// A path as a word of a unit file (systemd.syntax, systemd.unit: specifiers).
pub(crate) fn word(path: &Path) -> anyhow::Result<String> {
    let text = path
        .to_str()
        .filter(|text| !text.chars().any(char::is_control));
    let text = text.with_context(|| format!("{} cannot be written in a unit", path.display()))?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@,=".contains(letter);
    if text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    let mut word = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => word.extend(['\\', letter]),
            '%' => word.push_str("%%"),
            _ => word.push(letter),
        }
    }
    word.push('"');
    Ok(word)
}
