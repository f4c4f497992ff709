//! Reads, writes and validates `result.json`.
//!
//! The version is checked before anything else, so that a file of another version gives no other
//! error.

use std::collections::BTreeSet;

use super::detail::Series;
use super::{ExperimentResult, FORMAT_VERSION, HeadlineComparison, Ratio};

/// The result is inconsistent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InconsistentResult {
    /// An arm, a run, a comparison or the subject names an arm that is not listed.
    #[error("{place} names the arm {arm:?}, which `arms` does not list")]
    UnknownArm {
        /// The element that contains the name: `runs[3]`.
        place: String,
        arm: String,
    },
    /// A run, a comparison or a warning names a cell that is not listed.
    #[error("{place} names the cell {cell:?}, which `cells` does not list")]
    UnknownCell {
        /// The element that contains the name: `comparisons[3]`.
        place: String,
        cell: String,
    },
    /// Two arms or two cells share a name.
    #[error("{name:?} names two arms or two cells; give one of them another name")]
    Duplicate { name: String },
    /// A series of a run has lists of different lengths.
    #[error("{place}: the lists of the series {series:?} differ in length")]
    Uneven {
        /// The element that contains the series: `runs[3]`.
        place: String,
        /// Name of the series.
        series: String,
    },
    /// A number is infinite or not a number, which JSON cannot hold.
    #[error("{place}: {value} is not a finite number")]
    NotFinite {
        /// The element that contains the number.
        place: String,
        value: String,
    },
}

/// The text is not a result that this version can read.
#[derive(Debug, thiserror::Error)]
pub enum ReadResultError {
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("not a Saiga result: {0}")]
    Malformed(#[from] serde_json::Error),
    /// JSON without a `format_version`.
    #[error("not a Saiga result: `format_version` is missing")]
    NoVersion,
    /// Written by another version of Saiga.
    #[error(
        "result has format_version {found}, and this version of saiga reads {FORMAT_VERSION}; \
         use the saiga that wrote it, or repeat the experiment"
    )]
    UnknownVersion {
        /// The version in the file.
        found: String,
    },
    /// A reference is invalid.
    #[error("result contradicts itself: {0}")]
    Inconsistent(#[from] InconsistentResult),
}

/// The result cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteResultError {
    /// A reference is invalid, or a number cannot be represented in JSON.
    #[error("result contradicts itself: {0}")]
    Inconsistent(#[from] InconsistentResult),
    #[error("result cannot be written as JSON: {0}")]
    Serialise(#[from] serde_json::Error),
}

impl ExperimentResult {
    /// Parses and checks the text of a `result.json`.
    ///
    /// # Errors
    /// The version is checked first.
    pub fn from_json(text: &str) -> Result<Self, ReadResultError> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        let version = value
            .get("format_version")
            .ok_or(ReadResultError::NoVersion)?;
        if version.as_u64() != Some(u64::from(FORMAT_VERSION)) {
            return Err(ReadResultError::UnknownVersion {
                found: version.to_string(),
            });
        }
        let result: Self = serde_json::from_value(value)?;
        result.check()?;
        Ok(result)
    }

    /// The text of a `result.json`, indented, with a final line feed.
    ///
    /// # Errors
    /// Fails if [`check`](Self::check) fails.
    pub fn to_json(&self) -> Result<String, WriteResultError> {
        self.check()?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Checks that names refer to something, are unique, and that numbers are finite.
    ///
    /// # Errors
    /// Returns the first inconsistency in the order of the fields.
    pub fn check(&self) -> Result<(), InconsistentResult> {
        let arms = unique(self.arms.iter().map(|arm| arm.name.as_str()))?;
        let cells = unique(self.cells.iter().map(|cell| cell.id.as_str()))?;
        let arm = |place: &str, name: &str| {
            let (place, arm) = (place.to_owned(), name.to_owned());
            if arms.contains(name) {
                Ok(())
            } else {
                Err(InconsistentResult::UnknownArm { place, arm })
            }
        };
        let cell = |place: &str, id: &str| {
            let (place, cell) = (place.to_owned(), id.to_owned());
            if cells.contains(id) {
                Ok(())
            } else {
                Err(InconsistentResult::UnknownCell { place, cell })
            }
        };
        for (index, varies) in self.arms.iter().map(|one| &one.varies).enumerate() {
            let place = format!("arms[{index}]");
            varies.iter().try_for_each(|name| arm(&place, name))?;
        }
        for (index, run) in self.runs.iter().enumerate() {
            let place = format!("runs[{index}]");
            arm(&place, &run.arm)?;
            cell(&place, &run.cell)?;
            finite(
                &place,
                run.metrics
                    .values()
                    .copied()
                    .chain([run.seconds, run.foreign_cpu_s])
                    .chain(run.detail.iter().flat_map(|detail| detail.numbers())),
            )?;
            even(&place, run.detail.iter().flat_map(|detail| &detail.series))?;
        }
        for (index, comparison) in self.comparisons.iter().enumerate() {
            let place = format!("comparisons[{index}]");
            arm(&place, &comparison.a)?;
            arm(&place, &comparison.b)?;
            cell(&place, &comparison.cell)?;
            for id in comparison.a_cell.iter().chain(&comparison.b_cell) {
                cell(&place, id)?;
            }
            let medians = [comparison.a_median, comparison.b_median].into_iter();
            finite(&place, medians.chain(numbers(&comparison.ratio)))?;
        }
        if let Some(HeadlineComparison { a, b, ratio, .. }) = &self.headline_comparison {
            let place = "headline_comparison";
            arm(place, a)?;
            arm(place, b)?;
            finite(place, numbers(ratio))?;
        }
        for (index, warning) in self.warnings.iter().enumerate() {
            warning
                .cells
                .iter()
                .try_for_each(|id| cell(&format!("warnings[{index}]"), id))?;
        }
        self.subject
            .iter()
            .try_for_each(|name| arm("subject", name))
    }
}

fn unique<'a>(
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<&'a str>, InconsistentResult> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(InconsistentResult::Duplicate {
                name: name.to_owned(),
            });
        }
    }
    Ok(seen)
}

fn numbers(ratio: &Ratio) -> impl Iterator<Item = f64> + use<> {
    std::iter::once(ratio.median).chain(ratio.ci95.into_iter().flatten())
}

fn finite(place: &str, numbers: impl Iterator<Item = f64>) -> Result<(), InconsistentResult> {
    for number in numbers {
        if !number.is_finite() {
            let (place, value) = (place.to_owned(), number.to_string());
            return Err(InconsistentResult::NotFinite { place, value });
        }
    }
    Ok(())
}

fn even<'a>(
    place: &str,
    mut all: impl Iterator<Item = &'a Series>,
) -> Result<(), InconsistentResult> {
    let uneven = all.find(|series| !series.is_even());
    uneven.map_or(Ok(()), |series| {
        let (place, series) = (place.to_owned(), series.name.clone());
        Err(InconsistentResult::Uneven { place, series })
    })
}
