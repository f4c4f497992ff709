//! A parity program, and its header comment with instructions for the harness.
//!
//! The header is the leading run of `// key: value` (C) or `# key: value` (Python) lines. Keys:
//! `about` (what it shows; required), `upgraded` (yes, no or any, with the reason; required),
//! `exit` (a code, or `signal N`; default 0), `args`, `env` (NAME=VALUE words), `deviates` (why the
//! library may differ: its arm is then compared with NAME.library beside the program), `spared`
//! (why a random end of a channel is visible: the random arm is left out), `variants` (C: plain,
//! fortified; default fortified), `flags` (words for cc), `limit` (seconds; default 30).
//!
//! An unknown key is an error: a misspelt one must not be ignored.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::bounded::Ending;

/// The language of a program, which decides how it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Compiled by the harness, once per variant.
    C,
    /// Run by the python3 on the PATH.
    Python,
}

/// The required result of the kernel's byte counts for a program's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upgraded {
    /// Every connection that the program proves has left the kernel.
    Yes,
    /// Every connection that the program proves is still on the kernel.
    No,
    /// The counts are not checked.
    Any,
}

/// A way of compiling a C program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// `-O1`, no fortification.
    Plain,
    /// `-O1 -D_FORTIFY_SOURCE=2`: calls the `__*_chk` functions.
    Fortified,
}

/// One program in `programs/`, with its header.
#[derive(Debug, Clone)]
pub struct Program {
    /// `c/NAME.c` or `py/NAME.py`.
    pub name: String,
    pub source: PathBuf,
    /// Given by the folder's name.
    pub language: Language,
    pub upgraded: Upgraded,
    /// Required ending, on all arms.
    pub exit: Ending,
    pub args: Vec<String>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
    /// Why the library's output differs from the kernel's.
    pub deviates: Option<String>,
    /// Why random upgrades and downgrades are visible to the program.
    pub spared: Option<String>,
    pub variants: Vec<Variant>,
    /// Additional words for cc.
    pub flags: Vec<String>,
    /// Time after which the program counts as hung.
    pub limit: Duration,
}

/// The folder `programs/`.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// The names of all parity programs, as [`load`] takes them, sorted.
///
/// # Panics
/// If the folder cannot be read.
pub fn all() -> Vec<String> {
    let mut names = Vec::new();
    for extension in ["c", "py"] {
        let files = fs::read_dir(folder().join(extension)).expect("programs/ is in the crate");
        for path in files.map(|entry| entry.expect("programs/ is readable").path()) {
            let stem = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            if path.extension().is_some_and(|found| found == extension) && stem != "trial" {
                names.push(format!("{extension}/{stem}.{extension}"));
            }
        }
    }
    names.sort();
    names
}

/// Reads the program `name` (`c/NAME.c` or `py/NAME.py`) and its header.
///
/// # Panics
/// If the file is missing or its header is invalid.
pub fn load(name: &str) -> Program {
    let source = folder().join(name);
    let text = fs::read_to_string(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (language, mark) = if name.starts_with("c/") {
        (Language::C, "//")
    } else {
        (Language::Python, "#")
    };
    let mut program = Program {
        name: name.to_owned(),
        source,
        language,
        upgraded: Upgraded::Any,
        exit: Ending::Exited(0),
        args: Vec::new(),
        env: Vec::new(),
        deviates: None,
        spared: None,
        variants: vec![Variant::Fortified],
        flags: Vec::new(),
        limit: Duration::from_secs(30),
    };
    let mut seen = Vec::new();
    for line in text.lines().map_while(|line| line.strip_prefix(mark)) {
        let (key, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("{name}: header line without a colon: {line}"));
        program.set(key.trim(), value.trim());
        seen.push(key.trim().to_owned());
    }
    for required in ["about", "upgraded"] {
        assert!(
            seen.iter().any(|key| key == required),
            "{name}: the header lacks '{required}:'"
        );
    }
    program
}

impl Program {
    fn set(&mut self, key: &str, value: &str) {
        let name = &self.name;
        let words = || {
            value
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        match key {
            "about" => assert!(!value.is_empty(), "{name}: say what it is about"),
            "upgraded" => {
                self.upgraded = match value {
                    "yes" => Upgraded::Yes,
                    "no" => Upgraded::No,
                    _ if value.split(',').next() == Some("any") => Upgraded::Any,
                    _ => panic!("{name}: 'upgraded' is yes, no or any, not '{value}'"),
                }
            }
            "exit" => self.exit = ending(name, value),
            "deviates" => self.deviates = Some(value.to_owned()),
            "spared" => self.spared = Some(value.to_owned()),
            "args" => self.args = words(),
            "env" => {
                self.env = words()
                    .iter()
                    .filter_map(|word| word.split_once('='))
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect();
            }
            "variants" => {
                self.variants = value
                    .split_whitespace()
                    .map(|word| match word {
                        "plain" => Variant::Plain,
                        "fortified" => Variant::Fortified,
                        _ => panic!("{name}: no variant '{word}': plain or fortified"),
                    })
                    .collect();
            }
            "flags" => self.flags = words(),
            "limit" => {
                let seconds = value
                    .parse()
                    .unwrap_or_else(|_| panic!("{name}: limit '{value}'"));
                self.limit = Duration::from_secs(seconds);
            }
            _ => panic!("{name}: no header key '{key}'"),
        }
    }
}

fn ending(name: &str, value: &str) -> Ending {
    let number = |text: &str| {
        text.trim()
            .parse()
            .unwrap_or_else(|_| panic!("{name}: 'exit' is N or 'signal N'"))
    };
    match value.strip_prefix("signal") {
        Some(signal) => Ending::Signalled(number(signal)),
        None => Ending::Exited(number(value)),
    }
}
