//! Rule sets by name, and the streams that they give to the files of a trace.
//!
//! A set is `none`, `astream` (the rules for MySQL in astream's documentation), a built-in set of
//! the labeller, a file of one of three formats, or a suggestion. [`Set::join`] computes the
//! streams.

mod database;
mod labels;
mod plain;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use saiga_ftl::replay::{self, MAX_STREAMS};
use saiga_ftl::trace::{Op, Trace};
use saiga_streams::rules::{self, Rules, Warning, builtin};

pub use database::database_of;
pub use plain::{Plain, PlainError};

/// The rules for MySQL in the documentation of astream.
const ASTREAM: &str = "ib_logfile 2\nibdata1$ 3\nundo 4\nmysql-bin 5\n";

/// The property of a rule that selects the stream on the simulated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The rule's `stream`; its hint if it has none.
    Stream,
    /// The hint.
    Hint,
    /// The classes of F2FS: short, extreme, all others.
    F2fs,
}

impl By {
    /// Returns its name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Hint => "hint",
            Self::F2fs => "f2fs",
        }
    }
}

/// A rule set.
#[derive(Debug)]
pub struct Set {
    /// Its name in reports.
    pub name: String,
    pub(crate) rules: Kind,
    is_predefined: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Labels(Rules),
    Plain(Plain),
}

/// An error of loading or applying a set.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The name is neither that of a set nor of a file.
    #[error(
        "there is no rule set `{name}`; use none, suggested, astream, {}, or the path of a file",
        builtin::names().join(", ")
    )]
    Unknown { name: String },
    /// The labeller's rules are not valid.
    #[error(transparent)]
    Rules(#[from] rules::RulesError),
    /// A plain assignment is not valid.
    #[error("{}: {error}", path.display())]
    Plain { path: PathBuf, error: PlainError },
    #[error("{set} has {count} streams; at most {} can be simulated", MAX_STREAMS - 1)]
    Streams { set: String, count: usize },
}

impl Set {
    /// Loads the set `word`, with warnings about ignored input. `none` and `suggested` cannot be
    /// loaded.
    ///
    /// # Errors
    /// There is no such set, or it is not valid.
    pub fn load(word: &str) -> Result<(Self, Vec<Warning>), SetError> {
        if word == "astream" {
            let (rules, _) = rules::astream::parse(Path::new(word), ASTREAM.as_bytes())?;
            return Ok((Self::of_labels(word, rules, true), Vec::new()));
        }
        if let Some(rules) = builtin::find(word) {
            return Ok((Self::of_labels(word, rules, true), Vec::new()));
        }
        let path = Path::new(word);
        let stem = path
            .file_stem()
            .map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
        // The labeller's loader below reports a file that cannot be read.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let is_header = |line: &str| line.trim_start().starts_with("[[assign]]");
        if text.lines().any(is_header) {
            let wrong = |error| SetError::Plain {
                path: path.to_owned(),
                error,
            };
            let plain = Plain::parse(&text, &stem).map_err(wrong)?;
            let name = plain.name.clone();
            return Ok((
                Self {
                    name,
                    rules: Kind::Plain(plain),
                    is_predefined: false,
                },
                Vec::new(),
            ));
        }
        let (rules, warnings) = rules::load(word).map_err(|error| match error {
            rules::RulesError::Unknown { name } => SetError::Unknown { name },
            error @ (rules::RulesError::Read { .. }
            | rules::RulesError::Line { .. }
            | rules::RulesError::Empty(_)) => error.into(),
        })?;
        Ok((Self::of_labels(&stem, rules, false), warnings))
    }

    /// Creates a set of the labeller's rules. With `is_predefined`, rules without a match are
    /// normal.
    #[must_use]
    pub fn of_labels(name: &str, rules: Rules, is_predefined: bool) -> Self {
        Self {
            name: name.to_owned(),
            rules: Kind::Labels(rules),
            is_predefined,
        }
    }

