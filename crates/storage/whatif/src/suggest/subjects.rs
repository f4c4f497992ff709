//! Subjects: kinds of file names, and single files with other lifetimes than the rest of their
//! kind.
//!
//! Names that only differ in numbers are of one kind, such as logs and segments. The numbers of
//! tables do not indicate how often they are written, so the most written files are checked one by
//! one.

use std::collections::BTreeMap;

use saiga_ftl::trace::kind_of;

use super::glob;
use crate::measure::{Behaviour, Conclusion, Evidence, conclude};

/// Most single files that become subjects, and their least share of all bytes.
const MOST_SINGLES: usize = 32;
const SINGLE_SHARE: f64 = 0.01;
/// The pages of a single file must live this many times longer or shorter than those of the rest.
const UNLIKE: f64 = 4.0;

/// Files of one kind with similar lifetimes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Subject {
    /// The place of a single file, or that of several with `N` for numbers.
    pub(super) name: String,
    /// Indices of the files.
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

    /// Returns the binary logarithm of the median lifetime in seconds; if that is longer than the
    /// trace, of four times the observed time.
    pub(super) fn log_lifetime(&self) -> f64 {
        use crate::measure::Age::{Known, MoreThan};
        match self.evidence.lifetimes.quantile(0.5) {
            Some(Known(seconds)) => seconds.max(1e-9).log2(),
            Some(MoreThan(seconds)) => seconds.max(1e-9).log2() + 2.0,
            None => 0.0,
        }
    }

    /// Whether the subject is a single file of a kind with other files.
    pub(super) fn is_single(&self, places: &[String]) -> bool {
        matches!(self.files[..], [file] if self.name == places[file] && kind_of(&self.name) != self.name)
    }
}

/// Returns the subjects, the most written first, and the written places that no rule can name.
pub(super) fn distinguish(
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
    let is_certain = |subject: &Subject| subject.conclusion.or.is_none();
    let differs =
        one.conclusion.hint != other.conclusion.hint && is_certain(one) && is_certain(other);
    differs || (one.log_lifetime() - other.log_lifetime()).abs() > UNLIKE.log2()
}
