//! Parses rules in astream's grammar, `REGEX STREAM` in each line, as astream parses them.
//!
//! REGEX is a POSIX extended regular expression, searched in the absolute path; STREAM is the value
//! of the hint. astream ignores some input silently: everything after an empty line, lines of one
//! word, and numbers that the kernel refuses. This parser also ignores it, with a [`Warning`].

use std::path::Path;
use std::sync::Arc;

use super::{Origin, Pattern, Problem, Rule, Rules, RulesError, Warning, ere::Ere};
use crate::hint::Hint;

/// astream's limit for a line, in bytes.
pub const LINE_LIMIT: usize = 1023;
/// astream's limit for the rules of a file.
pub const RULE_LIMIT: usize = 256;

/// Parses the bytes of a rule file. `path` is used only in messages.
///
/// # Errors
/// Fails if astream would refuse the file. The error has the line.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<(Rules, Vec<Warning>), RulesError> {
    let source: Arc<str> = Arc::from(path.display().to_string());
    let mut rules = Vec::new();
    let mut warnings = Vec::new();
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    for (line, content) in (1..).zip(lines.iter().copied()) {
        let wrong = |problem| RulesError::Line {
            path: path.to_owned(),
            line,
            problem,
        };
        let mut warn = |text: String| {
            warnings.push(Warning {
                path: path.to_owned(),
                line,
                text,
            });
        };
        if content.is_empty() {
            let rest = lines.len() - line;
            if rest > 0 {
                warn(format!(
                    "astream stops at an empty line and does not read the rest (lines: {rest})"
                ));
            }
            break;
        }
        if content.len() > LINE_LIMIT {
            return Err(wrong(Problem::Long(content.len())));
        }
        match read_line(content).map_err(wrong)? {
            None => warn("astream wants `REGEX STREAM`: a line of one word is ignored".to_owned()),
            Some((pattern, number)) => {
                if rules.len() == RULE_LIMIT {
                    return Err(wrong(Problem::Many));
                }
                if let Some(problem) = problem_with(number) {
                    warn(problem);
                }
                let hint = u64::try_from(number).ok().and_then(Hint::from_raw);
                rules.push(Rule {
                    why: format!("stream {number} of astream's rule file"),
                    pattern,
                    hint: hint.unwrap_or(Hint::NotSet),
                    stream: None,
                    force: false,
                    origin: Origin {
                        source: Arc::clone(&source),
                        line,
                        is_builtin: false,
                    },
                });
            }
        }
    }
    if rules.is_empty() {
        return Err(RulesError::Empty(path.to_owned()));
    }
    Ok((Rules { about: None, rules }, warnings))
}

/// Returns the pattern and the stream number of one line; `None` for fewer than two words.
fn read_line(content: &[u8]) -> Result<Option<(Pattern, i64)>, Problem> {
    let words: Vec<&[u8]> = content
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
        .collect();
    let (expression, stream) = match words.as_slice() {
        [] | [_] => return Ok(None),
        [expression, stream] => (*expression, *stream),
        more => return Err(Problem::Words(more.len())),
    };
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let number = atoi(stream);
    if number == 0 && stream.strip_suffix(b"\r").unwrap_or(stream) != b"0" {
        return Err(Problem::Stream(shown(stream)));
    }
    let text = shown(expression);
    match Ere::new(expression) {
        Ok(regex) => Ok(Some((Pattern::Search { text, regex }, number))),
        Err(error) => Err(Problem::Ere { text, error }),
    }
}

/// Parses the number at the beginning like atoi(3), but saturates. Returns 0 without a number.
fn atoi(word: &[u8]) -> i64 {
    let text = word.trim_ascii_start();
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.fold(0_i64, |value, byte| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(byte - b'0'))
    });
    sign * value
}

