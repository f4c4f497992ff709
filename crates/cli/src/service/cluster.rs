//! PostgreSQL's clusters as Debian's postgresql-common keeps them: a folder of settings each.
//!
//! `pg_ctlcluster` starts a server with the variables in its cluster's file `environment` and no
//! others, so what a unit sets never reaches it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::environment::{self, Environment};
use super::reach::User;
use super::{below, privileges};

/// Where clusters are: a folder per version, in it one per cluster.
const FOLDER: &str = "etc/postgresql";
/// Of Debian's unit for one cluster.
const STEM: &str = "postgresql@";

/// One cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Such as `15`.
    pub(super) version: String,
    /// Such as `main`.
    pub(super) name: String,
    folder: PathBuf,
}

/// All clusters below `root`, sorted.
pub(super) fn all(root: &Path) -> Vec<Cluster> {
    let mut found = Vec::new();
    for version in names_in(&root.join(FOLDER)) {
        for name in names_in(&root.join(FOLDER).join(&version)) {
            let folder = root.join(FOLDER).join(&version).join(&name);
            if folder.join("postgresql.conf").exists() {
                found.push(Cluster {
                    version: version.clone(),
                    name,
                    folder,
                });
            }
        }
    }
    found
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The cluster that `pg_ctlcluster` means by `15-main` or `15/main`.
pub(super) fn find(root: &Path, wanted: &str) -> Option<Cluster> {
    let (version, name) = wanted.split_once(['-', '/'])?;
    all(root)
        .into_iter()
        .find(|cluster| cluster.version == version && cluster.name == name)
}

/// The cluster whose unit, by Debian's names, is `unit`.
pub(super) fn of_unit(root: &Path, unit: &str) -> Option<Cluster> {
    let instance = unit.strip_prefix(STEM)?.strip_suffix(".service")?;
    find(root, instance)
}

/// The units of all clusters, for people.
pub(super) fn units(root: &Path) -> String {
    let units: Vec<String> = all(root).iter().map(Cluster::unit).collect();
    if units.is_empty() {
        return "none is here".to_owned();
    }
    units.join(", ")
}

/// The units of the clusters that are enabled, sorted.
pub(super) fn enabled(root: &Path) -> Vec<String> {
    let has_line = |cluster: &Cluster| {
        Environment::read(&cluster.environment()).is_ok_and(|file| file.has_line())
    };
    all(root)
        .iter()
        .filter(|it| has_line(it))
        .map(Cluster::unit)
        .collect()
}

impl Cluster {
    /// The unit that starts it.
    pub(super) fn unit(&self) -> String {
        let Self { version, name, .. } = self;
        format!("{STEM}{version}-{name}.service")
    }

    /// The server's program.
    pub(super) fn program(&self) -> String {
        format!("/usr/lib/postgresql/{}/bin/postgres", self.version)
    }

    /// The file of its server's variables.
    pub(super) fn environment(&self) -> PathBuf {
        self.folder.join("environment")
    }

    /// Whom `pg_ctlcluster` becomes: the owner of the data.
    ///
    /// # Errors
    /// When neither data nor settings can be looked at.
    pub(super) fn owner(&self, root: &Path) -> anyhow::Result<User> {
        let settings = self.folder.join("postgresql.conf");
        let text = fs::read_to_string(&settings).unwrap_or_default();
        let data = environment::value(&text, "data_directory").map(|path| below(root, &path));
        let data = data.and_then(|path| fs::metadata(path).ok());
        let facts = match data {
            Some(facts) => facts,
            None => fs::metadata(&settings)?,
        };
        privileges::of_owner(root, facts.uid(), facts.gid())
    }
}
