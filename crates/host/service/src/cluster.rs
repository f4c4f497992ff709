//! PostgreSQL clusters of Debian's postgresql-common: a folder of settings for each.
//!
//! `pg_ctlcluster` starts a server with the variables in the cluster's file `environment` and no
//! others, so the variables of a unit never reach the server.

mod environment;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::account::{Account, AccountError};
use crate::name::UnitName;
use crate::replace::FileError;
use crate::root::Root;
use environment::Environment;

/// Holds a folder for each version, which holds a folder for each cluster.
const FOLDER: &str = "/etc/postgresql";
/// Prefix of Debian's unit for one cluster.
const PREFIX: &str = "postgresql";

/// A cluster, by its version (`15`) and its name (`main`).
#[derive(Debug)]
pub struct Cluster {
    pub version: String,
    pub name: String,
    folder: PathBuf,
}

/// The settings of a cluster cannot be read or edited.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is not a plain file, and Saiga does not edit any other", .0.display())]
    NotPlain(PathBuf),
}

impl Cluster {
    /// All clusters, sorted.
    pub(crate) fn all(root: &Root) -> Vec<Self> {
        let mut found = Vec::new();
        for version in names_in(&root.file(FOLDER)) {
            for name in names_in(&root.file(FOLDER).join(&version)) {
                let folder = root.file(FOLDER).join(&version).join(&name);
                if folder.join("postgresql.conf").exists() {
                    let version = version.clone();
                    found.push(Self {
                        version,
                        name,
                        folder,
                    });
                }
            }
        }
        found
    }

    /// The cluster for an argument of `pg_ctlcluster`: `15-main` or `15/main`.
    pub(crate) fn find(root: &Root, wanted: &str) -> Option<Self> {
        let (version, name) = wanted.split_once(['-', '/'])?;
        Self::all(root)
            .into_iter()
            .find(|cluster| cluster.version == version && cluster.name == name)
    }

    /// The cluster that the unit `unit` starts by Debian's naming convention.
    pub(crate) fn of_unit(root: &Root, unit: &UnitName) -> Option<Self> {
        let is_debians = unit.prefix() == PREFIX;
        is_debians.then(|| Self::find(root, unit.instance()))?
    }

    /// The unit that starts the cluster; `None` if its name cannot be the name of a unit.
    pub(crate) fn unit(&self) -> Option<UnitName> {
        let Self { version, name, .. } = self;
        format!("{PREFIX}@{version}-{name}").parse().ok()
    }

    /// The server's program, as a path below the root.
    pub(crate) fn program(&self) -> String {
        format!("/usr/lib/postgresql/{}/bin/postgres", self.version)
    }

    /// The file with the variables of its server.
    pub fn environment(&self) -> PathBuf {
        self.folder.join("environment")
    }

    /// The account that `pg_ctlcluster` switches to: the owner of the data directory, or of the
    /// settings if the data directory cannot be found.
    pub(crate) fn owner(&self, root: &Root) -> Result<Account, ClusterError> {
        let settings = self.folder.join("postgresql.conf");
        let text = fs::read_to_string(&settings).unwrap_or_default();
        let data = environment::value(&text, "data_directory").map(|path| root.file(path));
        let metadata = match data.and_then(|path| fs::metadata(path).ok()) {
            Some(metadata) => metadata,
            None => fs::metadata(&settings).map_err(FileError::read(&settings))?,
        };
        Ok(Account::of_owner(root, metadata.uid(), metadata.gid())?)
    }

    /// The value of LD_PRELOAD that the user has set.
    pub(crate) fn preload(&self) -> Result<Option<String>, ClusterError> {
        Ok(self.read()?.value("LD_PRELOAD"))
    }

    pub(crate) fn is_enabled_with(&self, preload: &str) -> bool {
        self.read().is_ok_and(|file| file.is_enabled_with(preload))
    }

    /// Adds a line that sets LD_PRELOAD to `preload`.
    pub(crate) fn enable(&self, preload: &str) -> Result<(), ClusterError> {
        let file = self.read()?;
        Ok(file.write(&self.environment(), &file.enabled_with(preload))?)
    }

    /// Removes the line that [`Self::enable`] has added. False if there is none.
    pub(crate) fn disable(&self) -> Result<bool, ClusterError> {
        let path = self.environment();
        if !path.exists() {
            return Ok(false);
        }
        let file = self.read()?;
        if file.is_enabled() {
            file.write(&path, &file.disabled())?;
        }
        Ok(file.is_enabled())
    }

    fn read(&self) -> Result<Environment, ClusterError> {
        Environment::read(&self.environment())
    }
}

/// The names in a folder, sorted; none if the folder cannot be read.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The units of all clusters, sorted.
pub(crate) fn units(root: &Root) -> Vec<UnitName> {
    Cluster::all(root)
        .iter()
        .filter_map(Cluster::unit)
        .collect()
}

/// The units of the clusters that are enabled, sorted.
pub(crate) fn enabled(root: &Root) -> Vec<UnitName> {
    let is_enabled = |cluster: &&Cluster| cluster.read().is_ok_and(|file| file.is_enabled());
    Cluster::all(root)
        .iter()
        .filter(is_enabled)
        .filter_map(Cluster::unit)
        .collect()
}
