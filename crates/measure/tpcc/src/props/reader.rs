//! Reads values from the entries of a props file, and collects the problems.

use saiga_document::nearest;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::Password;
use super::secrets;
use super::text::{self, Entry};
use super::url::Url;

/// The entries of a file, the keys that were read, and the problems so far.
#[derive(Debug)]
pub(super) struct Reader {
    entries: BTreeMap<String, Entry>,
    read: BTreeSet<&'static str>,
    problems: Vec<(usize, String)>,
    /// Returns the name of a key in the file, for messages.
    name_of: fn(&str) -> &str,
}

impl Reader {
    /// Parses a text in the properties format. Fails if it has an invalid escape.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let bad = |bad: text::BadEscape| {
            let text::BadEscape { line, escape } = bad;
            format!("line {line}: {escape} is not a character; four hexadecimal digits follow \\u")
        };
        Ok(Self::of(text::parse(text).map_err(bad)?, |key| key))
    }

    /// A reader of entries from a format with other key names. `name_of` translates a key to its
    /// name in that format.
    pub(super) fn of(entries: BTreeMap<String, Entry>, name_of: fn(&str) -> &str) -> Self {
        Self {
            entries,
            read: BTreeSet::new(),
            problems: Vec::new(),
            name_of,
        }
    }

    /// All keys and values, sorted, with masked passwords.
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

    /// Marks a key as known without reading it.
    pub(super) fn skip(&mut self, key: &'static str) {
        self.read.insert(key);
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.read.insert(key);
        self.entries.get(key).map(|entry| entry.value.clone())
    }

    /// The value of a required key.
    pub(super) fn required(&mut self, key: &'static str) -> Option<String> {
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

    pub(super) fn required_count(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<u32>,
    ) -> Option<u32> {
        self.required(key)?;
        self.count(key, allowed)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let text = self.text(key)?;
        match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.problem(key, &format!("is {text:?}, but must be true or false"));
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

    /// Reports a problem with the value of a key.
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

    /// All problems in the order of their lines, including keys that were never read.
    pub(super) fn finish(mut self) -> Vec<String> {
        let known: Vec<&str> = self.read.iter().copied().collect();
        let stray = self
            .entries
            .iter()
            .filter(|(key, _)| !self.read.contains(key.as_str()));
        let strays: Vec<(String, usize)> = stray
            .map(|(key, entry)| (key.clone(), entry.line))
            .collect();
        for (key, line) in strays {
            let meant = nearest(&key, &known);
            let hint = meant.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
            self.problems
                .push((line, format!("line {line}: unknown key {key}{hint}")));
        }
        self.problems.sort_by_key(|(line, _)| *line);
        self.problems.into_iter().map(|(_, text)| text).collect()
    }
}
