//! Rules: which file gets which hint, and why.
//!
//! Rules come in sets: those that are built in ([`builtin`]), files in TOML ([`mod@file`]), files in astream's grammar
//! ([`astream`]). The first rule that matches a file decides.

pub mod astream;
pub mod builtin;
mod ere;
pub mod file;
mod print;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::hint::Hint;

pub use ere::{Ere, EreError};

/// What a rule matches.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// A glob on the path relative to the database's directory.
    Glob(globset::GlobMatcher),
    /// A POSIX extended regular expression that is searched in the absolute path: astream's.
    Search {
        /// As it was written.
        text: String,
        /// The same, compiled.
        regex: Ere,
    },
}

impl Pattern {
    /// Whether it is a regular expression.
    #[must_use]
    pub fn is_search(&self) -> bool {
        matches!(self, Self::Search { .. })
    }

    /// Whether it matches a file.
    #[must_use]
    pub fn matches(&self, place: &Place<'_>) -> bool {
        match self {
            Self::Glob(glob) => glob.is_match(place.relative),
            Self::Search { regex, .. } => {
                regex.is_match(place.absolute.as_os_str().as_encoded_bytes())
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Glob(glob) => f.write_str(glob.glob().glob()),
            Self::Search { text, .. } => f.write_str(text),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.is_search() == other.is_search() && self.to_string() == other.to_string()
    }
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it matches.
    pub pattern: Pattern,
    /// The hint for what it matches; [`Hint::NotSet`] leaves files as they are.
    pub hint: Hint,
    /// Why, in a sentence.
    pub why: String,
    /// What should share a reclaim unit with nothing else, where the drive has enough of them.
    pub stream: Option<String>,
    /// Whether a hint that is there is overwritten.
    pub force: bool,
    /// Where it stands.
    pub origin: Origin,
}

/// Where a rule stands: in which file or built-in set, and in which line.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The file's path or the set's name.
    pub source: Arc<str>,
    /// Its line, from 1.
    pub line: usize,
    /// Whether the set is built in: that some of its rules match nothing is not a surprise.
    pub is_builtin: bool,
}

/// Rules are what they say, wherever they stand.
impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.line)
    }
}

/// A file as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Below the database's directory, links to directories followed.
    pub relative: &'a Path,
    /// From the root.
    pub absolute: &'a Path,
}

/// Rules in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rules {
    /// What they are for, if they say so.
    pub about: Option<String>,
    /// The rules; the first that matches decides.
    pub rules: Vec<Rule>,
}

impl Rules {
    /// The first rule that matches `place`, and its number.
    #[must_use]
    pub fn find(&self, place: &Place<'_>) -> Option<(usize, &Rule)> {
        let mut rules = self.rules.iter().enumerate();
        rules.find(|(_, rule)| rule.pattern.matches(place))
    }

    /// The rules as TOML; [`file::parse`] reads it back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        print::toml(self)
    }
}

/// Something that astream would have passed over in silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is the matter.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read the rules in {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Neither a file nor a built-in set.
    #[error("there is no rule set `{name}`; use {}, or the path of a file", builtin::names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// A line is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: Problem,
    },
    /// There is no rule.
    #[error("{} has no rule; write one as `saiga streams rules mysql` shows", .0.display())]
    Empty(PathBuf),
}

/// What is wrong with a line of rules.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// TOML does not allow it, or a key is unknown or missing.
    #[error("{0}")]
    Toml(String),
    /// The hint is none.
    #[error(transparent)]
    Hint(#[from] crate::hint::UnknownHint),
    /// The glob cannot be read.
    #[error("cannot read the glob `{glob}`: {reason}")]
    Glob {
        /// The glob.
        glob: String,
        /// Why.
        reason: String,
    },
    /// The path can match nothing.
    #[error(
        "`{0}` can match nothing; paths are relative to the database's directory, without `.`, `..` and a slash \
         at either end"
    )]
    Path(String),
    /// A word that may not be empty is empty.
    #[error("`{0}` is empty")]
    EmptyWord(&'static str),
    /// The regular expression cannot be read.
    #[error("cannot read the regular expression `{text}`: {error}")]
    Ere {
        /// The expression.
        text: String,
        /// Why.
        error: EreError,
    },
    /// astream: more than two words.
    #[error(
        "failed to parse the rule: {0} words, where astream wants `REGEX STREAM` (a path cannot hold a space)"
    )]
    Words(usize),
    /// astream: the second word is not a number.
    #[error("failed to parse the rule: the stream `{0}` is not a number")]
    Stream(String),
    /// astream: too long.
    #[error("{0} bytes; {limit} is astream's limit for a line", limit = astream::LINE_LIMIT)]
    Long(usize),
    /// astream: too many rules.
    #[error("more than {limit} rules, which is astream's limit for a file; give the rest in a second file", limit = astream::RULE_LIMIT)]
    Many,
}

/// Where rules are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSet {
    /// What [`load`] takes.
    Named(String),
    /// A file in astream's grammar, whatever it is called.
    Astream(PathBuf),
}

impl RuleSet {
    /// Reads them.
    ///
    /// # Errors
    /// What is wrong, with file and line.
    pub fn load(&self) -> Result<(Rules, Vec<Warning>), RulesError> {
        match self {
            Self::Named(name) => load(name),
            Self::Astream(path) => astream::parse(path, &read(path)?),
        }
    }

    /// The file that they are read from; built-in ones have none.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Named(name) if builtin::find(name).is_some() => None,
            Self::Named(name) => Some(Path::new(name)),
            Self::Astream(path) => Some(path),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, RulesError> {
    std::fs::read(path).map_err(|error| RulesError::Read {
        path: path.to_owned(),
        error,
    })
}

/// Reads rules by what `name` is: a path that ends in `.toml`, a built-in set, or a file in astream's grammar.
///
/// A name is a path when it has a slash in it or such a file exists; a built-in set is preferred.
///
/// # Errors
/// What is wrong, with file and line.
pub fn load(name: &str) -> Result<(Rules, Vec<Warning>), RulesError> {
    if let Some(rules) = builtin::find(name) {
        return Ok((rules, Vec::new()));
    }
    let path = Path::new(name);
    if !name.contains('/') && !path.exists() {
        return Err(RulesError::Unknown {
            name: name.to_owned(),
        });
    }
    let bytes = read(path)?;
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        let text = String::from_utf8(bytes).map_err(|error| RulesError::Read {
            path: path.to_owned(),
            error: io::Error::new(io::ErrorKind::InvalidData, error),
        })?;
        return Ok((file::parse(path, &text)?, Vec::new()));
    }
    astream::parse(path, &bytes)
}
