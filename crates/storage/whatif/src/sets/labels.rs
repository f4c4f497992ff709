//! Applies the labeller's rules to a trace: each hint or named stream becomes a stream of the
//! device.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use saiga_ftl::trace::Trace;
use saiga_streams::Hint;
use saiga_streams::rules::{FilePaths, Rule, Rules};

use super::{Assignment, By, Joined, Match};

/// The lowest hint with a stream of its own; lower values have the default stream.
const FIRST_HINT: u64 = 2;

pub(super) fn join(rules: &Rules, trace: &Trace, written: &[u64], by: By) -> Joined {
    let names: Vec<Option<String>> = rules
        .rules
        .iter()
        .map(|rule| stream_name(rule, by))
        .collect();
    let mut streams: Vec<(usize, String)> = Vec::new();
    let numbers: Vec<usize> = names
        .into_iter()
        .map(|name| {
            let Some(name) = name else { return 0 };
            let known = streams.iter().find(|(_, known)| *known == name);
            if let Some((number, _)) = known {
                return *number;
            }
            let number = streams.len() + 1;
            streams.push((number, name));
            number
        })
        .collect();
    let rule_matches = rules.rules.iter().zip(&numbers);
    let mut matches: Vec<Match> = rule_matches
        .map(|(rule, stream)| Match {
            pattern: rule.pattern.to_string(),
            stream: *stream,
            files: 0,
            written_bytes: 0,
        })
        .collect();
    let mut of_file = HashMap::new();
    for (name, written) in trace.files.iter().zip(written) {
        let paths = FilePaths {
            relative: Path::new(trace.place(name)),
            absolute: Path::new(name),
        };
        if let Some((number, _)) = rules.find(&paths) {
            matches[number].files += 1;
            matches[number].written_bytes += written;
            of_file.insert(name.clone(), numbers[number]);
        }
    }
    Joined {
        name: String::new(),
        by,
        streams,
        matches,
        written_bytes: 0,
        is_predefined: false,
        assignment: Rc::new(Assignment {
            of_file,
            no_file: 0,
        }),
    }
}

/// Returns the name of the stream of a rule's files; `None` for the default stream.
fn stream_name(rule: &Rule, by: By) -> Option<String> {
    let is_hint = |hint: Hint| hint.raw() >= FIRST_HINT;
    let hint = || is_hint(rule.hint).then(|| rule.hint.to_string());
    match by {
        By::Stream => match &rule.stream {
            Some(stream) if rule.hint != Hint::NotSet => Some(stream.clone()),
            Some(_) | None => hint(),
        },
        By::Hint => hint(),
        By::F2fs => hint().filter(|_| matches!(rule.hint, Hint::Short | Hint::Extreme)),
    }
}
