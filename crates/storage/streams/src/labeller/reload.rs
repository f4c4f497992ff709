//! Rules that are read again: when their file changes, or when asked to. Bad ones change nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Database, Labeller, Level};
use crate::counters::count;
use crate::rules::{RuleSet, Rules, RulesError, Warning};

/// The rules of each database, and the text that they were read from.
pub(super) struct Loaded {
    pub(super) rules: Vec<Arc<Rules>>,
    pub(super) warnings: Vec<Warning>,
    texts: Vec<Option<Vec<u8>>>,
}

/// Why rules are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Because {
    /// Something happened where they are.
    Changed,
    /// Somebody wants it.
    Asked,
}

impl Loaded {
    pub(super) fn load(databases: &[Database], force: bool) -> Result<Self, RulesError> {
        // First the texts: what changes between the two is read again.
        let texts = texts(databases);
        let (mut all, mut warnings) = (Vec::new(), Vec::new());
        for database in databases {
            let mut joined = Rules::default();
            for set in &database.rules {
                let (rules, doubts) = set.load()?;
                joined.rules.extend(rules.rules);
                warnings.extend(doubts);
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

/// The files among the rule sets.
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
    /// The directories of the rule files: editors replace files, so it is the names that are watched.
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

    pub(super) fn reload(&mut self, because: Because) {
        let databases = &self.options.databases;
        if because == Because::Changed && texts(databases) == self.loaded.texts {
            return;
        }
        match Loaded::load(databases, self.options.force) {
            Err(error) => {
                count(&self.counters.bad_rules);
                self.loaded.texts = texts(databases);
                self.say(Level::Warn, &format!("the old rules stay: {error}"));
            }
            Ok(loaded) => {
                count(&self.counters.reloads);
                self.loaded = loaded;
                for warning in &self.loaded.warnings {
                    self.say(Level::Warn, &warning.to_string());
                }
                self.publish();
                self.look();
                let rules = self.loaded.rules.iter().map(|rules| rules.rules.len());
                let rules: usize = rules.sum();
                self.say(
                    Level::Info,
                    &format!("{rules} rules read again and applied"),
                );
            }
        }
    }
}
