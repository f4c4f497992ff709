//! What `saiga enable` leaves behind for a service, and how it is taken away again.
//!
//! A drop-in of the unit; for a PostgreSQL cluster of Debian's, whose server sees no variable of its
//! unit, a line in the cluster's file `environment`, and a drop-in only where there is a relief.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::cluster::Cluster;
use super::dropin;
use super::environment::Environment;
use super::obstacle::{self, Obstacle};
use super::reach::Library;
use super::unit::Unit;
use crate::library;

/// What is to be there.
#[derive(Debug)]
pub(super) struct Plan {
    /// The unit's drop-in.
    drop_in: PathBuf,
    /// Its text; `None`: there is to be none.
    text: Option<String>,
    /// The cluster whose server the unit starts.
    pub(super) cluster: Option<Cluster>,
    /// The value that it is to have of `LD_PRELOAD`.
    preload: String,
}

impl Plan {
    /// For the service `name`, with the reliefs among `obstacles`.
    ///
    /// # Errors
    /// When the file of a cluster's variables cannot be read.
    pub(super) fn new(
        root: &Path,
        name: &str,
        unit: &Unit,
        library: &Library,
        obstacles: &[Obstacle],
    ) -> anyhow::Result<Self> {
        let cluster = obstacle::cluster_of(root, name, unit);
        let others = match &cluster {
            Some(cluster) => Environment::read(&cluster.environment())?.value("LD_PRELOAD"),
            None => unit.environment("LD_PRELOAD"),
        };
        let preload = library::ld_preload(&library.seen, others.as_deref().map(AsRef::as_ref));
        let preload = preload.into_string().ok().context("a path in UTF-8")?;
        let reliefs: Vec<(&str, &str)> = obstacles
            .iter()
            .filter_map(|it| Some((it.relief.as_deref()?, it.what.as_str())))
            .collect();
        let in_unit = cluster.is_none().then_some(preload.as_str());
        let is_needed = in_unit.is_some() || !reliefs.is_empty();
        Ok(Self {
            drop_in: dropin::path(root, name),
            text: is_needed.then(|| dropin::text(in_unit, &reliefs)),
            cluster,
            preload,
        })
    }

    /// What is still in the way when the plan is carried out: a drop-in that is read later than
    /// ours has the last word.
    ///
    /// # Errors
    /// As [`obstacle::all`].
    pub(super) fn shortcomings(
        &self,
        root: &Path,
        name: &str,
        library: &Library,
    ) -> anyhow::Result<Vec<Obstacle>> {
        let Some(text) = &self.text else {
            return Ok(Vec::new());
        };
        let unit = Unit::read(root, name, Some(text))?;
        let mut found = obstacle::all(root, name, &unit, library)?;
        let is_ours = unit.environment("LD_PRELOAD").as_deref() == Some(self.preload.as_str());
        if self.cluster.is_none() && !is_ours {
            found.push("its environment sets another LD_PRELOAD".to_owned().into());
        }
        for obstacle in &mut found {
            obstacle.relief = None;
            let later = "; a drop-in that is read after ours says so, take that line back";
            obstacle.what.push_str(later);
        }
        Ok(found)
    }

    /// Whether everything is there already.
    pub(super) fn is_done(&self) -> bool {
        let drop_in = fs::read_to_string(&self.drop_in).ok();
        let is_in_cluster = self.cluster.as_ref().is_none_or(|cluster| {
            Environment::read(&cluster.environment())
                .is_ok_and(|file| file.is(&file.with(&self.preload)))
        });
        drop_in == self.text && is_in_cluster
    }

    /// Puts it there; one line for each thing that was done.
    ///
    /// # Errors
    /// What cannot be written, and what to do.
    pub(super) fn carry_out(&self) -> anyhow::Result<Vec<String>> {
        let mut done = Vec::new();
        match &self.text {
            Some(text) => {
                dropin::write(&self.drop_in, text)?;
                done.push(format!("wrote {}", self.drop_in.display()));
            }
            None => done.extend(remove_drop_in(&self.drop_in)?),
        }
        if let Some(cluster) = &self.cluster {
            let path = cluster.environment();
            let file = Environment::read(&path)?;
            file.write(&path, &file.with(&self.preload))?;
            done.push(format!("wrote LD_PRELOAD into {}", path.display()));
        }
        Ok(done)
    }

    /// Where it is.
    pub(super) fn places(&self) -> String {
        let drop_in = self.text.is_some().then(|| self.drop_in.clone());
        let file = self.cluster.as_ref().map(Cluster::environment);
        let places = drop_in.into_iter().chain(file);
        let places: Vec<String> = places.map(|path| path.display().to_string()).collect();
        places.join(", ")
    }

    /// Whether the unit has a drop-in of ours, now or by this plan.
    pub(super) fn has_drop_in(&self) -> bool {
        self.text.is_some() || self.drop_in.exists()
    }
}

/// Takes the drop-in away; what was done, if there was one.
pub(super) fn remove_drop_in(path: &Path) -> anyhow::Result<Option<String>> {
    let removed = dropin::remove(path)?;
    Ok(removed.then(|| format!("removed {}", path.display())))
}

/// Takes our line out of a cluster's variables; what was done, if there was one.
pub(super) fn remove_line(cluster: &Cluster) -> anyhow::Result<Option<String>> {
    let path = cluster.environment();
    if !path.exists() {
        return Ok(None);
    }
    let file = Environment::read(&path)?;
    if !file.has_line() {
        return Ok(None);
    }
    file.write(&path, &file.without())?;
    Ok(Some(format!("took LD_PRELOAD out of {}", path.display())))
}
