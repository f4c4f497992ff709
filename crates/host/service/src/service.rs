//! A service, and the two decisions about it: whether and how to enable it, and what to remove to
//! disable it.

use std::path::PathBuf;

use crate::account::AccountError;
use crate::apparmor;
use crate::check::{Check, cluster_of};
use crate::cluster::{self, Cluster, ClusterError};
use crate::drop_in;
use crate::library::Library;
use crate::name::UnitName;
use crate::obstacle::Obstacle;
use crate::plan::{Change, Plan};
use crate::replace::FileError;
use crate::root::Root;
use crate::unit::{self, Unit, UnitError, real_name};

/// A service unit of the system below a root folder.
#[derive(Debug)]
pub struct Service {
    root: Root,
    name: UnitName,
}

/// What [`Service::enable`] may change besides LD_PRELOAD.
#[derive(Debug, Clone, Copy, Default)]
pub struct Permissions {
    /// Options of the service's sandbox, in the drop-in.
    pub sandbox: bool,
    /// Rules of its AppArmor profile, in the profile's file for rules of this host.
    pub apparmor: bool,
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

    /// Whether a unit with this name is installed.
    pub fn exists(&self) -> bool {
        unit::exists(&self.root, &self.name)
    }

    /// The path of Saiga's drop-in, which need not exist.
    pub fn drop_in(&self) -> PathBuf {
        drop_in::path(&self.root, &self.name)
    }

    /// Makes the service start with `library` preloaded, unless there is an obstacle that remains
    /// with these permissions.
    pub fn enable(
        &self,
        library: &Library,
        permissions: Permissions,
    ) -> Result<Enabling, ServiceError> {
        let unit = Unit::load(&self.root, &self.name, "")?;
        let check = self.check(&unit, library);
        let obstacles = check.obstacles()?;
        let stays = |it: &Obstacle| {
            it.relaxation().is_none() && !(permissions.apparmor && it.has_local_file())
        };
        if obstacles.iter().any(stays) {
            return Ok(Enabling::Refused(obstacles));
        }
        let (confined, obstacles): (Vec<_>, Vec<_>) = obstacles.into_iter().partition(is_apparmor);
        let plan = Plan::new(&check, &obstacles)?;
        let overridden = self.overridden(&plan, library)?;
        if !overridden.is_empty() {
            return Ok(Enabling::Refused(overridden));
        }
        if plan.is_done() && confined.is_empty() {
            return Ok(Enabling::AlreadyEnabled(plan.files()));
        }
        if !obstacles.is_empty() && !permissions.sandbox {
            return Ok(Enabling::Refused(obstacles));
        }
        let mut changes = self.add_rules(confined)?;
        let done = plan.carry_out().inspect_err(|_| {
            // The first error is the one to report.
            let _removed = apparmor::remove(&self.root, &self.name);
        });
        changes.extend(done?);
        Ok(Enabling::Enabled(Enabled {
            changes,
            relaxed: obstacles,
            cluster: plan.cluster,
        }))
    }

    fn add_rules(&self, confined: Vec<Obstacle>) -> Result<Vec<Change>, ServiceError> {
        let mut changes = Vec::new();
        for obstacle in confined {
            if let Obstacle::AppArmor(confinement) = obstacle {
                changes.extend(confinement.add(&self.root, &self.name)?);
            }
        }
        Ok(changes)
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
        found.retain(|it| !is_apparmor(it));
        let preload = unit.environment("LD_PRELOAD", &self.name);
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
        let rules = apparmor::remove(&self.root, &self.name)?;
        changes.extend(rules.into_iter().map(Change::RemovedRules));
        Ok(Disabled { changes, cluster })
    }
}

fn is_apparmor(obstacle: &Obstacle) -> bool {
    matches!(obstacle, Obstacle::AppArmor(_))
}

/// The services that are enabled below `root`, sorted.
pub fn enabled(root: &Root) -> Vec<UnitName> {
    let mut names = drop_in::enabled(root);
    names.extend(cluster::enabled(root));
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    names
}
