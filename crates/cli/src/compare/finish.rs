//! The end of a comparison: the result, its files, and the printed report.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use saiga_document::model::{Document, Visibility};
use saiga_document::{html, text};
use saiga_experiment::analysis::{NO_RATIO, Shortfall, conclude_by};
use saiga_experiment::engine::{Outcome, REPEATED};
use saiga_experiment::file::Expectation;
use saiga_experiment::plan::{self, Plan};
use saiga_experiment::result::Warning;
use saiga_experiment::result::{Cell, CellParams, ExperimentResult, FORMAT_VERSION, Host, Verdict};
use saiga_experiment::stats::Method;
use saiga_experiment::workload::{Load, Workload};
use saiga_experiment::{host, output};
use saiga_process::cores::Cores;
use saiga_process::cpu;
use saiga_report::document;

use crate::exit;

use super::options::Common;

/// The parts of an experiment file that only describe the experiment or check its result.
pub(super) struct Description {
    pub(super) experiment: String,
    pub(super) goal: Option<String>,
    /// The file in which the load keeps its current figures, if the load writes one.
    pub(super) load_file: Option<PathBuf>,
    pub(super) expected: Vec<Expectation>,
}

/// Returns the complete result, and the verdict of the headline comparison.
pub(super) fn result<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    outcome: Outcome,
    common: &Common,
    description: Description,
) -> (ExperimentResult, Verdict) {
    let (arms, own) = (workload.arms(), workload.metrics());
    let mut cells = described(plan);
    let until = common.stopping.until();
    let method = match until {
        Some(_) => Method::Sequential,
        None => Method::Fixed,
    };
    let open = until.and_then(|until| {
        let open = until.open(&own, &arms, &cells, &outcome);
        until.warning(&open, &workload.advice_for_longer_runs())
    });
    let Outcome {
        runs,
        stopped,
        given_up,
    } = outcome;
    let shortfall = Shortfall {
        stopped: stopped.clone(),
        given_up,
        longer: workload.advice_for_longer_runs(),
    };
    let conclusion = conclude_by(method, &own, &arms, &cells, &runs, &shortfall);
    cells.extend(conclusion.best_cells);
    let mut warnings = conclusion.warnings;
    warnings.extend(open);
    warnings.extend(workload.caveats());
    warnings.extend(cpu::caveat().map(|[text, action]| Warning::caveat(&text, &action)));
    let mut versions = workload.versions();
    for (name, version) in [
        ("saiga", env!("CARGO_PKG_VERSION")),
        ("saiga_commit", env!("SAIGA_COMMIT")),
    ] {
        versions.insert(name.to_owned(), version.to_owned());
    }
    let mut result = ExperimentResult {
        format_version: FORMAT_VERSION,
        experiment: description.experiment,
        goal: description.goal,
        own_metrics: own,
        host: host(),
        subject: arms.last().map(|arm| arm.name.clone()),
        arms,
        started: runs.first().map(|run| run.started.clone()),
        finished: Some(saiga_experiment::engine::now()),
        runs,
        cells,
        comparisons: conclusion.comparisons,
        headline: conclusion.headline,
        headline_comparison: conclusion.headline_comparison,
        warnings,
        command: command_line(),
        interrupted: stopped,
        seed: Some(plan.seed),
        versions,
    };
    let expected = description.expected.iter();
    let without_ratio: Vec<_> = expected.flat_map(|one| one.left_out(&result)).collect();
    for warning in without_ratio {
        if !result.warnings.contains(&warning) {
            result.warnings.push(warning);
        }
    }
    (result, conclusion.verdict)
}

pub(super) fn host() -> Host {
    let cores = Cores::choose().map_or(0, |cores| cores.allowed.len());
    host::describe(cores)
}

pub(super) fn described(plan: &Plan<impl Load>) -> Vec<Cell> {
    let one = |cell: &plan::Cell<_>| Cell {
        id: cell.id.clone(),
        params: CellParams {
            placement: cell.placement.name().to_owned(),
            hog: cell.hog.name().to_owned(),
            workload: Load::params(&cell.load),
        },
    };
    plan.cells.iter().map(one).collect()
}

fn command_line() -> Vec<String> {
    let mut words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(program) = words.first_mut() {
        "saiga".clone_into(program);
    }
    words
}

/// Fails if the campaign stopped early, or if the result has no headline comparison.
pub(super) fn check_done(
    result: &ExperimentResult,
    stopped: Option<&str>,
    out: &Path,
) -> anyhow::Result<()> {
    let out = out.display();
    if let Some(reason) = stopped {
        bail!("{reason}; the finished runs are in {out}, and --resume continues from there");
    }
    if result.headline.is_empty() {
        let mut warnings = result.warnings.iter();
        if let Some(without) = warnings.find(|one| one.text.contains(NO_RATIO)) {
            bail!(
                "no comparison is possible: {} All runs are in {out}",
                without.text
            );
        }
        let reason = first_cause(result).unwrap_or("no run was made");
        bail!("no pair of runs is valid ({reason}); all runs are in {out}");
    }
    Ok(())
}

/// The message that `--expect faster` is not met; `None` if it is.
pub(super) fn unmet(verdict: Verdict) -> Option<String> {
    (verdict != Verdict::Faster)
        .then(|| "expected faster, but the headline comparison does not show it".to_owned())
}

/// The reason for the first rejected run that was not rejected because of another run.
fn first_cause(result: &ExperimentResult) -> Option<&str> {
    let reasons = result.runs.iter().filter_map(|run| run.rejected.as_deref());
    reasons
        .into_iter()
        .find(|reason| !reason.starts_with(REPEATED))
}

/// The result and the paths of its files.
pub(super) struct Written {
    data: String,
    report: Document,
    paths: [PathBuf; 2],
}

pub(super) fn write(result: &ExperimentResult, out: &Path) -> anyhow::Result<Written> {
    let data = result.to_json()?;
    let report = document(result);
    let paths = [
        output::write_file(out, "result.json", &data)?,
        output::write_file(out, "report.html", &html::render(&report))?,
    ];
    Ok(Written {
        data,
        report,
        paths,
    })
}

/// Prints the answer and where the report is, or also the report's summary (`--details`), or the
/// result as JSON.
pub(super) fn print(written: &Written, common: &Common) -> anyhow::Result<()> {
    let Written {
        data,
        report,
        paths,
    } = written;
    let mut stdout = std::io::stdout().lock();
    let [result_path, report_path] = paths.each_ref().map(|path| path.display());
    if common.json {
        stdout
            .write_all(data.as_bytes())
            .context("cannot print the result")?;
        exit::say(&format!("wrote {result_path} and {report_path}"));
    } else {
        let shown = if common.details {
            Visibility::Summary
        } else {
            Visibility::Answer
        };
        let text = text::render(report, text::Style { shown, ..style() });
        write!(stdout, "{text}\n{result_path}\n{report_path}\n")?;
    }
    stdout.flush()?;
    Ok(())
}

/// The style of the printed report. On a terminal it has the terminal's width, and colour unless
/// `NO_COLOR` is set. Elsewhere it is plain text.
fn style() -> text::Style {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return text::Style::plain();
    }
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col);
    let width = if columns == 0 {
        80
    } else {
        usize::from(columns)
    };
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    text::Style {
        colour,
        ..text::Style::terminal(width)
    }
}
