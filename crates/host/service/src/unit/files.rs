//! The files of a unit: where systemd finds the unit, its template, its drop-ins and its aliases.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Unit;
use crate::drop_in;
use crate::name::UnitName;
use crate::replace::FileError;
use crate::root::Root;

/// The folder of units and drop-ins of the administrator.
pub(crate) const ADMIN_FOLDER: &str = "/etc/systemd/system";

/// Folders of units, in order of precedence.
const FOLDERS: [&str; 5] = [
    ADMIN_FOLDER,
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Ends a search along symbolic links that form a cycle.
const ALIASES_MAX: u32 = 8;

/// A unit that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    #[error("there is no unit {name} below {}", root.display())]
    Missing { name: UnitName, root: PathBuf },
    #[error("{name} is masked ({} is a link to /dev/null)", file.display())]
    Masked { name: UnitName, file: PathBuf },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Unit {
    /// Reads the unit `name`, with `ours` as the text of Saiga's drop-in, whatever that file holds.
    pub(crate) fn load(root: &Root, name: &UnitName, ours: &str) -> Result<Self, UnitError> {
        let Some(file) = file_of(root, name) else {
            return Err(UnitError::Missing {
                name: name.clone(),
                root: root.as_path().to_owned(),
            });
        };
        if fs::read_link(&file).is_ok_and(|target| target == Path::new("/dev/null")) {
            return Err(UnitError::Masked {
                name: name.clone(),
                file,
            });
        }
        let mut unit = Self::default();
        unit.parse(&read(&file)?);
        for (file_name, drop_in) in drop_ins(root, name) {
            if file_name == drop_in::FILE {
                unit.parse(ours);
            } else {
                unit.parse(&read(&drop_in)?);
            }
        }
        Ok(unit)
    }
}

fn read(file: &Path) -> Result<String, FileError> {
    fs::read_to_string(file).map_err(FileError::read(file))
}

/// The name of the unit for which `name` stands: an alias is a link to the file of another unit.
pub(crate) fn real_name(root: &Root, name: &UnitName) -> UnitName {
    let mut name = name.clone();
    for _ in 0..ALIASES_MAX {
        let target = file_of(root, &name).and_then(|file| fs::read_link(file).ok());
        let target = target.as_deref().and_then(Path::file_name);
        let target = target.and_then(|target| target.to_str());
        let Some(target) = target.filter(|target| target.ends_with(".service")) else {
            break;
        };
        let Ok(next) = target.parse::<UnitName>() else {
            break;
        };
        let next = next.instantiate(name.instance());
        if next == name || !exists(root, &next) {
            break;
        }
        name = next;
    }
    name
}

pub(crate) fn exists(root: &Root, name: &UnitName) -> bool {
    file_of(root, name).is_some()
}

/// The file that defines the unit, or its template.
fn file_of(root: &Root, name: &UnitName) -> Option<PathBuf> {
    let names = name.file_names();
    let mut files = names
        .iter()
        .flat_map(|name| FOLDERS.map(|folder| root.file(folder).join(name)));
    files.find(|file| file.symlink_metadata().is_ok())
}

/// The aliases of a unit. Their drop-ins apply to the unit, too.
fn aliases(root: &Root, name: &UnitName) -> Vec<UnitName> {
    let entries = FOLDERS
        .iter()
        .flat_map(|folder| fs::read_dir(root.file(folder)));
    let links = entries
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let names = links.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names
        .filter(|alias| alias != name && real_name(root, alias) == *name)
        .collect()
}

/// Drop-ins by file name, Saiga's among them even if its file does not exist. Of drop-ins with the
/// same name, systemd reads the one of the most specific unit, in the folder of highest precedence.
fn drop_ins(root: &Root, name: &UnitName) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::from([(drop_in::FILE.to_owned(), PathBuf::new())]);
    let aliases = aliases(root, name)
        .into_iter()
        .map(|alias| alias.to_string());
    for name in name.drop_in_names().into_iter().chain(aliases) {
        for folder in FOLDERS {
            let folder = root.file(folder).join(format!("{name}.d"));
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(".conf") {
                    found.entry(name).or_insert(entry.path());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A root with these files, each of which sets Nice= to a value.
    fn root_with(files: &[(&str, i32)]) -> (TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).unwrap();
        for (name, nice) in files {
            let file = root.file(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("[Service]\nNice={nice}\n")).unwrap();
        }
        (folder, root)
    }

    fn name(name: &str) -> UnitName {
        name.parse().unwrap()
    }

    #[test]
    fn the_last_drop_in_by_name_overrides_the_others() {
        let unit = ("usr/lib/systemd/system/a-b@.service", 0);
        let ours = "[Service]\nNice=99\n";
        for (drop_in, nice) in [
            ("etc/systemd/system/a-b@c.service.d/z.conf", "1"),
            ("etc/systemd/system/a-b@.service.d/z.conf", "1"),
            ("run/systemd/system/a-@c.service.d/z.conf", "1"),
            ("run/systemd/system/a-@.service.d/z.conf", "1"),
            ("usr/lib/systemd/system/service.d/z.conf", "1"),
            ("etc/systemd/system/a-b@c.service.d/a.conf", "99"),
            ("etc/systemd/system/a-b@c.service.d/saiga.conf", "99"),
            ("etc/systemd/system/a-b@d.service.d/z.conf", "99"),
            ("etc/systemd/system/a-b@c.service.d/z.txt", "99"),
        ] {
            let (_folder, root) = root_with(&[unit, (drop_in, 1)]);
            let read = Unit::load(&root, &name("a-b@c"), ours).unwrap();
            assert_eq!(read.value("Nice"), Some(nice), "{drop_in}");
        }
    }

    #[test]
    fn of_equal_names_one_is_read() {
        let (_folder, root) = root_with(&[
            ("lib/systemd/system/a.service", 1),
            ("usr/local/lib/systemd/system/a.service", 2),
            ("run/systemd/system/b@.service", 3),
            ("run/systemd/system/b@.service.d/z.conf", 4),
            ("run/systemd/system/b@1.service.d/z.conf", 5),
            ("etc/systemd/system/b@.service.d/z.conf", 6),
        ]);
        let nice = |unit| Unit::load(&root, &name(unit), "").unwrap();
        assert_eq!(nice("a").value("Nice"), Some("2"), "/usr/local over /lib");
        assert_eq!(
            nice("b@1").value("Nice"),
            Some("5"),
            "instance over template"
        );
        assert_eq!(nice("b@2").value("Nice"), Some("6"), "/etc over /run");
    }

    #[test]
    fn an_alias_is_resolved_and_its_drop_ins_apply() {
        let (_folder, root) = root_with(&[
            ("lib/systemd/system/a.service", 1),
            ("lib/systemd/system/t@.service", 2),
            ("etc/systemd/system/b.service.d/z.conf", 3),
        ]);
        for (link, target) in [
            (
                "etc/systemd/system/b.service",
                "/lib/systemd/system/a.service",
            ),
            ("etc/systemd/system/c.service", "b.service"),
            ("etc/systemd/system/x@.service", "t@.service"),
            ("etc/systemd/system/loop.service", "pool.service"),
            ("etc/systemd/system/pool.service", "loop.service"),
            ("etc/systemd/system/off.service", "/dev/null"),
        ] {
            symlink(target, root.file(link)).unwrap();
        }
        for (alias, unit) in [
            ("a", "a"),
            ("b", "a"),
            ("c", "a"),
            ("x@1", "t@1"),
            ("off", "off"),
            ("none", "none"),
        ] {
            assert_eq!(real_name(&root, &name(alias)), name(unit));
        }
        real_name(&root, &name("loop")); // Ends.
        let unit = Unit::load(&root, &name("a"), "").unwrap();
        assert_eq!(unit.value("Nice"), Some("3"));
        for (unit, error) in [
            ("off", "off.service is masked"),
            ("none", "there is no unit none.service below"),
        ] {
            let found = Unit::load(&root, &name(unit), "").unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
