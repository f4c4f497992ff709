//! Whether the tables of TPC-C are consistent before a run and after it.
//!
//! Each look runs `saiga bench tpcc check`, outside the hooks of the run, so that figures of hooks
//! do not contain what the check reads and writes. A check that fails marks the run and keeps its
//! figures.

use std::fs;
use std::path::Path;
use std::time::Duration;

use saiga_experiment::file::{Kind, TableCheck};
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::plan::Plan;
use saiga_experiment::process::CommandLine;
use saiga_experiment::tool::{self, Undone};
use saiga_experiment::workload::{Failure, Measured};
use saiga_tpcc::check::{Finding, Scope};
use saiga_tpcc::props::Props;
use saiga_tpcc::results::detail;
use saiga_tpcc::results::record::Consistency;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::loads::JobLoad;
use crate::step::Side;
use crate::workload::Job;

/// No check takes longer: how long it takes depends on tables that may be of any size.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
/// A check that takes so long is announced before the first run.
const LONG: Duration = Duration::from_secs(30);

/// A database that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Which of the props files.
    pub(crate) database: usize,
    /// What of it; never [`TableCheck::None`].
    pub(crate) check: TableCheck,
}

/// What was seen of a database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Look {
    pub(crate) database: usize,
    pub(crate) seen: Consistency,
}

/// The databases that are checked: as the experiment says, else as each props file does.
pub(crate) fn checked(kind: &Kind, props: &[Props]) -> Vec<Checked> {
    let Kind::Tpcc { check: given, .. } = kind else {
        return Vec::new();
    };
    let of_props = |props: &Props| {
        let mut words = props.options.iter();
        let said = words.find_map(|word| word.strip_prefix("--check="));
        said.and_then(TableCheck::named).unwrap_or(TableCheck::All)
    };
    let one = |(database, props)| Checked {
        database,
        check: given.unwrap_or_else(|| of_props(props)),
    };
    let all = props.iter().enumerate().map(one);
    all.filter(|one| one.check != TableCheck::None).collect()
}

/// The words of `saiga bench tpcc check` for one database.
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

/// About how long it takes to check these databases once.
fn takes(checked: &[Checked], props: &[Props]) -> Duration {
    let one = |one: &Checked| {
        let scope = match one.check {
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
    /// What is said of the time that the checks of the tables take, when that is long.
    #[must_use]
    pub fn outlook_of_checks(&self, plan: &Plan<JobLoad>) -> Option<String> {
        let each = takes(&self.core.checked, &self.core.props);
        let arms = u32::try_from(self.core.file.arms.len()).unwrap_or(u32::MAX);
        let cells = u32::try_from(plan.cells.len()).unwrap_or(u32::MAX);
        let runs = plan.pairs.saturating_mul(arms).saturating_mul(cells);
        outlook(each, runs)
    }
}

/// What is said before the first of so many runs.
fn outlook(each: Duration, runs: u32) -> Option<String> {
    let shown = |time: Duration| {
        let minutes = time.as_secs().div_ceil(60);
        humantime::format_duration(Duration::from_secs(minutes * 60)).to_string()
    };
    (each >= LONG).then(|| {
        format!(
            "the tables are checked before each run and after it, about {} each time, {} in {runs} \
             runs; check = \"conditions\", \"sample\" or \"none\" in [workload] takes less",
            shown(each),
            shown(each * 2 * runs)
        )
    })
}

/// Looks; its output goes to the file `log`.
///
/// # Errors
/// [`Failure`], when the program could not be started or the user interrupts. Tables that cannot be
/// checked are no error.
pub(crate) fn look(
    line: &CommandLine,
    side: Side,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<Consistency, Failure> {
    let done = tool::run(line, "saiga", log, LONGEST, interrupt)?;
    let text = fs::read_to_string(log).unwrap_or_default();
    Ok(read(&text, side).unwrap_or_else(|| {
        let why = match done {
            Ok(()) => "saiga bench tpcc check printed no report".to_owned(),
            Err(Undone { how, said }) => format!("{said} ({how})"),
        };
        Consistency::missing(side.name(), why)
    }))
}

/// What `saiga bench tpcc check --json` prints.
#[derive(Debug, Deserialize)]
struct Report {
    warehouses: u32,
    sampled: Option<Vec<u32>>,
    seconds: f64,
    checked: Vec<IgnoredAny>,
    findings: Vec<Finding>,
}

/// `None` when there is no report.
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

/// Adds to a run what was seen of its tables: it counts only when they were seen to be consistent.
pub(crate) fn judge(measured: &mut Measured, looks: Vec<Look>, databases: usize) {
    for Look { database, seen } in looks {
        if measured.invalid.is_none() {
            measured.invalid = seen.fault();
        }
        let mut check = detail::consistency(&seen);
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

    const SOUND: &str = r#"{"database":"x","warehouses":4050,"seed":1,"after_load":false,
        "sampled":[1,451],"seconds":2.5,"checked":[{"clause":"3.3.2.1","rule":"r","seconds":1.0}],
        "findings":[]}"#;

    fn seen(text: &str) -> Consistency {
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
    fn a_report_becomes_a_look() {
        let look = seen(SOUND);
        assert_eq!((look.checked, look.seconds, look.holds()), (1, 2.5, true));
        assert_eq!(look.sample.as_deref(), Some("2 of 4050 warehouses"));
        let finding =
            r#""findings":[{"clause":"3.3.2.1","rule":"r","count":3,"examples":["w_id 1"]}]"#;
        let look = seen(&SOUND.replace("\"findings\":[]", finding));
        assert_eq!(look.broken, ["§3.3.2.1 r: 3 times, w_id 1"]);
        assert_eq!(read("saiga: cannot connect\n", Side::After), None);
    }

    #[test]
    fn tables_that_are_broken_or_were_not_checked_mark_a_run_and_keep_its_figures() {
        let broken = Consistency {
            broken: vec!["§3.3.2.1".to_owned()],
            ..seen(SOUND)
        };
        let missing = Consistency::missing("after", "the server is gone".to_owned());
        for (seen, wanted) in [
            (seen(SOUND), None),
            (
                broken,
                Some("the tables are not consistent after the run: §3.3.2.1"),
            ),
            (
                missing,
                Some("the tables were not checked after the run: the server is gone"),
            ),
        ] {
            let mut measured = run();
            let look = Look { database: 1, seen };
            judge(&mut measured, vec![look], 2);
            assert_eq!(measured.invalid.as_deref(), wanted);
            assert_eq!(measured.metrics["tpm_total"], 7.0);
            let checks = measured.detail.unwrap().checks;
            assert_eq!(checks[0].what, "2: tables are consistent after the run");
        }
    }

    #[test]
    fn only_long_checks_are_announced() {
        assert_eq!(outlook(Duration::from_secs(8), 12), None);
        let said = outlook(Duration::from_secs(4050), 12).unwrap();
        assert!(
            said.contains("about 1h 8m each time, 1day 3h in 12 runs"),
            "{said}"
        );
    }
}
