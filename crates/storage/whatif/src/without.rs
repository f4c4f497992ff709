//! Leaves out files of a trace, to simulate the gain of not writing them.

use std::path::Path;

use saiga_ftl::trace::Trace;
use saiga_streams::rules::file::glob;
use saiga_streams::rules::{FilePaths, Problem};

use crate::sets::{Kind, Set, written_bytes};

/// Files of a trace that are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The words that select the files, separated by commas.
    pub name: String,
    /// Number of the files.
    pub files: usize,
    /// Bytes that the trace writes to the files.
    pub written_bytes: u64,
    /// Whether each file, by index, is left out.
    is_out: Vec<bool>,
}

/// Why a word of `--without` selects no written file.
#[derive(Debug, thiserror::Error)]
pub enum WithoutError {
    /// The word is a stream without written files.
    #[error("--without {word}: the trace writes to no file of this stream")]
    Stream { word: String },
    /// The word is neither a stream nor a glob that matches a file.
    #[error(
        "--without {word}: no file of the trace matches this, and no rule has such a stream; {}",
        match &streams[..] {
            [] => "give a set with --rules".to_owned(),
            streams => format!("streams are {}", streams.join(", ")),
        }
    )]
    Unknown { word: String, streams: Vec<String> },
    #[error("--without {word}: {problem}")]
    Glob { word: String, problem: Problem },
}

impl LeftOut {
    /// Finds the files that `words` select. A word is a stream of the rules in `sets`, or a glob.
    ///
    /// # Errors
    /// A word selects no written file, or is not a valid glob.
    pub fn of(words: &[String], trace: &Trace, sets: &[&Set]) -> Result<Self, WithoutError> {
        let written = written_bytes(trace);
        let mut is_out = vec![false; trace.files.len()];
        for word in words {
            let is_named = named(word, trace, sets)?;
            let bytes = |file: usize| if is_named[file] { written[file] } else { 0 };
            if (0..is_out.len()).map(bytes).sum::<u64>() == 0 {
                return Err(nothing(word, sets));
            }
            for (out, named) in is_out.iter_mut().zip(is_named) {
                *out |= named;
            }
        }
        let out = is_out.iter().zip(&written).filter(|(out, _)| **out);
        Ok(Self {
            name: words.join(", "),
            files: out.clone().count(),
            written_bytes: out.map(|(_, bytes)| bytes).sum(),
            is_out,
        })
    }

    /// Whether a file is left out; `false` for data without a file.
    #[must_use]
    pub fn has(&self, file: Option<u32>) -> bool {
        file.is_some_and(|file| self.is_out.get(file as usize) == Some(&true))
    }
}

/// Returns the names of the streams of all rules, each once.
fn streams<'a>(sets: &[&'a Set]) -> Vec<&'a str> {
    let mut streams: Vec<&str> = Vec::new();
    for set in sets {
        let Kind::Labels(rules) = &set.rules else {
            continue;
        };
        for stream in rules.rules.iter().filter_map(|rule| rule.stream.as_deref()) {
            if !streams.contains(&stream) {
                streams.push(stream);
            }
        }
    }
    streams
}

/// Returns for each file whether a word selects it.
fn named(word: &str, trace: &Trace, sets: &[&Set]) -> Result<Vec<bool>, WithoutError> {
    if streams(sets).contains(&word) {
        let is_of_stream = |name: &String| {
            sets.iter().any(|set| match &set.rules {
                Kind::Labels(rules) => {
                    let rule = rules.find(&paths(trace, name));
                    rule.is_some_and(|(_, rule)| rule.stream.as_deref() == Some(word))
                }
                Kind::Plain(_) => false,
            })
        };
        return Ok(trace.files.iter().map(is_of_stream).collect());
    }
    let pattern = glob(word).map_err(|problem| WithoutError::Glob {
        word: word.to_owned(),
        problem,
    })?;
    let matches = |name: &String| pattern.matches(&paths(trace, name));
    Ok(trace.files.iter().map(matches).collect())
}

fn paths<'a>(trace: &Trace, name: &'a str) -> FilePaths<'a> {
    FilePaths {
        relative: Path::new(trace.place(name)),
        absolute: Path::new(name),
    }
}

/// Creates the error for a word that selects no written file.
fn nothing(word: &str, sets: &[&Set]) -> WithoutError {
    let word = word.to_owned();
    let streams = streams(sets);
    if streams.contains(&word.as_str()) {
        return WithoutError::Stream { word };
    }
    WithoutError::Unknown {
        word,
        streams: streams.into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use saiga_ftl::trace::{Op, Row};

    use super::*;

    fn trace() -> Trace {
        let names = [
            "/db/#ib_16384_0.dblwr",
            "/db/shop/t1.ibd",
            "/db/shop/t2.ibd",
            "/db/binlog.000001",
            "/db/ibtmp1",
        ];
        let mut trace = Trace {
            files: names.map(str::to_owned).into(),
            directories: vec!["/db".to_owned()],
            ..Trace::default()
        };
        // The last file is not written.
        for file in 0..4 {
            trace.rows.push(Row {
                t_ns: 0,
                lba: 0,
                len: 512 << file,
                op: Op::Write,
                file: Some(file),
            });
        }
        trace
    }

    fn left_out(words: &[&str]) -> Result<LeftOut, String> {
        let (mysql, _) = Set::load("mysql").unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        LeftOut::of(&words, &trace(), &[&mysql]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_word_is_a_stream_or_a_glob() {
        for (words, expected) in [
            (&["doublewrite"][..], &[0][..]),
            (&["data"], &[1, 2]),
            (&["**/t2.ibd"], &[2]),
            (&["doublewrite", "binlog.*", "#ib_*"], &[0, 3]),
        ] {
            let found = left_out(words).unwrap();
            let files: Vec<u32> = (0..5).filter(|file| found.has(Some(*file))).collect();
            assert_eq!(files, expected, "{words:?}");
            let bytes: u64 = expected.iter().map(|file| 512 << file).sum();
            assert_eq!(
                (found.files, found.written_bytes),
                (expected.len(), bytes),
                "{words:?}"
            );
            assert_eq!(found.name, words.join(", "));
            assert!(!found.has(None) && !found.has(Some(9)));
        }
    }

    #[test]
    fn a_word_that_names_nothing_is_refused() {
        for (word, expected) in [
            (
                "temporary",
                "--without temporary: the trace writes to no file of this stream",
            ),
            (
                "doublewrit",
                "--without doublewrit: no file of the trace matches this, and no rule has such a stream; streams are \
                 doublewrite, redo,",
            ),
            (
                "a[",
                "--without a[: `a[` is not a valid glob: unclosed character class",
            ),
            (
                "/db/ibtmp1",
                "--without /db/ibtmp1: `/db/ibtmp1` can match nothing",
            ),
        ] {
            let found = left_out(&[word]).unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
        let words = ["redo".to_owned()];
        let found = LeftOut::of(&words, &trace(), &[]).unwrap_err().to_string();
        assert!(
            found.ends_with("no rule has such a stream; give a set with --rules"),
            "{found}"
        );
    }
}
