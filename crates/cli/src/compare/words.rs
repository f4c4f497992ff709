//! Puts the workload of `saiga compare` in front of its options, where the grammar expects it.
//!
//! `saiga compare --out DIR redis` and `saiga compare FILE.toml` are the forms of a command without
//! subcommands, which users have in scripts. They become `saiga compare redis --out DIR` and `saiga
//! compare file FILE.toml`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use clap::Command;

/// The words of a `saiga compare` with the workload as third word, if they name a workload. `saiga`
/// is the whole grammar.
pub(crate) fn workload_first(mut words: Vec<OsString>, saiga: &Command) -> Vec<OsString> {
    let Some(grammar) = saiga.find_subcommand("compare") else {
        return words;
    };
    let with_value = options_with_value(grammar);
    let mut at = 2;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if text.starts_with('-') {
            at += 1 + usize::from(with_value.contains(text.as_ref()));
            continue;
        }
        let is_name = grammar.find_subcommand(text.as_ref()).is_some();
        let is_file = !is_name && is_file(&text);
        if is_name || is_file {
            words[2..=at].rotate_right(1);
        }
        if is_file {
            words.insert(2, "file".into());
        }
        break;
    }
    words
}

/// Whether a word names an experiment file.
fn is_file(word: &str) -> bool {
    let extension = Path::new(word).extension();
    extension.is_some_and(|end| end == "toml") || word.contains('/')
}

/// The options of all workloads after which a value follows, such as `--out` and `-c`.
fn options_with_value(grammar: &Command) -> HashSet<String> {
    let all = grammar.get_subcommands().flat_map(Command::get_arguments);
    let with_value = all.filter(|one| one.get_action().takes_values());
    let names = with_value.flat_map(|one| {
        let long = one.get_long().map(|name| format!("--{name}"));
        let short = one.get_short().map(|name| format!("-{name}"));
        [long, short]
    });
    names.flatten().collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::args::Cli;

    use super::*;

    fn put(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = workload_first(words, &Cli::command()).into_iter();
        let words: Vec<String> = words.map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn options_may_come_before_the_workload() {
        for (given, expected) in [
            ("saiga compare redis --out d", "saiga compare redis --out d"),
            ("saiga compare --out d redis", "saiga compare redis --out d"),
            (
                "saiga compare --out redis sql",
                "saiga compare sql --out redis",
            ),
            (
                "saiga compare --json --out=d tpcc",
                "saiga compare tpcc --json --out=d",
            ),
            (
                "saiga compare -c 1,50 -t set redis",
                "saiga compare redis -c 1,50 -t set",
            ),
            (
                "saiga compare --full redis --json",
                "saiga compare redis --full --json",
            ),
        ] {
            assert_eq!(put(given), expected, "{given}");
        }
    }

    #[test]
    fn a_path_is_an_experiment_file() {
        for (given, expected) in [
            (
                "saiga compare x.toml --dry-run",
                "saiga compare file x.toml --dry-run",
            ),
            (
                "saiga compare --set a=b ./x",
                "saiga compare file ./x --set a=b",
            ),
            ("saiga compare file x.toml", "saiga compare file x.toml"),
        ] {
            assert_eq!(put(given), expected, "{given}");
        }
    }

    #[test]
    fn other_command_lines_stay() {
        for line in [
            "saiga compare",
            "saiga compare --help",
            "saiga compare mongodb --out d",
            "saiga compare --out",
        ] {
            assert_eq!(put(line), line);
        }
    }
}
