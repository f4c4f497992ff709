//! Settings of a service that keep the library out or its connections on TCP, and that no line of
//! a drop-in could change without defeating their purpose.
//!
//! Spec: `man 5 systemd.exec`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::glob;
use crate::name::UnitName;
use crate::obstacle::Obstacle;
use crate::root::Root;
use crate::specifier::expand;
use crate::unit::Unit;

/// A setting that gives the service another view of the library's folder.
pub(crate) fn hidden(unit: &Unit, library: &Path) -> Option<Obstacle> {
    Some(Obstacle::Hidden {
        setting: hiding_setting(unit, library)?,
        library: library.to_owned(),
    })
}

fn hiding_setting(unit: &Unit, library: &Path) -> Option<String> {
    let covers = |key: &&str| covering(unit, key, library).is_some();
    let is_below = |folders: &[&str]| folders.iter().any(|folder| library.starts_with(folder));
    for key in ["RootDirectory", "RootImage"] {
        if unit.value(key).is_some_and(|value| value != "/") {
            return Some(format!("{key}="));
        }
    }
    if ["BindPaths", "BindReadOnlyPaths"].iter().any(covers) {
        return None;
    }
    let home = unit.value("ProtectHome").unwrap_or("no");
    if is_below(&["/home", "/root", "/run/user"])
        && home != "read-only"
        && (home == "tmpfs" || unit.is_on("ProtectHome"))
    {
        return Some(format!("ProtectHome={home}"));
    }
    let has_private_tmp = unit.is_on("PrivateTmp")
        || unit.is_on("DynamicUser")
        || unit.value("PrivateTmp") == Some("disconnected");
    if is_below(&["/tmp", "/var/tmp"]) && has_private_tmp {
        return Some("PrivateTmp=".to_owned());
    }
    let keys = [
        "InaccessiblePaths",
        "InaccessibleDirectories",
        "TemporaryFileSystem",
    ];
    Some(format!("{}=", keys.into_iter().find(covers)?))
}

/// The number of components of the longest path in a list that is `file` or a folder above it.
pub(crate) fn covering(unit: &Unit, key: &str, file: &Path) -> Option<usize> {
    let paths = unit.words(key).into_iter().map(|word| {
        let path = word.trim_start_matches(['-', '+']);
        PathBuf::from(path.split(':').next().unwrap_or(path).replace("%%", "%"))
    });
    paths
        .filter(|path| file.starts_with(path))
        .map(|path| path.components().count())
        .max()
}

/// The two ends of a connection through shared memory are in one network namespace.
pub(crate) fn own_network(unit: &Unit) -> Option<Obstacle> {
    let is_apart = unit.is_on("PrivateNetwork") || unit.value("NetworkNamespacePath").is_some();
    is_apart.then_some(Obstacle::OwnNetwork)
}

/// Settings that systemd applies after `Environment=`. Of several files, the last one counts.
pub(crate) fn environment(
    root: &Root,
    unit: &Unit,
    name: &UnitName,
    library: &Path,
) -> Option<Obstacle> {
    let removes = |word: &String| word == "LD_PRELOAD" || word.starts_with("LD_PRELOAD=");
    if unit.words("UnsetEnvironment").iter().any(removes) {
        return Some(Obstacle::Unset);
    }
    let paths = unit.values("EnvironmentFile").into_iter();
    let files = paths.flat_map(|path| {
        let path = expand(path.strip_prefix('-').unwrap_or(path), name);
        glob::files(root, &path)
    });
    let mut set = files.filter_map(|file| Some((preload_in(&root.file(&file))?, file)));
    let (preload, file) = set.next_back()?;
    let mut paths = preload.split([':', ' ']);
    if paths.any(|path| Path::new(path) == library) {
        return None;
    }
    Some(Obstacle::EnvironmentFile(file))
}

