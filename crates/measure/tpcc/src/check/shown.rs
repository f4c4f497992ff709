//! The report of a check as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use saiga_document::number::{counted, time};
use serde_json::json;

use super::{CheckedRule, Finding, Report};

impl Report {
    /// The verdict on the database `name` in one line, and the violated rules with examples.
    #[must_use]
    pub fn text(&self, name: &str, took: Duration) -> String {
        let what = if self.after_load {
            "as loaded"
        } else {
            "after a run"
        };
        let all = || counted(self.loaded.warehouses, "warehouse");
        let warehouses = self.sample().unwrap_or_else(all);
        let (checks, took) = (self.checked.len(), time(took));
        let verdict = match self.findings.len() {
            0 => "all rules hold".to_owned(),
            1 => "1 rule is violated".to_owned(),
            many => format!("{many} rules are violated"),
        };
        let mut out = format!("{name}: {warehouses}, {what}; {checks} checks, {took}: {verdict}\n");
        // Writing to a string cannot fail.
        for finding in &self.findings {
            let Finding {
                clause,
                rule,
                count,
                examples,
            } = finding;
            let _ = writeln!(out, "  {clause}  {rule}");
            for example in examples {
                let _ = writeln!(out, "      {example}");
            }
            if *count > examples.len() as u64 {
                let _ = writeln!(out, "      and {} more", count - examples.len() as u64);
            }
        }
        out
    }

    /// The report about the database `name` as JSON.
    #[must_use]
    pub fn json(&self, name: &str, took: Duration) -> serde_json::Value {
        let Self {
            loaded,
            after_load,
            sampled,
            checked,
            findings,
        } = self;
        let checked = checked.iter().map(|CheckedRule { clause, rule, took }| {
        json!({ "clause": clause, "rule": rule, "seconds": took.as_secs_f64() })
    });
        let findings = findings.iter().map(
            |Finding {
                 clause,
                 rule,
                 count,
                 examples,
             }| {
                json!({ "clause": clause, "rule": rule, "count": count, "examples": examples })
            },
        );
        json!({
            "database": name,
            "warehouses": loaded.warehouses,
            "seed": loaded.origin.map(|origin| origin.seed),
            "after_load": after_load,
            "sampled": (!sampled.is_empty()).then_some(sampled),
            "seconds": took.as_secs_f64(),
            "checked": checked.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}
