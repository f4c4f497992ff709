//! What is told apart: kinds of names, and single files of a kind that live otherwise than the rest of it.
//!
//! Names that differ in numbers only are of one kind: logs, segments. Where such files are tables, the number says nothing
//! of their heat, so those that are written most are looked at one by one.

use std::collections::BTreeMap;

use saiga_ftl::trace::kind_of;

use super::glob;
use crate::measure::{Behaviour, Conclusion, Evidence, conclude};

/// Single files that are told apart from their kind, at most, and the least share of all bytes that they have.
const MOST_SINGLES: usize = 32;
const SINGLE_SHARE: f64 = 0.01;
/// A single file's pages live so many times longer or shorter than those of the rest.
const UNLIKE: f64 = 4.0;

/// Files that are of one kind and live alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Subject {
    /// The place of a single file, or that of many with `N` for digits.
    pub(super) name: String,
    /// Their numbers.
    pub(super) files: Vec<usize>,
    pub(super) evidence: Evidence,
    pub(super) conclusion: Conclusion,
}

impl Subject {
    fn of(name: String, files: Vec<usize>, all: &[Evidence], seen_s: f64) -> Self {
        let evidence = Evidence::sum(files.iter().map(|file| &all[*file]));
        let conclusion = conclude(&evidence, seen_s);
        Self {
            name,
            files,
            evidence,
            conclusion,
        }
    }

    /// The logarithm (base 2) of the median lifetime in seconds; four times what was seen, where it is longer.
    pub(super) fn log_lifetime(&self) -> f64 {
        use crate::measure::Age::{Known, MoreThan};
        match self.evidence.lifetimes.quantile(0.5) {
            Some(Known(seconds)) => seconds.max(1e-9).log2(),
            Some(MoreThan(seconds)) => seconds.max(1e-9).log2() + 2.0,
            None => 0.0,
        }
    }

    /// Whether it is a file that was told apart from its kind.
    pub(super) fn is_single(&self, places: &[String]) -> bool {
        matches!(self.files[..], [file] if self.name == places[file] && kind_of(&self.name) != self.name)
    }
}

/// All that is written, the most first, and the places that no rule can name.
pub(super) fn tell_apart(
    places: &[String],
    all: &[Evidence],
    seen_s: f64,
) -> (Vec<Subject>, Vec<String>) {
    let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut skipped = Vec::new();
    let written = |file: &usize| all[*file].written_bytes;
    for file in (0..places.len()).filter(|file| written(file) > 0) {
        if glob::exact(&places[file]).is_some() {
            kinds.entry(kind_of(&places[file])).or_default().push(file);
        } else {
            skipped.push(places[file].clone());
        }
    }
    let bytes: u64 = all.iter().map(|evidence| evidence.written_bytes).sum();
    let mut subjects = Vec::new();
    let mut singles = 0;
    for (kind, mut files) in kinds {
        let whole = Subject::of(kind.clone(), files.clone(), all, seen_s);
        if whole.conclusion.behaviour == Behaviour::InPlace && files.len() > 1 {
            files.sort_by_key(|file| std::cmp::Reverse(written(file)));
            let candidates = files
                .clone()
                .into_iter()
                .filter(|file| written(file) as f64 >= SINGLE_SHARE * bytes as f64);
            for file in candidates.take(MOST_SINGLES) {
                if files.len() < 2 || singles == MOST_SINGLES {
                    break;
                }
                let single = Subject::of(places[file].clone(), vec![file], all, seen_s);
                let rest: Vec<usize> = files.iter().copied().filter(|one| *one != file).collect();
                let others = Subject::of(kind.clone(), rest.clone(), all, seen_s);
                if is_unlike(&single, &others) {
                    subjects.push(single);
                    singles += 1;
                    files = rest;
                }
            }
            files.sort_unstable();
        }
        subjects.push(Subject::of(kind, files, all, seen_s));
    }
    subjects.sort_by_key(|subject| std::cmp::Reverse(subject.evidence.written_bytes));
    (subjects, skipped)
}

fn is_unlike(one: &Subject, other: &Subject) -> bool {
    let is_told = |subject: &Subject| subject.conclusion.or.is_none();
    let differs = one.conclusion.hint != other.conclusion.hint && is_told(one) && is_told(other);
    differs || (one.log_lifetime() - other.log_lifetime()).abs() > UNLIKE.log2()
}
