//! Hops of the command line: the load at several places, each from a file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use saiga_diagnose::observation::load::Hop;
use saiga_diagnose::observation::{Gap, Observation};
use saiga_diagnose::source::capture::Capture;

use super::Source;

/// A hop of the command line.
#[derive(Debug, Clone)]
pub(super) struct HopFile {
    parent: Option<String>,
    pub(super) name: String,
    path: PathBuf,
}

/// Parses `NAME=FILE` or `PARENT/NAME=FILE`.
pub(super) fn parse(text: &str) -> Result<HopFile, String> {
    let (name, path) = text.split_once('=').ok_or("write NAME=FILE")?;
    let (parent, name) = match name.rsplit_once('/') {
        Some((parent, name)) => (Some(parent.to_owned()), name),
        None => (None, name),
    };
    if name.is_empty() || path.is_empty() || parent.as_deref() == Some("") {
        return Err("write NAME=FILE or PARENT/NAME=FILE".to_owned());
    }
    Ok(HopFile {
        parent,
        name: name.to_owned(),
        path: Path::new(path).to_owned(),
    })
}

/// Reads all hops and adds them. Times of captures are on the clock of the first one.
pub(super) fn add(
    files: &[HopFile],
    port: Option<u16>,
    observation: &mut Observation,
) -> anyhow::Result<()> {
    let mut first = None;
    for file in files {
        let parent = parent(file, &observation.load.hops)?;
        let mut hop = match Source::read(&file.name, &file.path, port)? {
            Source::Capture(capture) => {
                capture.add_events(observation);
                let hop = of_capture(file, &capture, first.as_ref(), observation);
                first.get_or_insert(capture);
                hop
            }
            Source::Load(hop, mut gaps) => {
                observation.gaps.append(&mut gaps);
                hop
            }
            Source::Experiment(_) => bail!(
                "--hop {}: {} is an experiment; give it as FILE",
                file.name,
                file.path.display()
            ),
        };
        hop.parent = parent;
        observation.load.hops.push(hop);
    }
    Ok(())
}

/// The index of the hop that calls this one.
fn parent(file: &HopFile, hops: &[Hop]) -> anyhow::Result<Option<usize>> {
    let index = |name: &str| hops.iter().position(|hop| hop.name == name);
    if index(&file.name).is_some() {
        bail!("--hop: {} is given twice", file.name);
    }
    match &file.parent {
        Some(parent) => Ok(Some(index(parent).with_context(|| {
            format!(
                "--hop {parent}/{}: give --hop {parent}=FILE before it",
                file.name
            )
        })?)),
        None if hops.is_empty() => Ok(None),
        None => bail!(
            "--hop {}: name the hop that calls it, as in --hop {}/{}=FILE",
            file.name,
            hops[0].name,
            file.name
        ),
    }
}

/// The load of a capture on the clock of the first capture.
fn of_capture(
    file: &HopFile,
    capture: &Capture,
    first: Option<&Capture>,
    observation: &mut Observation,
) -> Hop {
    let Some(first) = first else {
        return capture.hop(&file.name, capture.start(), 0);
    };
    let (ahead_ns, reason) = match first.offset(capture) {
        Ok(offset) => (
            offset.nanoseconds,
            format!(
                "its clock is {:.6} s ahead of that of the first capture, within {:.6} s, by {} \
                 packets that are in both",
                offset.nanoseconds as f64 / 1e9,
                offset.uncertainty_ns as f64 / 1e9,
                offset.packets
            ),
        ),
        Err(error) => (
            0,
            format!("the clocks of the captures are taken to agree: {error}"),
        ),
    };
    observation.gaps.push(Gap {
        source: file.path.display().to_string(),
        reason,
    });
    capture.hop(&file.name, first.start(), ahead_ns)
}
