//! Rules map files to hints, with a reason for each.
//!
//! A set of rules is built in ([`builtin`]), or is a file in TOML ([`mod@file`]) or in astream's
//! grammar ([`astream`]). The first rule that matches a file decides.

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

/// A pattern for paths of files.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// A glob for the path relative to the database's directory.
    Glob(globset::GlobMatcher),
    /// A POSIX extended regular expression, searched in the absolute path (astream).
    Search { text: String, regex: Ere },
}

impl Pattern {
    /// Whether the pattern is a regular expression.
    #[must_use]
    pub fn is_search(&self) -> bool {
        matches!(self, Self::Search { .. })
    }

    /// Whether the pattern matches a file.
    #[must_use]
    pub fn matches(&self, place: &FilePaths<'_>) -> bool {
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

/// A rule: the hint for files that match a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub pattern: Pattern,
    /// [`Hint::NotSet`] leaves files as they are.
    pub hint: Hint,
    /// The reason, in a sentence.
    pub why: String,
    /// Name of the stream. Files of different streams do not share reclaim units if the drive has
    /// enough handles.
    pub stream: Option<String>,
    /// Whether a hint that another program has set is overwritten.
    pub force: bool,
    pub origin: Origin,
}

/// The position of a rule in a file or built-in set.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The file's path or the set's name.
    pub source: Arc<str>,
    /// Line number, from 1.
    pub line: usize,
    /// Whether the set is built in, so that rules without a match are normal.
    pub is_builtin: bool,
}

/// Origins are always equal, so that rules with the same content are equal.
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

/// The two paths of a file that rules can match.
#[derive(Debug, Clone, Copy)]
pub struct FilePaths<'a> {
    /// The path relative to the database's directory. Below a link to a directory, it is the path
    /// through the link.
    pub relative: &'a Path,
    /// The absolute path.
    pub absolute: &'a Path,
}

/// A list of rules; the first that matches decides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rules {
    /// A description of the set.
    pub about: Option<String>,
    pub rules: Vec<Rule>,
}

impl Rules {
    /// Returns the first rule that matches a file, and its index.
    #[must_use]
    pub fn find(&self, place: &FilePaths<'_>) -> Option<(usize, &Rule)> {
        let mut rules = self.rules.iter().enumerate();
        rules.find(|(_, rule)| rule.pattern.matches(place))
    }

    /// Formats the rules as TOML, which [`file::parse`] accepts.
    #[must_use]
    pub fn to_toml(&self) -> String {
        print::toml(self)
    }
}

/// A warning about input that astream would ignore silently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub path: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}

/// The reason why rules could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("cannot read the rules in {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    /// `name` is neither a file nor a built-in set.
    #[error("there is no rule set `{name}`; use {}, or the path of a file", builtin::names().join(", "))]
    Unknown { name: String },
    /// A line, counted from 1, is not valid.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        problem: Problem,
    },
    #[error("{} has no rule; write one as `saiga streams rules mysql` shows", .0.display())]
    Empty(PathBuf),
}

/// A problem of a line in a rule file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The line is not valid TOML, or a key is unknown or missing.
    #[error("{0}")]
    Toml(String),
    #[error(transparent)]
    Hint(#[from] crate::hint::UnknownHint),
    #[error("`{glob}` is not a valid glob: {reason}")]
    Glob { glob: String, reason: String },
    /// The path of a rule can match no file.
    #[error(
        "`{0}` can match nothing; paths are relative to the database's directory, without `.`, \
         `..` and a slash at either end"
    )]
    Path(String),
    /// The value of this key is empty.
    #[error("`{0}` is empty")]
    EmptyWord(&'static str),
    #[error("`{text}` is not a valid regular expression: {error}")]
    Ere { text: String, error: EreError },
    /// astream: a line has more than two words.
    #[error(
        "failed to parse the rule: {0} words, but astream wants `REGEX STREAM` (a path cannot \
         contain a space)"
    )]
    Words(usize),
    /// astream: the second word is not a number.
    #[error("failed to parse the rule: the stream `{0}` is not a number")]
    Stream(String),
    /// astream: a line is longer than [`astream::LINE_LIMIT`].
    #[error("{0} bytes; {limit} is astream's limit for a line", limit = astream::LINE_LIMIT)]
    Long(usize),
    /// astream: a file has more rules than [`astream::RULE_LIMIT`].
    #[error(
        "more than {limit} rules, which is astream's limit for a file; give the rest in a second \
         file",
        limit = astream::RULE_LIMIT
    )]
    Many,
}

/// The source of a set of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSet {
    /// A name or path for [`load`].
    Named(String),
    /// A file in astream's grammar, with any name.
    Astream(PathBuf),
}

impl RuleSet {
    /// Loads the rules.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not valid.
    pub fn load(&self) -> Result<(Rules, Vec<Warning>), RulesError> {
        match self {
            Self::Named(name) => load(name),
            Self::Astream(path) => astream::parse(path, &read(path)?),
        }
    }

    /// Returns the path of the file; `None` for a built-in set.
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

/// Loads the rules of `name`: a built-in set, a path that ends in `.toml`, or the path of a file in
/// astream's grammar.
///
/// A built-in set takes precedence over a file of the same name. Other names are paths.
///
/// # Errors
/// There is no such set or file, the file cannot be read, or a line is not valid.
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
