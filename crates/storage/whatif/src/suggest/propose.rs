//! Creates rules for the subjects: globs as general as possible, in an order in which the first
//! match is right for every file of the trace.
//!
//! A rule whose glob matches a file of another class comes after the rule of that file. If there is
//! no such order, the files get rules of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use saiga_ftl::trace::kind_of;
use saiga_streams::Hint;
use saiga_streams::rules::{Origin, Pattern, Rule, Rules};

use super::glob;
use super::subjects::Subject;
use crate::measure::{Evidence, conclude};

/// Most characters of a stream's name.
const NAME_LETTERS: usize = 24;

/// A draft of a rule.
#[derive(Debug, Clone)]
struct Draft {
    glob: String,
    pattern: Pattern,
    /// The class of its files, which have one hint and stream.
    class: usize,
    /// The subjects of its files.
    subjects: Vec<usize>,
    files: Vec<usize>,
}

/// Returns the name of each subject's stream, after the most written subject in the stream.
pub(super) fn stream_names(
    subjects: &[Subject],
    groups: &[usize],
    places: &[String],
) -> Vec<String> {
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for (subject, group) in subjects.iter().zip(groups) {
        if names.contains_key(group) {
            continue;
        }
        let base = subject
            .files
            .first()
            .map_or("data", |file| places[*file].as_str());
        let base = slug(base, subject.is_single(places));
        let mut name = base.clone();
        let mut number = 2;
        while names.values().any(|known| *known == name) {
            name = format!("{base}-{number}");
            number += 1;
        }
        names.insert(*group, name);
    }
    groups.iter().map(|group| names[group].clone()).collect()
}

/// Returns the words of the last path component that has any: `#ib_16384_0.dblwr` becomes
/// `ib-dblwr`.
fn slug(place: &str, with_digits: bool) -> String {
    for part in place.rsplit('/') {
        let letters = if with_digits {
            part.to_owned()
        } else {
            part.chars()
                .map(|c| if c.is_ascii_digit() { ' ' } else { c })
                .collect()
        };
        if !with_digits && kind_of(part) == "N" {
            continue;
        }
        let words = letters.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<String> = words
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        let name: String = words.join("-").chars().take(NAME_LETTERS).collect();
        if !name.is_empty() {
            return name;
        }
    }
    "data".to_owned()
}

/// The hint and the stream of a subject.
pub(super) type Label = (Hint, String);

/// Creates the rules. Subjects with [`Hint::NotSet`] get none.
pub(super) fn rules(
    subjects: &[Subject],
    labels: &[Label],
    places: &[String],
    seen_s: f64,
) -> Rules {
    let classes = classes(labels);
    let class_of_file = class_of_file(subjects, &classes);
    let mut drafts: Vec<Draft> = Vec::new();
    for (number, subject) in subjects.iter().enumerate() {
        if labels[number].0 != Hint::NotSet {
            drafts.extend(drafts_of(number, subject, classes[number], places));
        }
    }
    let drafts = generalised(drafts, subjects, places, &class_of_file);
    let drafts = ordered(drafts, places, &class_of_file);
    let rules = drafts
        .into_iter()
        .map(|draft| rule(draft, subjects, labels, seen_s));
    Rules {
        about: None,
        rules: rules.collect(),
    }
}

/// Numbers the classes of subjects: subjects with the same hint and stream have one class.
fn classes(labels: &[Label]) -> Vec<usize> {
    let mut known = Vec::new();
    let mut numbers = Vec::new();
    for label in labels {
        let number = known.iter().position(|one| *one == label);
        numbers.push(number.unwrap_or_else(|| {
            known.push(label);
            known.len() - 1
        }));
    }
    numbers
}

/// Returns the class of each written file.
fn class_of_file(subjects: &[Subject], classes: &[usize]) -> BTreeMap<usize, usize> {
    let mut of_file = BTreeMap::new();
    for (subject, class) in subjects.iter().zip(classes) {
        of_file.extend(subject.files.iter().map(|file| (*file, *class)));
    }
    of_file
}

/// Creates the drafts of a subject, one for each form of its file names; usually one.
fn drafts_of(number: usize, subject: &Subject, class: usize, places: &[String]) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    let is_single = subject.is_single(places);
    for file in &subject.files {
        let of_kind = (!is_single)
            .then(|| glob::of_kind(&places[*file]))
            .flatten();
        let Some(glob) = of_kind.or_else(|| glob::exact(&places[*file])) else {
            continue;
        };
        if let Some(draft) = drafts.iter_mut().find(|draft| draft.glob == glob) {
            draft.files.push(*file);
        } else if let Some(pattern) = glob::compiled(&glob) {
            drafts.push(Draft {
                glob,
                pattern,
                class,
                subjects: vec![number],
                files: vec![*file],
            });
        }
    }
    drafts
}

