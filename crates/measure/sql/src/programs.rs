//! Finds the programs of a database system in `PATH` and in Debian's folders outside of `PATH`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use saiga_experiment::process::SpawnError;

use crate::engine::Engine;

/// Folders of servers, which are not in the `PATH` of ordinary users.
const SERVICES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// Folder with a subfolder per version of PostgreSQL, which contains `bin`.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// Paths of programs by name.
pub(crate) type Programs = BTreeMap<&'static str, PathBuf>;

/// Finds the server of `engine` and the program that creates its data directory.
pub(crate) fn find_server(engine: Engine) -> Result<Programs, SpawnError> {
    let [server, _] = engine.measured_programs();
    find_all(server, [engine.installer()])
}

/// Finds all programs that `engine` needs. Programs of PostgreSQL are searched beside its server
/// first, because `/usr/bin/pgbench` of Debian is a script that selects a version by its own rules.
pub(crate) fn find(engine: Engine) -> Result<Programs, SpawnError> {
    let [server, load] = engine.measured_programs();
    find_all(server, [load, engine.installer()])
}

/// Finds a server, and other programs, beside the server first.
fn find_all<const N: usize>(
    server: (&'static str, &'static str),
    others: [(&'static str, &'static str); N],
) -> Result<Programs, SpawnError> {
    let mut folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    folders.extend(SERVICES.map(PathBuf::from));
    folders.extend(postgres_folders());
    let server = (server.0, in_one_of(&folders, server)?);
    folders.splice(0..0, server.1.parent().map(Path::to_owned));
    let others = others.map(|wanted| Ok((wanted.0, in_one_of(&folders, wanted)?)));
    [Ok(server)].into_iter().chain(others).collect()
}

fn in_one_of(folders: &[PathBuf], wanted: (&str, &str)) -> Result<PathBuf, SpawnError> {
    let (program, package) = wanted;
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
