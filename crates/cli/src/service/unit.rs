//! A service as systemd reads it: the unit's file, then its drop-ins in the order of their names.
//!
//! Spec: `man 5 systemd.unit`, `man 5 systemd.syntax`. Our own drop-in is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::dropin;

/// Where units are, the strongest place first.
const PLACES: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// The settings of the section `[Service]`, in order.
#[derive(Debug, Default)]
pub(super) struct Unit {
    settings: Vec<(String, String)>,
}

impl Unit {
    /// Reads the unit `name` below `root`.
    ///
    /// # Errors
    /// When there is none, it is masked, or a file cannot be read.
    pub(super) fn read(root: &Path, name: &str) -> anyhow::Result<Self> {
        let names = names_of(name);
        let file = names
            .iter()
            .flat_map(|name| PLACES.map(|place| root.join(place).join(name)))
            .find(|path| path.symlink_metadata().is_ok());
        let Some(file) = file else {
            bail!(
                "there is no unit {name} below {}",
                root.join(PLACES[0]).display()
            );
        };
        if fs::read_link(&file).is_ok_and(|to| to == Path::new("/dev/null")) {
            bail!("{name} is masked ({} leads to /dev/null)", file.display());
        }
        let mut unit = Self::default();
        for path in [file].into_iter().chain(drop_ins(root, &names)) {
            let text = fs::read_to_string(&path);
            unit.parse(&text.with_context(|| format!("cannot read {}", path.display()))?);
        }
        Ok(unit)
    }

    fn parse(&mut self, text: &str) {
        let joined = text.replace("\\\n", " ");
        let mut in_service = false;
        for line in joined.lines().map(str::trim) {
            if line.starts_with('[') {
                in_service = line == "[Service]";
            }
            let comment = line.starts_with('#') || line.starts_with(';');
            if let (true, false, Some((key, value))) = (in_service, comment, line.split_once('=')) {
                self.settings
                    .push((key.trim().to_owned(), value.trim().to_owned()));
            }
        }
    }

    /// The last value of a setting that has one; an empty one takes it back.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        let last = self.settings.iter().rev().find(|(name, _)| name == key)?;
        Some(last.1.as_str()).filter(|value| !value.is_empty())
    }

    /// All values of a list; an empty one takes back those before it.
    pub(super) fn values(&self, key: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (name, value) in &self.settings {
            match (name == key, value.is_empty()) {
                (true, true) => values.clear(),
                (true, false) => values.push(value.as_str()),
                (false, _) => {}
            }
        }
        values
    }

    /// The words of all values of a list.
    pub(super) fn words(&self, key: &str) -> Vec<String> {
        self.values(key).into_iter().flat_map(split).collect()
    }

    /// Whether a yes-or-no setting says yes.
    pub(super) fn is_on(&self, key: &str) -> bool {
        let value = self.value(key).unwrap_or("no").to_ascii_lowercase();
        ["1", "yes", "y", "true", "t", "on"].contains(&value.as_str())
    }

    /// A variable as `Environment=` sets it last.
    pub(super) fn environment(&self, variable: &str) -> Option<String> {
        let assignments = self.words("Environment");
        let value = assignments
            .iter()
            .rev()
            .find_map(|word| word.split_once('=').filter(|(name, _)| *name == variable))?;
        Some(value.1.replace("%%", "%"))
    }
}

/// The unit's own name and, for an instance of a template, the template's.
fn names_of(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    if let Some((stem, instance)) = name.split_once('@')
        && instance != ".service"
    {
        names.push(format!("{stem}@.service"));
    }
    names
}

/// Drop-ins by file name; of equal names the strongest place's, and the unit's over its template's.
fn drop_ins(root: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    let general = ["service.d".to_owned()];
    let folders = names.iter().map(|name| format!("{name}.d")).chain(general);
    for folder in folders.flat_map(|folder| PLACES.map(|place| root.join(place).join(&folder))) {
        for entry in fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".conf") && name != dropin::FILE {
                found.entry(name).or_insert(entry.path());
            }
        }
    }
    found.into_values().collect()
}

/// Words as systemd splits them: blanks divide, quotes keep together.
fn split(value: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in value.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_nothing_takes_back() {
        let mut unit = Unit::default();
        unit.parse("[Unit]\nUser=no\n[Service]\nUser=a\n# User=c\nEnvironment=A=1 \"B=2 3\"\n");
        unit.parse("[Service]\nUser=b\nEnvironment=A=4\nLimit=1\nLimit=\nLimit=2 \\\n 3\n");
        assert_eq!(unit.value("User"), Some("b"));
        assert_eq!(unit.environment("A").as_deref(), Some("4"));
        assert_eq!(unit.environment("B").as_deref(), Some("2 3"));
        assert_eq!(unit.words("Limit"), ["2", "3"]);
        unit.parse("[Service]\nEnvironment=\nUser=");
        assert_eq!((unit.environment("A"), unit.value("User")), (None, None));
    }
}
