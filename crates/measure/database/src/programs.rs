//! Finds the programs of a database system in `PATH` and in Debian's folders outside of `PATH`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use saiga_process::child::SpawnError;

use crate::engine::{Engine, Program};

/// Folders of servers, which are not in the `PATH` of ordinary users.
const SERVICES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// Folder with a subfolder per version of PostgreSQL, which contains `bin`.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// Paths of programs by name.
pub type Programs = BTreeMap<&'static str, PathBuf>;

/// Finds the server of `engine`, `more` programs, and the program that creates its data directory.
/// All are searched beside the server first, because `/usr/bin/pgbench` of Debian is a script that
/// selects a version by its own rules.
///
/// # Errors
/// Fails if a program is not installed.
pub fn find(engine: Engine, more: &[Program]) -> Result<Programs, SpawnError> {
    let mut folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    folders.extend(SERVICES.map(PathBuf::from));
    folders.extend(postgres_folders());
    let (server, _) = engine.server();
    let mut found = Programs::from([(server, in_one_of(&folders, engine.server())?)]);
    folders.splice(0..0, found[server].parent().map(Path::to_owned));
    for wanted in more.iter().copied().chain([engine.installer()]) {
        found.insert(wanted.0, in_one_of(&folders, wanted)?);
    }
    Ok(found)
}

fn in_one_of(folders: &[PathBuf], (program, package): Program) -> Result<PathBuf, SpawnError> {
    let mut paths = folders.iter().map(|folder| folder.join(program));
    paths
        .find(|path| is_executable(path))
        .ok_or_else(|| SpawnError::NotInstalled {
            program: program.to_owned(),
            package: package.to_owned(),
        })
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The `bin` folders of all installed versions of PostgreSQL, the newest first.
fn postgres_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(POSTGRES_VERSIONS)
        .into_iter()
        .flatten()
        .flatten();
    let version = |name: &str| name.parse::<f64>().ok();
    let mut versions: Vec<(f64, PathBuf)> = entries
        .filter_map(|entry| {
            Some((
                version(entry.file_name().to_str()?)?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    versions.sort_by(|left, right| right.0.total_cmp(&left.0));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let folders = [dir.path().to_owned()];
        let error = in_one_of(&folders, ("sysbench", "sysbench")).unwrap_err();
        assert!(
            error.to_string().contains("sysbench is not installed"),
            "{error}"
        );
        fs::write(dir.path().join("sysbench"), "").unwrap();
        assert!(
            in_one_of(&folders, ("sysbench", "sysbench")).is_err(),
            "not executable"
        );
    }
}
