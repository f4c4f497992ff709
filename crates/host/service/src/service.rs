//! A service, and the two decisions about it: whether and how to enable it, and what to remove to
//! disable it.

use std::path::PathBuf;

use crate::account::AccountError;
use crate::check::{Check, cluster_of};
use crate::cluster::{self, Cluster, ClusterError};
use crate::drop_in;
use crate::library::Library;
use crate::name::UnitName;
use crate::obstacle::Obstacle;
use crate::plan::{Change, Plan};
use crate::replace::FileError;
use crate::root::Root;
use crate::unit::{Unit, UnitError, real_name};

/// A service unit of the system below a root folder.
#[derive(Debug)]
pub struct Service {
    root: Root,
    name: UnitName,
}

/// The outcome of [`Service::enable`].
#[derive(Debug)]
pub enum Enabling {
    Enabled(Enabled),
    /// Nothing was changed: these files enable the service already.
    AlreadyEnabled(Vec<PathBuf>),
    /// Nothing was changed: these obstacles are in the way.
    Refused(Vec<Obstacle>),
}

#[derive(Debug)]
pub struct Enabled {
    pub changes: Vec<Change>,
    /// The obstacles that the drop-in relaxes.
    pub relaxed: Vec<Obstacle>,
    /// The PostgreSQL cluster that the unit starts.
    pub cluster: Option<Cluster>,
}

/// The outcome of [`Service::disable`].
#[derive(Debug)]
pub struct Disabled {
    /// Empty if the service was not enabled.
    pub changes: Vec<Change>,
    /// The PostgreSQL cluster that the unit starts.
    pub cluster: Option<Cluster>,
}

/// Why a service can be neither enabled nor refused, or not disabled.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Unit(#[from] UnitError),
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is not UTF-8, so a unit cannot name it; install Saiga elsewhere", .0.display())]
    LibraryPath(PathBuf),
}

impl Service {
    /// The service that systemd calls `name`, which may be an alias.
    pub fn new(root: Root, name: &UnitName) -> Self {
        let name = real_name(&root, name);
        Self { root, name }
    }

    /// The name of its unit.
    pub fn name(&self) -> &UnitName {
        &self.name
    }

    /// The path of Saiga's drop-in, which need not exist.
    pub fn drop_in(&self) -> PathBuf {
        drop_in::path(&self.root, &self.name)
    }

    /// Makes the service start with `library` preloaded, unless there is an obstacle. Obstacles in
    /// its sandbox are relaxed with `relax`.
    pub fn enable(&self, library: &Library, relax: bool) -> Result<Enabling, ServiceError> {
        let unit = Unit::load(&self.root, &self.name, "")?;
        let check = self.check(&unit, library);
        let obstacles = check.obstacles()?;
        if obstacles.iter().any(|it| it.relaxation().is_none()) {
            return Ok(Enabling::Refused(obstacles));
        }
        let plan = Plan::new(&check, &obstacles)?;
        let overridden = self.overridden(&plan, library)?;
        if !overridden.is_empty() {
            return Ok(Enabling::Refused(overridden));
        }
        if plan.is_done() {
            return Ok(Enabling::AlreadyEnabled(plan.files()));
        }
        if !obstacles.is_empty() && !relax {
            return Ok(Enabling::Refused(obstacles));
        }
        Ok(Enabling::Enabled(Enabled {
            changes: plan.carry_out()?,
            relaxed: obstacles,
            cluster: plan.cluster,
        }))
    }

    fn check<'a>(&'a self, unit: &'a Unit, library: &'a Library) -> Check<'a> {
        let Self { root, name } = self;
        Check {
            root,
            name,
            unit,
            library,
        }
    }

    /// The obstacles that the planned drop-in does not remove, because systemd reads another
    /// drop-in after it.
    fn overridden(&self, plan: &Plan, library: &Library) -> Result<Vec<Obstacle>, ServiceError> {
        if plan.text.is_empty() {
            return Ok(Vec::new());
        }
        let unit = Unit::load(&self.root, &self.name, &plan.text)?;
        let mut found = self.check(&unit, library).obstacles()?;
        let preload = unit.environment("LD_PRELOAD");
        if plan.cluster.is_none() && preload.as_ref() != Some(&plan.preload) {
            found.push(Obstacle::OtherPreload);
        }
        let overridden = |obstacle| Obstacle::Overridden(Box::new(obstacle));
        Ok(found.into_iter().map(overridden).collect())
    }

    /// Removes everything that [`Self::enable`] wrote, even if the unit is no longer installed.
    pub fn disable(&self) -> Result<Disabled, ServiceError> {
        let unit = Unit::load(&self.root, &self.name, "").ok();
        let cluster = unit
            .and_then(|unit| cluster_of(&self.root, &self.name, &unit))
            .or_else(|| Cluster::of_unit(&self.root, &self.name));
        let mut changes = Vec::new();
        let drop_in = self.drop_in();
        if drop_in::remove(&drop_in)? {
            changes.push(Change::RemovedDropIn(drop_in));
        }
        if let Some(cluster) = &cluster
            && cluster.disable()?
        {
            changes.push(Change::RemovedPreload(cluster.environment()));
        }
        Ok(Disabled { changes, cluster })
    }
}

/// The services that are enabled below `root`, sorted.
pub fn enabled(root: &Root) -> Vec<UnitName> {
    let mut names = drop_in::enabled(root);
    names.extend(cluster::enabled(root));
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    names
}
