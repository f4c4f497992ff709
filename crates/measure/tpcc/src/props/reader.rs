//! Takes values out of a props file and keeps what is wrong with them.

use saiga_document::nearest;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::Password;
use super::secrets;
use super::text::{self, Entry};
use super::url::Url;

/// The entries of a file that nobody has asked for yet, and the problems so far.
#[derive(Debug)]
pub(super) struct Reader {
    entries: BTreeMap<String, Entry>,
    asked: BTreeSet<&'static str>,
    problems: Vec<(usize, String)>,
    /// What a key is called in the file.
    name_of: fn(&str) -> &str,
}

impl Reader {
    /// # Errors
    /// What is wrong with the text itself.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let bad = |bad: text::BadEscape| {
            let text::BadEscape { line, escape } = bad;
            format!("line {line}: {escape} is not a character; four hexadecimal digits follow \\u")
        };
        Ok(Self::of(text::parse(text).map_err(bad)?, |key| key))
    }

    /// Of entries that were read from a form in which keys have other names.
    pub(super) fn of(entries: BTreeMap<String, Entry>, name_of: fn(&str) -> &str) -> Self {
        Self {
            entries,
            asked: BTreeSet::new(),
            problems: Vec::new(),
            name_of,
        }
    }

    /// All keys and values of the file, sorted, without passwords.
    pub(super) fn entries(&self) -> Vec<(String, String)> {
        let pair = |(key, entry): (&String, &Entry)| match key.as_str() {
            "password" => (key.clone(), Password::MASK.to_owned()),
            "conn" => (key.clone(), secrets::masked(&entry.value)),
            _ => (key.clone(), entry.value.clone()),
        };
        let is_written = |(_, entry): &(&String, &Entry)| entry.line > 0;
        self.entries.iter().filter(is_written).map(pair).collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// A key that is known and has no meaning here.
    pub(super) fn skip(&mut self, key: &'static str) {
        self.asked.insert(key);
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.asked.insert(key);
        self.entries.get(key).map(|entry| entry.value.clone())
    }

    /// The value of a key that must be there.
    pub(super) fn needed(&mut self, key: &'static str) -> Option<String> {
        let value = self.text(key).filter(|value| !value.is_empty());
        if value.is_none() {
            self.problem(key, "is missing");
        }
        value
    }

    pub(super) fn count(&mut self, key: &'static str, allowed: RangeInclusive<u32>) -> Option<u32> {
        let text = self.text(key)?;
        let value = text.parse().ok().filter(|value| allowed.contains(value));
        if value.is_none() {
            let (least, most) = allowed.into_inner();
            let range = match most {
                u32::MAX => format!("from {least}"),
                most => format!("from {least} to {most}"),
            };
            self.problem(key, &format!("is {text:?}, not a whole number {range}"));
        }
        value
    }

    pub(super) fn needed_count(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<u32>,
    ) -> Option<u32> {
        self.needed(key)?;
        self.count(key, allowed)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let text = self.text(key)?;
        match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.problem(key, &format!("is {text:?}, neither true nor false"));
                None
            }
        }
    }

    pub(super) fn url(&mut self, text: &str) -> Option<Url> {
        match Url::parse(text) {
            Ok(url) => Some(url),
            Err(error) => {
                self.problem("conn", &error.to_string());
                None
            }
        }
    }

    /// Something is wrong with the value of a key.
    pub(super) fn problem(&mut self, key: &str, what: &str) {
        let line = self.entries.get(key).map_or(0, |entry| entry.line);
        let name = (self.name_of)(key);
        let text = if line == 0 {
            format!("{name} {what}")
        } else {
            format!("line {line}: {name} {what}")
        };
        self.problems.push((line, text));
    }

    /// All problems in the order of the lines; keys that nobody has asked for are among them.
    pub(super) fn finish(mut self) -> Vec<String> {
        let known: Vec<&str> = self.asked.iter().copied().collect();
        let stray = self
            .entries
            .iter()
            .filter(|(key, _)| !self.asked.contains(key.as_str()));
        let strays: Vec<(String, usize)> = stray
            .map(|(key, entry)| (key.clone(), entry.line))
            .collect();
        for (key, line) in strays {
            let meant = nearest(&key, &known);
            let hint = meant.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
            self.problems
                .push((line, format!("line {line}: no such key as {key}{hint}")));
        }
        self.problems.sort_by_key(|(line, _)| *line);
        self.problems.into_iter().map(|(_, text)| text).collect()
    }
}
