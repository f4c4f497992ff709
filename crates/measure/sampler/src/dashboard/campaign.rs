//! The first lines of the panel: progress of the campaign.

use super::format::fit;

/// Width of the progress bar.
const BAR_MAX: usize = 24;
/// A narrower terminal shows no progress bar.
const BAR_MIN: usize = 40;

/// State of a campaign. Each list becomes one line, which shows as many items as fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Campaign {
    /// Number of completed runs.
    pub done: usize,
    /// Number of planned runs.
    pub planned: usize,
    /// Progress in words, and the remaining time.
    pub whole: Vec<String>,
    /// The current run: cell, arm, pair.
    pub now: Vec<String>,
    /// The last result of each arm, for loads that report nothing before their end.
    pub last: Vec<Vec<String>>,
}

impl Campaign {
    /// The lines of the panel, followed by an empty line.
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