/// Returns the warning about a stream number that gives files no useful hint.
fn problem_with(number: i64) -> Option<String> {
    match number {
        0 => Some("stream 0 is not a hint: files that match are left as they are".to_owned()),
        1 => Some(
            "stream 1 means that the lifetime is unknown: drives treat it as no hint; use streams 2 to 5"
                .to_owned(),
        ),
        2..=5 => None,
        other => Some(format!(
            "stream {other} is not a hint and the kernel refuses it: files that match are left as \
             they are; use streams 2 to 5"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::FilePaths;

    fn read(text: &str) -> Result<(Rules, Vec<String>), String> {
        let (rules, warnings) =
            parse(Path::new("rules"), text.as_bytes()).map_err(|error| error.to_string())?;
        Ok((rules, warnings.iter().map(ToString::to_string).collect()))
    }

    fn hint(rules: &Rules, absolute: &str) -> Option<Hint> {
        let place = FilePaths {
            relative: Path::new("x"),
            absolute: Path::new(absolute),
        };
        rules.find(&place).map(|(_, rule)| rule.hint)
    }

    /// The rules for MySQL in astream's manual.
    #[test]
    fn the_rules_of_astreams_manual_are_accepted() {
        let text = "/data/mysql/ib_logfile 2\n/data/mysql/ibdata1$ 3\n/data/mysql/undo 4\n/data/mysql/mysql-bin 5\n";
        let (rules, warnings) = read(text).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        for (path, expected) in [
            ("/data/mysql/ib_logfile0", Some(Hint::Short)),
            ("/data/mysql/ibdata1", Some(Hint::Medium)),
            ("/data/mysql/ibdata10", None),
            ("/data/mysql/undo_001", Some(Hint::Long)),
            ("/data/mysql/mysql-bin.000001", Some(Hint::Extreme)),
            ("/else/data/mysql/undo_001", Some(Hint::Long)),
            ("/data/mysql/shop/t.ibd", None),
        ] {
            assert_eq!(hint(&rules, path), expected, "{path}");
        }
    }

    #[test]
    fn the_first_match_decides_even_if_it_has_no_hint() {
        let (rules, _) = read("keep 0\na 2\n").unwrap();
        assert_eq!(hint(&rules, "/keep/a"), Some(Hint::NotSet));
    }

    #[test]
    fn input_that_astream_ignores_silently_causes_a_warning() {
        let (rules, warnings) = read("a 2\nlonely\nb 3\n\nc 4\nd 5\n").unwrap();
        assert_eq!(rules.rules.len(), 2);
        assert_eq!(
            warnings,
            [
                "rules:2: astream wants `REGEX STREAM`: a line of one word is ignored",
                "rules:4: astream stops at an empty line and does not read the rest (lines: 2)",
            ]
        );
        for (line, part) in [
            ("a 1", "drives treat it as no hint"),
            ("a 0", "stream 0 is not a hint"),
            ("a -3", "stream -3 is not a hint and the kernel refuses it"),
            ("a 99", "stream 99 is not a hint and the kernel refuses it"),
            ("a 4294967298", "stream 4294967298 is not a hint"),
        ] {
            let (rules, warnings) = read(line).unwrap();
            assert!(warnings[0].contains(part), "{line}: {warnings:?}");
            assert_ne!(hint(&rules, "/a"), Some(Hint::Short), "{line}");
        }
    }

    #[test]
    fn numbers_are_parsed_like_atoi() {
        for (word, expected) in [
            ("2", 2),
            ("+2", 2),
            ("02", 2),
            ("2abc", 2),
            ("2\r", 2),
            ("\t2", 2),
        ] {
            let (rules, _) = read(&format!("a {word}\n")).unwrap();
            assert_eq!(rules.rules[0].hint.raw(), expected, "{word:?}");
        }
        let (rules, _) = read("a   4   \n").unwrap();
        assert_eq!(rules.rules[0].hint, Hint::Long);
    }

    #[test]
    fn input_that_astream_refuses_is_an_error_with_its_line() {
        let long = format!("{} 2\n", "a".repeat(1022));
        let many = "a 2\n".repeat(257);
        for (text, expected) in [
            (
                "a 2\n/my data/b 3\n",
                "rules:2: failed to parse the rule: 3 words",
            ),
            (
                "a x\n",
                "rules:1: failed to parse the rule: the stream `x` is not a number",
            ),
            (
                "a 00\n",
                "rules:1: failed to parse the rule: the stream `00` is not a number",
            ),
            (
                "a\t2 b\n",
                "rules:1: failed to parse the rule: the stream `b` is not a number",
            ),
            (
                "(a 2\n",
                "rules:1: `(a` is not a valid regular expression: Unmatched ( or \\(",
            ),
            (
                &long,
                "rules:1: 1024 bytes; 1023 is astream's limit for a line",
            ),
            (&many, "rules:257: more than 256 rules"),
            ("", "rules has no rule"),
            ("lonely\n", "rules has no rule"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
