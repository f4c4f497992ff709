//! The newest row, for those who show it while the run goes on.

use std::sync::Arc;

/// One row with its names.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Its number; the first one, at the start, is 0 and has no rates.
    pub row: u64,
    /// Seconds since the start.
    pub time_s: f64,
    /// The mark that is in force; empty before the first one.
    pub phase: String,
    pub(crate) names: Arc<[String]>,
    pub(crate) cells: Vec<Option<f64>>,
}

impl Snapshot {
    /// A row that another process has made and told.
    #[must_use]
    pub fn told(row: u64, time_s: f64, metrics: Vec<(String, Option<f64>)>) -> Self {
        let (names, cells): (Vec<String>, Vec<Option<f64>>) = metrics.into_iter().unzip();
        Self {
            row,
            time_s,
            phase: String::new(),
            names: names.into(),
            cells,
        }
    }

    /// The value of a metric; `None` when it is not known in this row, or not at all.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        let place = self.names.iter().position(|known| known == name)?;
        self.cells.get(place).copied().flatten()
    }

    /// Every metric of the row with its value, in the order of the columns.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, Option<f64>)> {
        self.names
            .iter()
            .map(String::as_str)
            .zip(self.cells.iter().copied())
    }
}
