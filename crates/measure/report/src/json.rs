//! The report for programs: the result itself.

use saiga_experiment::result::{ExperimentResult, WriteResultError};

/// The text of a `result.json`.
///
/// # Errors
/// [`WriteResultError`] when the result contradicts itself.
pub fn render(result: &ExperimentResult) -> Result<String, WriteResultError> {
    result.to_json()
}
