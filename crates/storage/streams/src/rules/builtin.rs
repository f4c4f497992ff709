//! The built-in rule sets: the files in `sets/`, one for each database.

use std::path::Path;
use std::sync::Arc;

use super::{Origin, Rules, file};

const SETS: [(&str, &str); 6] = [
    ("mysql", include_str!("../../sets/mysql.toml")),
    ("mariadb", include_str!("../../sets/mariadb.toml")),
    ("postgres", include_str!("../../sets/postgres.toml")),
    ("opengauss", include_str!("../../sets/opengauss.toml")),
    ("redis", include_str!("../../sets/redis.toml")),
    ("rocksdb", include_str!("../../sets/rocksdb.toml")),
];

/// Returns the names of all built-in sets.
#[must_use]
pub fn names() -> Vec<&'static str> {
    SETS.iter().map(|(name, _)| *name).collect()
}

/// Returns the built-in set `name`, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<Rules> {
    let (name, text) = SETS.iter().find(|(known, _)| *known == name)?;
    let origin = Origin {
        source: Arc::from(*name),
        line: 0,
        is_builtin: true,
    };
    // A test parses every set, so that none fails here.
    file::parse_from(Path::new(name), text, &origin).ok()
}

#[cfg(test)]
mod tests;
