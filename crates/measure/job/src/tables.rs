//! Checks the consistency of TPC-C's tables before and after each run.
//!
//! Each check runs `saiga bench tpcc check`, outside the hooks of the run, so that figures of
//! hooks do not include the I/O of the check. A failed check rejects the run, which keeps its
//! figures.

use std::fs;
use std::path::Path;
use std::time::Duration;

use saiga_experiment::file::{Kind, TableCheck};
use saiga_experiment::plan::Plan;
use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::workload::{Failure, Measured};
use saiga_process::child::CommandLine;
use saiga_process::interrupt::Interrupt;
use saiga_tpcc::check::{Finding, Scope};
use saiga_tpcc::props::Props;
use saiga_tpcc::results::detail;
use saiga_tpcc::results::record::Consistency;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::loads::JobLoad;
use crate::step::Side;
use crate::workload::Job;

/// Timeout of a check: practically none, because the duration depends on the size of the tables.
const TIMEOUT: Duration = Duration::from_secs(366 * 86_400);
/// Checks that take at least this long are announced before the first run.
const ANNOUNCED_FROM: Duration = Duration::from_secs(30);

/// A database to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatabaseCheck {
    /// Index of its props file.
    pub(crate) database: usize,
    /// Never [`TableCheck::None`].
    pub(crate) scope: TableCheck,
}

/// The result of a check; `database` is the index of the props file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckResult {
    pub(crate) database: usize,
    pub(crate) consistency: Consistency,
}

/// The databases to check. `check` of the experiment file takes precedence over the props files.
pub(crate) fn checked(kind: &Kind, props: &[Props]) -> Vec<DatabaseCheck> {
    let Kind::Tpcc { check: given, .. } = kind else {
        return Vec::new();
    };
    let of_props = |props: &Props| {
        let mut words = props.options.iter();
        let name = words.find_map(|word| word.strip_prefix("--check="));
        name.and_then(TableCheck::named).unwrap_or(TableCheck::All)
    };
    let one = |(database, props)| DatabaseCheck {
        database,
        scope: given.unwrap_or_else(|| of_props(props)),
    };
    let all = props.iter().enumerate().map(one);
    all.filter(|one| one.scope != TableCheck::None).collect()
}

/// The command line of `saiga bench tpcc check` for one database.
pub(crate) fn words(tool: &Path, props: &Path, check: TableCheck) -> Vec<String> {
    let mut words = vec![tool.to_string_lossy().into_owned()];
    words.extend(["bench", "tpcc", "check", "--props"].map(str::to_owned));
    words.push(props.to_string_lossy().into_owned());
    let scope = match check {
        TableCheck::All | TableCheck::None => None,
        TableCheck::Conditions => Some("--conditions"),
        TableCheck::Sample => Some("--sample"),
    };
    words.extend(scope.map(str::to_owned));
    words.push("--json".to_owned());
    words
}

/// Estimated time to check all of these databases once.
fn estimate(checked: &[DatabaseCheck], props: &[Props]) -> Duration {
    let one = |one: &DatabaseCheck| {
        let scope = match one.scope {
            TableCheck::All => Scope::All,
            TableCheck::Conditions => Scope::Conditions,
            TableCheck::Sample => Scope::Sample,
            TableCheck::None => return Duration::ZERO,
        };
        let props = props.get(one.database);
        scope.estimate(props.map_or(0, |props| props.warehouses))
    };
    checked.iter().map(one).sum()
}

impl Job {
    /// A sentence about the time that the checks of the tables take; `None` if it is short.
    #[must_use]
    pub fn check_time_notice(&self, plan: &Plan<JobLoad>) -> Option<String> {
        let each = estimate(&self.core.checked, &self.core.props);
        let arms = u32::try_from(self.core.file.arms.len()).unwrap_or(u32::MAX);
        let cells = u32::try_from(plan.cells.len()).unwrap_or(u32::MAX);
        let runs = plan.pairs.saturating_mul(arms).saturating_mul(cells);
        check_time_notice(each, runs)
    }
}

/// The notice for `runs` runs with two checks each, which take `each`.
fn check_time_notice(each: Duration, runs: u32) -> Option<String> {
    let shown = |time: Duration| {
        let minutes = time.as_secs().div_ceil(60);
        humantime::format_duration(Duration::from_secs(minutes * 60)).to_string()
    };
    (each >= ANNOUNCED_FROM).then(|| {
        format!(
            "the tables are checked before and after each run, which takes about {} each time, {} \
             in {runs} runs; check = \"conditions\", \"sample\" or \"none\" in [workload] takes less",
            shown(each),
            shown(each * 2 * runs)
        )
    })
}

