//! The last lines of BenchmarkSQL's log, which users' scripts parse.

use super::record::Record;
use crate::latency::Phase;

/// The lines in BenchmarkSQL's format, with correct values. BenchmarkSQL's own `Measured tpmTOTAL`
/// counts one transaction too many, and both of its figures include failed transactions. The
/// figures of a partial sum are labelled `Partial` instead of `Measured`, so that no script takes
/// them for the result of the run.
#[must_use]
pub fn lines(record: &Record) -> String {
    let conditions = &record.conditions;
    let all: u64 = Phase::ALL
        .into_iter()
        .map(|phase| record.tracks.total(phase))
        .sum();
    let how = match record.partial {
        Some(_) => "Partial",
        None => "Measured",
    };
    format!(
        "Term-00, {how} tpmC (NewOrders) = {:?}\n\
         Term-00, {how} tpmTOTAL = {:?}\n\
         Term-00, Session Start     = {}\n\
         Term-00, Session End       = {}\n\
         Term-00, Transaction Count = {all}\n",
        hundredths(record.tpmc()),
        hundredths(record.tpm_total()),
        conditions.session_start,
        conditions.session_end,
    )
}

/// Truncates to two decimals, as BenchmarkSQL does. `{:?}` prints a whole number with `.0`, as Java
/// does.
fn hundredths(number: f64) -> f64 {
    (number * 100.0).trunc() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_truncated_and_formatted_as_in_java() {
        let text = |number| format!("{:?}", hundredths(number));
        assert_eq!(text(29_633.119), "29633.11");
        assert_eq!(text(29_633.0), "29633.0");
        assert_eq!(text(12.5), "12.5");
    }
}
