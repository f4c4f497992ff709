//! Rule sets by their names, and what they make of the names in a trace.
//!
//! A set is `none`, `astream` (the rules that its documentation has for MySQL), one that is built in for the labeller, a
//! file of any of three kinds, or one that was suggested. [`Set::join`] turns it into streams.

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

/// What the documentation of astream has for MySQL.
const ASTREAM: &str = "ib_logfile 2\nibdata1$ 3\nundo 4\nmysql-bin 5\n";

/// What tells streams apart on the simulated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The `stream` of each rule; its hint where it has none.
    Stream,
    /// The values of hints only.
    Hint,
    /// The classes of F2FS: short, extreme, all else.
    F2fs,
}

impl By {
    /// Its word.
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
    /// What reports call it.
    pub name: String,
    pub(crate) rules: Kind,
    /// That rules of it match nothing is not a surprise.
    is_given: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Labels(Rules),
    Plain(Plain),
}

/// Why there is no such set.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// It is neither a word nor a file.
    #[error("there is no rule set `{name}`; use none, suggested, astream, {}, or the path of a file", builtin::names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The labeller's rules are wrong.
    #[error(transparent)]
    Rules(#[from] rules::RulesError),
    /// A plain assignment is wrong.
    #[error("{}: {error}", path.display())]
    Plain {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: PlainError,
    },
    /// No device has so many.
    #[error("{set} has {count} streams; at most {} can be told apart", MAX_STREAMS - 1)]
    Streams {
        /// The set.
        set: String,
        /// How many it has.
        count: usize,
    },
}

impl Set {
    /// The set that a word names, and what was passed over in it. `none` and `suggested` are not read from anywhere, and so
    /// are none here.
    ///
    /// # Errors
    /// There is no such set, or it is wrong.
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
        // What cannot be read is the labeller's to say.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().any(|line| line.trim() == "[[assign]]") {
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
                    is_given: false,
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

    /// A set of the labeller's rules; with `is_given`, rules that match nothing are no surprise.
    #[must_use]
    pub fn of_labels(name: &str, rules: Rules, is_given: bool) -> Self {
        Self {
            name: name.to_owned(),
            rules: Kind::Labels(rules),
            is_given,
        }
    }

    /// The streams of the files of a trace.
    ///
    /// # Errors
    /// The rules have more streams than can be told apart.
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
        joined.is_given = self.is_given;
        joined.written_bytes = written.iter().sum();
        Ok(joined)
    }
}

/// What a rule set makes of the names in a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// The set's name.
    pub name: String,
    /// What tells its streams apart.
    pub by: By,
    /// The streams, but for the default one, with their names.
    pub streams: Vec<(usize, String)>,
    /// What each rule matches.
    pub matches: Vec<Match>,
    /// Bytes that the trace writes.
    pub written_bytes: u64,
    /// That rules of it match nothing is not a surprise.
    pub is_given: bool,
    /// Where everything goes.
    pub(crate) placed: Rc<Placed>,
}

/// The stream of everything in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Placed {
    /// Of each file by its name; those that are missing have the default one.
    of_file: HashMap<String, usize>,
    /// Of what belongs to no file.
    no_file: usize,
}

/// What a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The rule, as it was written.
    pub pattern: String,
    /// Its stream; 0 is the default.
    pub stream: usize,
    /// Files for which it decides.
    pub files: usize,
    /// Bytes that the trace writes to them.
    pub written_bytes: u64,
}

impl Joined {
    /// Bytes for which a rule decides.
    #[must_use]
    pub fn matched_bytes(&self) -> u64 {
        self.matches.iter().map(|rule| rule.written_bytes).sum()
    }

    /// The rules that decide for no file, unless that is expected.
    #[must_use]
    pub fn idle(&self) -> Vec<&str> {
        let idle = self.matches.iter().filter(|rule| rule.files == 0);
        idle.filter(|_| !self.is_given)
            .map(|rule| rule.pattern.as_str())
            .collect()
    }

    /// What a stream is called.
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
        let Placed { of_file, no_file } = &*self.placed;
        file.map_or(*no_file, |file| of_file.get(file).copied().unwrap_or(0))
    }
}

/// The sets that are known to suit the database of a trace: the built-in one where the names tell
/// the database, and astream's documented rules where they match something that is written.
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

/// Bytes that a trace writes to each file; to no file is last. Of a sample, those that it stands
/// for.
pub(crate) fn written_bytes(trace: &Trace) -> Vec<u64> {
    let mut written = vec![0; trace.files.len() + 1];
    let last = trace.files.len();
    for row in trace.rows.iter().filter(|row| row.op == Op::Write) {
        written[row.file.map_or(last, |file| file as usize)] += trace.stand_for(row.len);
    }
    written
}

/// One stream for everything: what sets are compared with.
#[must_use]
pub fn none(trace: &Trace) -> Joined {
    Joined {
        name: "none".to_owned(),
        by: By::Stream,
        streams: Vec::new(),
        matches: Vec::new(),
        written_bytes: written_bytes(trace).iter().sum(),
        is_given: true,
        placed: Rc::default(),
    }
}

#[cfg(test)]
mod tests;
