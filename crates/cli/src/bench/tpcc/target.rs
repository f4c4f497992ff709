//! The databases that a step works on, and sessions with them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::driver::connection::Sessions;
use saiga_tpcc::props::{Engine, Props};

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

/// A database and how to connect to it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) props: Props,
    pub(super) options: Options,
}

impl Targets {
    /// All databases in the order of the command line. Prints the settings that have no effect.
    pub(super) fn all(&self) -> anyhow::Result<Vec<Target>> {
        if let Some(props) = self.direct.props()? {
            return Ok(vec![Target::new(props)?]);
        }
        if self.props.is_empty() {
            return Ok(vec![Target::sqlite(Path::new("./saiga-tpcc.db"), 1)?]);
        }
        let read = |path: &PathBuf| Target::new(Props::read(path)?);
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

impl Target {
    /// Makes a target. Prints the settings that have no effect.
    fn new(props: Props) -> anyhow::Result<Self> {
        let options = Options::of(&props.url).with_context(|| props.path.display().to_string())?;
        let named = |what: &str, list: &[String]| {
            if !list.is_empty() {
                let path = props.path.display();
                exit::say(&format!("{path}: {what}: {}", list.join(", ")));
            }
        };
        named("parameters of conn= without an effect", &options.ignored);
        named("hosts of conn= that are not used", &props.url.others);
        Ok(Self { props, options })
    }

    /// An SQLite file, which needs no server.
    pub(super) fn sqlite(path: &Path, warehouses: u32) -> anyhow::Result<Self> {
        let path = path.display();
        let text =
            format!("conn=jdbc:sqlite:{path}\nwarehouses={warehouses}\nterminals=4\nrunMins=1\n");
        Self::new(Props::parse(PathBuf::from("(no props file)"), &text)?)
    }

    /// Logs in. An SQLite file is created if it does not exist.
    pub(super) fn open(&self) -> Result<Box<dyn Session>, ConnectError> {
        let Props {
            url,
            user,
            password,
            ..
        } = &self.props;
        connect(url, user, password, &self.options)
    }

    pub(super) fn sessions(&self) -> Sessions {
        let Props {
            url,
            user,
            password,
            ..
        } = self.props.clone();
        let options = self.options.clone();
        Sessions {
            url,
            user,
            password,
            options,
        }
    }

    /// Logs in to an existing database.
    pub(super) fn open_existing(&self) -> anyhow::Result<Box<dyn Session>> {
        self.must_exist()?;
        Ok(self.open()?)
    }

    /// Whether the database exists, if that is known without a connection: SQLite would create the
    /// file.
    pub(super) fn exists(&self) -> bool {
        let url = &self.props.url;
        url.engine != Engine::Sqlite || Path::new(&url.database).exists()
    }

    pub(super) fn must_exist(&self) -> anyhow::Result<()> {
        if !self.exists() {
            bail!("the file does not exist; create it with `saiga bench tpcc build`");
        }
        Ok(())
    }

    pub(super) fn name(&self) -> String {
        let url = &self.props.url;
        match url.engine {
            Engine::Sqlite => format!("sqlite file {}", url.database),
            Engine::MySql | Engine::Postgres | Engine::OpenGauss => {
                format!(
                    "{} at {}, database {}",
                    url.engine,
                    self.options.address(url),
                    url.database
                )
            }
        }
    }
}
