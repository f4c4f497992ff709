//! Parses the command line of astream.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Maximum length of a path in bytes.
const PATH_LIMIT: usize = 1023;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Help,
    Stop,
    Start(DaemonOptions),
}

/// Options of the daemon.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct DaemonOptions {
    pub(super) dirs: Vec<PathBuf>,
    pub(super) rules: Vec<PathBuf>,
    pub(super) level: u8,
}

/// Parses the arguments after the program name.
pub(super) fn read(words: &[OsString]) -> Result<Action, String> {
    match words {
        [] => return Ok(Action::Help),
        [stop] if stop == "stop" => return Ok(Action::Stop),
        _ => {}
    }
    let mut start = DaemonOptions {
        level: 2,
        ..DaemonOptions::default()
    };
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let (name, own) = split(word);
        match name.as_bytes() {
            b"-h" | b"--help" => return Ok(Action::Help),
            b"-i" | b"--inotify_directory" => paths(&name, own, &mut rest, &mut start.dirs)?,
            b"-r" | b"--rule_file" => paths(&name, own, &mut rest, &mut start.rules)?,
            b"-l" | b"--log_level" => {
                let value = own.or_else(|| take(&mut rest)).unwrap_or_default();
                start.level = match value.as_bytes() {
                    [digit @ b'1'..=b'4'] => digit - b'0',
                    _ => {
                        let value = value.display();
                        return Err(format!("the log level must be 1, 2, 3 or 4, not `{value}`"));
                    }
                };
            }
            _ => {
                return Err(format!(
                    "unknown option `{}`; see astream -h",
                    word.display()
                ));
            }
        }
    }
    match (start.dirs.len(), start.rules.len()) {
        (0, _) => Err("no directory to label; give one with -i".to_owned()),
        (_, 0) => Err("no rule file; give one with -r".to_owned()),
        (dirs, rules) if dirs != rules => Err(format!(
            "{dirs} directories and {rules} rule files; give one rule file for each directory"
        )),
        _ => Ok(Action::Start(start)),
    }
}

/// Splits an option from a value in the same argument: `--name=value`, `-nvalue`.
fn split(word: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = word.as_bytes();
    let cut = if bytes.starts_with(b"--") {
        bytes
            .iter()
            .position(|byte| *byte == b'=')
            .map(|at| (at, at + 1))
    } else if bytes.len() > 2 && bytes.starts_with(b"-") {
        Some((2, 2))
    } else {
        None
    };
    let part = |bytes: Option<&[u8]>| OsStr::from_bytes(bytes.unwrap_or_default()).to_owned();
    match cut {
        None => (word.to_owned(), None),
        Some((end, start)) => (part(bytes.get(..end)), Some(part(bytes.get(start..)))),
    }
}

fn take(rest: &mut &[OsString]) -> Option<OsString> {
    let (word, after) = rest.split_first()?;
    *rest = after;
    Some(word.clone())
}

/// Takes all arguments up to the next option.
fn paths(
    name: &OsStr,
    own: Option<OsString>,
    rest: &mut &[OsString],
    into: &mut Vec<PathBuf>,
) -> Result<(), String> {
    let mut found: Vec<OsString> = own.into_iter().collect();
    while rest
        .first()
        .is_some_and(|word| !word.as_bytes().starts_with(b"-"))
    {
        found.extend(take(rest));
    }
    if found.is_empty() {
        return Err(format!("option `{}` needs a path", name.display()));
    }
    for path in found {
        if path.len() > PATH_LIMIT {
            let len = path.len();
            return Err(format!(
                "a path is {len} bytes long; the limit is {PATH_LIMIT}"
            ));
        }
        into.push(path.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Action, String> {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        read(&words)
    }

    fn start(dirs: &[&str], rules: &[&str], level: u8) -> Result<Action, String> {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        Ok(Action::Start(DaemonOptions {
            dirs: paths(dirs),
            rules: paths(rules),
            level,
        }))
    }

    #[test]
    fn all_forms_of_options_are_parsed() {
        for text in [
            "-i /a /b -r x y",
            "-r x y -i /a /b",
            "-i /a -r x -i /b -r y",
            "--inotify_directory /a /b --rule_file x y",
            "--inotify_directory=/a /b --rule_file=x --rule_file=y",
            "-i/a /b -rx y -l2",
            "-i /a /b -r x y --log_level 2",
        ] {
            assert_eq!(words(text), start(&["/a", "/b"], &["x", "y"], 2), "{text}");
        }
        assert_eq!(words("-l 4 -i /a -r x"), start(&["/a"], &["x"], 4));
        assert_eq!(words("stop"), Ok(Action::Stop));
        for text in ["", "-h", "--help", "-i /a -h"] {
            assert_eq!(words(text), Ok(Action::Help), "{text}");
        }
    }

    #[test]
    fn errors_name_the_argument() {
        let long = format!("-i /{} -r x", "a".repeat(1023));
        for (text, expected) in [
            ("-i /a", "no rule file"),
            ("-r x", "no directory to label"),
            ("-i /a /b -r x", "2 directories and 1 rule files"),
            ("-i -r x", "option `-i` needs a path"),
            ("-i /a -r x -l 5", "not `5`"),
            ("-i /a -r x -l", "not ``"),
            ("-i /a -r x -l two", "not `two`"),
            ("-x", "unknown option `-x`"),
            ("stop now", "unknown option `stop`"),
            ("/a", "unknown option `/a`"),
            (&long, "a path is 1024 bytes long"),
        ] {
            let error = words(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
