//! Loads the rules, and reloads them on SIGHUP and when a rule file changes. If the new rules are
//! invalid, the old rules stay in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Database, Labeller, Level};
use crate::counters::count;
use crate::rules::{RuleSet, Rules, RulesError, Warning};

/// The rules of each database, and the texts of their files.
pub(super) struct Loaded {
    pub(super) rules: Vec<Arc<Rules>>,
    pub(super) warnings: Vec<Warning>,
    /// `None` for a file that could not be read.
    texts: Vec<Option<Vec<u8>>>,
}

/// Why rules are reloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A directory that contains rule files has changed.
    Changed,
    /// SIGHUP.
    Signal,
}

impl Loaded {
    /// Loads the rules of each database, in the order of the databases. With `force`, every rule
    /// also overwrites hints that other programs have set.
    pub(super) fn load(databases: &[Database], force: bool) -> Result<Self, RulesError> {
        // The texts are read first, so that a change between this and the load causes a reload.
        let texts = texts(databases);
        let (mut all, mut warnings) = (Vec::new(), Vec::new());
        for database in databases {
            let mut joined = Rules::default();
            for set in &database.rules {
                let (rules, warned) = set.load()?;
                joined.rules.extend(rules.rules);
                warnings.extend(warned);
            }
            for rule in &mut joined.rules {
                rule.force |= force;
            }
            all.push(Arc::new(joined));
        }
        Ok(Self {
            rules: all,
            warnings,
            texts,
        })
    }
}

/// Returns the paths of the rule files of all databases.
fn files(databases: &[Database]) -> impl Iterator<Item = &Path> {
    let sets = databases.iter().flat_map(|database| &database.rules);
    sets.filter_map(RuleSet::file)
}

fn texts(databases: &[Database]) -> Vec<Option<Vec<u8>>> {
    files(databases)
        .map(|file| std::fs::read(file).ok())
        .collect()
}

impl Labeller<'_> {
    /// Returns the directories of the rule files. The labeller watches directories, not files,
    /// because editors replace files.
    pub(super) fn rule_dirs(&self) -> Vec<PathBuf> {
        let parents = files(&self.options.databases).map(|file| {
            let parent = file.parent().unwrap_or(Path::new(""));
            if parent.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                parent.to_owned()
            }
        });
        parents.collect()
    }

    /// Loads the rules again and labels all files by them. Does nothing on [`Cause::Changed`] if
    /// the texts of the rule files are the same as before.
    pub(super) fn reload(&mut self, cause: Cause) {
        let databases = &self.options.databases;
        // Read before the rules: a change after this moment causes another reload.
        let texts = texts(databases);
        if cause == Cause::Changed && texts == self.loaded.texts {
            return;
        }
        match Loaded::load(databases, self.options.force) {
            Err(error) => {
                count(&self.counters.bad_rules);
                self.loaded.texts = texts;
                self.log(Level::Warn, &format!("the old rules stay: {error}"));
            }
            Ok(loaded) => {
                count(&self.counters.reloads);
                self.loaded = loaded;
                for warning in &self.loaded.warnings {
                    self.log(Level::Warn, &warning.to_string());
                }
                self.publish();
                self.scan_all();
                let rules = self.loaded.rules.iter().map(|rules| rules.rules.len());
                let rules: usize = rules.sum();
                self.log(
                    Level::Info,
                    &format!("{rules} rules read again and applied"),
                );
            }
        }
    }
}
