//! Reads typed values from TOML tables and collects all problems, as `docs/adr/0018` explains.
//!
//! Each problem names the line, the key and the value as it is in the file. A value that is wrong
//! counts as missing, so that reading goes on. A list may be written as its only element.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use std::time::Duration;

use saiga_document::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys;
use super::value::plain;
use crate::file::Problem;

/// Most characters of a value in a message.
const SHOWN: usize = 60;
/// Most reported mistakes of syntax. The later ones often follow from the first.
const SYNTAX: usize = 10;

/// A value with its place in the file.
pub(super) type Value<'a> = &'a Spanned<DeValue<'a>>;

/// The text of a file and the problems found so far.
pub(super) struct Source<'a> {
    text: &'a str,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Source<'a> {
    /// Parses the text.
    ///
    /// # Errors
    /// Returns the mistakes of syntax. The keys of such a file are not checked.
    pub(super) fn new(text: &'a str) -> Result<(Self, Spanned<DeTable<'a>>), Vec<Problem>> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let source = Self {
            text,
            problems: RefCell::default(),
        };
        for error in errors.iter().take(SYNTAX) {
            let at = error.span().map_or(0, |span| span.start);
            source.report(at, error.message().replace('\n', " "));
        }
        if errors.is_empty() {
            Ok((source, root))
        } else {
            Err(source.into_problems())
        }
    }

    /// All problems in the order of the lines.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort();
        problems.dedup();
        problems
    }

    /// The line of a byte position, counted from 1.
    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Reports a problem at a byte position.
    fn report(&self, at: usize, text: String) {
        let line = self.line(at);
        self.problems.borrow_mut().push(Problem { line, text });
    }

    /// Reports a problem of the file as a whole.
    fn report_whole(&self, text: String) {
        self.problems.borrow_mut().push(Problem { line: 0, text });
    }

    /// A part of the file on one line.
    fn excerpt(&self, span: Range<usize>) -> String {
        let part = self.text.get(span).unwrap_or_default();
        let words: Vec<&str> = part.split_whitespace().collect();
        let line = words.join(" ");
        match line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line,
        }
    }
}

/// A table of the file.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    source: &'a Source<'a>,
    /// The name in the file; empty for the root.
    name: &'static str,
    /// Where the table begins, in bytes.
    at: usize,
    /// `None` if the file does not have the table.
    entries: Option<&'a DeTable<'a>>,
}

impl<'a> Table<'a> {
    /// The table that contains all others.
    pub(super) fn root(source: &'a Source<'a>, entries: &'a DeTable<'a>) -> Self {
        Self {
            source,
            name: "",
            at: 0,
            entries: Some(entries),
        }
    }

    fn value(&self, key: &'static str) -> Option<Value<'a>> {
        self.entries?.get(key)
    }

    pub(super) fn has(&self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    /// The line at which the table begins.
    pub(super) fn line(&self) -> usize {
        self.source.line(self.at)
    }

    /// Whether the value of a key is this word.
    pub(super) fn is_word(&self, key: &'static str, word: &str) -> bool {
        let value = self.value(key).map(Spanned::get_ref);
        value.and_then(DeValue::as_str) == Some(word)
    }

    /// Whether the value of a key is a whole number.
    pub(super) fn is_whole(&self, key: &'static str) -> bool {
        let value = self.value(key).map(Spanned::get_ref);
        value.is_some_and(DeValue::is_integer)
    }

    /// Reports a required key if it is missing. `what` says what to write.
    pub(super) fn require(&self, key: &'static str, what: &str) {
        if !self.has(key) {
            self.problem(key, what);
        }
    }

    /// Reports a problem with the value of a key, or with its absence.
    pub(super) fn problem(&self, key: &'static str, what: &str) {
        let Some(value) = self.value(key) else {
            let text = format!("{} is missing; {what}", self.path(key));
            if self.entries.is_some() && !self.name.is_empty() {
                return self.source.report(self.at, text);
            }
            return self.source.report_whole(text);
        };
        let text = if is_table(value) {
            format!("{}: {what}", self.path(key))
        } else {
            let shown = self.source.excerpt(value.span());
            format!("{} = {shown}: {what}", self.path(key))
        };
        self.source.report(value.span().start, text);
    }

    fn path(&self, key: &str) -> String {
        match self.name {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    /// Reads one value; `None` if the key is missing or its value is wrong.
    fn read<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(Value<'a>) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.value(key)?;
        read(value).map_err(|what| self.problem(key, &what)).ok()
    }

    /// Reads a whole number in a range.
    pub(super) fn whole<T>(&self, key: &'static str, allowed: &RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        self.read(key, |value| whole(value, allowed))
    }

    /// Reads one of several words.
    pub(super) fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        self.read(key, |value| {
            let word = text(value)?;
            let found = choices.iter().find(|(name, _)| *name == word);
            let names: Vec<String> = choices.iter().map(|(name, _)| quoted(name)).collect();
            let wrong = || format!("write one of {}", names.join(", "));
            found.map(|(_, choice)| *choice).ok_or_else(wrong)
        })
    }

    /// Reads a string of a type.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&self, key: &'static str) -> Option<T> {
        self.parsed_by(key, |text| {
            text.parse::<T>().map_err(|error| error.to_string())
        })
    }

    /// Reads a string by a function that says what is wrong with it.
    pub(super) fn parsed_by<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.read(key, |value| parse(text(value)?))
    }

    /// Reads a list of strings by a function that says what is wrong with one.
    pub(super) fn parsed_list<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        self.list(key, |value| parse(text(value)?))
    }

