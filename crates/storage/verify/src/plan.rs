//! The commands that give each kind of file an FDP namespace of its own. Nothing is executed.

use saiga_streams::check::{Row, Standing};
use saiga_streams::route::{self, System};

use crate::directory::Directory;
use crate::{AS_ROOT, VerifyError};

/// Returns the commands, and those that undo them.
///
/// # Errors
/// The plan is already carried out, the directory is not on an NVMe drive, or a file cannot be
/// checked.
pub fn plan(directory: &Directory, system: &System) -> Result<String, VerifyError> {
    let Directory { report, rows, .. } = directory;
    let no_plan = |why: String| VerifyError::NoPlan {
        dir: report.dir.clone(),
        why,
    };
    if report.needs_no_hints() {
        let why = &report.why;
        return Err(no_plan(format!("it is already carried out: {why}")));
    }
    let disk = report.disk.as_ref().ok_or_else(|| {
        no_plan("it is not on an NVMe drive, which --plan needs for namespaces".to_owned())
    })?;
    let is_unseen = |row: &&Row| matches!(row.standing, Standing::Unseen(_));
    if let Some(unseen) = rows.iter().find(is_unseen) {
        let path = unseen.path.display();
        return Err(no_plan(format!("cannot check {path}{AS_ROOT}")));
    }
    let outside = route::outside(&report.dir).map_err(|(path, error)| {
        let path = path.display();
        no_plan(format!("cannot check {path}: {error}{AS_ROOT}"))
    })?;
    let files = rows.iter().map(|row| (row.path.clone(), row.bytes));
    let data = route::Data {
        dir: &report.dir,
        mount: &report.mount,
        disk: &disk.name,
        files: files
            .chain(outside.into_iter().map(|path| (path, 0)))
            .collect(),
    };
    Ok(route::plan(system, &data)?)
}
