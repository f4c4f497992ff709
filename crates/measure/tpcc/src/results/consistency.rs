//! The results of the checks before and after a run, as the record has them.

use std::time::Duration;

use super::record::Consistency;
use crate::check::Report;

impl Consistency {
    /// The result of a check.
    #[must_use]
    pub fn of(when: &str, report: &Report, took: Duration) -> Self {
        Self {
            when: when.to_owned(),
            checked: report.checked.len(),
            sample: report.sample(),
            broken: report.findings.iter().map(ToString::to_string).collect(),
            not_checked: None,
            seconds: took.as_secs_f64(),
        }
    }

    /// A requested check that was not made for the reason `why`.
    #[must_use]
    pub fn missing(when: &str, why: String) -> Self {
        Self {
            when: when.to_owned(),
            checked: 0,
            sample: None,
            broken: Vec::new(),
            not_checked: Some(why),
            seconds: 0.0,
        }
    }

    /// The reason why the run does not count: the tables are inconsistent, or were not checked.
    /// `None` if the tables are consistent.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let when = &self.when;
        match (&self.not_checked, self.broken.as_slice()) {
            (Some(why), _) => Some(format!("the tables were not checked {when} the run: {why}")),
            (None, []) => None,
            (None, broken) => Some(format!(
                "the tables are not consistent {when} the run: {}",
                broken.join("; ")
            )),
        }
    }

    /// Whether the tables were checked and are consistent.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.broken.is_empty() && self.not_checked.is_none()
    }
}
