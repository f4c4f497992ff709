//! Maps paths to databases, and so to the rules that apply to them.
//!
//! A database is one directory and the directories to which its links lead (PostgreSQL's pg_wal and
//! tablespaces). Each of these is a branch, with the path at which it appears in the database.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::rules::{FilePaths, Rule, Rules};

/// A directory that belongs to a database.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    /// Absolute path without links.
    pub(crate) dir: PathBuf,
    /// Its path in the database; empty for the database's own directory.
    pub(crate) prefix: PathBuf,
    pub(crate) rules: Arc<Rules>,
    /// Index of its database in [`Options::databases`](crate::labeller::Options).
    pub(crate) database: usize,
    /// Device number of its file system.
    pub(crate) device: (u32, u32),
    /// ID of its mount, if the kernel reports one (Linux 5.8).
    pub(crate) mount: Option<u64>,
}

/// All branches: first those that were given, then those that were found.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(crate) branches: Vec<Branch>,
}

impl View {
    /// Returns the branch that contains `path`, and the path in the database. Of several branches,
    /// the deepest counts; of equally deep ones, the first.
    pub(crate) fn branch(&self, path: &Path) -> Option<(&Branch, PathBuf)> {
        let below = |branch: &'_ Branch| path.strip_prefix(&branch.dir).ok().map(Path::to_owned);
        let found = self.branches.iter().filter_map(|branch| {
            let rest = below(branch)?;
            let whole = if rest.as_os_str().is_empty() {
                branch.prefix.clone()
            } else {
                branch.prefix.join(rest)
            };
            Some((branch, whole))
        });
        found.min_by_key(|(branch, _)| Reverse(branch.dir.as_os_str().len()))
    }

    /// Returns the rule for the file at `path`.
    pub(crate) fn decide(&self, path: &Path) -> Option<&Rule> {
        let (branch, relative) = self.branch(path)?;
        let place = FilePaths {
            relative: &relative,
            absolute: path,
        };
        branch.rules.find(&place).map(|(_, rule)| rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::Hint;
    use crate::rules::builtin;

    fn branch(dir: &str, prefix: &str, set: &str) -> Branch {
        Branch {
            dir: dir.into(),
            prefix: prefix.into(),
            rules: Arc::new(builtin::find(set).unwrap()),
            database: 0,
            device: (8, 1),
            mount: None,
        }
    }

    #[test]
    fn linked_directories_have_the_path_that_the_database_uses() {
        let view = View {
            branches: vec![
                branch("/data/pg", "", "postgres"),
                branch("/fast/wal", "pg_wal", "postgres"),
                branch("/data/pg/redis", "", "redis"),
                branch("/data/pg/redis", "linked", "postgres"),
            ],
        };
        for (path, expected) in [
            ("/data/pg/base/5/16384", Some(Hint::Long)),
            ("/fast/wal/0000000100000000000000A7", Some(Hint::Short)),
            ("/fast/wall/0000000100000000000000A7", None),
            ("/data/pgx/base/5/16384", None),
            ("/data/pg/redis/appendonly.aof", Some(Hint::Medium)),
            ("/data/pg", None),
        ] {
            let rule = view.decide(Path::new(path));
            assert_eq!(rule.map(|rule| rule.hint), expected, "{path}");
        }
    }
}
