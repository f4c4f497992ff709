//! Parses TOML into a tree of values with their lines, and expands variables.
//!
//! Deliberately absent: what any key means.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::variables::Variables;

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) line: usize,
    pub(super) kind: Kind,
}

impl Value {
    pub(super) fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind {
            Some(text)
        } else {
            None
        }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        if let Kind::Flag(flag) = self.kind {
            Some(flag)
        } else {
            None
        }
    }

    pub(super) fn list(&self) -> Option<&[Value]> {
        if let Kind::List(list) = &self.kind {
            Some(list)
        } else {
            None
        }
    }

    pub(super) fn table(&self) -> Option<&Entries> {
        if let Kind::Table(entries) = &self.kind {
            Some(entries)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text(String),
    Whole(i64),
    Fraction(f64),
    Flag(bool),
    List(Vec<Value>),
    Table(Entries),
}

/// The keys and values of a table.
pub(super) type Entries = BTreeMap<String, Value>;

/// The line and the text of a problem; line 0 means the command line.
pub(super) type Problem = (usize, String);

/// The name of the table of variables.
const VARS: &str = "vars";

/// Parses a text. `given` is a predefined variable; `sets` are variables that take precedence over
/// those of the text.
pub(super) fn parse(
    text: &str,
    given: (&str, &str),
    sets: &[(String, String)],
) -> (Entries, Vec<Problem>) {
    let lines = Lines(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut problems: Vec<Problem> = errors
        .iter()
        .map(|error| {
            let at = error.span().map_or(0, |span| span.start);
            (lines.at(at), error.message().replace('\n', " "))
        })
        .collect();
    let mut entries = table(root.get_ref(), &lines);
    let own = entries.remove(VARS);
    let (variables, wrong) = Variables::new(own, given, sets);
    problems.extend(wrong);
    for value in entries.values_mut() {
        expand(value, &variables, &mut problems);
    }
    problems.extend(variables.unused());
    (entries, problems)
}

/// Finds the line of a byte position in a text.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn at(&self, position: usize) -> usize {
        let before = self
            .0
            .as_bytes()
            .get(..position)
            .unwrap_or(self.0.as_bytes());
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

fn table(table: &DeTable<'_>, lines: &Lines<'_>) -> Entries {
    let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), value_of(value, lines))
    };
    table.iter().map(entry).collect()
}

fn value_of(value: &toml::Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Value {
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Kind::Text(number.to_string()), Kind::Whole),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or_else(|_| Kind::Text(number.to_string()), Kind::Fraction),
        DeValue::Boolean(flag) => Kind::Flag(*flag),
        DeValue::Datetime(moment) => Kind::Text(moment.to_string()),
        DeValue::Array(list) => Kind::List(list.iter().map(|one| value_of(one, lines)).collect()),
        DeValue::Table(inner) => Kind::Table(table(inner, lines)),
    };
    Value {
        line: lines.at(value.span().start),
        kind,
    }
}

fn expand(value: &mut Value, variables: &Variables, problems: &mut Vec<Problem>) {
    match &mut value.kind {
        Kind::Text(text) => match variables.expand(text) {
            Ok(expanded) => *text = expanded,
            Err(what) => problems.push((value.line, what)),
        },
        Kind::List(list) => list
            .iter_mut()
            .for_each(|one| expand(one, variables, problems)),
        Kind::Table(entries) => entries
            .values_mut()
            .for_each(|one| expand(one, variables, problems)),
        Kind::Whole(_) | Kind::Fraction(_) | Kind::Flag(_) => {}
    }
}

/// Overrides entries of `base` by those of `over`; tables are merged recursively.
pub(super) fn overlay(base: &Entries, over: &Entries) -> Entries {
    let mut all = base.clone();
    for (key, value) in over {
        let below = all.get(key).and_then(Value::table);
        let merged = match below.zip(value.table()) {
            Some((below, above)) => Value {
                line: value.line,
                kind: Kind::Table(overlay(below, above)),
            },
            None => value.clone(),
        };
        all.insert(key.clone(), merged);
    }
    all
}
