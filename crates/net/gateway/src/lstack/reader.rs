//! Typed values of the settings in `lstack.conf`, and the problems found so far.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::Note;
use super::syntax::{Setting, Value};
use crate::file::Problem;

/// The settings of a file.
pub(super) struct Reader<'a> {
    settings: &'a [Setting],
    pub(super) problems: Vec<Problem>,
    pub(super) notes: Vec<Note>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(settings: &'a [Setting]) -> Self {
        Self {
            settings,
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn find(&self, key: &str) -> Option<&'a Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Reports a problem with the value of a key, or with its absence.
    pub(super) fn problem(&mut self, key: &str, what: &str) {
        let (line, text) = match self.find(key) {
            Some(setting) => {
                let shown = shown(&setting.value);
                (setting.line, format!("{key}={shown}: {what}"))
            }
            None => (0, format!("{key} is missing; {what}")),
        };
        self.problems.push(Problem { line, text });
    }

    /// Notes why a key is not translated, if the file has it.
    pub(super) fn note(&mut self, key: &str, text: &str) {
        let note = self.find(key).map(|setting| Note {
            line: setting.line,
            key: key.to_owned(),
            text: text.to_owned(),
        });
        self.notes.extend(note);
    }

    /// Reads a string; a number counts as one.
    pub(super) fn parsed<T>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = text(&self.find(key)?.value);
        let parsed = match text {
            Some(text) => parse(text.trim()),
            None => Err("write a string in quotation marks".to_owned()),
        };
        parsed.map_err(|what| self.problem(key, &what)).ok()
    }

    /// Reads a whole number in a range; a string with a number counts as one.
    pub(super) fn whole<T>(&mut self, key: &str, allowed: &RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        let text = text(&self.find(key)?.value);
        let number = text.and_then(|text| text.trim().parse::<i64>().ok());
        let number = number.and_then(|number| T::try_from(number).ok());
        let number = number.filter(|number| allowed.contains(number));
        if number.is_none() {
            let (least, most) = (allowed.start(), allowed.end());
            self.problem(key, &format!("write a whole number from {least} to {most}"));
        }
        number
    }

    /// The words of a list of strings, with the line of its key.
    pub(super) fn words(&mut self, key: &str) -> Option<(Vec<String>, usize)> {
        let setting = self.find(key)?;
        let words: Option<Vec<String>> = match &setting.value {
            Value::List(values) => values.iter().map(text).collect(),
            Value::Text(_)
            | Value::Whole(_)
            | Value::Fraction(_)
            | Value::Flag(_)
            | Value::Group => None,
        };
        if words.is_none() {
            self.problem(key, "write a list of strings in brackets");
        }
        Some((words?, setting.line))
    }
}

/// The text of a string or of a whole number.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Whole(number) => Some(number.to_string()),
        Value::Flag(flag) => Some(u8::from(*flag).to_string()),
        Value::Fraction(_) | Value::List(_) | Value::Group => None,
    }
}

/// A value for messages, on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Whole(number) => number.to_string(),
        Value::Fraction(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(_) => "[...]".to_owned(),
        Value::Group => "{...}".to_owned(),
    }
}
