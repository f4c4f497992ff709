//! `saiga compare tpcc`: TPC-C on the servers that props files name, in pairs.
//!
//! What the options say becomes an experiment file, `experiment.toml` in `--out`, which is then run
//! as any other; the user can go on from it. Without props files the server is private.

mod draft;
mod private;
mod servers;
mod text;

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use saiga_experiment::campaign::Claim;
use saiga_experiment::file::Experiment;
use saiga_experiment::interrupt::Interrupt;
use saiga_job::ThisMachine;
use saiga_snapshot::{Options, Progress, Snapshot, TakeError};
use saiga_tpcc::props::Props;

use crate::exit;

use super::file::Prepared;
use super::options::{Args, TopologyName};
use super::plan::this_tool;
use super::{file, out};
use draft::Draft;
use text::{Sheet, Snapshotted};

/// What the options become.
const EXPERIMENT: &str = "experiment.toml";

/// Runs the comparison, or says what it would run.
pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    refuse_others(&args)?;
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
    let servers = servers.map(|(index, one)| servers::server(one, index, props.len()));
    let sheet = Sheet {
        goal: servers::goal(&arms),
        servers: servers.collect(),
        arms,
        props: absolute(&args.tpcc.props)?,
        options: length(&args),
        restore: restored(&args, &props)?,
    };
    let told = sheet.toml(&args);
    let file = parsed(&args, &told)?;
    if args.dry_run {
        if let Some(restore) = sheet.restore.as_ref().filter(|one| !one.is_there()) {
            preface(&format!(
                "# once: take the snapshot\n{}\n\n",
                restore.line()
            ))?;
        }
        return file::campaign(file, args);
    }
    // Before a snapshot is taken of data that the load would never reach.
    saiga_job::check_reach(&file, &props, &ThisMachine)?;
    let dir = out(&args)?;
    // Dropped after the claim, without which there is no campaign.
    let mut draft = Draft::in_folder(dir)?;
    let claim = Claim::take(dir, args.course.begin())?;
    check_goes_on(&claim, dir, &[(EXPERIMENT, &told)])?;
    if let Some(restore) = &sheet.restore {
        take_if_missing(restore)?;
    }
    draft.write(EXPERIMENT, &told)?;
    let prepared = Prepared {
        claim: Some(claim),
        makes_data_anew: false,
    };
    file::campaign_by(this_tool()?, file, args, prepared)
}

/// A campaign that goes on finds its own files. What this command would write over them with other
/// contents belongs to another plan.
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
                "{} belongs to another plan ({}: `{there}` there, `{here}` here); resume it with the \
                 command that began it, or choose another --out",
                campaign.display(),
                path.display()
            );
        }
    }
    Ok(())
}

/// The text as the experiment that will lie in `--out`.
fn parsed(args: &Args, text: &str) -> anyhow::Result<Experiment> {
    let dir = args.out.as_deref().unwrap_or(Path::new("."));
    Ok(Experiment::parse(&dir.join(EXPERIMENT), text, &[])?)
}

/// `--for` of a run, where the props file is not to say it.
fn length(args: &Args) -> Vec<String> {
    let Some(seconds) = args.pace.seconds else {
        return Vec::new();
    };
    vec![
        "--for".to_owned(),
        milliseconds(Duration::from_secs_f64(seconds)),
    ]
}

fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

fn absolute(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let one = |path: &PathBuf| {
        let found = path.canonicalize();
        found.with_context(|| format!("cannot find {}", path.display()))
    };
    paths.iter().map(one).collect()
}

/// What is restored before each run, from where: `--snapshot`, or `backup` of the props file when
/// it is a snapshot. The directories are `data` of the props files, or those of the snapshot.
fn restored(args: &Args, props: &[Props]) -> anyhow::Result<Option<Snapshotted>> {
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
            "backup={} is not a snapshot, and nothing is restored between runs; with --snapshot DIR \
             one is taken of data=",
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
            "--snapshot {}: there is no snapshot, and no props file says data=, of which one could be \
             taken",
            dir.display()
        );
    } else {
        parts = absolute(&parts)?;
    }
    Ok(Some(Snapshotted {
        parts,
        dir: std::path::absolute(&dir).context("cannot tell where --snapshot is")?,
    }))
}

/// Takes the snapshot that every run is to begin with; refuses while a server is at work.
fn take_if_missing(restore: &Snapshotted) -> anyhow::Result<()> {
    let Snapshotted { parts, dir } = restore;
    if restore.is_there() {
        return Ok(());
    }
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let report = |_: Progress| match interrupt.raised() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    exit::say(&format!("taking the snapshot {}", dir.display()));
    saiga_snapshot::take(parts, dir, &Options::default(), &report).map_err(|error| {
        let is_linked = matches!(error, TakeError::LinkedFiles(_));
        let told = anyhow::Error::new(error);
        told.context(format!(
            "cannot take the snapshot {}{}",
            dir.display(),
            if is_linked {
                " (taken by `saiga snapshot take --leave-linked-files` beforehand it is used as it is)"
            } else {
                ""
            }
        ))
    })
    .map(drop)
}

/// What has no meaning for TPC-C.
fn refuse_others(args: &Args) -> anyhow::Result<()> {
    let load = args.load.first_load_flag();
    let given = [
        ("--full", args.full),
        ("--topology", args.topology != TopologyName::Standalone),
        ("--cluster", args.load.cluster),
        ("--idle", args.idle > 0),
        ("--library", !args.library.is_empty()),
        ("--hog", !args.hog.is_empty()),
        ("--only", !args.only.is_empty()),
        ("--requests", args.pace.requests.is_some()),
        (load.unwrap_or(""), load.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => bail!("{flag} is not for `saiga compare tpcc`"),
        None => Ok(()),
    }
}

/// What only a private server has.
fn refuse_private(args: &Args) -> anyhow::Result<()> {
    let given = [
        ("--engine", !args.engine.is_empty()),
        ("--warehouses", args.tpcc.warehouses.is_some()),
        ("--terminals", args.tpcc.terminals.is_some()),
        ("--port", args.port.is_some()),
        ("--arms", !args.arms.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => bail!("{flag} does not go with --props, which says it"),
        None => Ok(()),
    }
}

/// Prints what comes before the steps of a dry run.
fn preface(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
