//! What would keep the library out of a service, or its connections on TCP: one sentence each, and
//! where there is one, the line in a drop-in that removes it.
//!
//! Spec: `man 5 systemd.exec`. `sandbox` has the options that such a line can change without
//! giving up what they are for; those of this file are for the user to change.

use std::path::{Path, PathBuf};

use super::cluster::{self, Cluster};
use super::reach::{Library, User};
use super::start::{Start, Target};
use super::unit::{self, Unit};
use super::{below, dropin, privileges, sandbox};
use crate::run::{in_library, program};

/// One thing in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// What it is and, without a relief, what to do.
    pub(super) what: String,
    /// The line that removes it.
    pub(super) relief: Option<String>,
}

impl Obstacle {
    pub(super) fn relievable(what: String, relief: String) -> Self {
        Self {
            what,
            relief: Some(relief),
        }
    }
}

impl From<String> for Obstacle {
    fn from(what: String) -> Self {
        Self { what, relief: None }
    }
}

/// Everything that stands in the way of the service `name`.
///
/// # Errors
/// When its user or the owner of its cluster cannot be found out.
pub(super) fn all(
    root: &Path,
    name: &str,
    unit: &Unit,
    library: &Library,
) -> anyhow::Result<Vec<Obstacle>> {
    let starts = starts(unit, name);
    if starts.iter().all(|start| start.target == Target::Nothing) {
        return Ok(vec![stands_for_others(root, name).into()]);
    }
    let mut found: Vec<Obstacle> = Vec::new();
    let mut say = |obstacle: Option<String>| found.extend(obstacle.map(Obstacle::from));
    say(in_library(&library.file)
        .err()
        .map(|obstacle| obstacle.to_string()));
    say(hidden(unit, &library.seen));
    say(network(unit));
    for start in &starts {
        say(match &start.target {
            Target::Nothing => None,
            Target::Program(path) => {
                let user = user_of(root, unit, start)?;
                environment(root, unit)
                    .or_else(|| closed(library, &user))
                    .or_else(|| program_of(root, path, library, &user, unit))
            }
            Target::Cluster(wanted) => match cluster::find(root, wanted) {
                None => Some(no_cluster(root, wanted)),
                Some(it) => {
                    let user = it.owner(root)?;
                    closed(library, &user)
                        .or_else(|| program_of(root, &it.program(), library, &user, unit))
                }
            },
        });
    }
    found.extend(sandbox::all(unit, library));
    found.dedup();
    Ok(found)
}

/// What the unit `name` starts.
fn starts(unit: &Unit, name: &str) -> Vec<Start> {
    let lines = unit.values("ExecStart").into_iter();
    lines.filter_map(|line| Start::read(line, name)).collect()
}

/// The cluster whose server the unit `name` starts.
pub(super) fn cluster_of(root: &Path, name: &str, unit: &Unit) -> Option<Cluster> {
    starts(unit, name)
        .iter()
        .find_map(|start| match &start.target {
            Target::Cluster(wanted) => cluster::find(root, wanted),
            Target::Nothing | Target::Program(_) => None,
        })
}

/// A unit like Debian's postgresql.service, and the units that do its work.
fn stands_for_others(root: &Path, name: &str) -> String {
    let template = name.replace(".service", "@.service");
    let of_template = || Unit::read(root, &template, None).ok();
    let is_cluster = |start: &Start| matches!(start.target, Target::Cluster(_));
    let instead = if !unit::exists(root, &template) {
        "enable the units that it stands for".to_owned()
    } else if of_template().is_some_and(|unit| starts(&unit, &template).iter().any(is_cluster)) {
        format!(
            "it stands for the units of all clusters, enable those: {}",
            cluster::units(root)
        )
    } else {
        format!("enable the units of {template}")
    };
    format!("it starts no server itself; {instead}")
}

fn no_cluster(root: &Path, wanted: &str) -> String {
    let units = cluster::units(root);
    format!("there is no PostgreSQL cluster {wanted:?}; the units of all clusters: {units}")
}

fn user_of(root: &Path, unit: &Unit, start: &Start) -> anyhow::Result<User> {
    if start.as_root {
        return privileges::of_owner(root, 0, 0);
    }
    privileges::of(root, unit)
}

