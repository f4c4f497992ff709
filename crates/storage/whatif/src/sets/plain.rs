//! Plain assignments of files to streams, in TOML. The first match decides.
//!
//! ```toml
//! name = "documented"   # name in the report; default: name of this file without `.toml`
//! default = 0           # stream of files without a match
//! no_file = 0           # stream of data without a file
//! [[assign]]
//! match = 'ib_logfile'  # regular expression, searched in names of files in the trace
//! stream = 2
//! ```

use std::collections::HashMap;
use std::rc::Rc;

use regex::Regex;
use saiga_ftl::replay::MAX_STREAMS;
use saiga_ftl::trace::Trace;
use serde::Deserialize;

use super::{Assignment, By, Joined, Match};

/// A plain assignment of files to streams.
#[derive(Debug)]
pub struct Plain {
    pub(super) name: String,
    default: usize,
    no_file: usize,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    pattern: Regex,
    stream: usize,
}

/// An error in a plain assignment.
#[derive(Debug, thiserror::Error)]
pub enum PlainError {
    /// The text is not valid TOML, or a key is unknown or missing.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("there is no [[assign]], so it would be the same as one stream")]
    Empty,
    /// The regular expression of an entry, counted from 1, is not valid.
    #[error("match of [[assign]] number {number}: {error}")]
    Match { number: usize, error: regex::Error },
    #[error("stream {0}: use 0 to {last}", last = MAX_STREAMS - 1)]
    Stream(usize),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default)]
    default: usize,
    #[serde(default)]
    no_file: usize,
    #[serde(default)]
    assign: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    r#match: String,
    stream: usize,
}

impl Plain {
    /// Parses the text of a file; `name` is the default name.
    ///
    /// # Errors
    /// The text is not valid.
    pub fn parse(text: &str, name: &str) -> Result<Self, PlainError> {
        let file: File = toml::from_str(text)?;
        if file.assign.is_empty() {
            return Err(PlainError::Empty);
        }
        let mut rules = Vec::new();
        for (number, entry) in (1..).zip(&file.assign) {
            let pattern =
                Regex::new(&entry.r#match).map_err(|error| PlainError::Match { number, error })?;
            let stream = entry.stream;
            rules.push(Rule { pattern, stream });
        }
        let streams = rules.iter().map(|rule| rule.stream);
        let too_large = streams
            .chain([file.default, file.no_file])
            .find(|stream| *stream >= MAX_STREAMS);
        if let Some(stream) = too_large {
            return Err(PlainError::Stream(stream));
        }
        Ok(Self {
            name: file.name.unwrap_or_else(|| name.to_owned()),
            default: file.default,
            no_file: file.no_file,
            rules,
        })
    }

    pub(super) fn join(&self, trace: &Trace, written: &[u64]) -> Joined {
        let matches = self.rules.iter().map(|rule| Match {
            pattern: rule.pattern.to_string(),
            stream: rule.stream,
            files: 0,
            written_bytes: 0,
        });
        let mut matches: Vec<Match> = matches.collect();
        let mut of_file = HashMap::new();
        for (name, written) in trace.files.iter().zip(written) {
            let mut rules = self.rules.iter().zip(&mut matches);
            let found = rules.find(|(rule, _)| rule.pattern.is_match(name));
            if let Some((_, found)) = &found {
                of_file.insert(name.clone(), found.stream);
            } else {
                of_file.insert(name.clone(), self.default);
            }
            if let Some((_, found)) = found {
                found.files += 1;
                found.written_bytes += written;
            }
        }
        let mut streams: Vec<usize> = self.rules.iter().map(|rule| rule.stream).collect();
        streams.extend([self.default, self.no_file]);
        streams.sort_unstable();
        streams.dedup();
        Joined {
            name: self.name.clone(),
            by: By::Stream,
            streams: streams
                .into_iter()
                .filter(|stream| *stream > 0)
                .map(|stream| (stream, stream.to_string()))
                .collect(),
            matches,
            written_bytes: 0,
            is_predefined: false,
            assignment: Rc::new(Assignment {
                of_file,
                no_file: self.no_file,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use saiga_ftl::replay::Rules as _;

    use super::*;

    #[test]
    fn the_first_match_decides() {
        let text = "default = 1\nno_file = 3\n[[assign]]\nmatch = '^a'\nstream = 2\n\
            [[assign]]\nmatch = 'b$'\nstream = 5\n[[assign]]\nmatch = 'zz'\nstream = 6\n";
        let found = Plain::parse(text, "own").unwrap();
        let trace = Trace {
            files: ["ab", "cb", "c"].map(str::to_owned).into(),
            ..Trace::default()
        };
        let joined = found.join(&trace, &[10, 20, 40, 0]);
        for (file, stream) in [(Some("ab"), 2), (Some("cb"), 5), (Some("c"), 1), (None, 3)] {
            assert_eq!(joined.stream_of(file), stream, "{file:?}");
        }
        assert_eq!(joined.name, "own");
        assert_eq!(joined.idle(), ["zz"]);
        assert_eq!(joined.matched_bytes(), 30);
    }

    #[test]
    fn errors_are_named() {
        for (text, expected) in [
            ("", "there is no [[assign]]"),
            ("rules = 1", "unknown field `rules`"),
            (
                "[[assign]]\nmatch = '('\nstream = 1",
                "match of [[assign]] number 1",
            ),
            (
                "[[assign]]\nmatch = 'a'\nstream = 64",
                "stream 64: use 0 to 63",
            ),
            ("[[assign]]\nmatch = 'a'\nstream = -1", "-1"),
            ("[[assign]]\nmatch = 'a'", "missing field `stream`"),
        ] {
            let error = Plain::parse(text, "").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
