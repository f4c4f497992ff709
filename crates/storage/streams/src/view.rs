//! Which directories belong to which database, and so which rules decide over a path.
//!
//! A database is one directory and what its links lead to (PostgreSQL's pg_wal and tablespaces): each of these is a
//! branch, with the path at which it appears in the database.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::rules::{Place, Rule, Rules};

/// A directory that belongs to a database.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    /// Where it is, without links.
    pub(crate) dir: PathBuf,
    /// Where it appears in the database: nothing for the database's own directory.
    pub(crate) prefix: PathBuf,
    /// The rules of its database.
    pub(crate) rules: Arc<Rules>,
    /// Which database it belongs to.
    pub(crate) database: usize,
    /// Its file system.
    pub(crate) device: (u32, u32),
    /// The mount by which we see it.
    pub(crate) mount: Option<u64>,
}

/// All branches: those that were given first, which go before what is found.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(crate) branches: Vec<Branch>,
}

impl View {
    /// The branch that `path` is below, the deepest of several and the first of those; and its path in the database.
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

    /// The rule for the file at `path`.
    pub(crate) fn decide(&self, path: &Path) -> Option<&Rule> {
        let (branch, relative) = self.branch(path)?;
        let place = Place {
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
    fn links_are_seen_as_the_database_sees_them() {
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
