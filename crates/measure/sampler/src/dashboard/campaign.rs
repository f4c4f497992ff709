//! How far a campaign is, in the first lines of the panel.

use super::words::fit;

/// The widest bar.
const BAR_MAX: usize = 24;
/// Fewer columns have no room for one.
const BAR_MIN: usize = 40;

/// A campaign at this moment. Every list is of parts of which a line has as many as fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Campaign {
    /// Runs that are done.
    pub done: usize,
    /// Runs that are planned.
    pub planned: usize,
    /// Both in words, and what else is known of the whole: the time that is left.
    pub whole: Vec<String>,
    /// The run under way: cell, arm, pair.
    pub now: Vec<String>,
    /// The last result of each arm, for loads that say nothing before their end.
    pub last: Vec<Vec<String>>,
}

impl Campaign {
    /// Its lines, with an empty one behind them.
    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        let mut lines = vec![self.head(columns)];
        lines.push(fit(&self.now, columns));
        lines.extend(self.last.iter().map(|parts| fit(parts, columns)));
        lines.push(String::new());
        lines
    }

    fn head(&self, columns: usize) -> String {
        if columns < BAR_MIN {
            return fit(&self.whole, columns);
        }
        let done = (BAR_MAX * self.done)
            .checked_div(self.planned)
            .unwrap_or(0)
            .min(BAR_MAX);
        let bar = format!("[{}{}]", "█".repeat(done), " ".repeat(BAR_MAX - done));
        let parts: Vec<String> = std::iter::once(bar).chain(self.whole.clone()).collect();
        fit(&parts, columns)
    }
}
