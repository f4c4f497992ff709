//! `saiga compare tpcc`: TPC-C on the servers of props files, or on a private server, in pairs.
//!
//! The options become an experiment file, `experiment.toml` in `--out`, which is run like any other
//! and which the user can edit.

mod private;
mod servers;

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use saiga_experiment::campaign::Claim;
use saiga_experiment::draft::Draft;
use saiga_experiment::file::Experiment;
use saiga_job::ThisMachine;
use saiga_job::tpcc::{self, ExperimentFile, Pace, RestorePoint, milliseconds};
use saiga_process::interrupt::Interrupt;
use saiga_snapshot::{Options, Progress, Snapshot, TakeError};
use saiga_tpcc::props::Props;

use crate::exit;

use super::file::Prepared;
use super::options::TpccArgs;
use super::plan::this_tool;
use super::{file, out};

const EXPERIMENT: &str = "experiment.toml";

/// Runs the comparison, or prints its steps.
pub(super) fn run(args: TpccArgs) -> anyhow::Result<ExitCode> {
    if args.tpcc.props.is_empty() {
        return private::run(args);
    }
    refuse_private(&args)?;
    let props: Vec<Props> = args
        .tpcc
        .props
        .iter()
        .map(|path| Props::read(path))
        .collect::<Result<_, _>>()?;
    let arms = servers::arms(&args.tpcc, &props)?;
    let servers = props.iter().enumerate();
    let servers = servers.map(|(index, one)| tpcc::server(one, index, props.len()));
    let content = ExperimentFile {
        goal: tpcc::goal(&arms),
        pace: pace(&args),
        wire: None,
        servers: servers.collect(),
        arms,
        props: absolute(&args.tpcc.props)?,
        options: length(&args),
        restore: restored(&args, &props)?,
    };
    let toml = content.toml();
    let file = parsed(&args, &toml)?;
    if args.common.dry_run {
        if let Some(restore) = content.restore.as_ref().filter(|one| !one.exists()) {
            preface(&format!(
                "# once: take the snapshot\n{}\n\n",
                restore.line()
            ))?;
        }
        return file::campaign(file, args.common);
    }
    // Checked before a snapshot is taken of data that the load does not use.
    saiga_job::check_reach(&file, &props, &ThisMachine)?;
    let dir = out(&args.common)?;
    // Dropped after the claim: without the claim there is no campaign.
    let mut draft = Draft::in_folder(dir)?;
    let claim = Claim::take(dir, args.common.stopping.begin())?;
    check_goes_on(&claim, dir, &[(EXPERIMENT, &toml)])?;
    if let Some(restore) = &content.restore {
        take_if_missing(restore)?;
    }
    draft.write(EXPERIMENT, &toml)?;
    let prepared = Prepared {
        claim: Some(claim),
        makes_data_anew: false,
    };
    file::campaign_by(this_tool()?, file, args.common, prepared)
}

/// Checks that a resumed campaign has the same files. Files with other contents belong to another
/// plan.
fn check_goes_on(claim: &Claim, dir: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    let Some(campaign) = claim.resumed_file() else {
        return Ok(());
    };
    for (name, text) in files {
        let path = dir.join(name);
        let Ok(before) = fs::read_to_string(&path) else {
            continue;
        };
        let mut lines = before.lines().chain([""]).zip(text.lines().chain([""]));
        if before != *text {
            let (there, here) = lines.find(|(a, b)| a != b).unwrap_or(("", ""));
            bail!(
                "{} belongs to another plan ({}: `{there}` there, `{here}` now); resume it with \
                 the command that started it, or give another --out",
                campaign.display(),
                path.display()
            );
        }
    }
    Ok(())
}

/// Parses the text as the experiment file that will be in `--out`.
fn parsed(args: &TpccArgs, text: &str) -> anyhow::Result<Experiment> {
    let dir = args.common.out.as_deref().unwrap_or(Path::new("."));
    Ok(Experiment::parse(&dir.join(EXPERIMENT), text, &[])?)
}

/// `--for` of a run, unless the props file sets the length.
fn length(args: &TpccArgs) -> Vec<String> {
    let Some(seconds) = args.seconds else {
        return Vec::new();
    };
    vec![
        "--for".to_owned(),
        milliseconds(Duration::from_secs_f64(seconds)),
    ]
}

fn pace(args: &TpccArgs) -> Pace {
    Pace {
        pairs: args.common.pace.pairs,
        until: args.common.stopping.until,
        seed: args.common.pace.seed,
        max_foreign_cores: args.common.pace.max_foreign,
        check: args.tpcc.check,
    }
}

fn absolute(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let one = |path: &PathBuf| {
        let found = path.canonicalize();
        found.with_context(|| format!("cannot find {}", path.display()))
    };
    paths.iter().map(one).collect()
}

/// The snapshot to restore before each run: `--snapshot`, or `backup` of the props file if that is
/// a snapshot. The directories are `data` of the props files, or those of the snapshot.
fn restored(args: &TpccArgs, props: &[Props]) -> anyhow::Result<Option<RestorePoint>> {
    let hint = match props {
        [one] => one.hints.backup.clone(),
        _ => None,
    };
    let (given, hinted) = (args.tpcc.snapshot.clone(), hint);
    let Some(dir) = given.clone().or(hinted) else {
        return Ok(None);
    };
    let held = Snapshot::open(&dir);
    if given.is_none() && held.is_err() {
        exit::say(&format!(
            "backup={} is not a snapshot, so nothing is restored between runs; with --snapshot \
             DIR, a snapshot of data= is taken",
            dir.display()
        ));
        return Ok(None);
    }
    let mut parts: Vec<PathBuf> = props
        .iter()
        .filter_map(|one| one.hints.data.clone())
        .collect();
    if let Ok(held) = held {
        parts = held.parts();
    } else if parts.is_empty() {
        bail!(
            "--snapshot {}: no snapshot exists, and no props file has data= to take one of",
            dir.display()
        );
    } else {
        parts = absolute(&parts)?;
    }
    Ok(Some(RestorePoint {
        parts,
        dir: std::path::absolute(&dir).context("cannot make the path of --snapshot absolute")?,
    }))
}

/// Takes the snapshot that is restored before every run; refuses while a server is running.
fn take_if_missing(restore: &RestorePoint) -> anyhow::Result<()> {
    let RestorePoint { parts, dir } = restore;
    if restore.exists() {
        return Ok(());
    }
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let report = |_: Progress| match interrupt.raised() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    exit::say(&format!("taking the snapshot {}", dir.display()));
    saiga_snapshot::take(parts, dir, &Options::default(), &report)
        .map_err(|error| {
            let is_linked = matches!(error, TakeError::LinkedFiles(_));
            let error = anyhow::Error::new(error);
            error.context(format!(
            "cannot take the snapshot {}{}",
            dir.display(),
            if is_linked {
                " (take it beforehand with `saiga snapshot take --leave-linked-files`; then it is \
                 used)"
            } else {
                ""
            }
        ))
        })
        .map(drop)
}

/// Refuses options that apply only to a private server.
fn refuse_private(args: &TpccArgs) -> anyhow::Result<()> {
    let given = [
        ("--engine", args.engine.is_some()),
        ("--warehouses", args.tpcc.warehouses.is_some()),
        ("--terminals", args.tpcc.terminals.is_some()),
        ("--port", args.port.is_some()),
        ("--arms", !args.arms.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            bail!("{flag} is not allowed with --props, because the props file sets it")
        }
        None => Ok(()),
    }
}

/// Prints the text before the steps of a dry run.
fn preface(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
