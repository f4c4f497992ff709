//! [`Table`]: reads typed values from a table and collects problems.
//!
//! serde's derive is not used because it stops at the first error; here all errors of a file are
//! reported together. Keys that were not read are unknown keys.

use saiga_document::nearest;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::tree::{Entries, Kind, Problem, Value};

/// The problems of a file so far.
pub(super) type Problems = RefCell<Vec<Problem>>;

/// A table with the keys that were read so far.
pub(super) struct Table<'a> {
    /// The path for messages: `arm "kernel"` or `plan`; empty for the root table.
    path: String,
    line: usize,
    entries: &'a Entries,
    read_keys: RefCell<BTreeSet<&'static str>>,
    problems: &'a Problems,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        path: String,
        line: usize,
        entries: &'a Entries,
        problems: &'a Problems,
    ) -> Self {
        Self {
            path,
            line,
            entries,
            read_keys: RefCell::default(),
            problems,
        }
    }

    fn value(&self, key: &'static str) -> Option<&'a Value> {
        self.read_keys.borrow_mut().insert(key);
        self.entries.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        let text = self.value(key)?.text().filter(|text| !text.is_empty());
        if text.is_none() {
            self.problem(key, "must be a non-empty string");
        }
        text.map(str::to_owned)
    }

    pub(super) fn required_text(&self, key: &'static str) -> Option<String> {
        self.require(key);
        self.text(key)
    }

    /// Reports a missing key.
    pub(super) fn require(&self, key: &'static str) {
        if self.value(key).is_none() {
            self.problem(key, "is missing");
        }
    }

    pub(super) fn path(&self, key: &'static str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from)
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let flag = self.value(key)?.flag();
        if flag.is_none() {
            self.problem(key, "must be true or false");
        }
        flag
    }

    pub(super) fn whole(&self, key: &'static str, allowed: RangeInclusive<u64>) -> Option<u64> {
        let number = match &self.value(key)?.kind {
            Kind::Whole(number) => u64::try_from(*number).ok(),
            // A value with a variable is always text.
            Kind::Text(text) => text.parse().ok(),
            Kind::Fraction(_) | Kind::Flag(_) | Kind::List(_) | Kind::Table(_) => None,
        };
        let number = number.filter(|number| allowed.contains(number));
        if number.is_none() {
            let (least, most) = allowed.into_inner();
            let range = match most {
                u64::MAX => format!("from {least}"),
                most => format!("from {least} to {most}"),
            };
            self.problem(key, &format!("must be a whole number {range}"));
        }
        number
    }

    pub(super) fn fraction(&self, key: &'static str, least: f64, most: f64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "numbers that people write")]
        let number = match &self.value(key)?.kind {
            Kind::Whole(number) => Some(*number as f64),
            Kind::Fraction(number) => Some(*number),
            Kind::Text(text) => text.parse().ok(),
            Kind::Flag(_) | Kind::List(_) | Kind::Table(_) => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.problem(key, &format!("must be a number from {least} to {most}"));
        }
        number
    }

    /// Reads a duration: `"90s"`, `"250ms"`, `"12h"`.
    pub(super) fn duration(&self, key: &'static str) -> Option<Duration> {
        let text = self.text(key)?;
        let length = humantime::parse_duration(&text).ok();
        let length = length.filter(|length| !length.is_zero());
        if length.is_none() {
            self.problem(
                key,
                &format!("is {text:?}, not a duration such as \"90s\" or \"12h\""),
            );
        }
        length
    }

    /// Reads a value of any type that parses from text.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&self, key: &'static str) -> Option<T> {
        let text = if let Kind::Whole(number) = self.value(key)?.kind {
            number.to_string()
        } else {
            self.text(key)?
        };
        text.parse()
            .map_err(|error| self.problem(key, &format!("is {text:?}: {error}")))
            .ok()
    }

    /// Reads one of several words.
    pub(super) fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let hint = nearest(&text, &names)
                .map_or(String::new(), |near| format!(" (did you mean {near:?}?)"));
            let all = names.join(", ");
            self.problem(key, &format!("is {text:?}, not one of {all}{hint}"));
        }
        found.map(|(_, choice)| *choice)
    }

    /// Reads a string or a list of strings.
    pub(super) fn texts(&self, key: &'static str) -> Vec<String> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let one = |value: &Value| {
            let text = value.text().filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let all: Option<Vec<String>> = match value.list() {
            Some(list) => list.iter().map(one).collect(),
            None => one(value).map(|text| vec![text]),
        };
        if all.is_none() {
            self.problem(key, "must be a string or a list of strings");
        }
        all.unwrap_or_default()
    }

    /// Reads a table of strings and whole numbers as pairs.
    pub(super) fn pairs(&self, key: &'static str) -> Vec<(String, String)> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(entries) = value.table() else {
            self.problem(key, "must be a table of names and values");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, value) in entries {
            match &value.kind {
                Kind::Text(text) => pairs.push((name.clone(), text.clone())),
                Kind::Whole(number) => pairs.push((name.clone(), number.to_string())),
                Kind::Fraction(_) | Kind::Flag(_) | Kind::List(_) | Kind::Table(_) => {
                    self.note(
                        value.line,
                        &format!("{key}.{name} must be a string or a whole number"),
                    );
                }
            }
        }
        pairs
    }

    /// Reads a table.
    pub(super) fn table(&self, key: &'static str) -> Option<Table<'a>> {
        let value = self.value(key)?;
        let entries = value.table();
        if entries.is_none() {
            self.problem(key, &format!("must be a table: [{key}]"));
        }
        entries.map(|entries| self.inner(key.to_owned(), value.line, entries))
    }

    /// Reads an array of tables, each with its line.
    pub(super) fn tables(&self, key: &'static str) -> Vec<(usize, &'a Entries)> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(list) = value.list() else {
            self.problem(key, &format!("must be written as [[{key}]]"));
            return Vec::new();
        };
        let table = |value: &'a Value| Some((value.line, value.table()?));
        let tables: Option<Vec<_>> = list.iter().map(table).collect();
        if tables.is_none() {
            self.problem(key, &format!("must be written as [[{key}]]"));
        }
        tables.unwrap_or_default()
    }

    /// Reads a list of values, or a single value in place of a list.
    pub(super) fn values(&self, key: &'static str) -> Vec<&'a Value> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        match value.list() {
            Some(list) => list.iter().collect(),
            None => vec![value],
        }
    }

    /// A [`Table`] inside this table.
    pub(super) fn inner(&self, name: String, line: usize, entries: &'a Entries) -> Table<'a> {
        let path = if self.path.is_empty() {
            name
        } else {
            format!("{}.{name}", self.path)
        };
        Table::new(path, line, entries, self.problems)
    }

    /// Reports a problem with the value of a key.
    pub(super) fn problem(&self, key: &str, what: &str) {
        let line = self.entries.get(key).map_or(self.line, |value| value.line);
        self.note(line, &format!("{key} {what}"));
    }

    /// Reports a problem in this table.
    pub(super) fn note(&self, line: usize, what: &str) {
        let text = if self.path.is_empty() {
            what.to_owned()
        } else {
            format!("{}.{what}", self.path)
        };
        self.problems.borrow_mut().push((line, text));
    }

    pub(super) fn entries(&self) -> &'a Entries {
        self.entries
    }

    /// The line at which the table begins.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Reports the keys that were not read.
    pub(super) fn finish(&self) {
        let read_keys = self.read_keys.borrow();
        let known: Vec<&str> = read_keys.iter().copied().collect();
        for (key, value) in self.entries {
            if read_keys.contains(key.as_str()) {
                continue;
            }
            let hint = match nearest(key, &known) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known are {}", known.join(", ")),
            };
            self.note(value.line, &format!("{key} is an unknown key; {hint}"));
        }
    }
}
