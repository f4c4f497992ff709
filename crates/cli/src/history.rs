//! `saiga history`: one page about many experiments.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use saiga_diagnose::observation::Observation;
use saiga_diagnose::verdict;
use saiga_document::{html, text};
use saiga_experiment::output;
use saiga_experiment::result::{Arm, ExperimentResult};
use saiga_report::history;

use crate::diagnose::experiment;

/// Options of `saiga history`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directories that `saiga compare --out` wrote, or directories that contain such directories
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Also write the page to this directory, as history.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the stages as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the page or, with --json, its stages. With --out, also writes the page to a file.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut found = Vec::new();
    for folder in &args.folders {
        let results = results_below(folder)?;
        if results.is_empty() {
            bail!(
                "{} has no result.json, nor do its subdirectories; give directories that `saiga \
                 compare --out` wrote",
                folder.display()
            );
        }
        found.extend(results);
    }
    let mut stages = history::stages(&found);
    for stage in &mut stages {
        let result = found.iter().find(|(name, _)| *name == stage.name);
        stage.diagnosis = result.and_then(|(name, result)| diagnoses(result, Path::new(name)));
    }
    let page = history::page(&stages);
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&stages)?)?;
    } else {
        stdout.write_all(text::render(&page, text::Style::plain()).as_bytes())?;
    }
    if let Some(out) = &args.out {
        fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
        let path = output::write_file(out, "history.html", &html::render(&page))?;
        crate::exit::say(&format!("wrote {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the diagnosis says of the reference and of the subject.
fn diagnoses(result: &ExperimentResult, folder: &Path) -> Option<[String; 2]> {
    let subject = result.subject()?;
    let reference = subject.varied(&result.arms).or(result.arms.first())?;
    Some([reference, subject].map(|arm| diagnosis(result, folder, arm)))
}

/// The first finding about an arm, or why there is none.
fn diagnosis(result: &ExperimentResult, folder: &Path, arm: &Arm) -> String {
    let mut observation = Observation::default();
    if let Err(error) = experiment::add(result, folder, Some(&arm.name), &mut observation) {
        return format!("not judged: {error}");
    }
    // The change is the stage itself.
    observation.change = None;
    if observation.load.hops.is_empty() && observation.metrics.is_empty() {
        return "not judged: no response times and no metrics".to_owned();
    }
    let verdict = verdict::judge(&observation);
    let first = verdict.findings.first();
    first.map_or("nothing found".to_owned(), |found| {
        found.finding.bottleneck.clone()
    })
}

/// The result in `folder`. If there is none, the results in its subdirectories. Each result has the
/// path of its directory.
fn results_below(folder: &Path) -> anyhow::Result<Vec<(String, ExperimentResult)>> {
    if let Some(result) = result_in(folder)? {
        return Ok(vec![(folder.display().to_string(), result)]);
    }
    let list = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut folders = Vec::new();
    for entry in list {
        let path = entry
            .with_context(|| format!("cannot read {}", folder.display()))?
            .path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    let mut all = Vec::new();
    for path in folders {
        all.extend(result_in(&path)?.map(|result| (path.display().to_string(), result)));
    }
    Ok(all)
}

fn result_in(folder: &Path) -> anyhow::Result<Option<ExperimentResult>> {
    let path = folder.join("result.json");
    match fs::read_to_string(&path) {
        Ok(text) => {
            let result = ExperimentResult::from_json(&text);
            Ok(Some(result.with_context(|| path.display().to_string())?))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
