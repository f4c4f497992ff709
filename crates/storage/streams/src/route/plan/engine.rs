//! Servers whose files can be on several file systems, and which of their files those are.
//!
//! Every entry was tried: the files moved while the server was stopped, the settings made, the
//! server started, killed, started again, and moved back (MySQL 9.7, MariaDB 10.11, PostgreSQL 15).

use std::path::{Path, PathBuf};

use globset::Glob;

/// A server with a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    MySql,
    MariaDb,
    Postgres,
}

/// Files that have a namespace of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The label of its file system: `mkfs.xfs -L` takes 12 characters.
    pub(super) name: &'static str,
    /// Which entries of the data directory go there, as `find -name` takes it.
    pub(super) entries: Vec<String>,
    /// Lines of the server's configuration that make the server look there.
    pub(super) settings: Vec<String>,
    /// Whether it grows with what clients do, beyond what its files take now.
    pub(super) grows: bool,
    /// A file, or a directory of files, that the server makes when it starts. A plan does not move
    /// it; its place shows where a running server keeps this part.
    pub(super) made: Option<&'static str>,
}

impl Part {
    fn new(name: &'static str, entries: &[&str], settings: &[&str], grows: bool) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            name,
            entries: owned(entries),
            settings: owned(settings),
            grows,
            made: None,
        }
    }

    fn making(self, made: &'static str) -> Self {
        Self {
            made: Some(made),
            ..self
        }
    }

    /// Whether the entry of the data directory with this name goes there.
    pub(super) fn has(&self, entry: &Path) -> bool {
        let globs = self.entries.iter().filter_map(|glob| Glob::new(glob).ok());
        let mut globs = globs.map(|glob| glob.compile_matcher());
        globs.any(|glob| glob.is_match(entry))
    }
}

impl Engine {
    /// The server whose data directory has these files; or why there is no plan.
    pub(super) fn of(files: &[(PathBuf, u64)]) -> Result<Self, &'static str> {
        let has = |name: &str| files.iter().any(|(file, _)| file == Path::new(name));
        let has_folder = |name: &str| files.iter().any(|(file, _)| file.starts_with(name));
        if has("mysql.ibd") {
            Ok(Self::MySql)
        } else if has("aria_log_control") {
            Ok(Self::MariaDb)
        } else if has("PG_VERSION") && has_folder("pg_wal") {
            Ok(Self::Postgres)
        } else if has_folder("appendonlydir") || has("dump.rdb") || has("appendonly.aof") {
            Err(
                "Redis renames its append-only files and snapshots between its own folders, which fails across file \
                 systems; labels (`saiga streams run`) are what it can have",
            )
        } else {
            Err(
                "plans are for the data directory of MySQL 8 and later (mysql.ibd), MariaDB (aria_log_control) and \
                 PostgreSQL 10 and later (PG_VERSION, pg_wal), and this is none of them",
            )
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// The built-in set of rules.
    pub(super) fn rules(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::MariaDb => "mariadb",
            Self::Postgres => "postgres",
        }
    }

    /// The unit of the server in Debian, and that of Red Hat.
    pub(super) fn service(self) -> (&'static str, &'static str) {
        match self {
            Self::MySql => ("mysql", "mysqld"),
            Self::MariaDb => ("mariadb", "mariadb"),
            Self::Postgres => ("postgresql", "postgresql"),
        }
    }

