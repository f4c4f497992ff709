//! Finds the programs of a database system, in the places where Debian hides them too.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use saiga_experiment::process::SpawnError;

use crate::engine::Engine;

/// Services live outside the search path of ordinary users.
const SERVICES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// One folder for each version of PostgreSQL, with `bin` in it.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// The paths of programs, by name.
pub(crate) type Programs = BTreeMap<&'static str, PathBuf>;

/// The server of `engine` and what makes its data.
pub(crate) fn find_server(engine: Engine) -> Result<Programs, SpawnError> {
    let [server, _] = engine.measured_programs();
    find_all(server, [engine.installer()])
}

/// All programs that `engine` needs. PostgreSQL's stand beside its server: in the search
/// path Debian has a script of the same name, which picks a version by its own rules.
pub(crate) fn find(engine: Engine) -> Result<Programs, SpawnError> {
    let [server, load] = engine.measured_programs();
    find_all(server, [load, engine.installer()])
}

/// A server, and others that may stand beside it.
fn find_all<const N: usize>(
    server: (&'static str, &'static str),
    others: [(&'static str, &'static str); N],
) -> Result<Programs, SpawnError> {
    let mut places: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    places.extend(SERVICES.map(PathBuf::from));
    places.extend(postgres_folders());
    let server = (server.0, in_one_of(&places, server)?);
    places.splice(0..0, server.1.parent().map(Path::to_owned));
    let others = others.map(|wanted| Ok((wanted.0, in_one_of(&places, wanted)?)));
    [Ok(server)].into_iter().chain(others).collect()
}

fn in_one_of(places: &[PathBuf], wanted: (&str, &str)) -> Result<PathBuf, SpawnError> {
    let (program, package) = wanted;
    let mut paths = places.iter().map(|folder| folder.join(program));
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

/// Of each installed version of PostgreSQL, the newest first.
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
        let places = [dir.path().to_owned()];
        let error = in_one_of(&places, ("sysbench", "sysbench")).unwrap_err();
        assert!(
            error.to_string().contains("sysbench is not installed"),
            "{error}"
        );
        fs::write(dir.path().join("sysbench"), "").unwrap();
        assert!(
            in_one_of(&places, ("sysbench", "sysbench")).is_err(),
            "not executable"
        );
    }
}
