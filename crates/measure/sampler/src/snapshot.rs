//! The latest row of a running sampler, for a live display.

use std::sync::Arc;

/// One row with the names of its metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Number of the row. Row 0 is made at the start and has no rates.
    pub row: u64,
    /// Seconds since the start.
    pub time_s: f64,
    /// Name of the current phase; empty before the first mark.
    pub phase: String,
    pub(crate) names: Arc<[String]>,
    pub(crate) cells: Vec<Option<f64>>,
}

impl Snapshot {
    /// A row from another process, without a phase.
    #[must_use]
    pub fn from_metrics(row: u64, time_s: f64, metrics: Vec<(String, Option<f64>)>) -> Self {
        let (names, cells): (Vec<String>, Vec<Option<f64>>) = metrics.into_iter().unzip();
        Self {
            row,
            time_s,
            phase: String::new(),
            names: names.into(),
            cells,
        }
    }

    /// The value of a metric; `None` for an unknown metric, and for an unknown value in this row.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        let index = self.names.iter().position(|known| known == name)?;
        self.cells.get(index).copied().flatten()
    }

    /// All metrics with their values, in the order of the columns.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, Option<f64>)> {
        self.names
            .iter()
            .map(String::as_str)
            .zip(self.cells.iter().copied())
    }
}
