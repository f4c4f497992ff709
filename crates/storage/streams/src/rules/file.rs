//! Rules in TOML: `[[rule]]` tables with `path`, `hint`, `why`, and optionally `stream` and
//! `force`.
//!
//! Unknown keys, unknown hints and globs that can match nothing are errors with their line.

use std::path::{Component, Path};
use std::sync::Arc;

use globset::GlobBuilder;
use serde::Deserialize;
use toml::Spanned;

use super::{Origin, Pattern, Problem, Rule, Rules, RulesError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: Option<String>,
    #[serde(default)]
    rule: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: Spanned<String>,
    hint: Spanned<String>,
    why: Spanned<String>,
    stream: Option<Spanned<String>>,
    #[serde(default)]
    force: bool,
}

/// Parses the text of a rule file; `path` is for messages.
///
/// # Errors
/// The text is not valid; the error has the line.
pub fn parse(path: &Path, text: &str) -> Result<Rules, RulesError> {
    let origin = Origin {
        source: Arc::from(path.display().to_string()),
        line: 0,
        is_builtin: false,
    };
    parse_from(path, text, &origin)
}

pub(super) fn parse_from(path: &Path, text: &str, origin: &Origin) -> Result<Rules, RulesError> {
    let wrong = |at: usize, problem: Problem| RulesError::Line {
        path: path.to_owned(),
        line: line_of(text, at),
        problem,
    };
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong(at, Problem::Toml(error.message().to_owned()))
    })?;
    let mut rules = Vec::new();
    for entry in file.rule {
        let Entry {
            path,
            hint,
            why,
            stream,
            force,
        } = entry;
        for (name, word) in [("why", Some(&why)), ("stream", stream.as_ref())] {
            if let Some(word) = word.filter(|word| word.get_ref().trim().is_empty()) {
                return Err(wrong(word.span().start, Problem::EmptyWord(name)));
            }
        }
        rules.push(Rule {
            pattern: glob(path.get_ref()).map_err(|problem| wrong(path.span().start, problem))?,
            hint: (hint.get_ref().parse()).map_err(|error: crate::hint::UnknownHint| {
                wrong(hint.span().start, error.into())
            })?,
            why: why.into_inner(),
            stream: stream.map(Spanned::into_inner),
            force,
            origin: Origin {
                line: line_of(text, path.span().start),
                ..origin.clone()
            },
        });
    }
    if rules.is_empty() {
        return Err(RulesError::Empty(path.to_owned()));
    }
    Ok(Rules {
        about: file.about,
        rules,
    })
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Compiles a glob: `*` and `?` match within one name, `**` across `/`; `[...]` and `{a,b}` are as
/// in a shell.
///
/// # Errors
/// The glob is not valid, or can match nothing.
pub fn glob(text: &str) -> Result<Pattern, Problem> {
    let is_odd = |part: Component<'_>| !matches!(part, Component::Normal(_));
    let can_match_nothing = text.is_empty()
        || text.ends_with('/')
        || text.starts_with("./")
        || Path::new(text).components().any(is_odd);
    if can_match_nothing {
        return Err(Problem::Path(text.to_owned()));
    }
    let glob = GlobBuilder::new(text)
        .literal_separator(true)
        .empty_alternates(true)
        .build();
    match glob {
        Ok(glob) => Ok(Pattern::Glob(glob.compile_matcher())),
        Err(error) => Err(Problem::Glob {
            glob: text.to_owned(),
            reason: error.kind().to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::Hint;
    use crate::rules::FilePaths;

    fn read(text: &str) -> Result<Rules, String> {
        parse(Path::new("my.toml"), text).map_err(|error| error.to_string())
    }

    fn one(path: &str, hint: &str) -> String {
        format!("[[rule]]\npath = \"{path}\"\nhint = \"{hint}\"\nwhy = \"because\"\n")
    }

    #[test]
    fn the_first_match_decides() {
        let text = one("log/*.tmp", "short") + &one("log/*", "medium") + &one("**/*", "long");
        let rules = read(&text).unwrap();
        for (path, expected) in [
            ("log/a.tmp", Some(Hint::Short)),
            ("log/a", Some(Hint::Medium)),
            ("log/deep/a.tmp", Some(Hint::Long)),
            ("a", Some(Hint::Long)),
        ] {
            let place = FilePaths {
                relative: Path::new(path),
                absolute: Path::new("/nowhere"),
            };
            let found = rules.find(&place).map(|(_, rule)| rule.hint);
            assert_eq!(found, expected, "{path}");
        }
        assert_eq!(rules.rules[1].origin.to_string(), "my.toml:6");
    }

    #[test]
    fn names_that_are_not_utf8_match() {
        use std::os::unix::ffi::OsStrExt as _;
        let rules = read(&one("data/*.ibd", "long")).unwrap();
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"data/\xff\xfe.ibd"));
        let place = FilePaths {
            relative: odd,
            absolute: odd,
        };
        assert!(rules.find(&place).is_some());
    }

    #[test]
    fn errors_name_their_line() {
        for (text, expected) in [
            (String::new(), "my.toml has no rule; write one as"),
            (
                one("a", "short") + &one("b", "shrt"),
                "my.toml:7: `shrt` is not a hint; use short, medium, long, extreme or none",
            ),
            (
                one("a", "short") + "colour = \"red\"\n",
                "my.toml:5: unknown field `colour`",
            ),
            (
                "[[rule]]\npath = \"a\"\nhint = \"short\"\n".to_owned(),
                "my.toml:1: missing field `why`",
            ),
            (
                "\n[[rule]]\npath = \"a\"\nhint = \"short\"\nwhy = \" \"\n".to_owned(),
                "my.toml:5: `why` is empty",
            ),
            (
                one("/var/lib/mysql/ibdata1", "long"),
                "my.toml:2: `/var/lib/mysql/ibdata1` can match nothing",
            ),
            (one("../a", "long"), "my.toml:2: `../a` can match nothing"),
            (one("./a", "long"), "my.toml:2: `./a` can match nothing"),
            (one("a/", "long"), "my.toml:2: `a/` can match nothing"),
            (one("", "long"), "my.toml:2: `` can match nothing"),
            (
                one("a[b", "long"),
                "my.toml:2: `a[b` is not a valid glob: unclosed character class",
            ),
            ("[[rule]\n".to_owned(), "my.toml:1: "),
            (
                "[[rule]]\npath = 5\nhint = \"short\"\nwhy = \"x\"\n".to_owned(),
                "my.toml:2: invalid type",
            ),
            ("x = 1\n".to_owned(), "my.toml:1: unknown field `x`"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
