//! The files that enable a service, and the changes that bring them about.
//!
//! A drop-in of the unit enables most services. The server of a Debian PostgreSQL cluster does not
//! see the variables of its unit, so a line in the cluster's file `environment` enables it, and a
//! drop-in is written only to relax the sandbox.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use saiga_program::library::ld_preload;

use crate::check::{Check, cluster_of};
use crate::cluster::Cluster;
use crate::drop_in;
use crate::obstacle::Obstacle;
use crate::replace;
use crate::service::ServiceError;

/// A change that was made to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    WroteDropIn(PathBuf),
    RemovedDropIn(PathBuf),
    AddedPreload(PathBuf),
    RemovedPreload(PathBuf),
    /// The rules are in `local`, which the profile in `profile` includes.
    AddedRules {
        local: PathBuf,
        profile: PathBuf,
    },
    RemovedRules(PathBuf),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WroteDropIn(file) => write!(f, "wrote {}", file.display()),
            Self::RemovedDropIn(file) => write!(f, "removed {}", file.display()),
            Self::AddedPreload(file) => write!(f, "added LD_PRELOAD to {}", file.display()),
            Self::RemovedPreload(file) => write!(f, "removed LD_PRELOAD from {}", file.display()),
            Self::AddedRules { local, profile } => write!(
                f,
                "added rules to {}; to load them: apparmor_parser -r {}",
                local.display(),
                profile.display()
            ),
            Self::RemovedRules(file) => write!(
                f,
                "removed rules from {}; to unload them: apparmor_parser -r /etc/apparmor.d/{}",
                file.display(),
                file.file_name().unwrap_or_default().display()
            ),
        }
    }
}

impl Change {
    /// Whether systemd has to read the unit again.
    pub fn is_of_unit(&self) -> bool {
        matches!(self, Self::WroteDropIn(_) | Self::RemovedDropIn(_))
    }
}

#[derive(Debug)]
pub(crate) struct Plan {
    drop_in: PathBuf,
    /// The text of the drop-in; empty if there must be none.
    pub(crate) text: String,
    /// The cluster that the unit starts.
    pub(crate) cluster: Option<Cluster>,
    /// The value of LD_PRELOAD for the server.
    pub(crate) preload: String,
}

impl Plan {
    /// The plan for a service that has been checked. The drop-in relaxes `obstacles`.
    pub(crate) fn new(check: &Check<'_>, obstacles: &[Obstacle]) -> Result<Self, ServiceError> {
        let cluster = cluster_of(check.root, check.name, check.unit);
        let existing = match &cluster {
            Some(cluster) => cluster.preload()?,
            None => check.unit.environment("LD_PRELOAD", check.name),
        };
        let library = &check.library.seen;
        let preload = ld_preload(library, existing.as_deref().map(AsRef::as_ref));
        let Ok(preload) = preload.into_string() else {
            return Err(ServiceError::LibraryPath(library.clone()));
        };
        let in_drop_in = cluster.is_none().then_some(preload.as_str());
        let text = if in_drop_in.is_some() || !obstacles.is_empty() {
            drop_in::text(in_drop_in, obstacles)
        } else {
            String::new()
        };
        Ok(Self {
            drop_in: drop_in::path(check.root, check.name),
            text,
            cluster,
            preload,
        })
    }

    /// Whether the files are as planned already.
    pub(crate) fn is_done(&self) -> bool {
        let drop_in = fs::read_to_string(&self.drop_in).unwrap_or_default();
        let mut cluster = self.cluster.iter();
        drop_in == self.text && cluster.all(|cluster| cluster.is_enabled_with(&self.preload))
    }

    pub(crate) fn carry_out(&self) -> Result<Vec<Change>, ServiceError> {
        let mut changes = Vec::new();
        if !self.text.is_empty() {
            replace::write(&self.drop_in, &self.text)?;
            changes.push(Change::WroteDropIn(self.drop_in.clone()));
        } else if drop_in::remove(&self.drop_in)? {
            changes.push(Change::RemovedDropIn(self.drop_in.clone()));
        }
        if let Some(cluster) = &self.cluster {
            cluster.enable(&self.preload)?;
            changes.push(Change::AddedPreload(cluster.environment()));
        }
        Ok(changes)
    }

    /// The files that the plan writes to.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let drop_in = (!self.text.is_empty()).then(|| self.drop_in.clone());
        let environment = self.cluster.as_ref().map(Cluster::environment);
        drop_in.into_iter().chain(environment).collect()
    }
}
