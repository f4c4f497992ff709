//! Looks for every reason not to enable a service: in its unit, its programs, its user and the
//! library.

use std::path::{Path, PathBuf};

use saiga_program::{Credentials, check_for};

use crate::account::Account;
use crate::apparmor::Confinement;
use crate::cluster::{self, Cluster};
use crate::exec_start::{ExecStart, Target};
use crate::isolation;
use crate::library::Library;
use crate::name::UnitName;
use crate::obstacle::Obstacle;
use crate::root::Root;
use crate::sandbox;
use crate::selinux;
use crate::service::ServiceError;
use crate::unit::{self, Unit};

/// Folders in which systemd searches a program without a path.
const PROGRAM_FOLDERS: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// A unit that would start with a library.
pub(crate) struct Check<'a> {
    pub(crate) root: &'a Root,
    pub(crate) name: &'a UnitName,
    pub(crate) unit: &'a Unit,
    pub(crate) library: &'a Library,
}

impl Check<'_> {
    /// All obstacles, each once.
    pub(crate) fn obstacles(&self) -> Result<Vec<Obstacle>, ServiceError> {
        let starts = starts(self.unit, self.name);
        if starts.iter().all(|start| start.target == Target::Nothing) {
            return Ok(vec![self.without_server()]);
        }
        let seen = &self.library.seen;
        let mut found = Vec::new();
        if let Err(obstacle) = saiga_program::library::check(&self.library.file) {
            found.push(obstacle.into());
        }
        found.extend(isolation::hidden(self.unit, seen));
        found.extend(isolation::own_network(self.unit));
        for start in &starts {
            found.extend(self.of_start(start)?);
        }
        found.extend(sandbox::obstacles(self.unit, seen));
        found.dedup();
        Ok(found)
    }

    /// The first obstacle to the program of one ExecStart= line.
    fn of_start(&self, start: &ExecStart) -> Result<Option<Obstacle>, ServiceError> {
        Ok(match &start.target {
            Target::Nothing => None,
            Target::Program(path) => {
                let account = if start.as_root {
                    Account::of_owner(self.root, 0, 0)?
                } else {
                    Account::of_unit(self.root, self.unit)?
                };
                isolation::environment(self.root, self.unit, self.name, &self.library.seen)
                    .or_else(|| self.of_program(path, &account))
            }
            Target::Cluster(wanted) => match Cluster::find(self.root, wanted) {
                Some(cluster) => self.of_program(&cluster.program(), &cluster.owner(self.root)?),
                None => Some(Obstacle::NoCluster {
                    wanted: wanted.clone(),
                    units: cluster::units(self.root),
                }),
            },
        })
    }

    /// The first obstacle to a program that runs as `account`.
    fn of_program(&self, path: &str, account: &Account) -> Option<Obstacle> {
        let library = self.library;
        if let Some(at) = library.denied_at(account) {
            return Some(Obstacle::Denied {
                library: library.seen.clone(),
                at: at.to_owned(),
            });
        }
        let Some(program) = self.located(path) else {
            return Some(Obstacle::NoProgram(path.to_owned()));
        };
        let credentials = Credentials {
            user: account.user,
            group: account.groups.first().copied(),
            no_new_privs: self.unit.is_on("NoNewPrivileges") || self.unit.is_on("DynamicUser"),
        };
        check_for(&program, &library.file, &credentials, self.root.as_path())
            .err()
            .map(Obstacle::from)
            .or_else(|| selinux::obstacle(self.root, library))
            .or_else(|| confinement(self.root, &program, &library.file).map(Obstacle::AppArmor))
    }

    fn located(&self, program: &str) -> Option<PathBuf> {
        if program.starts_with('/') {
            return Some(self.root.file(program)).filter(|file| file.exists());
        }
        let files = PROGRAM_FOLDERS.map(|folder| self.root.file(folder).join(program));
        files.into_iter().find(|file| file.exists())
    }

    /// The obstacle of a unit like Debian's postgresql.service, with the units to enable instead.
    fn without_server(&self) -> Obstacle {
        let template = self.name.template();
        if !unit::exists(self.root, &template) {
            return Obstacle::NoServer;
        }
        let is_of_cluster = |start: &ExecStart| matches!(start.target, Target::Cluster(_));
        match Unit::load(self.root, &template, "") {
            Ok(unit) if starts(&unit, &template).iter().any(is_of_cluster) => {
                Obstacle::NoServerButClusters(cluster::units(self.root))
            }
            _ => Obstacle::NoServerButInstances(template),
        }
    }
}

/// What the AppArmor profile of `program` lacks to map `library`, both paths of this process.
pub fn confinement(root: &Root, program: &Path, library: &Path) -> Option<Confinement> {
    let seen = |file: &Path| {
        Library::new(file.canonicalize().ok()?, root)
            .seen
            .to_str()
            .map(str::to_owned)
    };
    Confinement::find(root, &seen(program)?, &seen(library)?)
}

/// The ExecStart= lines of a unit.
fn starts(unit: &Unit, name: &UnitName) -> Vec<ExecStart> {
    let lines = unit.values("ExecStart").into_iter();
    lines
        .filter_map(|line| ExecStart::read(line, name))
        .collect()
}

/// The PostgreSQL cluster that a unit starts.
pub(crate) fn cluster_of(root: &Root, name: &UnitName, unit: &Unit) -> Option<Cluster> {
    starts(unit, name)
        .iter()
        .find_map(|start| match &start.target {
            Target::Cluster(wanted) => Cluster::find(root, wanted),
            Target::Nothing | Target::Program(_) => None,
        })
}