/// Checks the tables of a database by the command `line`, whose output goes to the file `log`.
///
/// # Errors
/// Fails if the program cannot be started or the user interrupts. A check that fails or ends
/// without a report is not an error, but part of the result.
pub(crate) fn check(
    line: &CommandLine,
    side: Side,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<Consistency, Failure> {
    let done = tool::run(line, "saiga", log, TIMEOUT, interrupt)?;
    let text = fs::read_to_string(log).unwrap_or_default();
    Ok(read(&text, side).unwrap_or_else(|| {
        let reason = match done {
            Ok(()) => "saiga bench tpcc check printed no report".to_owned(),
            Err(Unsuccessful { status, output }) => format!("{output} ({status})"),
        };
        Consistency::missing(side.name(), reason)
    }))
}

/// The output of `saiga bench tpcc check --json`.
#[derive(Debug, Deserialize)]
struct Report {
    warehouses: u32,
    sampled: Option<Vec<u32>>,
    seconds: f64,
    checked: Vec<IgnoredAny>,
    findings: Vec<Finding>,
}

/// Parses the report in `text`; `None` if there is none.
fn read(text: &str, side: Side) -> Option<Consistency> {
    let line = text.lines().find(|line| line.starts_with('{'))?;
    let report: Report = serde_json::from_str(line).ok()?;
    let all = report.warehouses;
    let of = |some: Vec<u32>| format!("{} of {all} warehouses", some.len());
    Some(Consistency {
        when: side.name().to_owned(),
        checked: report.checked.len(),
        sample: report.sampled.map(of),
        broken: report.findings.iter().map(ToString::to_string).collect(),
        not_checked: None,
        seconds: report.seconds,
    })
}

/// Adds the results of the checks to a run, which is rejected unless all tables are consistent.
pub(crate) fn apply(measured: &mut Measured, results: Vec<CheckResult>, databases: usize) {
    for CheckResult {
        database,
        consistency,
    } in results
    {
        if measured.invalid.is_none() {
            measured.invalid = consistency.fault();
        }
        let mut check = detail::consistency(&consistency);
        if databases > 1 {
            check.what.insert_str(0, &format!("{}: ", database + 1));
        }
        let all = measured.detail.get_or_insert_default();
        all.checks.push(check);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const CONSISTENT: &str = r#"{"database":"x","warehouses":4050,"seed":1,"after_load":false,
        "sampled":[1,451],"seconds":2.5,"checked":[{"clause":"3.3.2.1","rule":"r","seconds":1.0}],
        "findings":[]}"#;

    fn result(text: &str) -> Consistency {
        read(&text.replace('\n', ""), Side::After).unwrap()
    }

    fn run() -> Measured {
        Measured {
            seconds: 43_200.0,
            metrics: BTreeMap::from([("tpm_total".to_owned(), 7.0)]),
            foreign_cpu_s: 0.0,
            window_s: 43_200.0,
            invalid: None,
            detail: None,
        }
    }

    #[test]
    fn a_report_is_parsed() {
        let check = result(CONSISTENT);
        assert_eq!(
            (check.checked, check.seconds, check.holds()),
            (1, 2.5, true)
        );
        assert_eq!(check.sample.as_deref(), Some("2 of 4050 warehouses"));
        let finding =
            r#""findings":[{"clause":"3.3.2.1","rule":"r","count":3,"examples":["w_id 1"]}]"#;
        let check = result(&CONSISTENT.replace("\"findings\":[]", finding));
        assert_eq!(check.broken, ["§3.3.2.1 r: 3 times, w_id 1"]);
        assert_eq!(read("saiga: cannot connect\n", Side::After), None);
    }

    #[test]
    fn inconsistent_or_unchecked_tables_reject_a_run_that_keeps_its_figures() {
        let broken = Consistency {
            broken: vec!["§3.3.2.1".to_owned()],
            ..result(CONSISTENT)
        };
        let missing = Consistency::missing("after", "the server has ended".to_owned());
        for (consistency, wanted) in [
            (result(CONSISTENT), None),
            (
                broken,
                Some("the tables are not consistent after the run: §3.3.2.1"),
            ),
            (
                missing,
                Some("the tables were not checked after the run: the server has ended"),
            ),
        ] {
            let mut measured = run();
            let check = CheckResult {
                database: 1,
                consistency,
            };
            apply(&mut measured, vec![check], 2);
            assert_eq!(measured.invalid.as_deref(), wanted);
            assert_eq!(measured.metrics["tpm_total"], 7.0);
            let checks = measured.detail.unwrap().checks;
            assert_eq!(checks[0].what, "2: tables are consistent after the run");
        }
    }

    #[test]
    fn only_long_checks_are_announced() {
        assert_eq!(check_time_notice(Duration::from_secs(8), 12), None);
        let notice = check_time_notice(Duration::from_secs(4050), 12).unwrap();
        assert!(
            notice.contains("about 1h 8m each time, 1day 3h in 12 runs"),
            "{notice}"
        );
    }
}