/// Merges drafts of one class with a common extension or directory if the general glob matches no
/// file of another class.
fn generalised(
    mut drafts: Vec<Draft>,
    subjects: &[Subject],
    places: &[String],
    class_of_file: &BTreeMap<usize, usize>,
) -> Vec<Draft> {
    let is_kind = |draft: &Draft| {
        draft
            .subjects
            .iter()
            .all(|one| !subjects[*one].is_single(places))
    };
    let mut wanted: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for draft in drafts.iter().filter(|draft| is_kind(draft)) {
        let general: BTreeSet<String> = draft
            .files
            .iter()
            .flat_map(|file| general(&places[*file]))
            .collect();
        for glob in general {
            *wanted.entry((draft.class, glob)).or_default() += 1;
        }
    }
    let mut wanted: Vec<((usize, String), usize)> =
        wanted.into_iter().filter(|(_, kinds)| *kinds > 1).collect();
    wanted.sort_by_key(|(_, kinds)| std::cmp::Reverse(*kinds));
    for ((class, glob), _) in wanted {
        let Some(pattern) = glob::compiled(&glob) else {
            continue;
        };
        let is_matched = |file: &usize| glob::matches(&pattern, &places[*file]);
        let is_foreign = |(file, other): (&usize, &usize)| *other != class && is_matched(file);
        if class_of_file.iter().any(is_foreign) {
            continue;
        }
        let is_inside = |draft: &Draft| {
            draft.class == class && is_kind(draft) && draft.files.iter().all(is_matched)
        };
        let (inside, outside): (Vec<Draft>, Vec<Draft>) = drafts.into_iter().partition(is_inside);
        drafts = outside;
        if inside.len() < 2 {
            drafts.extend(inside);
            continue;
        }
        drafts.push(Draft {
            glob,
            pattern: pattern.clone(),
            class,
            subjects: inside
                .iter()
                .flat_map(|draft| draft.subjects.clone())
                .collect(),
            files: inside
                .iter()
                .flat_map(|draft| draft.files.clone())
                .collect(),
        });
    }
    drafts
}

/// Returns the general globs of a place: `**/*.ibd` and `db/**` for `db/t1.ibd`.
fn general(place: &str) -> Vec<String> {
    let mut globs = Vec::new();
    let (directory, name) = place.rsplit_once('/').unwrap_or(("", place));
    if let Some((stem, ending)) = name.rsplit_once('.')
        && !stem.is_empty()
        && ending.starts_with(|c: char| c.is_ascii_alphabetic())
        && kind_of(ending) == ending
    {
        globs.push(format!("**/*.{}", glob::escaped(ending)));
    }
    let top = directory.split('/').next().unwrap_or("");
    if !top.is_empty() && kind_of(top) == top {
        globs.push(format!("{}/**", glob::escaped(top)));
    }
    globs
}

/// Orders the drafts so that the first match of each file is of its class.
fn ordered(
    mut left: Vec<Draft>,
    places: &[String],
    class_of_file: &BTreeMap<usize, usize>,
) -> Vec<Draft> {
    let mut done: Vec<Draft> = Vec::new();
    let mut is_served: BTreeSet<usize> = BTreeSet::new();
    while !left.is_empty() {
        // A draft that matches no file of another class without an earlier match.
        let takes_none = |draft: &Draft| {
            class_of_file.iter().all(|(file, class)| {
                *class == draft.class
                    || is_served.contains(file)
                    || !glob::matches(&draft.pattern, &places[*file])
            })
        };
        let next = left.iter().position(takes_none);
        let draft = match next {
            Some(at) => left.remove(at),
            None => {
                // Split the draft with the fewest files into exact names.
                let fewest = (0..left.len()).min_by_key(|at| left[*at].files.len());
                let draft = left.remove(fewest.unwrap_or(0));
                left.splice(0..0, one_by_one(&draft, places));
                continue;
            }
        };
        is_served.extend(
            class_of_file
                .keys()
                .filter(|file| glob::matches(&draft.pattern, &places[**file])),
        );
        done.push(draft);
    }
    done
}

fn one_by_one(draft: &Draft, places: &[String]) -> Vec<Draft> {
    let exact = |file: &usize| {
        let glob = glob::exact(&places[*file])?;
        Some(Draft {
            pattern: glob::compiled(&glob)?,
            glob,
            files: vec![*file],
            ..draft.clone()
        })
    };
    draft.files.iter().filter_map(exact).collect()
}

fn rule(draft: Draft, subjects: &[Subject], labels: &[Label], seen_s: f64) -> Rule {
    let own: Vec<&Subject> = draft.subjects.iter().map(|one| &subjects[*one]).collect();
    let evidence = Evidence::sum(own.iter().map(|subject| &subject.evidence));
    let files = own.iter().map(|subject| subject.files.len()).sum();
    let conclusion = match own[..] {
        [one] => one.conclusion.clone(),
        _ => conclude(&evidence, seen_s),
    };
    let why = conclusion.why(&evidence, files, seen_s);
    let first = draft.subjects.first().copied().unwrap_or(0);
    let (hint, stream) = &labels[first];
    Rule {
        pattern: draft.pattern,
        hint: *hint,
        why,
        stream: Some(stream.clone()),
        force: false,
        origin: Origin {
            source: Arc::from("suggested"),
            line: 0,
            is_builtin: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_after_their_files() {
        for (place, with_digits, expected) in [
            ("#ib_16384_0.dblwr", false, "ib-dblwr"),
            ("pg_wal/00000001000000000000002A", false, "pg-wal"),
            ("base/16384/2619", false, "base"),
            ("base/16384/2619", true, "2619"),
            ("db/t1.ibd", true, "t1-ibd"),
            ("é/12", false, "data"),
        ] {
            assert_eq!(slug(place, with_digits), expected);
        }
    }

    #[test]
    fn general_globs_have_extensions_and_directories() {
        assert_eq!(general("db/t1.ibd"), ["**/*.ibd", "db/**"]);
        assert_eq!(general("binlog.000001"), [""; 0]);
        assert_eq!(general("12/x"), [""; 0]);
        assert_eq!(general("base/1/2"), ["base/**"]);
    }
}
