//! The judgements of all rules, and the one bottleneck that holds now.
//!
//! Only one bottleneck shows at a time: it hides the others. So the verdict names one finding, and
//! the others are listed behind it as things that may show after the first is removed.

use serde::Serialize;

use crate::observation::{Gap, Observation};
use crate::rule::{Finding, Judgement, Kind};
use crate::rules;

/// The result of a diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Findings by rank. The first is the bottleneck unless it is a sign.
    pub findings: Vec<Found>,
    /// What was looked at without a finding.
    pub clear: Vec<Said>,
    /// What could not be judged, and the source that is missing.
    pub unknown: Vec<Said>,
    /// Sources that could not be read.
    pub gaps: Vec<Gap>,
}

/// A finding with its rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    pub rule: &'static str,
    #[serde(flatten)]
    pub finding: Finding,
}

/// A sentence of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    pub rule: &'static str,
    pub subject: &'static str,
    pub text: String,
}

impl Verdict {
    /// The bottleneck: the first finding that names a cause.
    #[must_use]
    pub fn bottleneck(&self) -> Option<&Found> {
        let first = self.findings.first()?;
        (first.finding.kind > Kind::Sign).then_some(first)
    }
}

/// Applies all rules.
#[must_use]
pub fn judge(observation: &Observation) -> Verdict {
    let mut verdict = Verdict {
        findings: Vec::new(),
        clear: Vec::new(),
        unknown: Vec::new(),
        gaps: observation.gaps.clone(),
    };
    for rule in rules::ALL {
        let said = |text| Said {
            rule: rule.name,
            subject: rule.subject,
            text,
        };
        match (rule.judge)(observation) {
            Judgement::Found(finding) => verdict.findings.push(Found {
                rule: rule.name,
                finding: *finding,
            }),
            Judgement::Clear(text) => verdict.clear.push(said(text)),
            Judgement::Unknown(needs) => verdict.unknown.push(said(needs.text().to_owned())),
        }
    }
    order(&mut verdict.findings);
    verdict
}

/// Findings with those that explain them.
const EXPLAINED: [(&str, &[&str]); 2] = [
    // Faults and the search for free memory cost the server CPU time, and a busy CPU makes no host
    // swap.
    ("cpu", &["memory-pressure", "swap"]),
    // Requests that wait inside of the server keep their connections in use.
    (
        "pool",
        &[
            "cpu-quota",
            "delayed-fsync",
            "disk",
            "flush",
            "memory-pressure",
            "row-locks",
            "swap",
        ],
    ),
];

/// Sorts findings by rank; a finding comes behind those that explain it, whatever their shares are.
fn order(findings: &mut [Found]) {
    findings.sort_by(|a, b| a.finding.rank(&b.finding));
    for (effect, causes) in EXPLAINED {
        let at = findings.iter().position(|found| found.rule == effect);
        let cause = findings
            .iter()
            .rposition(|found| causes.contains(&found.rule));
        if let Some((at, cause)) = at.zip(cause).filter(|(at, cause)| at < cause) {
            findings[at..=cause].rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::steps;

    #[test]
    fn a_cause_is_ranked_before_the_sign_that_it_explains() {
        let mut observation = steps(&[(3000.0, 10_000.0, 290.0), (5000.0, 9856.0, 499.0)]);
        let sign = judge(&observation);
        assert_eq!(sign.findings[0].rule, "saturation");
        assert_eq!(sign.bottleneck(), None);
        observation.metrics.add("steal_percent", 1.0, 40.0);
        let verdict = judge(&observation);
        assert_eq!(verdict.bottleneck().map(|found| found.rule), Some("steal"));
        assert_eq!(verdict.findings[1].rule, "saturation");
    }

    #[test]
    fn a_cause_is_ranked_before_what_it_explains_whatever_the_shares() {
        let mut observation = Observation::default();
        observation.metrics.add("steal_percent", 1.0, 40.0);
        let found = judge(&observation).findings.remove(0);
        let with = |(rule, share)| Found {
            rule,
            finding: Finding {
                share,
                ..found.finding.clone()
            },
        };
        for (found, ordered) in [
            (
                vec![("cpu", 0.9), ("disk", 0.8), ("swap", 0.1), ("steal", 0.05)],
                vec!["disk", "swap", "cpu", "steal"],
            ),
            (
                vec![("flush", 0.7), ("pool", 0.9), ("cpu", 0.8)],
                vec!["cpu", "flush", "pool"],
            ),
            (vec![("steal", 0.5), ("cpu", 0.9)], vec!["cpu", "steal"]),
        ] {
            let mut findings: Vec<Found> = found.into_iter().map(with).collect();
            order(&mut findings);
            let rules: Vec<_> = findings.iter().map(|found| found.rule).collect();
            assert_eq!(rules, ordered);
        }
    }

    #[test]
    fn an_empty_observation_says_what_each_rule_lacks() {
        let verdict = judge(&Observation::default());
        assert_eq!((verdict.findings.len(), verdict.clear.len()), (0, 0));
        assert_eq!(verdict.unknown.len(), rules::ALL.len());
    }
}
