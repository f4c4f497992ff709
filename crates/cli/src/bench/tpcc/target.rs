//! The options that select the databases of a step.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use saiga_tpcc::props::Props;
use saiga_tpcc::target::Target;

use super::direct::Direct;
use crate::exit;

/// Options that select the databases.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Targets {
    /// A props file of BenchmarkSQL 5, or one in Saiga's TOML format (*.toml); several files for
    /// several databases (default: one warehouse in SQLite, ./saiga-tpcc.db)
    #[arg(long, value_name = "FILE", num_args = 1..)]
    props: Vec<PathBuf>,
    #[command(flatten)]
    direct: Direct,
}

/// Option for the user's own SQL statements.
#[derive(Debug, Default, clap::Args)]
pub(super) struct OwnSql {
    /// Directory with sql.DB/STEP.sql and sql.common/STEP.sql to use instead of the built-in
    /// statements (default: the directory of the props file, if it has them)
    #[arg(long = "sql", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Targets {
    /// All databases in the order of the command line. Prints the settings that have no effect.
    pub(super) fn all(&self) -> anyhow::Result<Vec<Target>> {
        if let Some(props) = self.direct.props()? {
            return Ok(vec![target(props)?]);
        }
        if self.props.is_empty() {
            return Ok(vec![sqlite(Path::new("./saiga-tpcc.db"), 1)?]);
        }
        let read = |path: &PathBuf| target(Props::read(path)?);
        self.props.iter().map(read).collect()
    }
}

impl OwnSql {
    /// The SQL directory for this props file.
    pub(super) fn of(&self, props: &Props) -> anyhow::Result<Option<PathBuf>> {
        let folders = [format!("sql.{}", props.db), "sql.common".to_owned()];
        let has = |dir: &Path| folders.iter().any(|folder| dir.join(folder).is_dir());
        match &self.folder {
            Some(dir) if has(dir) => Ok(Some(dir.clone())),
            Some(dir) => bail!(
                "--sql {}: the directory has neither {}",
                dir.display(),
                folders.join(" nor ")
            ),
            None => Ok(props
                .path
                .parent()
                .filter(|dir| has(dir))
                .map(Path::to_owned)),
        }
    }
}

/// Makes a target. Prints the settings that have no effect.
fn target(props: Props) -> anyhow::Result<Target> {
    let path = props.path.display().to_string();
    let target = Target::new(props).with_context(|| path.clone())?;
    let named = |what: &str, list: &[String]| {
        if !list.is_empty() {
            exit::say(&format!("{path}: {what}: {}", list.join(", ")));
        }
    };
    let ignored = &target.sessions.options.ignored;
    named("parameters of conn= without an effect", ignored);
    named("hosts of conn= that are not used", &target.props.url.others);
    Ok(target)
}

/// An SQLite file, which needs no server.
pub(super) fn sqlite(path: &Path, warehouses: u32) -> anyhow::Result<Target> {
    target(Target::sqlite(path, warehouses)?)
}