    /// Reads a list of whole numbers in a range.
    pub(super) fn whole_list<T>(
        &self,
        key: &'static str,
        allowed: &RangeInclusive<T>,
    ) -> Option<Vec<T>>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        self.list(key, |value| whole(value, allowed))
    }

    fn list<T>(
        &self,
        key: &'static str,
        read: impl Fn(Value<'a>) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        self.read(key, |value| {
            let Some(items) = value.get_ref().as_array() else {
                return Ok(vec![read(value)?]);
            };
            let one = |item: Value<'a>| {
                let shown = self.source.excerpt(item.span());
                read(item).map_err(|what| format!("{shown}: {what}"))
            };
            items.iter().map(one).collect()
        })
    }

    /// Reads a duration such as `"250ms"` in milliseconds.
    pub(super) fn duration_ms(
        &self,
        key: &'static str,
        allowed: &RangeInclusive<u32>,
    ) -> Option<u32> {
        self.parsed_by(key, |text| duration_ms(text, allowed))
    }

    /// Reads a duration in milliseconds; `Some(None)` for `"off"`.
    pub(super) fn duration_ms_or_off(
        &self,
        key: &'static str,
        allowed: &RangeInclusive<u32>,
    ) -> Option<Option<u32>> {
        self.parsed_by(key, |text| match text {
            "off" => Ok(None),
            text => duration_ms(text, allowed)
                .map(Some)
                .map_err(|what| format!("{what}, or \"off\"")),
        })
    }

    /// A table of the root, which may be absent.
    pub(super) fn table(&self, name: &'static str) -> Table<'a> {
        let value = self.value(name);
        let entries = value.and_then(|value| value.get_ref().as_table());
        if value.is_some() && entries.is_none() {
            self.problem(name, &format!("write a table: [{name}]"));
        }
        self.inner(name, value.map_or(0, |value| value.span().start), entries)
    }

    /// The tables of an array such as `[[device]]`.
    pub(super) fn tables(&self, name: &'static str) -> Vec<Table<'a>> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let one = |item: Value<'a>| {
            let entries = item.get_ref().as_table()?;
            Some(self.inner(name, item.span().start, Some(entries)))
        };
        let items = value.get_ref().as_array();
        let tables: Option<Vec<_>> = items.and_then(|items| items.iter().map(one).collect());
        let tables = tables.unwrap_or_default();
        if tables.is_empty() {
            self.problem(name, &format!("write tables: [[{name}]]"));
        }
        tables
    }

    fn inner(&self, name: &'static str, at: usize, entries: Option<&'a DeTable<'a>>) -> Table<'a> {
        Table {
            source: self.source,
            name,
            at,
            entries,
        }
    }

    /// Reports the keys that do not exist.
    pub(super) fn check_names(&self) {
        let known = keys::names(self.name);
        for (key, _) in self.entries.into_iter().flatten() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let hint = match nearest(name, &known) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known are {}", known.join(", ")),
            };
            let shown = self.source.excerpt(key.span());
            let text = format!("{} is an unknown key; {hint}", self.path(&shown));
            self.source.report(key.span().start, text);
        }
    }
}

/// Whether a value is a table or one of several tables.
fn is_table(value: Value<'_>) -> bool {
    let value = value.get_ref();
    let first = value.as_array().and_then(|items| items.first());
    value.is_table() || first.is_some_and(|first| first.get_ref().is_table())
}

fn text<'a>(value: Value<'a>) -> Result<&'a str, String> {
    match value.get_ref().as_str() {
        Some(text) => plain(text),
        None => Err("write a string in quotation marks".to_owned()),
    }
}

fn whole<T>(value: Value<'_>, allowed: &RangeInclusive<T>) -> Result<T, String>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    let digits = value.get_ref().as_integer();
    let number = digits
        .and_then(|digits| i64::from_str_radix(digits.as_str(), digits.radix()).ok())
        .and_then(|number| T::try_from(number).ok());
    number
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| {
            format!(
                "write a whole number from {} to {}",
                allowed.start(),
                allowed.end()
            )
        })
}

fn duration_ms(text: &str, allowed: &RangeInclusive<u32>) -> Result<u32, String> {
    let length = humantime::parse_duration(text).ok();
    let whole = length.filter(|length| length.subsec_nanos().is_multiple_of(1_000_000));
    let ms = whole.and_then(|length| u32::try_from(length.as_millis()).ok());
    ms.filter(|ms| allowed.contains(ms)).ok_or_else(|| {
        let [least, most] = [allowed.start(), allowed.end()].map(|ms| shown_ms(*ms));
        format!("write a duration from {least} to {most}")
    })
}

/// A duration as the file has it.
pub(super) fn shown_ms(ms: u32) -> String {
    let length = Duration::from_millis(u64::from(ms));
    quoted(&humantime::format_duration(length).to_string())
}

/// A string without control characters as the file has it.
pub(super) fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