    /// The query that says where its tablespaces lie; those of PostgreSQL are links.
    pub(super) fn tablespaces(self) -> &'static str {
        match self {
            Self::MySql => {
                "# mysql -e \"SELECT @@innodb_directories; SELECT FILE_NAME FROM information_schema.FILES\"\n"
            }
            Self::MariaDb => {
                "# mysql -e \"SELECT NAME, FILENAME FROM information_schema.INNODB_SYS_TABLESPACES\"\n"
            }
            Self::Postgres => "",
        }
    }

    /// What does not stay in the data directory; what has no files now and may never have any does.
    pub(super) fn parts(self, files: &[(PathBuf, u64)]) -> Vec<Part> {
        let mut parts = match self {
            Self::MySql => mysql(),
            Self::MariaDb => mariadb(),
            Self::Postgres => vec![Part::new("wal", &["pg_wal"], &[], true)],
        };
        parts.retain(|part| part.name != "undo" || part.bytes(files) > 0);
        if self != Self::Postgres
            && let Some(stem) = binary_log(files)
        {
            let entries = ["[0-9]*", "index", "state"].map(|end| format!("{stem}.{end}"));
            parts.push(Part {
                name: "log",
                entries: entries.into(),
                settings: vec![format!("log_bin = /mnt/log/{stem}")],
                grows: true,
                made: None,
            });
        }
        parts
    }
}

/// What MySQL can have elsewhere beside its binary logs.
fn mysql() -> Vec<Part> {
    vec![
        Part::new(
            "doublewrite",
            &["#ib_*.dblwr", "#ib_*.bdblwr"],
            &["innodb_doublewrite_dir = /mnt/doublewrite"],
            false,
        ),
        Part::new(
            "redo",
            &["#innodb_redo", "ib_logfile*"],
            &["innodb_log_group_home_dir = /mnt/redo"],
            false,
        ),
        Part::new(
            "undo",
            &["undo_[0-9][0-9][0-9]", "*.ibu"],
            &["innodb_undo_directory = /mnt/undo"],
            true,
        ),
        Part::new(
            "temporary",
            &[],
            &[
                "innodb_temp_tablespaces_dir = /mnt/temporary",
                "tmpdir = /mnt/temporary",
            ],
            true,
        )
        .making("#innodb_temp"),
    ]
}

/// The same for MariaDB, whose doublewrite area is in its system tablespace.
fn mariadb() -> Vec<Part> {
    vec![
        Part::new(
            "doublewrite",
            &["ibdata*"],
            &["innodb_data_home_dir = /mnt/doublewrite"],
            true,
        ),
        Part::new(
            "redo",
            &["ib_logfile*"],
            &["innodb_log_group_home_dir = /mnt/redo"],
            false,
        ),
        Part::new(
            "undo",
            &["undo[0-9][0-9][0-9]"],
            &["innodb_undo_directory = /mnt/undo"],
            true,
        ),
        Part::new(
            "temporary",
            &[],
            &[
                // Below innodb_data_home_dir, which must not share its handle.
                "innodb_temp_data_file_path = ../temporary/ibtmp1:12M:autoextend",
                "tmpdir = /mnt/temporary",
            ],
            true,
        )
        .making("ibtmp1"),
    ]
}

impl Part {
    /// What its files take.
    pub(super) fn bytes(&self, files: &[(PathBuf, u64)]) -> u64 {
        let own = files.iter().filter(|(file, _)| {
            let entry = file.components().next();
            entry.is_some_and(|entry| self.has(Path::new(entry.as_os_str())))
        });
        own.map(|(_, bytes)| bytes).sum()
    }
}

/// The name of the binary logs: that of the only index in the data directory that is not of relay
/// logs, which replication has by their paths in tables.
pub(super) fn binary_log(files: &[(PathBuf, u64)]) -> Option<&str> {
    let stems = files.iter().filter_map(|(file, _)| {
        let stem = file.to_str()?.strip_suffix(".index")?;
        (!stem.contains("relay") && is_plain(stem) && !stem.contains('/')).then_some(stem)
    });
    let mut stems = stems.filter(|stem| {
        let first = format!("{stem}.0");
        let mut names = files.iter().filter_map(|(file, _)| file.to_str());
        names.any(|name| name.starts_with(&first))
    });
    let stem = stems.next()?;
    stems.next().is_none().then_some(stem)
}

/// Whether a shell, sed and a configuration file read this as it stands.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}