    /// Computes the streams of the files of a trace.
    ///
    /// # Errors
    /// The rules have more streams than can be simulated.
    pub fn join(&self, trace: &Trace, by: By) -> Result<Joined, SetError> {
        let written = written_bytes(trace);
        let mut joined = match &self.rules {
            Kind::Labels(rules) => labels::join(rules, trace, &written, by),
            Kind::Plain(plain) => plain.join(trace, &written),
        };
        let count = joined.streams.len();
        if joined
            .streams
            .iter()
            .any(|(stream, _)| *stream >= MAX_STREAMS)
        {
            let set = self.name.clone();
            return Err(SetError::Streams { set, count });
        }
        joined.name.clone_from(&self.name);
        joined.by = by;
        joined.is_predefined = self.is_predefined;
        joined.written_bytes = written.iter().sum();
        Ok(joined)
    }
}

/// The streams that a rule set gives to the files of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    pub name: String,
    pub by: By,
    /// The streams except for the default one, with their names.
    pub streams: Vec<(usize, String)>,
    pub matches: Vec<Match>,
    /// All bytes that the trace writes.
    pub written_bytes: u64,
    pub is_predefined: bool,
    pub(crate) assignment: Rc<Assignment>,
}

/// The stream of all data of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Assignment {
    /// The stream of each file by name; missing files have the default stream.
    of_file: HashMap<String, usize>,
    /// The stream of data that belong to no file.
    no_file: usize,
}

/// The files that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The pattern of the rule.
    pub pattern: String,
    /// The stream; 0 is the default.
    pub stream: usize,
    /// Number of files for which the rule decides.
    pub files: usize,
    /// Bytes that the trace writes to these files.
    pub written_bytes: u64,
}

impl Joined {
    /// Returns the bytes written to files with a rule.
    #[must_use]
    pub fn matched_bytes(&self) -> u64 {
        self.matches.iter().map(|rule| rule.written_bytes).sum()
    }

    /// Returns the rules without a match, unless the set is predefined.
    #[must_use]
    pub fn idle(&self) -> Vec<&str> {
        let idle = self.matches.iter().filter(|rule| rule.files == 0);
        idle.filter(|_| !self.is_predefined)
            .map(|rule| rule.pattern.as_str())
            .collect()
    }

    /// Returns the name of a stream.
    #[must_use]
    pub fn stream_name(&self, stream: usize) -> String {
        let known = self.streams.iter().find(|(number, _)| *number == stream);
        match known {
            Some((_, name)) => name.clone(),
            None if stream == 0 => "default".to_owned(),
            None => stream.to_string(),
        }
    }
}

impl replay::Rules for Joined {
    fn stream_of(&self, file: Option<&str>) -> usize {
        let Assignment { of_file, no_file } = &*self.assignment;
        file.map_or(*no_file, |file| of_file.get(file).copied().unwrap_or(0))
    }
}

/// Returns the known sets for the database of a trace: the built-in set if the names identify the
/// database, and astream's documented rules if they match a written file.
#[must_use]
pub fn known_for(trace: &Trace) -> Vec<Set> {
    let words = database_of(trace).into_iter().chain(["astream"]);
    let sets = words.filter_map(|word| Set::load(word).ok());
    let is_used = |set: &Set| {
        let joined = set.join(trace, By::Hint);
        joined.is_ok_and(|joined| joined.matched_bytes() > 0)
    };
    sets.map(|(set, _)| set).filter(is_used).collect()
}

/// Returns the bytes that a trace writes to each file; those without a file are last. For a sample,
/// extrapolated.
pub(crate) fn written_bytes(trace: &Trace) -> Vec<u64> {
    let mut written = vec![0; trace.files.len() + 1];
    let last = trace.files.len();
    for row in trace.rows.iter().filter(|row| row.op == Op::Write) {
        written[row.file.map_or(last, |file| file as usize)] += trace.stand_for(row.len);
    }
    written
}

/// Returns the assignment of everything to one stream, with which sets are compared.
#[must_use]
pub fn none(trace: &Trace) -> Joined {
    Joined {
        name: "none".to_owned(),
        by: By::Stream,
        streams: Vec::new(),
        matches: Vec::new(),
        written_bytes: written_bytes(trace).iter().sum(),
        is_predefined: true,
        assignment: Rc::default(),
    }
}

#[cfg(test)]
mod tests;
