//! What would keep the library out of a service, or its connections on TCP: one sentence each.
//!
//! Spec: `man 5 systemd.exec`. Deliberately absent, because they are no obstacle: NoNewPrivileges,
//! MemoryDenyWriteExecute (the library is mapped as every other), AmbientCapabilities (they do
//! not make the loader distrust its environment), IPAddressDeny.

use std::path::{Path, PathBuf};

use super::reach::{self, User};
use super::unit::Unit;
use super::{dropin, privileges};
use crate::run::{in_library, program};

/// Everything that stands in the way of `unit`, each with what to do.
pub(super) fn all(root: &Path, unit: &Unit, library: &Path) -> anyhow::Result<Vec<String>> {
    let user = privileges::of(root, unit)?;
    let mut found: Vec<String> = Vec::new();
    found.extend(
        in_library(library)
            .err()
            .map(|obstacle| obstacle.to_string()),
    );
    found.extend(closed(library, &user));
    found.extend(hidden(unit, library));
    found.extend(families(unit));
    found.extend(system_calls(unit));
    found.extend(namespaces(unit));
    found.extend(environment(root, unit));
    for start in unit.values("ExecStart") {
        found.extend(program_of(root, start, library, &user, unit));
    }
    found.dedup();
    Ok(found)
}

fn closed(library: &Path, user: &User) -> Option<String> {
    let path = reach::closed(library, user)?;
    Some(format!(
        "its user cannot read {}: {} is closed to it; install Saiga where everybody can read",
        library.display(),
        path.display()
    ))
}

/// A setting that takes the place of the library out of the service's sight.
fn hidden(unit: &Unit, library: &Path) -> Option<String> {
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
    if ["BindPaths", "BindReadOnlyPaths"]
        .iter()
        .any(|key| covers(unit, key, library))
    {
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
        "NoExecPaths",
    ];
    let blamed = keys.into_iter().find(|key| {
        covers(unit, key, library) && !(*key == "NoExecPaths" && covers(unit, "ExecPaths", library))
    })?;
    blame(&format!("{blamed}="))
}

/// Whether a list of paths names the library or a folder above it.
fn covers(unit: &Unit, key: &str, library: &Path) -> bool {
    unit.words(key).iter().any(|word| {
        let path = word.trim_start_matches(['-', '+']);
        library.starts_with(path.split(':').next().unwrap_or(path))
    })
}

/// The library finds its peer by AF_NETLINK (sock_diag) and talks to it by AF_UNIX.
fn families(unit: &Unit) -> Vec<String> {
    let missing = |family: &&str| !is_allowed(unit, "RestrictAddressFamilies", &[*family]);
    let needed = ["AF_UNIX", "AF_NETLINK"];
    let lacking: Vec<&str> = needed.into_iter().filter(missing).collect();
    if lacking.is_empty() {
        return Vec::new();
    }
    let lacking = lacking.join(" ");
    vec![format!(
        "RestrictAddressFamilies= lacks {lacking}, by which the two ends find each other; add them in a drop-in: \
         RestrictAddressFamilies={lacking}"
    )]
}

/// Calls that the library makes and most services do not, with the groups that contain them.
const CALLS: [(&str, &[&str]); 3] = [
    (
        "memfd_create",
        &["memfd_create", "@file-system", "@system-service", "@known"],
    ),
    (
        "socket",
        &["socket", "@network-io", "@system-service", "@known"],
    ),
    (
        "sendmsg",
        &["sendmsg", "@network-io", "@system-service", "@known"],
    ),
];

fn system_calls(unit: &Unit) -> Vec<String> {
    CALLS
        .iter()
        .filter(|(_, names)| !is_allowed(unit, "SystemCallFilter", names))
        .map(|(call, _)| {
            format!("SystemCallFilter= lacks {call}; add it in a drop-in: SystemCallFilter={call}")
        })
        .collect()
}

/// Whether a filter list lets one of `names` through. The first line makes it a list of what is
/// allowed or, with a tilde, of what is not; further lines add and take away.
fn is_allowed(unit: &Unit, key: &str, names: &[&str]) -> bool {
    let lines = unit.values(key);
    let Some(first) = lines.first() else {
        return true;
    };
    if *first == "none" && lines.len() == 1 {
        return false;
    }
    let mut allowed = first.starts_with('~');
    for line in lines {
        let denies = line.starts_with('~');
        let mut words = line.trim_start_matches('~').split_whitespace();
        if words.any(|word| names.contains(&word.split(':').next().unwrap_or(word))) {
            allowed = !denies;
        }
    }
    allowed
}

/// Connections never cross namespaces, and an unmapped user is nobody's.
fn namespaces(unit: &Unit) -> Vec<String> {
    let mut found = Vec::new();
    if unit.is_on("PrivateNetwork") || unit.value("NetworkNamespacePath").is_some() {
        found.push(
            "it has a network namespace of its own (PrivateNetwork=, NetworkNamespacePath=): connections from outside stay on TCP"
                .to_owned(),
        );
    }
    if unit.is_on("PrivateUsers") {
        found.push(
            "PrivateUsers= hides who its peers are, so its connections stay on TCP".to_owned(),
        );
    }
    found
}

/// A file of variables is read after the drop-in's own and would win.
fn environment(root: &Path, unit: &Unit) -> Vec<String> {
    let unset = unit.words("UnsetEnvironment");
    let mut found: Vec<String> = Vec::new();
    if unset
        .iter()
        .any(|word| word == "LD_PRELOAD" || word.starts_with("LD_PRELOAD="))
    {
        found.push(
            "UnsetEnvironment= takes LD_PRELOAD away; take that line back in a drop-in".to_owned(),
        );
    }
    for name in unit.words("EnvironmentFile") {
        let name = name.trim_start_matches('-');
        let text = std::fs::read_to_string(below(root, name)).unwrap_or_default();
        if text
            .lines()
            .any(|line| line.trim_start().starts_with("LD_PRELOAD="))
        {
            found.push(format!(
                "{name} (EnvironmentFile=) sets LD_PRELOAD and wins over {}; name Saiga's library there instead",
                dropin::FILE
            ));
        }
    }
    found
}

/// What stands against the program of one ExecStart= line.
fn program_of(
    root: &Path,
    start: &str,
    library: &Path,
    user: &User,
    unit: &Unit,
) -> Option<String> {
    let trusted = start
        .chars()
        .take_while(|c| "@-:+!|".contains(*c))
        .collect::<String>();
    let path = start
        .trim_start_matches(['@', '-', ':', '+', '!', '|'])
        .split_whitespace()
        .next()?;
    let path = path.trim_matches('"');
    if !path.starts_with('/') {
        return None; // systemd looks it up in a path of its own.
    }
    let program = below(root, path);
    if !program.exists() {
        return Some(format!(
            "its program {path} does not exist; install the service first"
        ));
    }
    let as_user = program::As {
        user: if trusted.contains('+') {
            Some(0)
        } else {
            user.uid
        },
        group: user.gids.first().copied(),
        gains_nothing: unit.is_on("NoNewPrivileges") || unit.is_on("DynamicUser"),
    };
    program::check_as(&program, library, &as_user)
        .err()
        .map(|obstacle| obstacle.to_string())
}

fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
