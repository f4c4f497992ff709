//! A plain assignment of files to streams, as a TOML file. The first match decides.
//!
//! ```toml
//! name = "documented"   # what the report calls it; the file's name without this
//! default = 0           # stream of files that nothing matches
//! no_file = 0           # stream of what belongs to no file
//! [[assign]]
//! match = 'ib_logfile'  # regular expression, searched in the file's name
//! stream = 2
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use regex::Regex;
use saiga_ftl::replay::Rules;
use serde::Deserialize;

/// Streams are numbered below this.
const STREAMS: usize = 64;

/// Which stream files go to.
#[derive(Debug)]
pub(super) struct Assignment {
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

impl Assignment {
    /// Reads a file.
    pub(super) fn load(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        Self::parse(&text, stem.unwrap_or_default()).with_context(|| format!("{shown}"))
    }

    fn parse(text: &str, name: String) -> anyhow::Result<Self> {
        let file: File = toml::from_str(text)?;
        if file.assign.is_empty() {
            bail!("no [[assign]] in it, so it would be the same as one stream");
        }
        let mut rules = Vec::new();
        for (number, entry) in (1..).zip(&file.assign) {
            let pattern = Regex::new(&entry.r#match)
                .with_context(|| format!("match of [[assign]] number {number}"))?;
            let stream = entry.stream;
            rules.push(Rule { pattern, stream });
        }
        let streams = rules.iter().map(|rule| rule.stream);
        let too_large = streams
            .chain([file.default, file.no_file])
            .find(|stream| *stream >= STREAMS);
        if let Some(stream) = too_large {
            bail!("stream {stream}: use 0 to {}", STREAMS - 1);
        }
        Ok(Self {
            name: file.name.unwrap_or(name),
            default: file.default,
            no_file: file.no_file,
            rules,
        })
    }

    /// The patterns that match none of these names.
    pub(super) fn idle<'a>(&'a self, names: &[String]) -> Vec<&'a str> {
        let is_idle = |rule: &&Rule| !names.iter().any(|name| rule.pattern.is_match(name));
        let idle = self.rules.iter().filter(is_idle);
        idle.map(|rule| rule.pattern.as_str()).collect()
    }
}

impl Rules for Assignment {
    fn stream_of(&self, file: Option<&str>) -> usize {
        let Some(file) = file else {
            return self.no_file;
        };
        let rule = self.rules.iter().find(|rule| rule.pattern.is_match(file));
        rule.map_or(self.default, |rule| rule.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_decides() {
        let text = "default = 1\nno_file = 3\n[[assign]]\nmatch = '^a'\nstream = 2\n\
            [[assign]]\nmatch = 'b$'\nstream = 5\n[[assign]]\nmatch = 'zz'\nstream = 6\n";
        let found = Assignment::parse(text, "own".to_owned()).unwrap();
        for (file, stream) in [(Some("ab"), 2), (Some("cb"), 5), (Some("c"), 1), (None, 3)] {
            assert_eq!(found.stream_of(file), stream, "{file:?}");
        }
        assert_eq!(found.name, "own");
        assert_eq!(found.idle(&["ab".to_owned(), "b".to_owned()]), ["zz"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("", "no [[assign]] in it"),
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
            let error = format!("{:#}", Assignment::parse(text, String::new()).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