/// The value of LD_PRELOAD in a file of variables.
fn preload_in(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?.replace("\\\n", "");
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "LD_PRELOAD").then(|| value.replace(['"', '\''], "").trim().to_owned())
    };
    text.lines().filter_map(value).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "/tmp/saiga/libsaiga.so";

    fn unit(service: &str) -> Unit {
        let mut unit = Unit::default();
        unit.parse(&format!("[Service]\n{service}\n"));
        unit
    }

    #[test]
    fn settings_that_hide_the_library_are_named() {
        let home = "/root/lib/libsaiga.so";
        for (service, library, setting) in [
            ("PrivateTmp=yes", LIBRARY, Some("PrivateTmp=")),
            ("PrivateTmp=disconnected", LIBRARY, Some("PrivateTmp=")),
            ("DynamicUser=yes", LIBRARY, Some("PrivateTmp=")),
            ("PrivateTmp=yes\nPrivateTmp=no", LIBRARY, None),
            ("PrivateTmp=yes\nBindReadOnlyPaths=/tmp", LIBRARY, None),
            ("PrivateTmp=yes", home, None),
            (
                "InaccessiblePaths=-/tmp",
                LIBRARY,
                Some("InaccessiblePaths="),
            ),
            (
                "TemporaryFileSystem=/tmp:ro",
                LIBRARY,
                Some("TemporaryFileSystem="),
            ),
            ("TemporaryFileSystem=/var:ro", LIBRARY, None),
            ("RootDirectory=/srv/db", LIBRARY, Some("RootDirectory=")),
            ("RootDirectory=/", LIBRARY, None),
            ("RootImage=/srv/db.raw", LIBRARY, Some("RootImage=")),
            (
                "ProtectHome=yes\nProtectSystem=strict\nReadOnlyPaths=/",
                LIBRARY,
                None,
            ),
            ("ProtectHome=yes", home, Some("ProtectHome=yes")),
            ("ProtectHome=tmpfs", home, Some("ProtectHome=tmpfs")),
            ("ProtectHome=read-only", home, None),
        ] {
            let found = hiding_setting(&unit(service), Path::new(library));
            assert_eq!(found.as_deref(), setting, "{service} {library}");
        }
    }

    #[test]
    fn a_network_of_its_own_is_named() {
        for (service, expected) in [
            ("PrivateNetwork=yes", Some(Obstacle::OwnNetwork)),
            (
                "NetworkNamespacePath=/run/netns/db",
                Some(Obstacle::OwnNetwork),
            ),
            ("PrivateNetwork=yes\nPrivateNetwork=no", None),
        ] {
            assert_eq!(own_network(&unit(service)), expected, "{service}");
        }
    }

    #[test]
    fn settings_that_override_the_drop_in_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).unwrap();
        for (file, text) in [
            ("preloads", "A=1\n LD_PRELOAD=/x.so\n"),
            (
                "plain",
                "A=LD_PRELOAD=\nB=1 \\\nLD_PRELOAD=/x.so\n# LD_PRELOAD=/x.so\n",
            ),
            ("d/.10", "LD_PRELOAD=/x.so"),
            ("d/20 a", "LD_PRELOAD = '/x.so'"),
            ("d/30", "LD_PRELOAD=\"/y.so /tmp/saiga/libsaiga.so\""),
            ("e/db-1", "LD_PRELOAD=/x.so"),
        ] {
            fs::create_dir_all(root.file(file).parent().unwrap()).unwrap();
            fs::write(root.file(file), text).unwrap();
        }
        let file = |file: &str| Some(Obstacle::EnvironmentFile(file.to_owned()));
        for (service, expected) in [
            ("UnsetEnvironment=A LD_PRELOAD", Some(Obstacle::Unset)),
            ("UnsetEnvironment=LD_PRELOAD=/x.so", Some(Obstacle::Unset)),
            ("UnsetEnvironment=LD_PRELOADS", None),
            (
                "EnvironmentFile=/plain\nEnvironmentFile=-/preloads",
                file("/preloads"),
            ),
            ("EnvironmentFile=/plain\nEnvironmentFile=-/missing", None),
            ("EnvironmentFile=/d/20 a", file("/d/20 a")),
            ("EnvironmentFile=-/d/[!3]*", file("/d/20 a")),
            ("EnvironmentFile=-/?/*", file("/e/db-1")),
            ("EnvironmentFile=/d/*", None),
            (
                "EnvironmentFile=/d/*\nEnvironmentFile=/preloads",
                file("/preloads"),
            ),
            ("EnvironmentFile=/d/{20 a}", None),
            ("EnvironmentFile=/d/?10", None),
            ("EnvironmentFile=/e/%p-%i", file("/e/db-1")),
            ("EnvironmentFile=/e/%j-*", file("/e/db-1")),
            ("EnvironmentFile=/preloads\nEnvironmentFile=", None),
        ] {
            let name = "db@1".parse().unwrap();
            let found = environment(&root, &unit(service), &name, Path::new(LIBRARY));
            assert_eq!(found, expected, "{service}");
        }
    }
}
