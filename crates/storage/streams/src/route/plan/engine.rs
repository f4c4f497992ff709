//! The servers with a plan, the files that each can keep on a file system of its own, and the
//! settings for that.
//!
//! Every entry was tested on a server (MySQL 9.7, MariaDB 10.11, PostgreSQL 15): stopped, files
//! moved, settings changed, started, killed, started again, and everything moved back.

use std::path::{Path, PathBuf};

use globset::Glob;

/// A server with a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    MySql,
    MariaDb,
    Postgres,
}

/// Files that a plan puts into a namespace of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Its name, which is also the label of its file system: at most 12 characters (`mkfs.xfs -L`).
    pub(super) name: &'static str,
    /// Patterns, for `find -name`, of the entries of the data directory that belong to it.
    pub(super) entries: Vec<String>,
    /// Lines of the server's configuration that name its new directory.
    pub(super) settings: Vec<String>,
    /// Whether it can grow with the load, beyond the present size of its files.
    pub(super) grows: bool,
    /// A file, or a directory of files, that the server creates at its start. A plan does not move
    /// it; it shows where a running server keeps this part.
    pub(super) created: Option<&'static str>,
}

impl Part {
    fn new(name: &'static str, entries: &[&str], settings: &[&str], grows: bool) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            name,
            entries: owned(entries),
            settings: owned(settings),
            grows,
            created: None,
        }
    }

    fn with_created(self, created: &'static str) -> Self {
        Self {
            created: Some(created),
            ..self
        }
    }

    /// Whether an entry of the data directory belongs to this part.
    pub(super) fn has(&self, entry: &Path) -> bool {
        let globs = self.entries.iter().filter_map(|glob| Glob::new(glob).ok());
        let mut globs = globs.map(|glob| glob.compile_matcher());
        globs.any(|glob| glob.is_match(entry))
    }
}

impl Engine {
    /// Detects the server from the files of its data directory. Otherwise returns why there is no
    /// plan.
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
                "Redis renames its append-only files and snapshots between its directories, which \
                 fails across file systems; use labels instead (`saiga streams run`)",
            )
        } else {
            Err(
                "it is not the data directory of MySQL 8 or later (no mysql.ibd), MariaDB (no \
                 aria_log_control) or PostgreSQL 10 or later (no PG_VERSION and pg_wal)",
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

    /// The name of the built-in rule set.
    pub(super) fn rules(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::MariaDb => "mariadb",
            Self::Postgres => "postgres",
        }
    }

    /// The systemd unit of the server in Debian, and that in Red Hat.
    pub(super) fn service(self) -> (&'static str, &'static str) {
        match self {
            Self::MySql => ("mysql", "mysqld"),
            Self::MariaDb => ("mariadb", "mariadb"),
            Self::Postgres => ("postgresql", "postgresql"),
        }
    }

    /// A query for the paths of its tablespaces; PostgreSQL has links instead, which are found.
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

    /// Returns the parts that leave the data directory. Undo tablespaces are a part only if there
    /// are any.
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
                created: None,
            });
        }
        parts
    }
}

/// The parts of MySQL without its binary logs.
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
        .with_created("#innodb_temp"),
    ]
}

/// The parts of MariaDB without its binary logs. Its doublewrite area is in the system tablespace.
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
                // Relative to innodb_data_home_dir, with which it must not share a handle.
                "innodb_temp_data_file_path = ../temporary/ibtmp1:12M:autoextend",
                "tmpdir = /mnt/temporary",
            ],
            true,
        )
        .with_created("ibtmp1"),
    ]
}

impl Part {
    /// Returns the size of its files in bytes.
    pub(super) fn bytes(&self, files: &[(PathBuf, u64)]) -> u64 {
        let own = files.iter().filter(|(file, _)| {
            let entry = file.components().next();
            entry.is_some_and(|entry| self.has(Path::new(entry.as_os_str())))
        });
        own.map(|(_, bytes)| bytes).sum()
    }
}

/// Returns the base name of the binary logs, by the only index file in the data directory that is
/// not of relay logs. Relay logs stay: replication stores their paths in tables.
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

/// Whether a shell, sed and a configuration file read `text` literally.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}
