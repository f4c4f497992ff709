//! Which databases a step works on, and sessions with them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::driver::connection::Sessions;
use saiga_tpcc::props::{Engine, Props};

use super::direct::Direct;
use crate::exit;

/// The options that name databases.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Targets {
    /// A props file of BenchmarkSQL 5, or one of our form (*.toml); several for several databases
    /// (default: one warehouse in SQLite, ./saiga-tpcc.db)
    #[arg(long, value_name = "FILE", num_args = 1..)]
    props: Vec<PathBuf>,
    #[command(flatten)]
    direct: Direct,
}

/// The option that names the user's own statements.
#[derive(Debug, Default, clap::Args)]
pub(super) struct OwnSql {
    /// Folder with sql.DB/STEP.sql and sql.common/STEP.sql in place of ours (default: that of the
    /// props file, when it has them)
    #[arg(long = "sql", value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// A database and how it is spoken to.
#[derive(Debug)]
pub(super) struct Target {
    /// What its props file says.
    pub(super) props: Props,
    pub(super) options: Options,
}

impl Targets {
    /// All of them, in the order of the command line; what has no meaning here is named.
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
    /// The folder for this props file.
    pub(super) fn of(&self, props: &Props) -> anyhow::Result<Option<PathBuf>> {
        let folders = [format!("sql.{}", props.db), "sql.common".to_owned()];
        let has = |dir: &Path| folders.iter().any(|folder| dir.join(folder).is_dir());
        match &self.folder {
            Some(dir) if has(dir) => Ok(Some(dir.clone())),
            Some(dir) => bail!(
                "--sql {}: it has neither {}",
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
    /// Of a props file; what of it has no meaning here is named.
    fn new(props: Props) -> anyhow::Result<Self> {
        let options = Options::of(&props.url).with_context(|| props.path.display().to_string())?;
        let named = |what: &str, list: &[String]| {
            if !list.is_empty() {
                let path = props.path.display();
                exit::say(&format!("{path}: {what}: {}", list.join(", ")));
            }
        };
        named(
            "parameters of conn= without a meaning here",
            &options.ignored,
        );
        named("hosts of conn= that are not used", &props.url.others);
        Ok(Self { props, options })
    }

    /// A file of SQLite, which needs no server.
    pub(super) fn sqlite(path: &Path, warehouses: u32) -> anyhow::Result<Self> {
        let path = path.display();
        let text =
            format!("conn=jdbc:sqlite:{path}\nwarehouses={warehouses}\nterminals=4\nrunMins=1\n");
        Self::new(Props::parse(PathBuf::from("(no props file)"), &text)?)
    }

    /// Logs in. A file of SQLite may be missing.
    pub(super) fn open(&self) -> Result<Box<dyn Session>, ConnectError> {
        let Props {
            url,
            user,
            password,
            ..
        } = &self.props;
        connect(url, user, password, &self.options)
    }

    /// What terminals log in with.
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

    /// Logs in to a database that must be there.
    pub(super) fn open_existing(&self) -> anyhow::Result<Box<dyn Session>> {
        self.must_exist()?;
        Ok(self.open()?)
    }

    /// Whether there is something to log in to, as far as can be told without: SQLite would make
    /// the file.
    pub(super) fn exists(&self) -> bool {
        let url = &self.props.url;
        url.engine != Engine::Sqlite || Path::new(&url.database).exists()
    }

    pub(super) fn must_exist(&self) -> anyhow::Result<()> {
        if !self.exists() {
            bail!("there is no such file; `saiga bench tpcc build` makes it");
        }
        Ok(())
    }

    /// The database in words.
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
