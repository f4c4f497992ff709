//! The settings of a service as systemd reads them: those of the unit's file, then those of its
//! drop-ins in the order of their names.
//!
//! Spec: `man 5 systemd.unit`, `man 5 systemd.syntax`. Why not `systemctl show`: ADR 9. Reads the
//! section `[Service]` only. Deliberately absent: escapes such as `\x20`.

mod files;

use crate::name::UnitName;
use crate::specifier::expand;

pub use files::UnitError;
pub(crate) use files::{ADMIN_FOLDER, exists, real_name};

/// The settings of the section `[Service]`, in the order in which systemd reads them.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    settings: Vec<(String, String)>,
}

impl Unit {
    /// Adds the settings in the text of a unit's file or of a drop-in.
    pub(crate) fn parse(&mut self, text: &str) {
        let mut in_service = false;
        let mut line = String::new();
        let is_comment = |part: &&str| part.starts_with(['#', ';']);
        for part in text
            .lines()
            .map(str::trim_start)
            .filter(|part| !is_comment(part))
        {
            if let Some(begun) = part.strip_suffix('\\') {
                line.extend([begun, " "]);
                continue;
            }
            line.push_str(part);
            if line.starts_with('[') {
                in_service = line.trim_end() == "[Service]";
            } else if let (true, Some((key, value))) = (in_service, line.split_once('=')) {
                let setting = (key.trim().to_owned(), value.trim().to_owned());
                self.settings.push(setting);
            }
            line.clear();
        }
    }

    /// The last value of a setting; `None` when it is empty, which resets the setting.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let last = self.settings.iter().rev().find(|(name, _)| name == key)?;
        Some(last.1.as_str()).filter(|value| !value.is_empty())
    }

    /// All values of a list; an empty value removes those before it.
    pub(crate) fn values(&self, key: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (name, value) in &self.settings {
            match (name == key, value.is_empty()) {
                (true, true) => values.clear(),
                (true, false) => values.push(value.as_str()),
                (false, _) => {}
            }
        }
        values
    }

    /// The words in all values of a list.
    pub(crate) fn words(&self, key: &str) -> Vec<String> {
        self.values(key).into_iter().flat_map(split).collect()
    }

    /// Whether a boolean setting is on.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        let value = self.value(key).unwrap_or("no").to_ascii_lowercase();
        ["1", "yes", "y", "true", "t", "on"].contains(&value.as_str())
    }

    /// The last value that `Environment=` gives a variable of the unit `name`.
    pub(crate) fn environment(&self, variable: &str, name: &UnitName) -> Option<String> {
        let assignments = self.words("Environment");
        let value = assignments
            .iter()
            .rev()
            .find_map(|word| word.split_once('=').filter(|(name, _)| *name == variable))?;
        Some(expand(value.1, name))
    }
}

/// Splits a value into words: at blanks, except between quotes.
pub(crate) fn split(value: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in value.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_values_override_and_empty_values_reset() {
        let mut unit = Unit::default();
        let name = "db@1".parse().unwrap();
        unit.parse("[Unit]\nUser=no\n[Service]\nUser=a\n# User=c\nEnvironment=A=1 \"B=2 %i\"\n");
        unit.parse("[Service]\nUser=b\nEnvironment=A=4\nLimit=1\nLimit=\nLimit=2 \\\n 3\n");
        assert_eq!(unit.value("User"), Some("b"));
        assert_eq!(unit.environment("A", &name).as_deref(), Some("4"));
        assert_eq!(unit.environment("B", &name).as_deref(), Some("2 1"));
        assert_eq!(unit.words("Limit"), ["2", "3"]);
        unit.parse("[Service]\nEnvironment=\nUser=");
        assert_eq!(
            (unit.environment("A", &name), unit.value("User")),
            (None, None)
        );
    }

    #[test]
    fn comments_within_a_continued_line_are_skipped() {
        let mut unit = Unit::default();
        unit.parse("[Service]\nFilter=a \\\n# b\n; c\\\n  d\nUser=e\n");
        assert_eq!(unit.words("Filter"), ["a", "d"]);
        assert_eq!(unit.value("User"), Some("e"));
    }
}