fn closed(library: &Library, user: &User) -> Option<String> {
    let path = library.closed_to(user)?;
    Some(format!(
        "its user cannot read {}: {} is closed to it; install Saiga where everybody can read",
        library.seen.display(),
        path.display()
    ))
}

/// A setting that takes the place of the library out of the service's sight.
fn hidden(unit: &Unit, library: &Path) -> Option<String> {
    let covers = |key: &&str| sandbox::covering(unit, key, library).is_some();
    let below = |folders: &[&str]| folders.iter().any(|folder| library.starts_with(folder));
    let blame = |setting: &str| {
        let library = library.display();
        Some(format!(
            "{setting} hides {library} from it; install Saiga elsewhere, as `make install` does"
        ))
    };
    for key in ["RootDirectory", "RootImage"] {
        if unit.value(key).is_some_and(|value| value != "/") {
            return blame(&format!("{key}="));
        }
    }
    if ["BindPaths", "BindReadOnlyPaths"].iter().any(covers) {
        return None;
    }
    let home = unit.value("ProtectHome").unwrap_or("no");
    if below(&["/home", "/root", "/run/user"])
        && home != "read-only"
        && (home == "tmpfs" || unit.is_on("ProtectHome"))
    {
        return blame(&format!("ProtectHome={home}"));
    }
    let private_tmp = unit.is_on("PrivateTmp")
        || unit.is_on("DynamicUser")
        || unit.value("PrivateTmp") == Some("disconnected");
    if below(&["/tmp", "/var/tmp"]) && private_tmp {
        return blame("PrivateTmp=");
    }
    let keys = [
        "InaccessiblePaths",
        "InaccessibleDirectories",
        "TemporaryFileSystem",
    ];
    blame(&format!("{}=", keys.into_iter().find(covers)?))
}

/// Connections never cross network namespaces.
fn network(unit: &Unit) -> Option<String> {
    let is_apart = unit.is_on("PrivateNetwork") || unit.value("NetworkNamespacePath").is_some();
    is_apart.then(|| {
        "it has a network namespace of its own (PrivateNetwork=, NetworkNamespacePath=): connections from outside stay on TCP"
            .to_owned()
    })
}

/// What is read after `Environment=` and wins over it.
fn environment(root: &Path, unit: &Unit) -> Option<String> {
    let unset = unit.words("UnsetEnvironment");
    if unset
        .iter()
        .any(|word| word == "LD_PRELOAD" || word.starts_with("LD_PRELOAD="))
    {
        return Some(
            "UnsetEnvironment= takes LD_PRELOAD away; take that line back in a drop-in".to_owned(),
        );
    }
    let sets = |name: &String| {
        let text = std::fs::read_to_string(below(root, name)).unwrap_or_default();
        text.lines()
            .any(|line| line.trim_start().starts_with("LD_PRELOAD="))
    };
    let files = unit.words("EnvironmentFile").into_iter();
    let name = files
        .map(|name| name.trim_start_matches('-').to_owned())
        .find(sets)?;
    Some(format!(
        "{name} (EnvironmentFile=) sets LD_PRELOAD and wins over {}; name Saiga's library there instead",
        dropin::FILE
    ))
}

/// Where systemd looks a program up that has no path.
const SEARCHED: [&str; 4] = [
    "/usr/local/sbin/",
    "/usr/local/bin/",
    "/usr/sbin/",
    "/usr/bin/",
];

fn located(root: &Path, path: &str) -> Option<PathBuf> {
    if path.starts_with('/') {
        return Some(below(root, path)).filter(|file| file.exists());
    }
    let files = SEARCHED.map(|folder| below(root, &format!("{folder}{path}")));
    files.into_iter().find(|file| file.exists())
}

/// What stands against a program.
fn program_of(
    root: &Path,
    path: &str,
    library: &Library,
    user: &User,
    unit: &Unit,
) -> Option<String> {
    let Some(program) = located(root, path) else {
        return Some(format!(
            "its program {path} does not exist; install the service first"
        ));
    };
    let as_user = program::As {
        user: user.uid,
        group: user.gids.first().copied(),
        gains_nothing: unit.is_on("NoNewPrivileges") || unit.is_on("DynamicUser"),
        root: root.to_owned(),
    };
    program::check_as(&program, &library.file, &as_user)
        .err()
        .map(|obstacle| obstacle.to_string())
}
